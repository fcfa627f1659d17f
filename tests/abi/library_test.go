package abi

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// libDir is the folder of the built library.
func libDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("GCCL_LIB_DIR")
	if dir == "" {
		dir = filepath.Join(repoRoot(t), "build", "lib")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "libgccl.so")); err != nil {
		t.Fatalf("the library is not built: %v; run make build, or set GCCL_LIB_DIR", err)
	}
	noteInputs(t, dir)
	return dir
}

func openLibrary(t *testing.T, name string) *elf.File {
	t.Helper()
	f, err := elf.Open(filepath.Join(libDir(t), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// dynamicSymbols splits the dynamic symbol table into what the library defines and what it needs.
func dynamicSymbols(t *testing.T, f *elf.File) (defined map[string]elf.Symbol, undefined []elf.Symbol) {
	t.Helper()
	all, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	defined = map[string]elf.Symbol{}
	for _, s := range all {
		if s.Section == elf.SHN_UNDEF {
			undefined = append(undefined, s)
			continue
		}
		defined[s.Name] = s
	}
	return defined, undefined
}

func TestLibraryExportsTheList(t *testing.T) {
	f := openLibrary(t, "libgccl.so")
	defined, _ := dynamicSymbols(t, f)
	var got []string
	for name := range defined {
		got = append(got, name)
	}
	diffSets(t, "libgccl.so", got, exportMap(t))
	if f.Section(".gnu.version_d") != nil {
		t.Error("libgccl.so defines symbol versions; NCCL's symbols have none")
	}
}

// Programs have NEEDED libnccl.so.2, and link with -lnccl: the names lead to the one library.
func TestLibraryNames(t *testing.T) {
	f := openLibrary(t, "libgccl.so")
	soname, err := f.DynString(elf.DT_SONAME)
	if err != nil || len(soname) != 1 || soname[0] != "libnccl.so.2" {
		t.Errorf("SONAME is %v (%v), want libnccl.so.2", soname, err)
	}
	dir := libDir(t)
	real, err := os.Stat(filepath.Join(dir, "libgccl.so"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libnccl.so.2", "libnccl.so"} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !os.SameFile(real, st) {
			t.Errorf("%s is another file than libgccl.so", name)
		}
	}
}

// ncclX is weak and pncclX strong, and both are the same code.
func TestLibraryTwins(t *testing.T) {
	defined, _ := dynamicSymbols(t, openLibrary(t, "libgccl.so"))
	for _, row := range readTSV(t, "symbols.tsv") {
		if row["has_p_variant"] != "yes" {
			continue
		}
		name := row["symbol"]
		api, okAPI := defined[name]
		twin, okTwin := defined["p"+name]
		if !okAPI || !okTwin {
			t.Errorf("%s: defined %t, twin defined %t", name, okAPI, okTwin)
			continue
		}
		if b := elf.ST_BIND(api.Info); b != elf.STB_WEAK {
			t.Errorf("%s is %v, want STB_WEAK", name, b)
		}
		if b := elf.ST_BIND(twin.Info); b != elf.STB_GLOBAL {
			t.Errorf("p%s is %v, want STB_GLOBAL", name, b)
		}
		if api.Value != twin.Value {
			t.Errorf("%s is at %#x, its twin at %#x", name, api.Value, twin.Value)
		}
	}
	for name, s := range defined {
		if typ := elf.ST_TYPE(s.Info); typ != elf.STT_FUNC {
			t.Errorf("%s is %v, want a function", name, typ)
		}
	}
}

// The front needs the C library and nothing else, so that it loads on a bare machine with all symbols bound.
func TestLibraryNeedsOnlyTheCLibrary(t *testing.T) {
	f := openLibrary(t, "libgccl.so")
	needed, err := f.DynString(elf.DT_NEEDED)
	if err != nil {
		t.Fatal(err)
	}
	allowed := func(lib string) bool {
		for _, prefix := range []string{"libc.so.", "libdl.so.", "libpthread.so.", "libm.so.", "librt.so.", "ld-linux"} {
			if strings.HasPrefix(lib, prefix) {
				return true
			}
		}
		return false
	}
	for _, lib := range needed {
		if !allowed(lib) {
			t.Errorf("libgccl.so needs %s", lib)
		}
	}
	_, undefined := dynamicSymbols(t, f)
	for _, s := range undefined {
		if elf.ST_BIND(s.Info) != elf.STB_WEAK && !allowed(s.Library) {
			t.Errorf("libgccl.so needs %s from %q", s.Name, s.Library)
		}
	}
}

// No relocation writes into code and no segment asks for an executable stack: hardened machines refuse both.
func TestLibraryIsHardened(t *testing.T) {
	f := openLibrary(t, "libgccl.so")
	if v, err := f.DynValue(elf.DT_TEXTREL); err != nil || len(v) != 0 {
		t.Errorf("libgccl.so has text relocations: %v, %v", v, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_GNU_STACK && p.Flags&elf.PF_X != 0 {
			t.Error("libgccl.so asks for an executable stack")
		}
	}
}

// The core is an implementation detail: a program that links or preloads the front must not find a second ncclX there.
func TestCoreExportsNoPublicName(t *testing.T) {
	defined, _ := dynamicSymbols(t, openLibrary(t, "libgccl_core.so"))
	if len(defined) == 0 {
		t.Error("libgccl_core.so exports nothing")
	}
	for name := range defined {
		if strings.HasPrefix(name, "nccl") || strings.HasPrefix(name, "pnccl") {
			t.Errorf("libgccl_core.so exports %s", name)
		}
	}
}
