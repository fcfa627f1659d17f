package topo

import "math"

// The load model: what a flow costs the links of its way. Bandwidths are counted in whole MB/s, so that taking and giving back
// leave nothing behind.

// level says how large a flow is: a channel's speed inside the system, towards the network, and the special cases of balanced
// trees (half goes to each of two GPUs) and of NVLS heads (twice).
type level int

const (
	intra level = iota
	inter
	interHalf
	intraTwice
	intraHalf
	levels
)

// rate is the part of a flow that a link carries.
type rate uint8

const (
	whole        rate = iota
	overhead          // 6/5 on PCI links of a GPU's way through the root complex of an Intel CPU
	backward          // 1/8 the other way into a GPU before sm80, from what is no GPU
	backOverhead      // both
	rates
)

var rateFactor = [rates]float64{1, 6.0 / 5, 1.0 / 8, 6.0 / 5 / 8}

type charge struct {
	link int32
	rate rate
}

// charges lists what a flow over the path costs.
func (s *System) charges(p *path, start *Node) []charge {
	pci := whole
	if p.typ == PHB && start.Kind == GPUNode {
		for _, l := range p.links {
			if l.To.Kind == CPUNode && l.To.CPU.intel {
				pci = overhead
			}
		}
	}
	var list []charge
	for _, l := range p.links {
		r := whole
		if l.Type == PIX {
			r = pci
		}
		list = append(list, charge{int32(l.index), r})
		switch {
		case l.Rev == nil:
		case l.To.Kind == DEVNode && l.To.Dev.SM < 80 && start.Kind != GPUNode && l.Type != LOC:
			list = append(list, charge{int32(l.Rev.index), r + backward})
		case l.To.Kind == CPUNode && l.To.CPU.ppc && l.Type == NVL:
			list = append(list, charge{int32(l.Rev.index), r})
		}
	}
	return list
}

func milli(bw float64) int64 { return int64(math.Round(bw * 1000)) }

// ledger keeps what links and adapters have left, and takes and gives flows.
type ledger struct {
	sys     *System
	left    []int64 // by Link.index
	ports   []int64 // by index of NET nodes
	shared  [][]int // the NET nodes of the same adapter and port
	costs   [][][]charge
	amounts [levels][rates]int64
}

func newLedger(s *System) *ledger {
	b := &ledger{sys: s, left: make([]int64, len(s.Links)), ports: make([]int64, s.Count(NETNode)),
		costs: make([][][]charge, len(s.paths)), shared: make([][]int, s.Count(NETNode))}
	for i, l := range s.Links {
		b.left[i] = milli(l.BW)
	}
	for i, n := range s.Nodes[NETNode] {
		b.ports[i] = milli(n.Net.BW)
		for j, m := range s.Nodes[NETNode] {
			if sameAdapter(m, n) {
				b.shared[i] = append(b.shared[i], j)
			}
		}
	}
	return b
}

// speeds fixes the size of flows.
func (b *ledger) speeds(bwIntra, bwInter float64) {
	for r, f := range rateFactor {
		b.amounts[intra][r] = milli(bwIntra * f)
		b.amounts[inter][r] = milli(bwInter * f)
		b.amounts[interHalf][r] = milli(bwInter / 2 * f)
		b.amounts[intraTwice][r] = milli(2 * bwIntra * f)
		b.amounts[intraHalf][r] = milli(bwIntra / 2 * f)
	}
}

func (b *ledger) cost(from, to *Node) []charge {
	row := b.costs[from.at]
	if row == nil {
		row = make([][]charge, len(b.costs))
		b.costs[from.at] = row
	}
	c := row[to.at]
	if c == nil {
		c = b.sys.charges(b.sys.path(from, to), from)
		row[to.at] = c
	}
	return c
}

// take books a flow, if all links have enough left.
func (b *ledger) take(from, to *Node, v level) bool {
	list := b.cost(from, to)
	for i, c := range list {
		amount := b.amounts[v][c.rate]
		if b.left[c.link] < amount {
			for _, undo := range list[:i] {
				b.left[undo.link] += b.amounts[v][undo.rate]
			}
			return false
		}
		b.left[c.link] -= amount
	}
	return true
}

// give takes a flow back.
func (b *ledger) give(from, to *Node, v level) {
	for _, c := range b.cost(from, to) {
		b.left[c.link] += b.amounts[v][c.rate]
	}
}

// port books a channel that begins at a network device; amount may be negative to give back.
func (b *ledger) port(n *Node, amount int64) {
	for _, i := range b.shared[n.Index] {
		b.ports[i] -= amount
	}
}

func sameAdapter(a, b *Node) bool { return a.Net.Asic == b.Net.Asic && a.Net.Port == b.Net.Port }
