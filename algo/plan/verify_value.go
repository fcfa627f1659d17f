package plan

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
)

// form is what the bytes at a place are.
type form uint8

const (
	raw     form = iota // one rank's input, in the user's type, not scaled
	partial             // scaled contributions, in the accumulator type
	final               // the rounded result, in the user's type
)

func (f form) String() string { return [...]string{"raw input", "partial sums", "final results"}[f] }

// value is the symbolic content of a place: which ranks' inputs, of which part and round, in which form and
// combined in which order.
type value struct {
	form        form
	part, round int
	from        []uint64 // set of ranks
	shape       uint64   // hash of the fold tree; equal shapes give equal bits
}

func input(n, rank, part, round int) value {
	v := value{part: part, round: round, from: make([]uint64, (n+63)/64)}
	v.from[rank/64] |= 1 << (rank % 64)
	v.shape = mix(uint64(rank)+1, 0)
	return v
}

func (v *value) String() string {
	return fmt.Sprintf("%s of part %d round %d from ranks %s", v.form, v.part, v.round, setText(v.from))
}

func setText(set []uint64) string {
	text := ""
	for r := range len(set) * 64 {
		if set[r/64]>>(r%64)&1 != 0 {
			if text != "" {
				text += ","
			}
			text += fmt.Sprint(r)
		}
	}
	return "{" + text + "}"
}

func (v *value) count() int {
	sum := 0
	for _, w := range v.from {
		sum += bits.OnesCount64(w)
	}
	return sum
}

func mix(a, b uint64) uint64 {
	var buf [16]byte
	binary.LittleEndian.PutUint64(buf[:8], a)
	binary.LittleEndian.PutUint64(buf[8:], b)
	h := fnv.New64a()
	h.Write(buf[:])
	return h.Sum64()
}

// missing is the set of ranks that have not contributed.
func (v *value) missing(n int) []uint64 {
	out := make([]uint64, len(v.from))
	for r := range n {
		if v.from[r/64]>>(r%64)&1 == 0 {
			out[r/64] |= 1 << (r % 64)
		}
	}
	return out
}

// combine does what a KindReduce op does to values. spaces says where each was loaded from.
func combine(op *Op, vals []value, spaces []Space, n int) (value, error) {
	acc := vals[0]
	if op.Fold {
		for k := range vals {
			v := &vals[k]
			if s := spaces[k]; s == Send || s == Stage || s == Eager {
				if v.form != raw {
					return acc, fmt.Errorf("source %d in %s holds %s and would be scaled again", k, s, v)
				}
				v.form = partial
			} else if v.form != partial {
				return acc, fmt.Errorf("source %d in %s holds %s, which are not scaled partial sums", k, s, v)
			}
			if k == 0 {
				acc = *v
				continue
			}
			if v.part != acc.part || v.round != acc.round {
				return acc, fmt.Errorf("source %d holds %s, wrong chunk beside %s", k, v, &acc)
			}
			union := make([]uint64, len(acc.from))
			for w := range union {
				if acc.from[w]&v.from[w] != 0 {
					return acc, fmt.Errorf("source %d holds %s, a duplicated contribution beside %s", k, v, &acc)
				}
				union[w] = acc.from[w] | v.from[w]
			}
			acc.from = union
			acc.shape = mix(acc.shape, v.shape)
		}
	}
	if op.Final {
		if acc.form != partial {
			return acc, fmt.Errorf("%s would be rounded as if they were partial sums", &acc)
		}
		if acc.count() != n {
			return acc, fmt.Errorf("final although contributions of ranks %s are missing", setText(acc.missing(n)))
		}
		acc.form = final
	}
	return acc, nil
}
