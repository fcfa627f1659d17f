package abi

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// buildProgram compiles testdata/c/name.c; linked says whether it is linked with the library or opens it itself.
func buildProgram(t *testing.T, name string, linked bool) string {
	t.Helper()
	noteInputs(t, filepath.Join("testdata", "c"))
	exe := filepath.Join(t.TempDir(), name)
	args := []string{"-std=gnu11", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-I", includeDir(t),
		"-o", exe, filepath.Join("testdata", "c", name+".c")}
	if linked {
		dir := libDir(t)
		args = append(args, "-L", dir, "-lnccl", "-Wl,-rpath,"+dir)
	} else {
		args = append(args, "-ldl")
	}
	mustRun(t, cleanEnv(), "", tool(t, "gcc"), args...)
	return exe
}

func TestDlopenFindsEverySymbol(t *testing.T) {
	lib := filepath.Join(libDir(t), "libgccl.so")
	exe := buildProgram(t, "dlopen_all", false)
	names := wantExports(t)
	want := fmt.Sprintf("%d symbols\n", len(names))
	for _, c := range []struct {
		name, mode string
		env        []string
	}{
		{"lazy", "lazy", nil},
		{"now", "now", nil},
		{"lazy_bind_now", "lazy", []string{"LD_BIND_NOW=1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mustRun(t, cleanEnv(c.env...), strings.Join(names, "\n"), exe, lib, c.mode)
			if got != want {
				t.Errorf("program printed %q, want %q", got, want)
			}
		})
	}
}

// A linked program that uses nothing but strings and the version stays at one thread.
func TestVersionOnlyHasOneThread(t *testing.T) {
	exe := buildProgram(t, "version_only", true)
	for _, env := range [][]string{nil, {"LD_BIND_NOW=1"}} {
		mustRun(t, cleanEnv(env...), "", exe)
	}
}

func TestInterposition(t *testing.T) {
	mustRun(t, cleanEnv(), "", buildProgram(t, "interpose", true))
}

// Python's ctypes opens the library with all symbols bound and finds the version without starting a thread.
func TestCtypes(t *testing.T) {
	const script = `
import ctypes, os, sys
lib = ctypes.CDLL(sys.argv[1])
version = ctypes.c_int()
assert lib.ncclGetVersion(ctypes.byref(version)) == 0
print(version.value, len(os.listdir("/proc/self/task")))
`
	python := tool(t, "python3")
	got := mustRun(t, cleanEnv(), "", python, "-c", script, filepath.Join(libDir(t), "libgccl.so"))
	if got != "23007 1\n" {
		t.Errorf("version and threads are %q, want %q", got, "23007 1\n")
	}
}

// The core is opened late, in a process that has loaded much before: its thread-local storage still has room, and a
// unique id passed by value arrives.
func TestCtypesLateUse(t *testing.T) {
	const script = `
import ctypes, sys
import asyncio, decimal, json, lzma, sqlite3, ssl, multiprocessing, xml.etree.ElementTree
lib = ctypes.CDLL(sys.argv[1])
lib.ncclGetLastError.restype = ctypes.c_char_p
class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]
def check(rc):
    assert rc == 0, (rc, lib.ncclGetLastError(None))
uid, comm = UniqueId(), ctypes.c_void_p()
check(lib.gcclSetDeviceKind(1))
check(lib.ncclGetUniqueId(ctypes.byref(uid)))
check(lib.ncclCommInitRank(ctypes.byref(comm), 1, uid, 0))
x = (ctypes.c_double * 3)(1.5, -2.0, 7.0)
y = (ctypes.c_double * 3)()
check(lib.ncclAllReduce(x, y, ctypes.c_size_t(3), 8, 0, comm, None))
check(lib.ncclCommDestroy(comm))
print(list(y))
`
	python := tool(t, "python3")
	for _, m := range []string{"sqlite3", "ssl", "lzma"} {
		if r := runProgram(t, cleanEnv(), "", python, "-c", "import "+m); r.err != nil {
			t.Skipf("python3 has no module %s", m)
		}
	}
	for _, bind := range []string{"", "1"} { // without a driver; the core contains calls of the driver's library
		got := mustRun(t, cleanEnv("LD_BIND_NOW="+bind), "", python, "-c", script, filepath.Join(libDir(t), "libgccl.so"))
		if got != "[1.5, -2.0, 7.0]\n" {
			t.Errorf("LD_BIND_NOW=%s: python printed %q", bind, got)
		}
	}
}

