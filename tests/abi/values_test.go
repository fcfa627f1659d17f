package abi

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const checkPrologue = `#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "nccl.h"
static int bad;
static void number(const char *name, double got, double want) {
  if (got != want) { fprintf(stderr, "%s is %.17g, want %.17g\n", name, got, want); bad = 1; }
}
int main(void) {
`

const checkEpilogue = "  return bad;\n}\n"

var enumGroup = regexp.MustCompile(`^nccl\.h enum (\w+) \(sizeof (\d+)\)$`)

// Every constant of the table has its value, and every enumeration its size.
func TestConstants(t *testing.T) {
	var b strings.Builder
	b.WriteString(checkPrologue)
	sized := map[string]bool{}
	for _, row := range readTSV(t, "enums.tsv") {
		name, value := row["name"], row["value"]
		if m := enumGroup.FindStringSubmatch(row["group"]); m != nil && !sized[m[1]] {
			sized[m[1]] = true
			fmt.Fprintf(&b, "  number(\"sizeof %s\", sizeof(%s), %s);\n", m[1], m[1], m[2])
		}
		switch {
		case name == "(magic_value_in_NCCL_SIM_INFO_INITIALIZER)":
			fmt.Fprintf(&b, "  { ncclSimInfo_t s = NCCL_SIM_INFO_INITIALIZER; number(\"sim magic\", s.magic, %s); }\n", value)
		case value == "NULL":
			fmt.Fprintf(&b, "  { const void *p = %s; if (p) { fprintf(stderr, \"%s is not NULL\\n\"); bad = 1; } }\n", name, name)
		case strings.HasPrefix(value, `""`):
			fmt.Fprintf(&b, "  if (strcmp(%s, \"\")) { fprintf(stderr, \"%s is not empty\\n\"); bad = 1; }\n", name, name)
		default:
			fmt.Fprintf(&b, "  number(\"%s\", (double)(%s), %s);\n", name, name, value)
		}
	}
	b.WriteString(checkEpilogue)
	if len(sized) == 0 {
		t.Fatal("the table names no enumeration")
	}
	runGenerated(t, b.String())
}

// The header defines no NCCL_ macro that the table does not know.
func TestNoOtherMacros(t *testing.T) {
	want := []string{"NCCL_VERSION(X,Y,Z)", "NCCL_CONFIG_INITIALIZER", "NCCL_SIM_INFO_INITIALIZER"}
	for _, row := range readTSV(t, "enums.tsv") {
		if regexp.MustCompile(`^NCCL_\w+$`).MatchString(row["name"]) {
			want = append(want, row["name"])
		}
	}
	var got []string
	for name := range macros(t, "#include \"gccl.h\"\n") {
		got = append(got, strings.ReplaceAll(name, " ", ""))
	}
	diffSets(t, "macros of gccl.h", got, want)
}

// The structures have the current layout of the table, field by field, and the initializers fill them.
func TestLayouts(t *testing.T) {
	var b strings.Builder
	b.WriteString(checkPrologue)
	sized := map[string]bool{}
	for _, row := range currentLayouts(t) {
		s, f := row["struct"], row["field"]
		if !sized[s] {
			sized[s] = true
			fmt.Fprintf(&b, "  number(\"sizeof %s\", sizeof(%s), %s);\n", s, s, row["sizeof"])
		}
		fmt.Fprintf(&b, "  number(\"offsetof %s.%s\", offsetof(%s, %s), %s);\n", s, f, s, f, row["offset"])
		fmt.Fprintf(&b, "  number(\"size of %s.%s\", sizeof(((%s *)0)->%s), %s);\n", s, f, s, f, row["size"])
		if s == "ncclUniqueId" {
			fmt.Fprintf(&b, "  number(\"alignment of %s\", _Alignof(%s), 1);\n", s, s)
			continue
		}
		fmt.Fprintf(&b, "  { %s (*p)[1] = (%s (*)[1])&((%s *)0)->%s; (void)p; }\n", row["type"], row["type"], s, f)
	}
	for _, s := range []string{"ncclUniqueId", "ncclConfig_t", "ncclSimInfo_t", "ncclWaitSignalDesc_t"} {
		if !sized[s] {
			t.Errorf("the table has no current layout of %s", s)
		}
	}
	b.WriteString("  ncclConfig_t c = NCCL_CONFIG_INITIALIZER;\n")
	for _, row := range currentLayouts(t) {
		if row["struct"] != "ncclConfig_t" {
			continue
		}
		f := row["field"]
		switch {
		case f == "size":
			b.WriteString("  number(\"config size\", c.size, sizeof c);\n")
		case f == "magic":
			b.WriteString("  number(\"config magic\", c.magic, 0xcafebeef);\n")
		case f == "version":
			b.WriteString("  number(\"config version\", c.version, 23007);\n")
		case row["type"] == "int":
			fmt.Fprintf(&b, "  number(\"config %s\", c.%s, NCCL_CONFIG_UNDEF_INT);\n", f, f)
		default:
			fmt.Fprintf(&b, "  number(\"config %s\", c.%s != NULL, 0);\n", f, f)
		}
	}
	b.WriteString(`  ncclSimInfo_t s = NCCL_SIM_INFO_INITIALIZER;
  number("sim size", s.size, sizeof s);
  number("sim version", s.version, 23007);
  number("sim time", s.estimatedTime, NCCL_UNDEF_FLOAT);
  gcclCommStats_t g = GCCL_COMM_STATS_INITIALIZER;
  number("stats size", g.size, sizeof g);
  number("stats magic", g.magic, NCCL_API_MAGIC);
  number("stats version", g.version, 23007);
  number("stats calls", g.calls + g.tableHits + g.tableMisses + g.bytes + g.sharedBytes + g.privateBytes + g.frontNanoseconds, 0);
  number("offsetof stats calls", offsetof(gcclCommStats_t, calls), 16);
  number("sizeof stats", sizeof g, 72);
`)
	b.WriteString(checkEpilogue)
	runGenerated(t, b.String())
}

// currentLayouts is the part of the layout table that describes version 2.30.7.
func currentLayouts(t *testing.T) []map[string]string {
	t.Helper()
	var rows []map[string]string
	for _, row := range readTSV(t, "layouts.tsv") {
		if strings.Contains(row["version"], "2.30.7") {
			rows = append(rows, row)
		}
	}
	return rows
}

// Older forms of the configuration are prefixes of the current one, which is what lets the library read them.
func TestOlderConfigsArePrefixes(t *testing.T) {
	current := map[string]map[string]string{}
	for _, row := range currentLayouts(t) {
		if row["struct"] == "ncclConfig_t" {
			current[row["field"]] = row
		}
	}
	forms := map[string]bool{}
	for _, row := range readTSV(t, "layouts.tsv") {
		if row["struct"] != "ncclConfig_t" {
			continue
		}
		forms[row["version"]] = true
		now := current[row["field"]]
		if now == nil || now["offset"] != row["offset"] || now["size"] != row["size"] {
			t.Errorf("ncclConfig_t %s: field %s at %s (%s bytes) is not there in the current form: %v",
				row["version"], row["field"], row["offset"], row["size"], now)
		}
	}
	if len(forms) < 5 {
		t.Errorf("the table has only %d forms of ncclConfig_t", len(forms))
	}
}
