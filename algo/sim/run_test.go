package sim_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/algo/sim"
)

// world is the buffers of all ranks of one call, and what must be in the receive buffers at the end.
type world struct {
	coll       plan.Coll
	n, root    int
	count      int
	t          sim.DType
	send, recv [][]byte
	input      [][]byte // copies of the send buffers
}

// lengths are the buffer sizes in elements.
func lengths(c plan.Coll, n, count int) (send, recv int) {
	send, recv = count, count
	if c == plan.ReduceScatter || c == plan.AllToAll || c == plan.Scatter {
		send *= n
	}
	if c == plan.AllGather || c == plan.AllToAll || c == plan.Gather {
		recv *= n
	}
	return send, recv
}

func hasSend(c plan.Coll, n, r, root int) bool {
	return c != plan.Broadcast && c != plan.Scatter && c != plan.SendRecv || r == root || n == 1
}

func hasRecv(c plan.Coll, n, r, root int) bool {
	return (c != plan.Reduce && c != plan.Gather || r == root) && (c != plan.SendRecv || r != root || n == 1)
}

func newWorld(c plan.Coll, n, root, count int, t sim.DType, inPlace bool) *world {
	w := &world{coll: c, n: n, root: root, count: count, t: t}
	sendLen, recvLen := lengths(c, n, count)
	size := t.Bytes()
	for r := range n {
		var send, recv []byte
		// In place the smaller buffer is inside the larger one.
		switch both := hasSend(c, n, r, root) && hasRecv(c, n, r, root); {
		case inPlace && both && sendLen > recvLen:
			send = make([]byte, sendLen*size)
			recv = send[r*count*size:][:recvLen*size]
		case inPlace && both && sendLen < recvLen:
			recv = make([]byte, recvLen*size)
			send = recv[r*count*size:][:sendLen*size]
		case inPlace && both:
			send = make([]byte, sendLen*size)
			recv = send
		default:
			send, recv = make([]byte, sendLen*size), make([]byte, recvLen*size)
		}
		if !hasSend(c, n, r, root) {
			send = nil
		}
		if !hasRecv(c, n, r, root) {
			recv = nil
		}
		for e := range len(send) / size {
			sim.Put(t, send[e*size:], float64((r*7+e*3)%4+1))
		}
		w.send, w.recv = append(w.send, send), append(w.recv, recv)
		w.input = append(w.input, bytes.Clone(send))
	}
	return w
}

// elem is element k of a rank's input.
func (w *world) elem(r, k int) float64 { return sim.Get(w.t, w.input[r][k*w.t.Bytes():]) }

// folded is the result of reducing element k of all inputs. Inputs are small whole numbers, so that no order of
// folding makes a difference to a sum; exact says whether that is so here.
func (w *world) folded(op sim.RedOp, scalar []float64, k int) (v float64, exact bool) {
	exact = true
	for r := range w.n {
		x := w.elem(r, k)
		switch {
		case op == sim.PreMulSum:
			x *= scalar[r]
		case op == sim.Avg && w.t == sim.Float64:
			x *= 1 / float64(w.n)
			exact = w.n&(w.n-1) == 0
		case op == sim.Avg && w.t.Float():
			x = float64(float32(x) * (1 / float32(w.n)))
			exact = w.n&(w.n-1) == 0
		}
		switch {
		case r == 0:
			v = x
		case op == sim.Prod:
			v *= x
		case op == sim.Max:
			v = max(v, x)
		case op == sim.Min:
			v = min(v, x)
		default:
			v += x
		}
	}
	if op == sim.Avg && !w.t.Float() {
		v = float64(int(v) / w.n)
	}
	return v, exact
}

// check compares all receive buffers with what they must hold.
func (w *world) check(op sim.RedOp, scalar []float64) error {
	size := w.t.Bytes()
	for r := range w.n {
		for k := range len(w.recv[r]) / size {
			part, off := k/max(w.count, 1), k%max(w.count, 1)
			want, exact := 0.0, true
			switch w.coll {
			case plan.AllReduce, plan.Reduce:
				want, exact = w.folded(op, scalar, k)
			case plan.ReduceScatter:
				want, exact = w.folded(op, scalar, r*w.count+k)
			case plan.AllGather, plan.Gather:
				want = w.elem(part, off)
			case plan.AllToAll:
				want = w.elem(part, r*w.count+off)
			case plan.Scatter:
				want = w.elem(w.root, r*w.count+k)
			default:
				want = w.elem(w.root, k)
			}
			b := make([]byte, size)
			sim.Put(w.t, b, want)
			got := w.recv[r][k*size:][:size]
			if exact && !bytes.Equal(got, b) {
				return fmt.Errorf("rank %d element %d is %v, want %v", r, k, sim.Get(w.t, got), sim.Get(w.t, b))
			}
			if d := sim.Get(w.t, got) - sim.Get(w.t, b); d > 0.3 || d < -0.3 {
				return fmt.Errorf("rank %d element %d is %v, want about %v", r, k, sim.Get(w.t, got), want)
			}
		}
		if w.coll == plan.AllReduce && !bytes.Equal(w.recv[r], w.recv[0]) {
			return fmt.Errorf("rank %d has other bits than rank 0", r)
		}
	}
	return nil
}

