package bootstrap

import (
	"fmt"
	"slices"
	"strings"
)

// maxRanges bounds the text of a set of ranks.
const maxRanges = 16

// rankSet writes ranks the short way: "0-3, 7".
func rankSet(ranks []int) string {
	if len(ranks) == 0 {
		return "none"
	}
	ranks = slices.Clone(ranks)
	slices.Sort(ranks)
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if len(parts) == maxRanges {
			parts = append(parts, fmt.Sprintf("and %d more", len(ranks)-i))
			break
		}
		if i == j {
			parts = append(parts, fmt.Sprint(ranks[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", ranks[i], ranks[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// missingFrom splits 0…nranks-1 by whether a rank is in the set.
func missingFrom[V any](nranks int, have map[int]V) (came, missing []int) {
	for r := range nranks {
		if _, ok := have[r]; ok {
			came = append(came, r)
		} else {
			missing = append(missing, r)
		}
	}
	return came, missing
}

// subject names ranks as the subject of a sentence.
func subject(ranks []int, nranks int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d of %d", ranks[0], nranks)
	}
	return fmt.Sprintf("ranks %s of %d", rankSet(ranks), nranks)
}
