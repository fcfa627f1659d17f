package sim

import (
	"fmt"

	"github.com/gccl/gccl/algo/plan"
)

// input is a source with the factor of its elements.
type input struct {
	region
	t      DType
	factor num
	scaled bool
}

// reduce executes a KindReduce op: element by element all loads, the fold, all stores.
func (w *world) reduce(r *rank, op *plan.Op, i int) error {
	var in []input
	for k := range op.Src {
		ref := &op.Src[k]
		for j := range ref.Count {
			at, whose, err := w.source(r, ref, i, j)
			if err != nil {
				return err
			}
			s := input{region: at, t: w.arith.t}
			if at.partial {
				s.t = s.t.acc()
			}
			if op.Fold && whose >= 0 {
				s.factor, s.scaled = w.arith.scale(whose)
			}
			if len(in) > 0 && s.n != in[0].n {
				return fmt.Errorf("source %s has %d elements, the first %d", ref, s.n, in[0].n)
			}
			in = append(in, s)
		}
	}
	var out []region
	var types []DType
	for k := range op.Dst {
		ref := &op.Dst[k]
		for j := range ref.Count {
			at, err := w.target(r, ref, i, j, in[0].n)
			if err != nil {
				return err
			}
			t := w.arith.t
			if ref.Partial {
				t = t.acc()
			}
			out = append(out, at)
			types = append(types, t)
		}
	}
	for e := range in[0].n {
		w.element(op, in, out, types, e)
	}
	return nil
}

// element does one element. What is only moved keeps its bits.
func (w *world) element(op *plan.Op, in []input, out []region, types []DType, e int) {
	a := &w.arith
	size := in[0].t.Bytes()
	first := in[0].bytes[e*size : (e+1)*size]
	if len(in) == 1 && !in[0].scaled && (!op.Final || a.op != Avg) {
		moved := true
		for k := range out {
			moved = moved && types[k] == in[0].t
		}
		if moved {
			for k := range out {
				copy(out[k].bytes[e*size:], first)
			}
			return
		}
	}
	var acc num
	for k := range in {
		s := &in[k]
		size := s.t.Bytes()
		v := s.t.load(s.bytes[e*size : (e+1)*size])
		if s.scaled {
			v = a.mul(v, s.factor)
		}
		if k == 0 {
			acc = v
		} else {
			acc = a.fold(acc, v)
		}
	}
	if op.Final {
		acc = a.finish(acc)
	}
	for k := range out {
		size := types[k].Bytes()
		types[k].store(out[k].bytes[e*size:(e+1)*size], acc)
	}
}
