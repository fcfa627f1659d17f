package plan

import (
	"errors"
	"fmt"
	"strings"
)

// File is plans in text form, one after the other: those of all ranks of one or several collectives. What follows # is
// skipped.
type File struct {
	Plans []*Plan
	lines [][]int // by plan: of its head, then of its edges, then of its ops
}

// ParseFile reads a file of plans. It checks the words, not the plans.
func ParseFile(text string) (*File, error) {
	f := &File{}
	var part strings.Builder
	var at []int
	end := func() error {
		if len(at) == 0 {
			return nil
		}
		p, err := parseAt(part.String(), at)
		if err != nil {
			return err
		}
		f.Plans, f.lines = append(f.Plans, p), append(f.lines, at)
		part.Reset()
		at = nil
		return nil
	}
	for k, line := range strings.Split(text, "\n") {
		// A # with a digit behind it is the edge of a slot.
		bare := line
		for i := 0; i < len(bare); i++ {
			if bare[i] == '#' && (i == 0 || bare[i-1] == ' ' || bare[i-1] == '\t') {
				bare = bare[:i]
			}
		}
		words := strings.Fields(bare)
		if len(words) == 0 {
			continue
		}
		if words[0] == "plan" {
			if err := end(); err != nil {
				return nil, err
			}
		}
		part.WriteString(bare + "\n")
		at = append(at, k+1)
	}
	if err := end(); err != nil {
		return nil, err
	}
	if len(f.Plans) == 0 {
		return nil, fmt.Errorf("plan file has no plan")
	}
	return f, nil
}

// Group is the plans of all ranks of one collective: by rank, nil where the file has none.
type Group struct {
	Coll   Coll
	NRanks int
	Root   int
	Plans  []*Plan
	file   *File
	at     []int // by rank: place in the file
}

// Groups sorts the plans of a file by collective, number of ranks and root, in the order of the file. Two plans of one rank are
// an error, and so is a rank or root out of range.
func (f *File) Groups() ([]*Group, error) {
	var groups []*Group
	for k, p := range f.Plans {
		if err := p.Check(); err != nil {
			return nil, f.blame(k, err)
		}
		var g *Group
		for _, other := range groups {
			if other.Coll == p.Coll && other.NRanks == p.NRanks && other.Root == p.Root {
				g = other
			}
		}
		if g == nil {
			// A file of one rank's plan may name any number of ranks: the list grows as ranks come.
			g = &Group{Coll: p.Coll, NRanks: p.NRanks, Root: p.Root, file: f}
			groups = append(groups, g)
		}
		for len(g.Plans) <= p.Rank && len(g.Plans) < len(f.Plans)+1 {
			g.Plans, g.at = append(g.Plans, nil), append(g.at, -1)
		}
		if p.Rank >= len(g.Plans) {
			return nil, f.blame(k, p.fault(-1, 0, "the file has fewer plans than this rank's number"))
		}
		if g.Plans[p.Rank] != nil {
			return nil, f.blame(k, p.fault(-1, 0, "a second plan of this rank; the first is in line %d", f.lines[g.at[p.Rank]][0]))
		}
		g.Plans[p.Rank], g.at[p.Rank] = p, k
	}
	return groups, nil
}

// blame adds the line to an error about a plan.
func (f *File) blame(k int, err error) error {
	line := f.lines[k][0]
	var fault *Fault
	if errors.As(err, &fault) && fault.Op >= 0 {
		if at := 1 + len(f.Plans[k].Edges) + fault.Op; at < len(f.lines[k]) {
			line = f.lines[k][at]
		}
	}
	return fmt.Errorf("plan file line %d: %w", line, err)
}

// Source gives the plans of the group.
func (g *Group) Source(rank int) (*Plan, error) {
	if rank >= len(g.Plans) || g.Plans[rank] == nil {
		return nil, fmt.Errorf("plan file: %s of %d ranks, root %d: no plan of rank %d", g.Coll, g.NRanks, g.Root, rank)
	}
	return g.Plans[rank], nil
}

// Verify proves the group right in all situations. The error names the line.
func (g *Group) Verify(cliques *Cliques) error {
	for rank := range g.NRanks {
		if _, err := g.Source(rank); err != nil {
			return err
		}
	}
	if n := g.effort(); n > maxEffort {
		return g.file.blame(g.at[0], g.Plans[0].fault(-1, 0, "to verify it takes about %d steps, at most %d are tried", n, maxEffort))
	}
	err := VerifyAll(g.NRanks, cliques, g.Source)
	var fault *Fault
	if errors.As(err, &fault) && fault.Rank >= 0 && fault.Rank < len(g.at) {
		return g.file.blame(g.at[fault.Rank], err)
	}
	return err
}

// maxEffort keeps a verification within seconds.
const maxEffort = 1 << 24

// effort is about how many places a verification looks at: those of all ops in all situations, and the clocks of signals.
func (g *Group) effort() int {
	views := 7
	if g.NRanks <= viewRanks {
		views = 1 << (2 * g.NRanks)
	}
	total := 0
	for _, p := range g.Plans {
		total += p.SendParts + p.RecvParts
		trips := 1
		for _, op := range p.Ops {
			switch op.Kind {
			case KindLoop:
				trips = op.N
			case KindEnd:
				trips = 1
			}
			each := 1 + g.NRanks
			for _, refs := range [2][]Ref{op.Src, op.Dst} {
				for _, r := range refs {
					each += r.Count
				}
			}
			if total += trips * each; total > maxEffort {
				return total
			}
		}
	}
	return total * views * 4 // in place or not, two rounds
}
