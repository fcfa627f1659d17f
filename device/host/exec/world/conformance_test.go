package world_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/algo/sim"
	"github.com/gccl/gccl/device/host/exec/world"
	"github.com/gccl/gccl/device/lower"
)

const (
	eagerBytes = 4096
	stageBytes = 8192 // small, so that modest counts need several rounds
)

// trial is one collective on one executor, compared with the simulator bit for bit.
type trial struct {
	coll    plan.Coll
	method  string
	n, root int
	count   int
	t       sim.DType
	op      sim.RedOp
	view    plan.View
	inPlace bool
	threads bool
	cliques *plan.Cliques // nil: one
	ahead   int           // not 0: send buffers are filled while it runs, so much beyond what all have made
}

func (c trial) job() planner.Job {
	return planner.Job{Coll: c.coll, Method: c.method, Ranks: c.n, Root: c.root, Cliques: c.cliques}
}

func (c trial) String() string {
	return fmt.Sprintf("%s/%s n %d root %d count %d %s %s view %v inplace %v threads %v", c.coll, c.method, c.n, c.root, c.count, c.t, c.op, c.view, c.inPlace, c.threads)
}

func (c trial) lengths() (send, recv int) {
	send, recv = c.count, c.count
	switch c.coll {
	case plan.ReduceScatter, plan.Scatter, plan.AllToAll:
		send *= c.n
	}
	switch c.coll {
	case plan.AllGather, plan.Gather, plan.AllToAll:
		recv *= c.n
	}
	return send, recv
}

func (c trial) reads(r int) bool {
	return c.coll != plan.Broadcast && c.coll != plan.Scatter || r == c.root
}
func (c trial) writes(r int) bool {
	return c.coll != plan.Reduce && c.coll != plan.Gather || r == c.root
}

const canary = 0xa5

// run gives the ranks' receive buffers after the executor and after the simulator have run.
func (c trial) run(w *world.World) (got, want [][]byte, err error) {
	defer w.Reset()
	rng := rand.New(rand.NewPCG(uint64(c.count), uint64(c.n)))
	es := c.t.Bytes()
	sendLen, recvLen := c.lengths()
	call := sim.Call{Count: c.count, Type: c.t, Op: c.op, Send: make([][]byte, c.n), Recv: make([][]byte, c.n), View: c.view}
	recv := make([]*world.Buf, c.n)
	for r := range c.n {
		p, err := c.job().Plan(r)
		if err != nil {
			return nil, nil, err
		}
		block, err := lower.Lower(p)
		if err != nil {
			return nil, nil, err
		}
		o := world.Op{Kind: world.Coll, Coll: int(c.coll), DType: int(c.t), Red: int(c.op), Root: c.root, Count: c.count, Plan: block}
		if c.op == sim.PreMulSum {
			v := float64(r%3 + 1)
			call.Scalar = append(call.Scalar, v)
			o.Scale = scaleBits(c.t, v)
		}
		send, dst := c.reads(r), c.writes(r)
		inPlace := c.inPlace && send && dst
		if send {
			b := make([]byte, sendLen*es)
			for k := range sendLen {
				sim.Put(c.t, b[k*es:], float64(rng.IntN(9)-4)/float64(int(1)<<rng.IntN(3)))
			}
			call.Send[r] = b
		}
		switch {
		case !inPlace:
			if send {
				o.Send = w.Alloc(sendLen*es, c.view.SendReachable(r))
				copy(o.Send.Bytes(), call.Send[r])
			}
			if dst {
				o.Recv = w.Alloc(recvLen*es, c.view.RecvReachable(r))
			}
		case recvLen >= sendLen: // all-gather, gather, all-reduce …: the send part lies in the receive buffer
			o.Recv = w.Alloc(recvLen*es, c.view.RecvReachable(r))
			o.Send = o.Recv
			if recvLen > sendLen {
				o.SendOff = r * c.count * es
			}
			copy(o.Recv.Bytes()[o.SendOff:], call.Send[r])
		default: // reduce-scatter, scatter: the receive part lies in the send buffer
			o.Send = w.Alloc(sendLen*es, c.view.SendReachable(r))
			copy(o.Send.Bytes(), call.Send[r])
			o.Recv, o.RecvOff = o.Send, r*c.count*es
		}
		if dst {
			call.Recv[r] = bytes.Repeat([]byte{canary}, recvLen*es)
			recv[r] = o.Recv
			if !inPlace {
				copy(o.Recv.Bytes(), call.Recv[r])
			}
		}
		if o.Ahead = c.ahead; send {
			o.SendBytes = sendLen * es
		}
		w.Add(r, o)
		if dst {
			off := o.RecvOff
			got = append(got, recv[r].Bytes()[off:off+recvLen*es])
		} else {
			got = append(got, nil)
		}
	}
	if err := w.Run(c.threads); err != nil {
		return nil, nil, err
	}
	if err := sim.Run(c.n, c.job().Plan, call); err != nil {
		return nil, nil, fmt.Errorf("simulator: %w", err)
	}
	for r := range got {
		got[r] = bytes.Clone(got[r]) // before the buffers go
	}
	return got, call.Recv, nil
}

