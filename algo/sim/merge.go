package sim

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
)

// World is a collective of many ranks, made ready to be timed: equal ranks are merged. Two ranks are equal if they have the same
// program and speed, and their edges lead over equal ways to equal ranks. What a rank does then depends on its kind alone,
// so that one rank of each kind is simulated.
type World struct {
	coll                 plan.Coll
	method               string
	nranks               int
	sendParts, recvParts int
	places               int
	eager, staged        bool
	progs                []*program
	kinds                []kind
	paths                []cost.Path
	clique               int    // ranks of the largest one
	far                  int    // ranks outside it
	apart                *World // the same with nobody merged, for ranks that take turns; nil: too many, or already so

	Planning, Merging time.Duration // how long Build took
}

// kind is a set of equal ranks.
type kind struct {
	prog  int32
	ranks int
	first int32 // one of them
	slow  float64
	ports []kindPort
	peers []int32 // kinds
}

// kindPort is one end of an edge between kinds. channel is the edge's number among all.
type kindPort struct {
	channel int32
	slots   int32
	path    int32 // into World.paths; -1 inside a clique
	peer    int32 // the rank at the other end of the kind's first rank's edge
	out     bool
}

// Setting is what a world is like besides its plans.
type Setting struct {
	Cliques *plan.Cliques
	Fabric  cost.Fabric
	Staged  bool                   // user buffers are out of their peers' reach
	Slow    func(rank int) float64 // how much slower a rank is; nil: nobody is
	Apart   bool                   // merge nobody
}

// Programs and Kinds say how much was merged.
func (w *World) Programs() int { return len(w.progs) }
func (w *World) Kinds() int    { return len(w.kinds) }

// Build plans all ranks and merges equal ones.
func Build(n int, source plan.Source, set Setting) (*World, error) {
	began := time.Now()
	ranks, w, err := compileAll(n, source, set)
	if err != nil {
		return nil, err
	}
	w.Planning = time.Since(began)
	defer func() { w.Merging = time.Since(began) - w.Planning }()
	m := &merger{ranks: ranks, mate: make([][]int32, n)}
	if err := m.pair(); err != nil {
		return nil, err
	}
	way := m.ways(w, set)
	color := m.refine(way, set)
	w.collect(ranks, color, way, set)
	if n <= maxTurns && w.far == 0 {
		each := *w
		each.kinds, each.progs = nil, nil
		for r := range color {
			color[r] = uint32(r)
		}
		each.collect(ranks, color, way, set)
		for r := range each.kinds { // each has its program, whose ops cost by where its peers are
			each.progs = append(each.progs, w.progs[ranks[r].prog])
			each.kinds[r].prog = int32(r)
		}
		w.apart = &each
	}
	return w, nil
}

// compileAll plans on all processors and drops the plans at once.
func compileAll(n int, source plan.Source, set Setting) ([]compiled, *World, error) {
	ranks := make([]compiled, n)
	w := &World{nranks: n, staged: set.Staged}
	const chunk = 256
	var next atomic.Int64
	workers := make([]worker, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for k := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c := &workers[k]
			c.compiler = compiler{staged: set.Staged, cliques: set.Cliques, known: map[string]int32{}}
			for c.err == nil {
				at := int(next.Add(chunk)) - chunk
				if at >= n {
					return
				}
				for r := at; r < min(at+chunk, n) && c.err == nil; r++ {
					if r == at {
						c.firsts = append(c.firsts, at)
					}
					c.err = c.plan(r, source, ranks, w)
				}
			}
		}()
	}
	wg.Wait()
	all := compiler{known: map[string]int32{}}
	for k := range workers {
		c := &workers[k]
		if c.err != nil {
			return nil, nil, c.err
		}
		number := make([]int32, len(c.progs))
		for id, p := range c.progs {
			number[id] = all.intern(p)
		}
		for _, at := range c.firsts {
			for r := at; r < min(at+chunk, n); r++ {
				ranks[r].prog = number[ranks[r].prog]
			}
		}
	}
	w.progs = all.progs
	return ranks, w, nil
}

// worker plans some of the ranks.
type worker struct {
	compiler
	firsts []int // ranks that its chunks begin with
	err    error
}

func (c *worker) plan(r int, source plan.Source, ranks []compiled, w *World) error {
	p, err := source(r)
	if err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	if r == 0 {
		w.describe(p)
	}
	ranks[r], err = c.compile(p)
	return err
}

func (w *World) describe(p *plan.Plan) {
	w.coll, w.method = p.Coll, p.Method
	w.sendParts, w.recvParts, w.places, w.eager = p.SendParts, p.RecvParts, p.Places, p.Eager()
}

// merger finds which ranks are equal.
type merger struct {
	ranks []compiled
	mate  [][]int32 // by rank and port: the port at the other end
}

