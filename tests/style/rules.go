// Package style owns the rules that the compiler does not know: who may import whom, where unsafe and cgo may stand, and
// what a library inside a foreign process must not call. Its test applies them to the whole tree.
//
// It must not know what the packages do; it reads their source and runs nothing.
package style

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/gccl/gccl/"

// layers says what the packages under a folder may import of this module. The first entry that fits a package holds, so
// that narrower folders stand first. A package may always import what is under its own entry's folder.
var layers = []struct {
	folder string
	may    []string
}{
	{"capi", []string{"comm", "device", "net", "internal"}},
	{"comm", []string{"algo", "topo", "device", "net", "plugin", "internal"}},
	{"algo/plan", nil},
	{"algo", nil},
	{"topo", []string{"internal"}},
	{"device", []string{"algo/plan", "internal"}},
	{"net/gin", []string{"algo/plan", "device", "net", "internal"}},
	{"net", []string{"internal"}},
	{"plugin", []string{"net", "internal"}},
	{"internal", nil},
	{"cmd", []string{"algo", "topo", "device", "internal", "net"}},
	{"tests", []string{"algo", "device", "internal", "net", "plugin", "tests/internal"}},
}

// testMay is what tests of a layer may import besides: their inputs.
var testMay = map[string][]string{"device": {"algo"}, "algo/plan": {"algo"}, "net/gin": {"algo"}}

// pure packages are data and arithmetic: no C. Asking the driver's library needs some.
var (
	pure    = []string{"algo", "topo"}
	mayUseC = []string{"topo/discover/nvml"}
)

// unsafeFree lists folders where a use of unsafe needs no marked file name.
var unsafeFree = []string{"tests"}

// library code runs in a foreign process: no environment behind internal/param's back (os.Getenv is a snapshot of load time
// in a c-shared library), no handlers, no exit.
var (
	library   = []string{"capi", "comm", "algo", "topo", "device", "net", "plugin", "internal"}
	forbidden = map[string][]string{
		"os":        {"Getenv", "LookupEnv", "Environ", "Exit", "Setenv", "Unsetenv"},
		"os/signal": {"Notify", "NotifyContext"},
		"log":       {"Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"},
	}
	mayReadEnvironment = "internal/param"
)

// under says whether a package path or file lies in a folder.
func under(p, folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }

func underAny(p string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return under(p, f) })
}

// Check returns what is wrong with one Go file. name is its path from the root of the repository, with slashes.
func Check(name string, source []byte) ([]string, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	dir, test := path.Dir(name), strings.HasSuffix(name, "_test.go")
	var found []string
	say := func(at token.Pos, format string, args ...any) {
		p := fset.Position(at)
		found = append(found, fmt.Sprintf("%s:%d: ", p.Filename, p.Line)+fmt.Sprintf(format, args...))
	}
	names := map[string]string{} // as the file calls it → import path
	cgo := false
	var usesUnsafe token.Pos
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		as := path.Base(p)
		if spec.Name != nil {
			as = spec.Name.Name
		}
		names[as] = p
		switch p {
		case "C":
			cgo = true
			if underAny(dir, pure) && !underAny(dir, mayUseC) {
				say(spec.Pos(), "package %s must be free of cgo", dir)
			}
		case "unsafe":
			usesUnsafe = spec.Pos()
		case "net":
			if as != "stdnet" {
				say(spec.Pos(), `the standard net is imported as stdnet: net is this module's`)
			}
		}
		if inner, ok := strings.CutPrefix(p, module); ok {
			if why := layering(dir, inner, test); why != "" {
				say(spec.Pos(), "%s", why)
			}
		}
	}
	if usesUnsafe.IsValid() && !cgo && !strings.HasSuffix(strings.TrimSuffix(name, "_test.go"), "_unsafe") &&
		!strings.HasSuffix(name, "_unsafe.go") && !underAny(dir, unsafeFree) {
		say(usesUnsafe, "unsafe belongs in a file named …_unsafe.go or one that imports C")
	}
	forTests := slices.Contains(slices.Collect(maps.Values(names)), "testing") // suites and helpers that only tests link
	if underAny(dir, library) && !test && !forTests {
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			pkg := names[x.Name]
			if !slices.Contains(forbidden[pkg], sel.Sel.Name) {
				return true
			}
			if pkg == "os" && sel.Sel.Name != "Exit" && under(dir, mayReadEnvironment) {
				return true
			}
			say(sel.Pos(), "%s.%s must not be called by a library in a foreign process", pkg, sel.Sel.Name)
			return true
		})
	}
	return found, nil
}

// layering says why a package must not import another of this module, or nothing.
func layering(from, to string, test bool) string {
	if under(to, "capi") || under(to, "cmd") || (under(to, "tests") && !under(from, "tests")) {
		if !under(from, to) {
			return fmt.Sprintf("nothing imports %s", to)
		}
	}
	for _, l := range layers {
		if !under(from, l.folder) {
			continue
		}
		if under(to, l.folder) || underAny(to, l.may) || test && underAny(to, testMay[l.folder]) {
			return ""
		}
		return fmt.Sprintf("%s must not import %s: %s may import %s", from, to, l.folder, strings.Join(append([]string{"itself"}, l.may...), ", "))
	}
	return fmt.Sprintf("package %s has no place in the layers of tests/style", from)
}
