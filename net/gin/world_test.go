package gin_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/algo/sim"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/device/host/exec/world"
	"github.com/gccl/gccl/device/lower"
	"github.com/gccl/gccl/net/gin"
	"github.com/gccl/gccl/net/loop"
	"github.com/gccl/gccl/net/socket"
	"github.com/gccl/gccl/net/transport"
)

// exchange is an all-gather among goroutines.
type exchange struct {
	n  int
	mu sync.Mutex
	m  map[string]*round
}

type round struct {
	parts [][]byte
	left  int
	done  chan struct{}
}

func newExchange(n int) *exchange { return &exchange{n: n, m: map[string]*round{}} }

func (x *exchange) of(rank int) func(context.Context, string, []byte) ([][]byte, error) {
	return func(ctx context.Context, tag string, mine []byte) ([][]byte, error) {
		x.mu.Lock()
		r := x.m[tag]
		if r == nil {
			r = &round{parts: make([][]byte, x.n), left: x.n, done: make(chan struct{})}
			x.m[tag] = r
		}
		r.parts[rank] = mine
		if r.left--; r.left == 0 {
			close(r.done)
			delete(x.m, tag)
		}
		x.mu.Unlock()
		select {
		case <-r.done:
			return r.parts, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// network is what joins the hosts of a world.
var network transport.Transport = loop.Transport{}

// hosts is a world whose ranks are on different hosts: of[r] names that of rank r.
type hosts struct {
	*world.World
	n    int
	gins []*gin.Gin
}

type option func(*gin.Thread, *int)

func newHosts(t testing.TB, of []int, opts ...option) *hosts {
	t.Helper()
	return newHostsOver(t, network, of, opts...)
}

func newHostsOver(t testing.TB, over transport.Transport, of []int, opts ...option) *hosts {
	t.Helper()
	n := len(of)
	w, err := world.New(n, 4096, 16384, 64<<20, "")
	if err != nil {
		t.Fatal(err)
	}
	h := &hosts{World: w, n: n, gins: make([]*gin.Gin, n)}
	thread, depth := gin.Thread{Spin: 0, Nap: 50 * time.Microsecond, CPU: -1}, 256
	for _, o := range opts {
		o(&thread, &depth)
	}
	x := newExchange(n)
	errs := make([]error, n)
	var wait sync.WaitGroup
	for r := range n {
		wait.Add(1)
		go func() {
			defer wait.Done()
			ctl := control.At(w.Comm(r))
			first := r
			for q := range r {
				if of[q] == of[r] {
					first = min(first, q)
				}
			}
			g, err := gin.Establish(context.Background(), gin.Need{
				Rank: r, NRanks: n, Comm: ctl, Area: ctl.Area(), Gather: x.of(r),
				Remote:     func(a, b int) bool { return of[a] != of[b] },
				Candidates: []gin.Candidate{{Transport: over}},
				Secret:     transport.Secret{1, 2, 3},
				Who:        func(q int) string { return fmt.Sprintf("rank %d", q) },
				Say:        func(string) {},
			})
			if err != nil {
				errs[r] = err
				return
			}
			ctl.SetSleepers(first)
			if err = g.Attach(ctl, depth); err == nil {
				err = g.Start(thread)
			}
			h.gins[r], errs[r] = g, err
		}()
	}
	wait.Wait()
	t.Cleanup(func() {
		for _, g := range h.gins {
			if g != nil {
				g.Close()
			}
		}
		w.Close()
	})
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	return h
}

// layouts are ranks on hosts.
var layouts = [][]int{{0, 1}, {0, 0, 1}, {0, 1, 0, 1}, {0, 1, 2, 3, 4}, {0, 0, 0, 1, 1, 1, 2, 2}}

// collective runs one collective and compares it with the simulator bit for bit.
func (h *hosts) collective(t *testing.T, coll plan.Coll, method string, root, count int, threads bool) {
	t.Helper()
	h.collectiveIn(t, coll, method, root, count, threads, false)
}

// collectiveIn may have one buffer for both, where the collective has as much to send as to receive.
func (h *hosts) collectiveIn(t *testing.T, coll plan.Coll, method string, root, count int, threads, inPlace bool) {
	t.Helper()
	defer h.Reset()
	rng := rand.New(rand.NewPCG(uint64(count), uint64(root)))
	send, recv := count, count
	switch coll {
	case plan.ReduceScatter, plan.Scatter, plan.AllToAll:
		send *= h.n
	}
	switch coll {
	case plan.AllGather, plan.Gather, plan.AllToAll:
		recv *= h.n
	}
	call := sim.Call{Count: count, Type: sim.Int32, Op: sim.Sum, Send: make([][]byte, h.n), Recv: make([][]byte, h.n)}
	got := make([][]byte, h.n)
	for r := range h.n {
		p, err := planner.Make(coll, method, h.n, r, root)
		if err != nil {
			t.Fatal(err)
		}
		block, err := lower.Lower(p)
		if err != nil {
			t.Fatal(err)
		}
		o := world.Op{Kind: world.Coll, Coll: int(coll), DType: int(sim.Int32), Root: root, Count: count, Plan: block}
		if coll != plan.Broadcast && coll != plan.Scatter || r == root {
			call.Send[r] = make([]byte, send*4)
			for k := range call.Send[r] {
				call.Send[r][k] = byte(rng.Uint32())
			}
			o.Send = h.Alloc(send*4, false)
			copy(o.Send.Bytes(), call.Send[r])
		}
		if coll != plan.Reduce && coll != plan.Gather || r == root {
			call.Recv[r] = bytes.Repeat([]byte{0xa5}, recv*4)
			if inPlace && o.Send != nil && send == recv && coll != plan.AllToAll {
				o.Recv = o.Send
			} else {
				o.Recv = h.Alloc(recv*4, false)
				copy(o.Recv.Bytes(), call.Recv[r])
			}
			got[r] = o.Recv.Bytes()
		}
		h.Add(r, o)
	}
	what := fmt.Sprintf("%v/%s n %d root %d count %d threads %v", coll, method, h.n, root, count, threads)
	if err := h.Run(threads); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := sim.Run(h.n, planner.Source(coll, method, h.n, root), call); err != nil {
		t.Fatal(err)
	}
	for r := range got {
		if !bytes.Equal(got[r], call.Recv[r]) {
			t.Fatalf("%s: rank %d differs from the simulator", what, r)
		}
	}
}

// methods lists those that touch peers through edges and eager slots alone.
func methods(coll plan.Coll, n int) []string {
	var out []string
	for _, m := range planner.Methods(coll) {
		if m != planner.Direct && planner.Fits(coll, m, n) {
			out = append(out, m)
		}
	}
	return out
}

func TestCollectivesBetweenHosts(t *testing.T) {
	for _, of := range layouts {
		h := newHosts(t, of)
		t.Run(fmt.Sprint(of), func(t *testing.T) {
			for coll := range plan.SendRecv {
				for _, method := range methods(coll, h.n) {
					counts := []int{1, h.n, 1000, 9001}
					if method == planner.Eager {
						counts = []int{1, 2, 4, 5, 12, 13, 64}
					}
					for i, count := range counts {
						root := 0
						if coll.Rooted() {
							root = (i + 1) % h.n
						}
						h.collective(t, coll, method, root, count, i%2 == 0)
					}
				}
			}
		})
	}
}

// Over one stream pieces leave from the buffers themselves, over two from mirrors; messages too. One buffer for both is not overwritten before it
// has left.
func TestBuffersBetweenHosts(t *testing.T) {
	for sockets := 1; sockets <= 2; sockets++ {
		t.Run(fmt.Sprint(sockets), func(t *testing.T) {
			h := newHostsOver(t, socket.New(socket.Config{Threads: 1, Sockets: sockets}), []int{0, 1, 2, 1})
			for coll := range plan.SendRecv {
				for _, method := range methods(coll, h.n) {
					if method == planner.Eager {
						continue
					}
					for i, count := range []int{9001, 60_000, 3001} {
						h.collectiveIn(t, coll, method, 0, count, i%2 == 0, true)
						h.collectiveIn(t, coll, method, 0, count, i%2 == 1, false)
					}
				}
			}
			two := newHostsOver(t, socket.New(socket.Config{Threads: 1, Sockets: sockets}), []int{0, 1})
			for i := range 60 {
				two.collectiveIn(t, plan.AllReduce, planner.RD, 0, 1500*(i+1), i%2 == 0, i%3 != 0)
			}
		})
	}
}

// Operations of all kinds follow each other while ranks run apart, many more than there are records.
func TestManyOperationsBetweenHosts(t *testing.T) {
	h := newHosts(t, []int{0, 1, 1, 2})
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 400 {
		coll := plan.Coll(rng.IntN(int(plan.SendRecv)))
		ms := methods(coll, h.n)
		method := ms[rng.IntN(len(ms))]
		count, root := 1+rng.IntN(3000), 0
		if method == planner.Eager {
			count = 1 + rng.IntN(60)
		}
		if coll.Rooted() {
			root = rng.IntN(h.n)
		}
		h.collective(t, coll, method, root, count, i%2 == 0)
	}
}

func TestMessagesBetweenHosts(t *testing.T) {
	for _, of := range layouts[:4] {
		h := newHosts(t, of, func(_ *gin.Thread, depth *int) { *depth = 2 })
		for _, threads := range []bool{false, true} {
			for _, count := range []int{0, 1, 24, 25, 4096, 8193, 50000} {
				type pair struct{ in, out *world.Buf }
				var pairs []pair
				for from := range h.n {
					for to := range h.n {
						if from == to {
							continue
						}
						for m := range 2 {
							in, out := h.Alloc(count, m == 0), h.Alloc(count, false)
							for i := range in.Bytes() {
								in.Bytes()[i] = byte(i*7 + from*31 + to*17 + m*101)
							}
							pairs = append(pairs, pair{in, out})
							h.Add(from, world.Op{Kind: world.Send, Root: to, Send: in, Count: count})
							h.Add(to, world.Op{Kind: world.Recv, Root: from, Recv: out, Count: count})
						}
					}
				}
				if err := h.Run(threads); err != nil {
					t.Fatal(err)
				}
				for i, p := range pairs {
					if !bytes.Equal(p.in.Bytes(), p.out.Bytes()) {
						t.Fatalf("hosts %v count %d threads %v: message %d differs", of, count, threads, i)
					}
				}
				h.Reset()
			}
		}
	}
}