func scaleBits(t sim.DType, v float64) uint64 {
	switch {
	case t == sim.Float64:
		return math.Float64bits(v)
	case t.Float():
		return uint64(math.Float32bits(float32(v)))
	default:
		return uint64(int64(v))
	}
}

func (c trial) check(t *testing.T, w *world.World) {
	t.Helper()
	got, want, err := c.run(w)
	if err != nil {
		t.Fatalf("%v: %v", c, err)
	}
	for r := range got {
		if !bytes.Equal(got[r], want[r]) {
			es := c.t.Bytes()
			for k := 0; k < len(got[r])/es; k++ {
				if !bytes.Equal(got[r][k*es:k*es+es], want[r][k*es:k*es+es]) {
					t.Fatalf("%v: rank %d element %d: executor %v, simulator %v", c, r, k, sim.Get(c.t, got[r][k*es:]), sim.Get(c.t, want[r][k*es:]))
				}
			}
		}
	}
}

// views are who can reach whom: everybody, nobody, one odd rank out on either side, alternating.
func views(n int) []plan.View {
	some := func(f func(r int) bool) []bool {
		b := make([]bool, n)
		for r := range b {
			b[r] = f(r)
		}
		return b
	}
	none := some(func(int) bool { return false })
	first := some(func(r int) bool { return r == 0 })
	last := some(func(r int) bool { return r != n-1 })
	even := some(func(r int) bool { return r%2 == 0 })
	return []plan.View{{}, {Send: none, Recv: none}, {Send: none}, {Recv: none}, {Send: last}, {Recv: last}, {Send: first, Recv: even}}
}

