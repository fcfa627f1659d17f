package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestRecordedMachines compares the whole report of each recording with a golden file, as text, and looks at the same as JSON.
func TestRecordedMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			m := recorded(t, string(text))
			var out bytes.Buffer
			c := command(&out, func(int) *machine { return m })
			c.SetArgs([]string{})
			err = c.Execute()
			failures := strings.Count("\n"+out.String(), "\nfailure")
			if (failures > 0) != errors.Is(err, errFailures) {
				t.Errorf("%d failures, and the error is %v", failures, err)
			}
			golden := strings.TrimSuffix(file, ".txt") + ".golden"
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != string(want) {
				t.Errorf("go test -update writes the golden file; got\n%s\nwant\n%s", out.String(), want)
			}
			out.Reset()
			c = command(&out, func(int) *machine { return m })
			c.SetArgs([]string{"--json"})
			_ = c.Execute()
			var r report
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if r.Failures != failures || len(r.Findings) < len(checks) {
				t.Errorf("JSON: %+v", r)
			}
			for _, f := range r.Findings {
				if f.Check == "" || f.Found == "" || (f.Verdict == fail || f.Verdict == warn) && f.Remedy == "" && f.Check != "settings" {
					t.Errorf("not complete: %+v", f)
				}
			}
		})
	}
}

// Every verdict that a check can give is given by some recording: no remedy is untested.
func TestRecordingsCoverTheChecks(t *testing.T) {
	seen := map[string]map[string]bool{}
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range examine(recorded(t, string(text))) {
			if seen[f.Check] == nil {
				seen[f.Check] = map[string]bool{}
			}
			seen[f.Check][f.Verdict] = true
		}
	}
	for name, want := range map[string][]string{
		"driver": {ok, warn, fail}, "nvml": {ok, warn, fail}, "libraries": {ok, warn, fail}, "shared memory": {ok, warn, note}, "system calls": {ok, warn, fail},
		"limits": {ok, warn, note}, "container": {ok, note}, "ptrace": {ok, note}, "acs": {ok, warn, unknown}, "iommu": {ok, note, warn},
		"gpudirect": {ok, warn}, "rdma": {ok, warn, fail}, "interfaces": {ok, warn, note}, "firewall": {ok, note}, "mps": {ok, note, warn, fail},
		"cpus": {ok, warn}, "settings": {ok, warn, fail},
	} {
		for _, v := range want {
			if !seen[name][v] {
				t.Errorf("no recording gives %s of %s", v, name)
			}
		}
	}
}

// This machine, whatever it is.
func TestThisMachine(t *testing.T) {
	var out bytes.Buffer
	c := command(&out, func(int) *machine { return thisMachine(os.Getpid()) })
	c.SetArgs([]string{})
	if err := c.Execute(); err != nil && !errors.Is(err, errFailures) {
		t.Fatal(err)
	}
	for _, ch := range checks {
		if !strings.Contains(out.String(), ch.name) {
			t.Errorf("nothing about %s:\n%s", ch.name, out.String())
		}
	}
}

func TestOptions(t *testing.T) {
	for _, args := range [][]string{{"--nonsense"}, {"more"}, {"--listen", ":0", "--peer", "x:1"}} {
		c := command(&bytes.Buffer{}, func(int) *machine { return recorded(t, "") })
		c.SetArgs(args)
		if err := c.Execute(); err == nil || errors.Is(err, errFailures) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// FuzzACS: no configuration space is too strange.
func FuzzACS(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 4096))
	f.Add(append(make([]byte, 256), 0x0d, 0x00, 0x01, 0x10, 0, 0, 0xff, 0))
	f.Add(append(make([]byte, 256), 0x01, 0x00, 0x01, 0x10, 0, 0, 0, 0)) // points to itself
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, has, known := acsOf(b); has && !known {
			t.Error("found in what is not known")
		}
	})
}
