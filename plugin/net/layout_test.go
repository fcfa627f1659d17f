package netplugin

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every member of the tables and structs in abi.h is where NCCL's is.
func TestLayouts(t *testing.T) {
	f, err := os.Open("testdata/layouts.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var c strings.Builder
	fmt.Fprintf(&c, "#include \"%s/abi.h\"\n", here)
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
	if n < 300 {
		t.Fatalf("only %d lines", n)
	}
	file := filepath.Join(t.TempDir(), "layouts.c")
	if err := os.WriteFile(file, []byte(c.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