func newWorld(t *testing.T, n int) *world.World {
	t.Helper()
	w, err := world.New(n, eagerBytes, stageBytes, 64<<20, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// Buffers that are filled while the operation runs, and no further than the ranks have made results: every method takes and makes its
// parts from their beginning, and reads nothing before it is there.
func TestFlow(t *testing.T) {
	const most = stageBytes / 4 // elements of a piece
	for coll := plan.Coll(0); coll < plan.SendRecv; coll++ {
		for _, method := range planner.Methods(coll) {
			if method == planner.Eager {
				continue // one piece
			}
			t.Run(coll.String()+"/"+method, func(t *testing.T) {
				for _, n := range []int{2, 3, 5} {
					w := newWorld(t, n)
					none := views(n)[1]
					for _, inPlace := range []bool{false, coll != plan.AllToAll} {
						trial{coll, method, n, n - 1, 8*most + 17, sim.Float32, sim.Sum, none, inPlace, true, nil, most}.check(t, w)
					}
					trial{coll, method, n, n - 1, 8*most + 17, sim.Float32, sim.Sum, plan.View{}, false, true, nil, 1 << 20}.check(t, w)
				}
			})
		}
	}
}

// The same of a message.
func TestFlowOfMessages(t *testing.T) {
	w := newWorld(t, 2)
	const n = 4 << 20
	for _, reachable := range []bool{false, true} {
		from, to := w.Alloc(n, reachable), w.Alloc(n, reachable)
		for i := range from.Bytes() {
			from.Bytes()[i] = byte(i*7 + i>>10)
		}
		want := bytes.Clone(from.Bytes())
		ahead := n / 4
		if reachable {
			ahead = n // whoever reaches it takes it as a whole
		}
		w.Add(0, world.Op{Kind: world.Send, Root: 1, DType: int(sim.Int8), Send: from, Count: n, Ahead: ahead, SendBytes: n})
		w.Add(1, world.Op{Kind: world.Recv, Root: 0, DType: int(sim.Int8), Recv: to, Count: n, Ahead: ahead})
		if err := w.Run(true); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(to.Bytes(), want) {
			t.Errorf("reachable %v: the message is wrong", reachable)
		}
		w.Reset()
	}
}

// Every collective, method, view and root, with counts around the boundaries of parts and pieces.
func TestEveryMethodAgainstTheSimulator(t *testing.T) {
	for coll := plan.Coll(0); coll < plan.SendRecv; coll++ {
		for _, method := range planner.Methods(coll) {
			t.Run(coll.String()+"/"+method, func(t *testing.T) {
				for _, n := range []int{2, 3, 4, 5, 8} {
					w := newWorld(t, n)
					counts := []int{1, n - 1, n, 17, 1000, 4099}
					if method == planner.Eager {
						counts = []int{1, 3, 12, 13, 64}
					}
					for i, count := range counts {
						for k, v := range views(n) {
							root := (i + k) % n
							if !coll.Rooted() {
								root = 0
							}
							inPlace := (i+k)%2 == 1 && coll != plan.AllToAll
							trial{coll, method, n, root, count, sim.Float32, sim.Sum, v, inPlace, k%3 == 2, nil, 0}.check(t, w)
						}
					}
				}
			})
		}
	}
}

// Plans for several cliques, run where all ranks could reach each other: they must not need to.
func TestCliquesAgainstTheSimulator(t *testing.T) {
	for _, size := range []int{1, 2, 3} {
		for _, count := range []int{2, 3} {
			n := size * count
			w := newWorld(t, n)
			for coll := plan.Coll(0); coll < plan.SendRecv; coll++ {
				for _, method := range planner.Methods(coll) {
					c := trial{coll, method, n, 0, 0, sim.Float16, sim.Avg, plan.View{}, false, size == 2, plan.EqualCliques(n, size), 0}
					if c.job().Against() != "" {
						continue
					}
					for _, c.count = range []int{1, 17, 4099} {
						if method != planner.Eager || c.count < 100 {
							c.check(t, w)
						}
					}
				}
			}
		}
	}
}

// Every type and operator through every reducing method.
func TestEveryTypeAndOperatorAgainstTheSimulator(t *testing.T) {
	for _, coll := range []plan.Coll{plan.AllReduce, plan.ReduceScatter, plan.Reduce} {
		for _, method := range planner.Methods(coll) {
			t.Run(coll.String()+"/"+method, func(t *testing.T) {
				const n = 3
				w := newWorld(t, n)
				count := 100
				if method != planner.Eager {
					count = 5003
				}
				for dt := sim.DType(0); dt < sim.NumDTypes; dt++ {
					for op := sim.RedOp(0); op < sim.NumRedOps; op++ {
						trial{coll, method, n, 1 * b2i(coll == plan.Reduce), count, dt, op, views(n)[int(op)%3], false, false, nil, 0}.check(t, w)
					}
				}
			})
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Operations of different kinds follow each other on one communicator while ranks run apart: what an earlier one left in
// scratch, records and words must never be taken for a later one's.
func TestManyOperationsInARow(t *testing.T) {
	const n = 4
	w := newWorld(t, n)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		coll := plan.Coll(rng.IntN(int(plan.SendRecv)))
		methods := planner.Methods(coll)
		method := methods[rng.IntN(len(methods))]
		count := 1 + rng.IntN(3000)
		if method == planner.Eager {
			count = 1 + rng.IntN(60)
		}
		root := 0
		if coll.Rooted() {
			root = rng.IntN(n)
		}
		v := views(n)[rng.IntN(7)]
		trial{coll, method, n, root, count, sim.Int32, sim.Sum, v, false, i%2 == 0, nil, 0}.check(t, w)
	}
}

// Messages: several sizes, both directions at once, whoever reaches whom.
func TestMessages(t *testing.T) {
	const n = 3
	w := newWorld(t, n)
	for _, threads := range []bool{false, true} {
		for _, count := range []int{0, 1, 24, 25, 4096, 4097, 50000} {
			for k := range 4 {
				type pair struct{ in, out *world.Buf }
				var pairs []pair
				for from := range n {
					for to := range n {
						if from == to {
							continue
						}
						for m := range 2 { // two messages of a pair keep their order
							in, out := w.Alloc(count, k&1 != 0), w.Alloc(count, k&2 != 0)
							for i := range in.Bytes() {
								in.Bytes()[i] = byte(i*7 + from*31 + to*17 + m*101)
							}
							pairs = append(pairs, pair{in, out})
							w.Add(from, world.Op{Kind: world.Send, Root: to, Send: in, Count: count})
							w.Add(to, world.Op{Kind: world.Recv, Root: from, Recv: out, Count: count})
						}
					}
				}
				if err := w.Run(threads); err != nil {
					t.Fatal(err)
				}
				for i, p := range pairs {
					if !bytes.Equal(p.in.Bytes(), p.out.Bytes()) {
						t.Fatalf("count %d reach %d threads %v: message %d differs", count, k, threads, i)
					}
				}
				w.Reset()
			}
		}
	}
}

// A call that differs between ranks is an error that shows both sides, on the ranks that see it.
func TestDisagreement(t *testing.T) {
	w := newWorld(t, 2)
	for r := range 2 {
		p, err := planner.Make(plan.AllReduce, planner.Eager, 2, r, 0)
		if err != nil {
			t.Fatal(err)
		}
		block, err := lower.Lower(p)
		if err != nil {
			t.Fatal(err)
		}
		b := w.Alloc(64, true)
		w.Add(r, world.Op{Kind: world.Coll, Coll: int(plan.AllReduce), DType: int(sim.Int8), Send: b, Recv: b, Count: 10 + r, Plan: block})
	}
	err := w.Run(false)
	if err == nil {
		t.Fatal("10 and 11 elements were taken for the same call")
	}
	for _, want := range []string{"10 int8", "11 int8", "rank 0", "rank 1"} {
		if !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
