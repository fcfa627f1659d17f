package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Cliques says which ranks load and store each other: every rank is in one clique. It is part of what all ranks know alike,
// and never changed once made. The nil *Cliques means that all ranks are in one.
type Cliques struct {
	n, size   int     // where all cliques are runs of size consecutive ranks: no lists
	of, index []int32 // by rank
	members   [][]int32
	borders   int
}

// EqualCliques makes cliques of size consecutive ranks; the last one has what is left.
func EqualCliques(ranks, size int) *Cliques {
	return &Cliques{n: ranks, size: min(max(size, 1), max(ranks, 1))}
}

// CliquesOf makes cliques from a label of each rank's. Cliques are numbered by their first ranks.
func CliquesOf(labels []int) *Cliques {
	c := &Cliques{n: len(labels)}
	seen := map[int]int{}
	for r, label := range labels {
		k, ok := seen[label]
		if !ok {
			k = len(seen)
			seen[label] = k
			c.members = append(c.members, nil)
		}
		c.of, c.index = append(c.of, int32(k)), append(c.index, int32(len(c.members[k])))
		c.members[k] = append(c.members[k], int32(r))
	}
	for r := range labels {
		if labels[r] != labels[(r+1)%len(labels)] {
			c.borders++
		}
	}
	return c
}

// ParseCliques reads the text form: "8" for cliques of 8 consecutive ranks, or the sizes of all of them, "4,4,8".
func ParseCliques(text string, ranks int) (*Cliques, error) {
	var sizes []int
	sum := 0
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > ranks {
			return nil, fmt.Errorf("cliques %q: %q is no size in 1 … %d", text, word, ranks)
		}
		sizes = append(sizes, n)
		sum += n
	}
	if len(sizes) == 1 {
		return EqualCliques(ranks, sizes[0]), nil
	}
	if sum != ranks {
		return nil, fmt.Errorf("cliques %q have %d ranks together, there are %d", text, sum, ranks)
	}
	labels := make([]int, 0, ranks)
	for k, n := range sizes {
		labels = append(labels, slices.Repeat([]int{k}, n)...)
	}
	return CliquesOf(labels), nil
}

// Ranks is the number of ranks.
func (c *Cliques) Ranks() int { return c.n }

// Count is the number of cliques.
func (c *Cliques) Count() int {
	if c == nil {
		return 1
	}
	if c.members != nil {
		return len(c.members)
	}
	return (c.n + c.size - 1) / c.size
}

// Of is the clique of a rank and its place there.
func (c *Cliques) Of(rank int) (clique, index int) {
	if c == nil {
		return 0, rank
	}
	if c.members != nil {
		return int(c.of[rank]), int(c.index[rank])
	}
	return rank / c.size, rank % c.size
}

// Borders is how many ranks have the next one, counted around, in another clique.
func (c *Cliques) Borders() int {
	switch {
	case c.Count() == 1:
		return 0
	case c.members != nil:
		return c.borders
	}
	return c.Count()
}

// Same says whether two ranks load and store each other.
func (c *Cliques) Same(a, b int) bool {
	if c == nil {
		return true
	}
	x, _ := c.Of(a)
	y, _ := c.Of(b)
	return x == y
}

// Member is the rank at a place of a clique.
func (c *Cliques) Member(clique, index int) int {
	if c.members != nil {
		return int(c.members[clique][index])
	}
	return clique*c.size + index
}

// Size is the number of ranks of a clique.
func (c *Cliques) Size(clique int) int {
	if c.members != nil {
		return len(c.members[clique])
	}
	return min(c.size, c.n-clique*c.size)
}

// Equal is the size of all cliques, if they have the same.
func (c *Cliques) Equal() (size int, ok bool) {
	if c.members == nil {
		return c.size, c.n%c.size == 0
	}
	for _, m := range c.members {
		if len(m) != len(c.members[0]) {
			return 0, false
		}
	}
	return len(c.members[0]), true
}
