package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func run(args ...string) (string, error) {
	cmd := command()
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.Execute()
	return out.String(), err
}

func lines(t *testing.T, args ...string) (list []line) {
	t.Helper()
	out, err := run(append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(out))
	for d.More() {
		var l line
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

func TestTable(t *testing.T) {
	out, err := run("allreduce", "--ranks", "64", "--sizes", "8,1M")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"all_reduce of 64 ranks in 8 cliques on dgx", "\n  tree ", "\n  hier ", " 1048576 ", "memory taken"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// Many ranks take the methods that end in time, and equal ranks are merged.
func TestManyRanks(t *testing.T) {
	list := lines(t, "allreduce", "--ranks", "8192", "--sizes", "64M")
	if len(list) != 2 || list[0].Method != "tree" || list[1].Method != "hier" {
		t.Fatalf("%+v", list)
	}
	if h := list[1]; h.Kinds > 8192/8 || h.Cliques != 1024 || h.US <= 0 || h.US >= list[0].US {
		t.Errorf("hier %+v, tree %+v", h, list[0])
	}
}

// What the options say changes the time in the right direction.
func TestConditions(t *testing.T) {
	base := []string{"allreduce", "--ranks", "64", "--methods", "hier", "--sizes", "16M"}
	us := func(more ...string) float64 { return lines(t, append(base[:len(base):len(base)], more...)...)[0].US }
	fine := us()
	for _, worse := range [][]string{
		{"--stragglers", "0.02", "--slow", "10"}, {"--loss", "0.01"}, {"--fabric", "fat", "--leaf", "2", "--pod", "2", "--over", "4"}, {"--cliques", "2"},
	} {
		if got := us(worse...); got <= fine {
			t.Errorf("%v: %.1f us, without %.1f", worse, got, fine)
		}
	}
	if a, b := us("--loss", "0.01", "--seed", "7"), us("--loss", "0.01", "--seed", "7"); a != b {
		t.Errorf("one seed, two times: %g and %g", a, b)
	}
}

func TestErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"no collective":                   {"shuffle"},
		"is not in 1":                     {"allreduce", "--ranks", "0"},
		"is none of flat":                 {"allreduce", "--fabric", "torus"},
		"and no file":                     {"allreduce", "--machine", "/nowhere"},
		"is no size":                      {"allreduce", "--sizes", "1Q"},
		"there is no such method":         {"allreduce", "--methods", "magic"},
		"it is for one clique":            {"allreduce", "--ranks", "64", "--methods", "direct"},
		"--loss 2 is not in 0":            {"allreduce", "--loss", "2"},
		"together, there are 64":          {"allreduce", "--ranks", "64", "--cliques", "4,4"},
		"accepts 1 arg(s), received 0":    {},
		"no method; name one":             {"alltoall", "--ranks", "5000"},
		"is no size in 1":                 {"allreduce", "--ranks", "64", "--cliques", "x"},
		"--stragglers -1 is not in 0 … 1": {"allreduce", "--stragglers", "-1"},
	} {
		if _, err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", args, err, want)
		}
	}
}
