package plugin

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every member of the tables and structs of profilers, tuners and env plugins is where NCCL's is.
func TestLayouts(t *testing.T) {
	for kind, least := range map[string]int{"profiler": 250, "tuner": 30, "env": 10} {
		t.Run(kind, func(t *testing.T) {
			f, err := os.Open(filepath.Join(kind, "testdata", "layouts.tsv"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			header, err := filepath.Abs(filepath.Join(kind, "abi.h"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(header); err != nil { // for the test cache
				t.Fatal(err)
			}
			var c strings.Builder
			fmt.Fprintf(&c, "#include \"%s\"\n", header)
			n := 0
			for lines := bufio.NewScanner(f); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "#") {
					continue
				}
				w := strings.Split(lines.Text(), "\t")
				if len(w) != 3 {
					t.Fatalf("%q", lines.Text())
				}
				what := fmt.Sprintf("offsetof(%s, %s)", w[0], w[1])
				if w[1] == "sizeof" {
					what = fmt.Sprintf("sizeof(%s)", w[0])
				}
				fmt.Fprintf(&c, "_Static_assert(%s == %s, \"%s is not %s\");\n", what, w[2], what, w[2])
				n++
			}
			if n < least {
				t.Fatalf("only %d lines", n)
			}
			file := filepath.Join(t.TempDir(), "layouts.c")
			if err := os.WriteFile(file, []byte(c.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("gcc", "-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", file).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
