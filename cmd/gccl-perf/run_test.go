package main

import (
	"strings"
	"testing"
	"time"
)

// runScript lets fake groups of one rank each say what the script holds, then checks the error and who was killed.
// A kill makes a group say exit.
func runScript(t *testing.T, nranks int, timeout time.Duration, script []event) (*collector, error) {
	t.Helper()
	p := testPlan(t, nranks, "-b", "8", "-e", "8", "--out-of-place")
	p.timeout = timeout
	events := make(chan event, 64)
	var groups []group
	gone := map[int]bool{}
	for _, e := range script {
		if e.Event == "exit" {
			gone[e.source] = true
		}
	}
	for i := range nranks {
		g := newFakeGroup(i, 1)
		groups = append(groups, g)
		go func() {
			<-g.killed
			if !gone[i] {
				events <- event{Event: "exit", Rank: i, Text: "killed by signal 9 (killed)", source: i}
			}
		}()
	}
	for _, e := range script {
		events <- e
	}
	return runGroups(p, groups, events, nil, nil, nil)
}

func goodRank(rank int) []event {
	return []event{{Event: "init", Rank: rank, source: rank}, {Event: "result", Rank: rank, Mean: 5, P50: 5, source: rank},
		{Event: "done", Rank: rank, source: rank}, {Event: "exit", Rank: rank, source: rank}}
}

func script(parts ...[]event) []event {
	list := []event{{Event: "id", ID: "00"}}
	for _, p := range parts {
		list = append(list, p...)
	}
	return list
}

func TestRunGoesWell(t *testing.T) {
	c, err := runScript(t, 2, time.Minute, script(goodRank(0), goodRank(1)))
	if err != nil || c.next != 1 || c.wrong != 0 {
		t.Errorf("%v %+v", err, c)
	}
}

func TestRunPutsRootCauseFirst(t *testing.T) {
	_, err := runScript(t, 3, time.Minute, script([]event{
		{Event: "error", Rank: 0, Call: "ncclAllReduce", Code: 6, Text: "rank 1 is gone", source: 0},
		{Event: "exit", Rank: 0, Text: "ended with exit code 1", source: 0},
		{Event: "exit", Rank: 1, Text: "killed by signal 9 (killed)", source: 1},
	}))
	if err == nil || !strings.HasPrefix(err.Error(), "rank 1: killed by signal 9") || !strings.Contains(err.Error(), "rank 0: ncclAllReduce: result 6: rank 1 is gone") {
		t.Errorf("%v", err)
	}
}

func TestRunNamesStandstill(t *testing.T) {
	_, err := runScript(t, 3, 50*time.Millisecond, script(goodRank(0), []event{{Event: "init", Rank: 1, source: 1}, {Event: "init", Rank: 2, source: 2}, {Event: "result", Rank: 2, source: 2}}))
	if err == nil || !strings.Contains(err.Error(), "no rank got on") || !strings.Contains(err.Error(), "rank 1 gave 0 results, others up to 1") {
		t.Errorf("%v", err)
	}
	_, err = runScript(t, 3, 50*time.Millisecond, script([]event{{Event: "init", Rank: 1, source: 1}}))
	if err == nil || !strings.Contains(err.Error(), "ranks 0, 2 did not get through init") {
		t.Errorf("%v", err)
	}
}

func TestRunDistrusts(t *testing.T) {
	for _, e := range []event{{Event: "result", Rank: 9}, {Event: "id", ID: "11"}, {Event: "id", ID: "11", Rank: 1}} {
		if _, err := runScript(t, 2, time.Minute, script([]event{e})); err == nil {
			t.Errorf("%+v was taken", e)
		}
	}
	if _, err := runScript(t, 2, time.Minute, script(goodRank(0), []event{{Event: "exit", Rank: 1, source: 1}})); err == nil || !strings.Contains(err.Error(), "only 1 of 2 ranks finished") {
		t.Errorf("%v", err)
	}
}

func FuzzReadEvents(f *testing.F) {
	f.Add(`{"event":"result","rank":1}` + "\n")
	f.Add("{}\nx")
	f.Fuzz(func(t *testing.T, text string) {
		to := make(chan event, len(text)+1)
		_ = readEvents(strings.NewReader(text), "h", 3, to) // an error or events; never a panic
		close(to)
		for e := range to {
			if e.Event == "" || e.source != 3 {
				t.Errorf("%+v", e)
			}
		}
	})
}
