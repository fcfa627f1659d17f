package abi

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// readTSV returns the rows of a table in testdata, keyed by the names in its first line.
func readTSV(t *testing.T, name string) []map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	header := strings.Split(lines[0], "\t")
	rows := make([]map[string]string, 0, len(lines)-1)
	for i, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		if len(cells) > len(header) {
			t.Fatalf("%s line %d: %d cells under %d names", name, i+2, len(cells), len(header))
		}
		row := make(map[string]string, len(header))
		for j, cell := range cells {
			row[header[j]] = cell
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no rows", name)
	}
	return rows
}

// exportMap is what capi/front/exports.map says: the exported names, in file order.
func exportMap(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot(t), "capi", "front", "exports.map"))
	if err != nil {
		t.Fatal(err)
	}
	names, err := parseExportMap(string(text))
	if err != nil {
		t.Fatalf("capi/front/exports.map: %v", err)
	}
	return names
}

var (
	mapComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	mapShape   = regexp.MustCompile(`(?s)^\s*\{\s*global:(.*)local:\s*\*\s*;\s*\}\s*;\s*$`)
	mapName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// parseExportMap accepts only one anonymous node that lists plain names and hides the rest.
func parseExportMap(text string) ([]string, error) {
	m := mapShape.FindStringSubmatch(mapComment.ReplaceAllString(text, ""))
	if m == nil {
		return nil, fmt.Errorf("not one anonymous node of the form { global: names; local: *; };")
	}
	var names []string
	for _, entry := range strings.Split(m[1], ";") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		if !mapName.MatchString(entry) {
			return nil, fmt.Errorf("entry %q is not a plain name", entry)
		}
		names = append(names, entry)
	}
	return names, nil
}

// wantExports is the export list that the tables and the header's gccl functions demand.
func wantExports(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, row := range readTSV(t, "symbols.tsv") {
		names = append(names, row["symbol"])
		if row["has_p_variant"] == "yes" {
			names = append(names, "p"+row["symbol"])
		}
	}
	for _, name := range declaredFunctions(t) {
		if strings.HasPrefix(name, "gccl") {
			names = append(names, name)
		}
	}
	return append(names, "gcclDevCommCreate", "gcclDevCommGetDevicePointer") // gccl_device/core.h
}

// diffSets reports what got and want do not share, and names that occur twice in got.
func diffSets(t *testing.T, what string, got, want []string) {
	t.Helper()
	inGot, inWant := map[string]int{}, map[string]int{}
	for _, n := range got {
		inGot[n]++
	}
	for _, n := range want {
		inWant[n]++
	}
	var problems []string
	for n, c := range inGot {
		if inWant[n] == 0 {
			problems = append(problems, n+" is there and should not be")
		}
		if c > 1 {
			problems = append(problems, fmt.Sprintf("%s is there %d times", n, c))
		}
	}
	for n := range inWant {
		if inGot[n] == 0 {
			problems = append(problems, n+" is missing")
		}
	}
	sort.Strings(problems)
	for _, p := range problems {
		t.Errorf("%s: %s", what, p)
	}
}

// versionCode turns "2.30.7" into 23007, by the rule of NCCL_VERSION.
func versionCode(version string) (int, error) {
	parts := strings.Split(version, ".")
	if len(parts) != 3 {
		return 0, fmt.Errorf("version %q has not three parts", version)
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil {
			return 0, fmt.Errorf("version %q: %w", version, err)
		}
		n[i] = v
	}
	if n[0] <= 2 && n[1] <= 8 {
		return n[0]*1000 + n[1]*100 + n[2], nil
	}
	return n[0]*10000 + n[1]*100 + n[2], nil
}
