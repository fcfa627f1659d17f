package param

import "strings"

// foreignNames are set by other software under NCCL's prefix: build systems and
// container images, older PyTorch, nccl-tests. They are nobody's mistake.
var foreignNames = map[string]bool{
	"NCCL_VERSION": true, "NCCL_HOME": true, "NCCL_ROOT": true, "NCCL_ROOT_DIR": true, "NCCL_DIR": true,
	"NCCL_PATH": true, "NCCL_INCLUDE_DIR": true, "NCCL_INCLUDE_DIRS": true, "NCCL_LIB_DIR": true,
	"NCCL_LIBRARY": true, "NCCL_LIBRARIES": true, "NCCL_LIB_PATH": true,
	"NCCL_BLOCKING_WAIT": true, "NCCL_ASYNC_ERROR_HANDLING": true, "NCCL_DESYNC_DEBUG": true,
	"NCCL_ENABLE_TIMING": true,
}

// foreignPrefixes are those of nccl-tests, of other vendors' plugins, and of this tree's tests.
var foreignPrefixes = []string{"NCCL_TESTS_", "NCCL_FASTRAK_", "NCCL_GPUDIRECTTCPX_", "NCCL_SHIMNET_", "GCCL_FAKE_", "GCCL_TEST_"}

func foreign(name string) bool {
	if foreignNames[name] {
		return true
	}
	for _, p := range foreignPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// Nearest returns the known name that a mistyped one most likely means, or
// nothing if none is close: at most two slips, in long names three.
func Nearest(name string) string {
	limit := 2
	if len(name) > 18 {
		limit = 3
	}
	name = strings.ToUpper(strings.TrimSpace(name))
	best, bestDist := "", limit+1
	consider := func(n string) {
		// Of equally near names the first in the alphabet, so that the text is stable.
		if d := distance(name, n); d < bestDist || d == bestDist && d <= limit && n < best {
			best, bestDist = n, d
		}
	}
	for n := range byName {
		consider(n)
	}
	for n := range otherNCCL {
		consider(n)
	}
	return best
}

// distance is the Damerau-Levenshtein distance (optimal string alignment): the
// number of letters inserted, dropped, changed or swapped with their neighbour.
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
