package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", path, got, want)
	}
}

// testPlan is a parsed command line without the program around it.
func testPlan(t *testing.T, nranks int, args ...string) *plan {
	t.Helper()
	p, err := tryPlan(nranks, args...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tryPlan(nranks int, args ...string) (*plan, error) {
	o, err := parseOptions(args...)
	if err != nil {
		return nil, err
	}
	return newPlan(o, nranks)
}
