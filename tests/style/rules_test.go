package style

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// goFiles calls fn for every Go file of the tree.
func goFiles(t *testing.T, fn func(name string, source []byte)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(p[len(root):])
		name = strings.TrimPrefix(name, "/")
		if d.IsDir() {
			if name != "" && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || name == "build") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		source, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		n++
		fn(name, source)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 20 {
		t.Fatalf("only %d Go files found under %s", n, root)
	}
}

func TestTree(t *testing.T) {
	goFiles(t, func(name string, source []byte) {
		found, err := Check(name, source)
		if err != nil {
			t.Error(err)
		}
		for _, f := range found {
			t.Error(f)
		}
	})
}

// Every package says what it is for in one file.
func TestPackagesHaveADocComment(t *testing.T) {
	documented := map[string]bool{}
	goFiles(t, func(name string, source []byte) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Error(err)
			return
		}
		dir := filepath.Dir(name)
		documented[dir] = documented[dir] || f.Doc != nil
	})
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no file has a comment before its package clause", dir)
		}
	}
}

// Each rule is broken once, so that a rule that finds nothing is noticed.
func TestRulesFindWhatTheyAreFor(t *testing.T) {
	const p = "package x\n"
	for _, c := range []struct{ name, file, source, want string }{
		{"algo knows no device", "algo/planner/x.go", p + `import _ "github.com/gccl/gccl/device/layout"`, "must not import device/layout"},
		{"plan is a leaf", "algo/plan/x.go", p + `import _ "github.com/gccl/gccl/algo/planner"`, "must not import algo/planner"},
		{"topo knows no net", "topo/x.go", p + `import _ "github.com/gccl/gccl/net/bootstrap"`, "must not import net/bootstrap"},
		{"device knows no comm", "device/host/arena/x.go", p + `import _ "github.com/gccl/gccl/comm"`, "must not import comm"},
		{"net knows no device", "net/bootstrap/x.go", p + `import _ "github.com/gccl/gccl/device/layout"`, "must not import device/layout"},
		{"internal is the bottom", "internal/param/x.go", p + `import _ "github.com/gccl/gccl/algo/plan"`, "must not import algo/plan"},
		{"nothing imports capi", "comm/x.go", p + `import _ "github.com/gccl/gccl/capi"`, "nothing imports capi"},
		{"a new folder needs a place", "extra/x.go", p + `import _ "github.com/gccl/gccl/comm"`, "no place in the layers"},
		{"no cgo in algo", "algo/sim/x.go", p + `import "C"`, "free of cgo"},
		{"no cgo beside the driver's library", "topo/discover/x.go", p + `import "C"`, "free of cgo"},
		{"the standard net", "comm/x.go", p + `import "net"`, "stdnet"},
		{"unsafe", "comm/x.go", p + `import "unsafe"`, "_unsafe.go"},
		{"environment", "comm/x.go", p + `import "os"` + "\nvar v = os.Getenv(\"V\")", "os.Getenv must not"},
		{"environment, renamed", "comm/x.go", p + `import o "os"` + "\nvar v, _ = o.LookupEnv(\"V\")", "os.LookupEnv must not"},
		{"exit", "internal/param/x.go", p + `import "os"` + "\nfunc f() { os.Exit(1) }", "os.Exit must not"},
		{"signals", "net/x.go", p + `import "os/signal"` + "\nvar f = signal.Notify", "signal.Notify must not"},
		{"log", "comm/x.go", p + `import "log"` + "\nfunc f() { log.Fatalf(\"\") }", "log.Fatalf must not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := Check(c.file, []byte(c.source))
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != 1 || !strings.Contains(found[0], c.want) {
				t.Errorf("found %q, want one with %q", found, c.want)
			}
		})
	}
}

func TestRulesAllow(t *testing.T) {
	const p = "package x\n"
	for _, c := range []struct{ name, file, source string }{
		{"comm uses everything below", "comm/x.go", p + `import (
			_ "github.com/gccl/gccl/algo/planner"
			_ "github.com/gccl/gccl/device/lower"
			_ "github.com/gccl/gccl/net/bootstrap"
		)`},
		{"device uses plans", "device/lower/x.go", p + `import _ "github.com/gccl/gccl/algo/plan"`},
		{"marked unsafe", "device/layout/x_unsafe.go", p + `import "unsafe"`},
		{"unsafe with C", "device/layout/x.go", p + "import \"C\"\nimport \"unsafe\""},
		{"the driver's library is C", "topo/discover/nvml/x.go", p + "import \"C\"\nimport \"unsafe\""},
		{"param reads the environment", "internal/param/x.go", p + `import "os"` + "\nvar v = os.Environ()"},
		{"commands exit", "cmd/x/main.go", p + `import "os"` + "\nfunc f() { os.Exit(1) }"},
		{"a method of the same name", "comm/x.go", p + "type s struct{}\nfunc (s) Exit(int) {}\nfunc f(os s) { os.Exit(1) }"},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := Check(c.file, []byte(c.source))
			if err != nil || len(found) != 0 {
				t.Errorf("found %q, error %v", found, err)
			}
		})
	}
}