// Every name that the core takes from elsewhere is one of the C library's: nothing of a driver's is left to be found later.
func TestCoreTakesNamesOfTheCLibraryOnly(t *testing.T) {
	f, err := elf.Open(filepath.Join(libDir(t), "libgccl_core.so"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			continue
		}
		taken++
		weak := elf.ST_BIND(s.Info) == elf.STB_WEAK // the tool chain's own, such as __gmon_start__
		if s.Library == "" && !weak {
			t.Errorf("%s is in no library", s.Name)
		}
	}
	if taken < 20 {
		t.Errorf("only %d names are taken from elsewhere", taken)
	}
}

// Preloading into every program of a shell command costs no thread and prints nothing.
func TestPreloadIntoShell(t *testing.T) {
	lib := filepath.Join(libDir(t), "libgccl.so")
	for _, bind := range []string{"", "1"} {
		env := cleanEnv("LD_PRELOAD="+lib, "LD_BIND_NOW="+bind)
		r := runProgram(t, env, "", "/bin/sh", "-c", "true")
		if r.err != nil || r.stdout != "" || r.stderr != "" {
			t.Errorf("sh -c true: %v, stdout %q, stderr %q", r.err, r.stdout, r.stderr)
		}
		// The shell's own threads, and those of a program that it starts.
		got := mustRun(t, env, "", "/bin/sh", "-c", "set -- /proc/$$/task/*; echo $#; ls /proc/self/task | wc -l; cat /proc/$$/maps")
		lines := strings.SplitN(got, "\n", 3)
		if len(lines) != 3 || lines[0] != "1" || strings.TrimSpace(lines[1]) != "1" {
			t.Errorf("threads of the shell and of ls: %q, want 1 and 1", lines[:min(2, len(lines))])
			continue
		}
		real, err := filepath.EvalSymlinks(lib)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(lines[2], real) {
			t.Error("the library was not loaded into the shell, the test shows nothing")
		}
	}
}

func TestForkBeforeFirstUse(t *testing.T) {
	exe := buildProgram(t, "fork_before_use", true)
	mustRun(t, cleanEnv(), "", exe)
	mustRun(t, cleanEnv(), "", exe, "version")
}

func TestForkAfterFirstUse(t *testing.T) {
	mustRun(t, cleanEnv(), "", buildProgram(t, "fork_after_use", true))
}

// A caller built with any older header is served: the first version of each form, with garbage in its padding.
func TestOlderConfigsAreAccepted(t *testing.T) {
	exe := buildProgram(t, "old_config", true)
	type form struct{ size, used, version string }
	var forms []*form
	for _, row := range readTSV(t, "layouts.tsv") {
		if row["struct"] != "ncclConfig_t" {
			continue
		}
		first, _, _ := strings.Cut(strings.Fields(row["version"])[0], "..")
		if n := len(forms); n == 0 || forms[n-1].version != first {
			forms = append(forms, &form{size: row["sizeof"], version: first})
		}
		offset, errOffset := strconv.Atoi(row["offset"])
		size, errSize := strconv.Atoi(row["size"])
		if errOffset != nil || errSize != nil {
			t.Fatalf("layouts.tsv: bad numbers in %v", row)
		}
		forms[len(forms)-1].used = strconv.Itoa(offset + size)
	}
	for _, f := range forms {
		t.Run(f.version, func(t *testing.T) {
			code, err := versionCode(f.version)
			if err != nil {
				t.Fatal(err)
			}
			mustRun(t, cleanEnv(), "", exe, f.size, f.used, strconv.Itoa(code))
		})
	}
}

// The library tells where it was loaded from, also through a link.
func TestLibraryPath(t *testing.T) {
	const script = `
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
lib.gcclLibraryPath.restype = ctypes.c_char_p
print(lib.gcclLibraryPath().decode())
`
	python := tool(t, "python3")
	dir := libDir(t)
	got := strings.TrimSpace(mustRun(t, cleanEnv(), "", python, "-c", script, filepath.Join(dir, "libnccl.so.2")))
	st, err := os.Stat(got)
	if err != nil {
		t.Fatalf("gcclLibraryPath says %q: %v", got, err)
	}
	real, err := os.Stat(filepath.Join(dir, "libgccl.so"))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(st, real) {
		t.Errorf("gcclLibraryPath says %q, which is not the library in %s", got, dir)
	}
}