// simulate runs one call and checks it.
func simulate(c plan.Coll, name string, n, root, count int, t sim.DType, op sim.RedOp, inPlace bool, v plan.View, piece int, seed uint64) error {
	w := newWorld(c, n, root, count, t, inPlace)
	scalar := make([]float64, n)
	for r := range scalar {
		scalar[r] = float64(r%3 + 1)
	}
	err := sim.Run(n, planner.Source(c, name, n, root), sim.Call{
		Count: count, Type: t, Op: op, Scalar: scalar, Send: w.send, Recv: w.recv, View: v, Piece: piece, Seed: seed,
	})
	if err == nil {
		err = w.check(op, scalar)
	}
	if err != nil {
		return fmt.Errorf("n %d root %d count %d %s %s in place %t view %v piece %d seed %d: %w", n, root, count, t, op, inPlace, v, piece, seed, err)
	}
	return nil
}

func TestEveryMethod(t *testing.T) {
	for c := range plan.NumColls {
		for _, name := range planner.Methods(c) {
			t.Run(fmt.Sprintf("%s/%s", c, name), func(t *testing.T) {
				t.Parallel()
				for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 32, 64} {
					if !planner.Fits(c, name, n) {
						break
					}
					views := plan.Views(n)
					if n > 16 {
						views = views[:2]
					}
					for k, v := range views {
						if n <= 4 && k%7 != 0 && n > 2 {
							continue
						}
						for _, inPlace := range []bool{false, c.HasInPlace()} {
							seed := uint64(k * n % 5)
							if n > 16 {
								seed = 0
							}
							root := (k + n) % n
							// Two or three pieces, however long a part is.
							count, piece := n+3, (n+3)/2
							if c == plan.AllReduce || c == plan.Reduce || c == plan.Broadcast {
								piece = 1 + piece/n
							}
							if err := simulate(c, name, n, root, count, sim.Float32, sim.Sum, inPlace, v, piece, seed); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
			})
		}
	}
}

// All types and operators, through every reducing method, counts around the edges of parts and pieces.
func TestEveryTypeAndOperator(t *testing.T) {
	for c := range plan.NumColls {
		if !c.Reduces() {
			continue
		}
		for _, name := range planner.Methods(c) {
			t.Run(fmt.Sprintf("%s/%s", c, name), func(t *testing.T) {
				t.Parallel()
				for dt := range sim.NumDTypes {
					for op := range sim.NumRedOps {
						for _, n := range []int{1, 3, 4, 6} {
							if op == sim.Prod && dt.Bytes() == 1 && n > 3 {
								continue // beyond what one byte holds
							}
							for _, count := range []int{0, 1, 7, 8, 17} {
								if err := simulate(c, name, n, n-1, count, dt, op, count%2 == 0, plan.View{}, count%3, uint64(count)); err != nil {
									t.Fatal(err)
								}
							}
						}
					}
				}
			})
		}
	}
}

func TestEveryTypeMoves(t *testing.T) {
	for c := range plan.NumColls {
		if c.Reduces() {
			continue
		}
		for _, name := range planner.Methods(c) {
			for dt := range sim.NumDTypes {
				for _, n := range []int{1, 2, 5} {
					if !planner.Fits(c, name, n) {
						break
					}
					for _, count := range []int{0, 1, 9} {
						if err := simulate(c, name, n, n/2, count, dt, sim.Sum, false, plan.Views(n)[1], 4, 3); err != nil {
							t.Fatalf("%s %s %v", c, name, err)
						}
					}
				}
			}
		}
	}
}

func TestDeadlockNamesEveryWait(t *testing.T) {
	const n = 3
	source := func(r int) (*plan.Plan, error) {
		p, err := planner.Make(plan.AllReduce, planner.Eager, n, r, 0)
		if r == 1 {
			p.Ops = p.Ops[:1]
		}
		return p, err
	}
	for _, seed := range []uint64{0, 1} {
		w := newWorld(plan.AllReduce, n, 0, 4, sim.Int32, false)
		err := sim.Run(n, source, sim.Call{Count: 4, Type: sim.Int32, Send: w.send, Recv: w.recv, Seed: seed})
		want := "deadlock: rank 0 op 2 waits for step 1 of rank 1, which is at 0; rank 2 op 2 waits for step 1 of rank 1, which is at 0"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestBadCalls(t *testing.T) {
	w := newWorld(plan.AllReduce, 2, 0, 4, sim.Int32, false)
	good := sim.Call{Count: 4, Type: sim.Int32, Send: w.send, Recv: w.recv}
	for name, spoil := range map[string]func(*sim.Call){
		"type":         func(c *sim.Call) { c.Type = sim.NumDTypes },
		"operator":     func(c *sim.Call) { c.Op = -1 },
		"count":        func(c *sim.Call) { c.Count = -1 },
		"buffers":      func(c *sim.Call) { c.Send = nil },
		"scalars":      func(c *sim.Call) { c.Op = sim.PreMulSum },
		"short buffer": func(c *sim.Call) { c.Count = 5 },
	} {
		c := good
		spoil(&c)
		if err := sim.Run(2, planner.Source(plan.AllReduce, planner.Direct, 2, 0), c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
