package abi

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Both headers compile by themselves and in either order, in every language version that is promised.
func TestHeadersCompile(t *testing.T) {
	sources := map[string]string{
		"gccl":       "#include \"gccl.h\"\n",
		"nccl":       "#include \"nccl.h\"\n",
		"gccl_nccl":  "#include \"gccl.h\"\n#include \"nccl.h\"\n",
		"nccl_gccl":  "#include \"nccl.h\"\n#include \"gccl.h\"\n",
		"gccl_twice": "#include \"gccl.h\"\n#include \"gccl.h\"\n",
	}
	const use = `
ncclResult_t use(ncclComm_t comm, cudaStream_t stream, ncclWindow_t win);
ncclResult_t use(ncclComm_t comm, cudaStream_t stream, ncclWindow_t win) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;
  gcclCommStats_t stats = GCCL_COMM_STATS_INITIALIZER;
  ncclParamHandle_t param = NULL;
  ncclWaitSignalDesc_t desc = {1, 0, 0, 0};
  (void)config; (void)sim; (void)param; (void)win;
  if (gcclCommGetStats(comm, &stats) != ncclSuccess) return ncclInternalError;
  return ncclWaitSignal(1, &desc, comm, stream);
}
`
	compilers := []struct {
		name, ext string
		standards []string
	}{
		{"gcc", "c", []string{"c99", "c11", "c17"}},
		{"clang", "c", []string{"c99", "c11", "c17"}},
		{"g++", "cc", []string{"c++11", "c++14", "c++17", "c++20"}},
		{"clang++", "cc", []string{"c++11", "c++14", "c++17", "c++20"}},
	}
	for _, c := range compilers {
		t.Run(c.name, func(t *testing.T) {
			compiler := tool(t, c.name)
			for _, std := range c.standards {
				for name, includes := range sources {
					src := writeFile(t, name+"."+c.ext, includes+use)
					args := append([]string{"-std=" + std, "-fsyntax-only", "-I", includeDir(t), src}, warnings...)
					if r := runProgram(t, cleanEnv(), "", compiler, args...); r.err != nil {
						t.Errorf("%s -std=%s, %s: %v\n%s", c.name, std, name, r.err, r.stderr)
					}
				}
			}
		})
	}
}

// Where CUDA's headers are found, they are included and the stream type is theirs.
func TestHeaderTakesCudaHeaders(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"cuda_runtime.h": "typedef struct CUstream_st *cudaStream_t;\n#define SAW_RUNTIME 1\n#define CUDART_VERSION 13000\n",
		"cuda_fp16.h":    "#include \"cuda_runtime.h\"\n#define SAW_FP16 1\n",
		"cuda_bf16.h":    "#define SAW_BF16 1\n",
		"cuda_fp8.h":     "#define SAW_FP8 1\n",
	} {
		text = "#pragma once\n" + text
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ compiler, file, std string }{
		{"gcc", "cuda.c", "-std=c99"}, {"g++", "cuda.cc", "-std=c++11"},
	} {
		t.Run(c.compiler, func(t *testing.T) {
			src := writeFile(t, c.file, "#include \"nccl.h\"\n"+
				"#if !defined(SAW_RUNTIME) || !defined(SAW_FP16) || !defined(SAW_BF16)\n#error \"headers not taken\"\n#endif\n"+
				"#if defined(__cplusplus) != defined(SAW_FP8)\n#error \"fp8 header is for C++ only\"\n#endif\n")
			args := append([]string{c.std, "-fsyntax-only", "-I", dir, "-I", includeDir(t), src}, warnings...)
			mustRun(t, cleanEnv(), "", tool(t, c.compiler), args...)
		})
	}
}

