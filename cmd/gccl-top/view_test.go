package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/gccl/gccl/internal/status"
)

// Three ranks, of which the second is in none of the processes that answer, and one rank of another communicator.
func machine(calls uint64, at int64) []status.Process {
	peers := func(me int) []status.Peer {
		var out []status.Peer
		for r, p := range []status.Peer{
			{Host: "a", PID: 10, Seen: true, Finished: 6, Joined: true, Process: "alive"},
			{Host: "b", PID: 11, Seen: true, Finished: 4, Process: "stopped"},
			{Host: "a", PID: 12, Seen: true, Finished: 6, Joined: true, Process: "alive"},
		} {
			if p.Rank = r; r != me {
				out = append(out, p)
			}
		}
		return out
	}
	rank := func(r int) status.Comm {
		return status.Comm{ID: "00aa", Name: "tp", Rank: r, Ranks: 3, Device: "host", State: "ready", Calls: calls, Bytes: calls * 1000000,
			Finished: 6, Running: 7, What: "all-reduce of 5 float32", Peers: peers(r)}
	}
	return []status.Process{
		{PID: 10, Program: "/usr/bin/train", AtNs: at, Comms: []status.Comm{rank(0),
			{ID: "00bb", Rank: 0, Ranks: 1, Device: "host", State: "failed", Error: "rank 9 is gone", Finished: 1}}},
		{PID: 12, Program: "/usr/bin/train", AtNs: at, Comms: []status.Comm{rank(2)}},
	}
}

const wanted = `communicator 00aa "tp": 3 ranks, host
  rank  process  program  finished  in                         calls/s  MB/s
  0     a:10     train    6         7 all-reduce of 5 float32  10       10.0
  1     b:11     ?        4         -                          ?        ?     straggler: the others wait for it, process stopped
  2     a:12     train    6         7 all-reduce of 5 float32  10       10.0
communicator 00bb: 1 ranks, host
  rank  process  program  finished  in  calls/s  MB/s
  0     10       train    1         -   0        0.0   failed, rank 9 is gone
not asked: process 5: no answer
`

func TestMerge(t *testing.T) {
	v := merge(machine(100, 0), machine(120, 2e9), []error{errors.New("process 5: no answer")})
	var out bytes.Buffer
	if err := v.print(&out); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, l := range strings.SplitAfter(out.String(), "\n") {
		got += strings.TrimRight(l, " \n")
		if strings.HasSuffix(l, "\n") {
			got += "\n"
		}
	}
	if got != wanted {
		t.Errorf("got\n%s\nwant\n%s", got, wanted)
	}
	text, _ := json.Marshal(v)
	for _, w := range []string{`"straggler":true`, `"calls_per_s":10`, `"bytes_per_s":10000000`, `"problems":["process 5: no answer"]`} {
		if !strings.Contains(string(text), w) {
			t.Errorf("JSON lacks %s: %s", w, text)
		}
	}
}

func TestNothingRuns(t *testing.T) {
	for args, want := range map[string]string{
		"--once --interval 1ms":         "no communicators of this user on this machine\n",
		"--once --interval 1ms --json":  "{\n  \"communicators\": [],\n  \"problems\": []\n}\n",
		"--json":                        "--json goes with --once",
		"--once --interval 0s":          "must be above 0",
		"--once --interval 1ms --dir /": "not asked: /",
	} {
		var out bytes.Buffer
		c := command(&out)
		if list := strings.Fields(args); strings.Contains(args, "--dir") {
			c.SetArgs(list)
		} else {
			c.SetArgs(append(list, "--dir", t.TempDir()+"/none"))
		}
		text := ""
		if err := c.Execute(); err != nil {
			text = err.Error()
		}
		if !strings.Contains(out.String()+text, want) {
			t.Errorf("%s: got %q %q, want %q", args, out.String(), text, want)
		}
	}
}
