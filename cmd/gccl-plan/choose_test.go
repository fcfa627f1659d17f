package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The fixed table is reported as it is, with every candidate's time beside it.
func TestChoose(t *testing.T) {
	out, err := run("choose", "allreduce", "--ranks", "2", "--sizes", "8,1M", "--simulate")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"all_reduce of 8 bytes, 2 ranks in 1 cliques: eager", "all_reduce of 1048576 bytes, 2 ranks in 1 cliques: direct",
		"because: the fixed table", "us predicted", "us simulated", "eager        no: 1048576 bytes do not fit an eager slot of 512",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestChooseJSON(t *testing.T) {
	out, err := run("choose", "all_reduce", "--ranks", "64", "--cliques", "8", "--machine", "dgx", "--sizes", "1G", "--json")
	var v verdict
	if err != nil || json.Unmarshal([]byte(out), &v) != nil {
		t.Fatal(err, out)
	}
	if v.Method == "direct" || v.Method == "eager" || v.Channels < 2 || v.Cliques != 8 || len(v.Candidates) < 6 || v.Why == "" {
		t.Errorf("%+v", v)
	}
}

// A topology file gives the ranks, their cliques and what links carry.
func TestChooseOnATopology(t *testing.T) {
	files, err := filepath.Glob("../../topo/testdata/xml/*.xml")
	if err != nil || len(files) == 0 {
		t.Fatal("no topology files", err)
	}
	tried := 0
	for _, f := range files {
		out, err := run("choose", "all_reduce", "--topo", f, "--sizes", "64,64M", "--json")
		if err != nil {
			continue // the file has no GPUs that a search could use; topo tests say which
		}
		tried++
		d := json.NewDecoder(strings.NewReader(out))
		for range 2 {
			var v verdict
			if err := d.Decode(&v); err != nil || v.Method == "" || v.Cliques != 1 || v.Ranks < 1 {
				t.Errorf("%s: error %v, %+v", f, err, v)
			}
		}
	}
	if tried < len(files)/2 {
		t.Errorf("only %d of %d files could be used", tried, len(files))
	}
}

// The table that is printed is one that a file may have, and then decides.
func TestChooseFromATable(t *testing.T) {
	table, err := run("choose", "all_reduce", "--ranks", "8", "--machine", "host", "--table")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "table")
	if err := os.WriteFile(name, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run("choose", "all_reduce", "--ranks", "8", "--tune-file", name)
	if err != nil || !strings.Contains(out, "because: a row of the table in the file") {
		t.Errorf("error %v\n%s", err, out)
	}
}

// A file of plans passes, and a broken one fails at its line.
func TestVerifyFile(t *testing.T) {
	text, err := run("--coll", "all_reduce", "--method", "hier", "--ranks", "4", "--cliques", "2", "--all")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "plans")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# ours\n" + text)
	out, err := run("verify", name, "--cliques", "2")
	if err != nil || out != "verified: all_reduce hier, 4 ranks, root 0\n" {
		t.Errorf("error %v, output %q", err, out)
	}
	broken := strings.Replace(text, "wait data", "wait rain", 1)
	write(broken)
	line := 1 + strings.Count(broken[:strings.Index(broken, "wait rain")], "\n")
	if _, err := run("verify", name); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "line "+itoa(line)+" ") {
		t.Errorf("error %v, want line %d", err, line)
	}
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func TestChooseErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"no collective":                 {"choose", "shuffle"},
		"is no size":                    {"choose", "all_reduce", "--sizes", "big"},
		"no machine":                    {"choose", "all_reduce", "--machine", "abacus"},
		"one of them":                   {"choose", "all_reduce", "--machine", "host", "--tune-file", "x"},
		"no such file":                  {"verify", "/nowhere"},
		`no algorithm "magic"`:          {"choose", "all_reduce", "--algo", "magic"},
		`no protocol "ll3"`:             {"choose", "all_reduce", "--proto", "LL3"},
		"together, there are 4":         {"choose", "all_reduce", "--cliques", "1,2"},
		"it is for one clique":          {"--method", "direct", "--cliques", "2"},
		"--ranks 0 is not in 1":         {"choose", "all_reduce", "--ranks", "0"},
		"--eager: \"1X\" is no size":    {"choose", "all_reduce", "--eager", "1X"},
		"accepts 1 arg(s), received 2":  {"verify", "a", "b"},
		"has no method":                 {"choose", "all_to_all", "--ranks", "5000", "--cliques", "1", "--sizes", "1M"},
		"no such file or directory":     {"choose", "all_reduce", "--tune-file", "/nowhere"},
		"accepts 1 arg(s), received 0":  {"choose"},
		"is no size in 1":               {"choose", "all_reduce", "--cliques", "0"},
		`unknown flag: --speed`:         {"choose", "all_reduce", "--speed"},
		"there is no such method; all_": {"--method", "magic", "--all"},
	} {
		if _, err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", args, err, want)
		}
	}
}