// A foreign nccl.h of another version in front is refused with the remedy, not mixed in silently.
func TestHeaderRefusesOtherVersion(t *testing.T) {
	src := writeFile(t, "other.c", "#define NCCL_MAJOR 2\n#define NCCL_MINOR 28\n#define NCCL_PATCH 9\n"+
		"#define NCCL_VERSION_CODE 22809\n#include \"gccl.h\"\n")
	r := runProgram(t, cleanEnv(), "", tool(t, "gcc"), "-std=c11", "-fsyntax-only", "-I", includeDir(t), src)
	if r.err == nil {
		t.Fatal("gccl.h compiled behind an nccl.h of version 2.28.9")
	}
	if !strings.Contains(r.stderr, "another version") {
		t.Errorf("the compiler's message does not name the cause:\n%s", r.stderr)
	}
}

// Build scripts read the version from the text of nccl.h; both headers define the same macros.
func TestVersionMacrosAreLiteral(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(includeDir(t), "nccl.h"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, row := range readTSV(t, "enums.tsv") {
		if row["group"] != "nccl.h version" {
			continue
		}
		value := strings.TrimSuffix(row["value"], " (empty string)")
		pattern := fmt.Sprintf(`(?m)^#define %s %s$`, row["name"], regexp.QuoteMeta(value))
		if !regexp.MustCompile(pattern).Match(text) {
			t.Errorf("include/nccl.h has no line %q", "#define "+row["name"]+" "+value)
		}
		checked++
	}
	if checked != 5 {
		t.Errorf("the table has %d version macros, want 5", checked)
	}
	if !regexp.MustCompile(`(?m)^#define NCCL_VERSION\(X, ?Y, ?Z\)`).Match(text) {
		t.Error("include/nccl.h does not define NCCL_VERSION(X,Y,Z) itself")
	}
	fromGccl, fromNccl := macros(t, "#include \"gccl.h\"\n"), macros(t, "#include \"nccl.h\"\n")
	delete(fromNccl, "NCCL_H_")
	for name, value := range fromNccl {
		if fromGccl[name] != value {
			t.Errorf("%s is %q in nccl.h and %q in gccl.h", name, value, fromGccl[name])
		}
	}
	if len(fromGccl) != len(fromNccl) {
		t.Errorf("gccl.h defines %d NCCL_ macros, nccl.h %d", len(fromGccl), len(fromNccl))
	}
}

// The header declares exactly the host API with its twins, and its own functions without.
func TestDeclaredFunctions(t *testing.T) {
	var want []string
	for _, row := range readTSV(t, "symbols.tsv") {
		if row["declared_in"] == "nccl.h" {
			want = append(want, row["symbol"], "p"+row["symbol"])
		}
	}
	var got []string
	for _, name := range declaredFunctions(t) {
		if !strings.HasPrefix(name, "gccl") {
			got = append(got, name)
		}
	}
	diffSets(t, "gccl.h", got, want)
}

// Every prototype has the result and parameter types of the table: a pointer of the table's type takes the function.
func TestPrototypes(t *testing.T) {
	var b strings.Builder
	b.WriteString("#include \"nccl.h\"\n")
	for _, row := range readTSV(t, "symbols.tsv") {
		if row["declared_in"] != "nccl.h" {
			continue
		}
		for _, name := range []string{row["symbol"], "p" + row["symbol"]} {
			fmt.Fprintf(&b, "extern %s (*const take_%s)(%s);\n", row["return_type"], name, row["parameter_types"])
			fmt.Fprintf(&b, "%s (*const take_%s)(%s) = %s;\n", row["return_type"], name, row["parameter_types"], name)
		}
	}
	for _, c := range []struct{ compiler, file, std string }{
		{"gcc", "prototypes.c", "-std=c99"}, {"g++", "prototypes.cc", "-std=c++11"},
	} {
		t.Run(c.compiler, func(t *testing.T) {
			src := writeFile(t, c.file, b.String())
			args := append([]string{c.std, "-fsyntax-only", "-I", includeDir(t), src}, warnings...)
			mustRun(t, cleanEnv(), "", tool(t, c.compiler), args...)
		})
	}
}
