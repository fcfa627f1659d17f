package main

import (
	"bufio"
	stdnet "net"
	"strings"
	"testing"
	"time"
)

// testWorld is one process's view of a world whose rank 0 listens at addr.
func testWorld(rank, size int, addr string) *world {
	return &world{launcher: "test", rank: rank, size: size, addrs: []string{addr}, token: "job"}
}

func testListener(t *testing.T) stdnet.Listener {
	t.Helper()
	l, err := listenFirst([]string{"127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

const testWait = 20 * time.Second

// fakeGroup stands for the ranks behind a front-end.
type fakeGroup struct {
	first, n int
	jobs     chan string
	killed   chan struct{}
}

func newFakeGroup(first, n int) *fakeGroup {
	return &fakeGroup{first: first, n: n, jobs: make(chan string, 1), killed: make(chan struct{}, 8)}
}

func (g *fakeGroup) ranks() (int, int)      { return g.first, g.n }
func (g *fakeGroup) start(job string) error { g.jobs <- job; return nil }
func (g *fakeGroup) kill()                  { g.killed <- struct{}{} }

func TestRendezvousCarriesJobAndEvents(t *testing.T) {
	l := testListener(t)
	addr := l.Addr().String()
	served := make(chan error, 2)
	groups := []*fakeGroup{newFakeGroup(2, 2), newFakeGroup(4, 2)}
	for i, g := range groups {
		go func() {
			conn, reader, err := dialRoot(testWorld(i+1, 3, addr), 2, "host", testWait)
			if err != nil {
				served <- err
				return
			}
			events := make(chan event, 4)
			go func() {
				job := <-g.jobs
				events <- event{Event: "done", Rank: g.first, Text: job}
				events <- event{Event: "exit", Rank: g.first}
			}()
			served <- serveRoot(conn, reader, g, events, nil)
		}()
	}
	remotes, err := acceptAll(l, testWorld(0, 3, addr), 2, testWait)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan event, 8)
	for i, r := range remotes {
		if first, n := r.ranks(); first != 2*(i+1) || n != 2 {
			t.Errorf("remote %d has ranks %d+%d", i, first, n)
		}
		go r.follow(i+1, seen)
		if err := r.start("the job\n"); err != nil {
			t.Fatal(err)
		}
	}
	ends := 0
	for ends < 2 {
		e := <-seen
		if e.Event == "done" && e.Text != "the job\n" {
			t.Errorf("job %q arrived", e.Text)
		}
		if e.Event == "exit" {
			ends++
			if e.Text != "" || e.source != e.Rank/2 {
				t.Errorf("%+v", e)
			}
		}
	}
	for range 2 {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

func TestRendezvousDropsNoise(t *testing.T) {
	l := testListener(t)
	addr := l.Addr().String()
	for _, noise := range []string{"GET / HTTP/1.0\r\n\r\n", "{}\n", strings.Repeat("x", 10000), `{"gccl_perf":"1","token":"another job","rank":1,"size":2,"threads":1}` + "\n"} {
		conn, err := stdnet.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(noise)); err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	joined := make(chan error, 1)
	go func() {
		conn, _, err := dialRoot(testWorld(1, 2, addr), 1, "h", testWait)
		if err == nil {
			defer conn.Close()
		}
		joined <- err
	}()
	if _, err := acceptAll(l, testWorld(0, 2, addr), 1, testWait); err != nil {
		t.Fatal(err)
	}
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
}

func TestRendezvousRefuses(t *testing.T) {
	l := testListener(t)
	addr := l.Addr().String()
	done := make(chan error, 1)
	go func() {
		_, err := acceptAll(l, testWorld(0, 2, addr), 1, testWait)
		done <- err
	}()
	for _, tt := range []struct {
		rank, size, threads int
		want                string
	}{{1, 3, 1, "counts 3 processes"}, {1, 2, 4, "-t 4"}, {5, 2, 1, "cannot join"}} {
		_, _, err := dialRoot(testWorld(tt.rank, tt.size, addr), tt.threads, "h", testWait)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	conn, _, err := dialRoot(testWorld(1, 2, addr), 1, "h", testWait)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestRendezvousNamesMissing(t *testing.T) {
	l := testListener(t)
	addr := l.Addr().String()
	go func() {
		if conn, _, err := dialRoot(testWorld(2, 4, addr), 1, "h", testWait); err == nil {
			defer conn.Close()
		}
	}()
	_, err := acceptAll(l, testWorld(0, 4, addr), 1, 300*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "1") || !strings.Contains(err.Error(), "3 of 4 did not connect") {
		t.Errorf("%v", err)
	}
	l.Close()
	if _, _, err := dialRoot(testWorld(1, 4, addr), 1, "h", 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "process 1 of 4 cannot reach rank 0") {
		t.Errorf("%v", err)
	}
}

func TestServeRootEndsWithConnection(t *testing.T) {
	here, there := stdnet.Pipe()
	g := newFakeGroup(1, 1)
	events := make(chan event, 1)
	ended := make(chan error, 1)
	go func() { ended <- serveRoot(here, bufio.NewReader(here), g, events, nil) }()
	there.Close()
	<-g.killed
	events <- event{Event: "exit", Rank: 1, Text: "killed by signal 9 (killed)"}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "rank 0 ended the run") {
		t.Errorf("%v", err)
	}
}