// pair finds the other end of every edge.
func (m *merger) pair() error {
	for r := range m.ranks {
		m.mate[r] = make([]int32, len(m.ranks[r].ports))
		for k := range m.mate[r] {
			m.mate[r][k] = -1
		}
	}
	for r := range m.ranks {
		for k, p := range m.ranks[r].ports {
			if !p.out {
				continue
			}
			there := m.ranks[p.peer].ports
			for j, q := range there {
				if !q.out && q.index == p.index && int(q.peer) == r {
					m.mate[r][k], m.mate[p.peer][j] = int32(j), int32(k)
				}
			}
		}
	}
	for r := range m.ranks {
		for k, other := range m.mate[r] {
			if other < 0 {
				return fmt.Errorf("simulate: edge %d of rank %d with rank %d has no other end", k, r, m.ranks[r].ports[k].peer)
			}
		}
	}
	return nil
}

// ways finds what each edge leads over.
func (m *merger) ways(w *World, set Setting) [][]int32 {
	known := map[cost.Path]int32{}
	way := make([][]int32, len(m.ranks))
	for r := range m.ranks {
		way[r] = make([]int32, len(m.ranks[r].ports))
		fc, fi := set.Cliques.Of(r)
		for k, p := range m.ranks[r].ports {
			tc, ti := set.Cliques.Of(int(p.peer))
			if fc == tc {
				way[r][k] = -1
				continue
			}
			path := set.Fabric.Between(fc, fi, tc, ti)
			id, ok := known[path]
			if !ok {
				id = int32(len(w.paths))
				known[path] = id
				w.paths = append(w.paths, path)
			}
			way[r][k] = id
		}
	}
	w.clique = len(m.ranks)
	if set.Cliques != nil {
		w.clique = 0
		for c := range set.Cliques.Count() {
			w.clique = max(w.clique, set.Cliques.Size(c))
		}
	}
	w.far = len(m.ranks) - w.clique
	return way
}

// mixer hashes numbers (the finalizer of SplitMix64).
type mixer uint64

func (h *mixer) add(v uint64) {
	x := uint64(*h) ^ v + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	*h = mixer(x ^ x>>31)
}

// maxRefinings bounds the search for the coarsest division; where it is not found, nobody is merged.
const maxRefinings = 64

// refine gives equal ranks one color: the coarsest division in which ranks of a color have edges to the same colors.
func (m *merger) refine(way [][]int32, set Setting) []uint32 {
	n := len(m.ranks)
	color, next := make([]uint32, n), make([]uint32, n)
	if set.Apart {
		for r := range color {
			color[r] = uint32(r)
		}
		return color
	}
	number := func(hash func(r int) mixer) int {
		seen := map[mixer]uint32{}
		for r := range n {
			h := hash(r)
			id, ok := seen[h]
			if !ok {
				id = uint32(len(seen))
				seen[h] = id
			}
			next[r] = id
		}
		color, next = next, color
		return len(seen)
	}
	colors := number(func(r int) (h mixer) {
		h.add(uint64(m.ranks[r].prog))
		if set.Slow != nil {
			h.add(uint64(set.Slow(r) * 1e6))
		}
		for k, p := range m.ranks[r].ports {
			h.add(uint64(way[r][k]))
			h.add(uint64(p.slots))
		}
		return h
	})
	for range maxRefinings {
		more := number(func(r int) (h mixer) {
			h.add(uint64(color[r]))
			for k, p := range m.ranks[r].ports {
				h.add(uint64(color[p.peer])<<32 | uint64(m.mate[r][k]))
			}
			for _, q := range m.ranks[r].peers {
				h.add(uint64(color[q]))
			}
			return h
		})
		if more == colors {
			return color
		}
		colors = more
	}
	for r := range color {
		color[r] = uint32(r)
	}
	return color
}

// collect makes kinds of colors.
func (w *World) collect(ranks []compiled, color []uint32, way [][]int32, set Setting) {
	channels := map[[2]int32]int32{} // receiving kind and its in-edge
	for r, c := range color {
		for int(c) >= len(w.kinds) {
			w.kinds = append(w.kinds, kind{first: -1})
		}
		k := &w.kinds[c]
		k.ranks++
		if k.first < 0 {
			k.first = int32(r)
		}
	}
	for c := range w.kinds {
		k := &w.kinds[c]
		rank := &ranks[k.first]
		k.prog, k.slow = rank.prog, 1
		if set.Slow != nil {
			k.slow = set.Slow(int(k.first))
		}
		for j, p := range rank.ports {
			at := [2]int32{int32(c), p.index}
			if p.out {
				at[0] = int32(color[p.peer])
			}
			id, ok := channels[at]
			if !ok {
				id = int32(len(channels))
				channels[at] = id
			}
			k.ports = append(k.ports, kindPort{channel: id, slots: p.slots, path: way[k.first][j], peer: p.peer, out: p.out})
		}
		for _, q := range rank.peers {
			k.peers = append(k.peers, int32(color[q]))
		}
	}
}
