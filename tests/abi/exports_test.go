package abi

import (
	"sort"
	"strings"
	"testing"
)

func TestExportMapIsComplete(t *testing.T) {
	diffSets(t, "exports.map", exportMap(t), wantExports(t))
}

// The list has three sorted blocks, so that a change is one line at one place.
func TestExportMapIsSorted(t *testing.T) {
	names := exportMap(t)
	block := func(name string) int {
		switch {
		case strings.HasPrefix(name, "nccl"):
			return 0
		case strings.HasPrefix(name, "pnccl"):
			return 1
		default:
			return 2
		}
	}
	sorted := sort.SliceIsSorted(names, func(i, j int) bool {
		if bi, bj := block(names[i]), block(names[j]); bi != bj {
			return bi < bj
		}
		return names[i] < names[j]
	})
	if !sorted {
		t.Error("exports.map is not sorted: nccl names, pnccl names, gccl names, each by name")
	}
}

func TestParseExportMapRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"named node":  "NCCL_2 { global: ncclA; local: *; };",
		"pattern":     "{ global: nccl*; local: *; };",
		"second node": "{ global: ncclA; local: *; }; { global: ncclB; local: *; };",
		"open end":    "{ global: ncclA; };",
	} {
		if names, err := parseExportMap(text); err == nil {
			t.Errorf("%s: accepted as %v", name, names)
		}
	}
	names, err := parseExportMap("/* list */ { global: ncclA; gcclB; local: *; };\n")
	if err != nil || len(names) != 2 || names[0] != "ncclA" || names[1] != "gcclB" {
		t.Errorf("plain list: got %v, %v", names, err)
	}
}
