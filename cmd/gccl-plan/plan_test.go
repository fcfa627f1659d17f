package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
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

func TestText(t *testing.T) {
	out, err := run("--coll", "all_reduce", "--method", "ring", "--ranks", "8", "--rank", "3")
	if err != nil {
		t.Fatal(err)
	}
	want, err := planner.Make(plan.AllReduce, planner.Ring, 8, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	if out != want.String() {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestVerify(t *testing.T) {
	out, err := run("--coll", "broadcast", "--method", "tree", "--ranks", "9", "--root", "4", "--verify")
	if err != nil || out != "verified: broadcast tree, 9 ranks, root 4\n" {
		t.Errorf("error %v, output %q", err, out)
	}
}

func TestJSON(t *testing.T) {
	for _, args := range [][]string{{"--json"}, {"--json", "--verify"}, {"--json", "--verify", "--rank", "1"}, {"--json", "--list"}} {
		out, err := run(args...)
		var v map[string]any
		if err != nil || json.Unmarshal([]byte(out), &v) != nil || len(v) < 5 {
			t.Errorf("%v: error %v, output %s", args, err, out)
		}
	}
}

func TestErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"no collective":           {"--coll", "shuffle"},
		"no such method":          {"--method", "magic"},
		"rank is not in 0 … 3":    {"--rank", "4"},
		"513 ranks, at most 512":  {"--ranks", "513", "--verify"},
		`unknown command "extra"`: {"extra"},
	} {
		if _, err := run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", args, err, want)
		}
	}
}
