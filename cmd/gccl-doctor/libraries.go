package main

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"
)

// Where libraries are found without any variable, and where Python packages bring them. Patterns of filepath.Match.
var (
	systemFolders = []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/usr/local/lib64",
		"/usr/local/cuda/lib64"}
	pythonFolders = []string{"lib/python3*/site-packages/nvidia/nccl/lib", "lib/python3*/site-packages/gccl/lib", "lib/python3*/dist-packages/nvidia/nccl/lib",
		"lib/python3/dist-packages/nvidia/nccl/lib"}
)

// pathVariables name the file for programs that open the library by path: this project's Python package, vLLM, SGLang.
var pathVariables = []string{"GCCL_LIBRARY", "VLLM_NCCL_SO_PATH", "SGLANG_NCCL_SO_PATH"}

// copyOf is a library file, and how it can be come by.
type copyOf struct {
	path string // without links
	via  []string
}

func (c copyOf) String() string {
	kind := "NCCL"
	if strings.HasPrefix(filepath.Base(c.path), "libgccl") {
		kind = "GCCL"
	} else if v, found := strings.CutPrefix(filepath.Base(c.path), "libnccl.so."); found && strings.Count(v, ".") == 2 {
		kind += " " + v
	}
	return fmt.Sprintf("%s (%s), by %s", c.path, kind, strings.Join(c.via, ", "))
}

// checkLibraries finds all files that go by the name of NCCL's library: more than one in a process is a frequent cause of undefined symbols
// and of the wrong one being used.
func checkLibraries(m *machine) []finding {
	var out []finding
	found := map[string]*copyOf{}
	add := func(path, via string) {
		real := m.real(path)
		if found[real] == nil {
			found[real] = &copyOf{path: real}
		}
		if v := found[real].via; len(v) == 0 || v[len(v)-1] != via {
			found[real].via = append(v, via)
		}
	}
	for _, p := range splitPath(m.env["LD_PRELOAD"], ": ") {
		if !strings.Contains(filepath.Base(p), "nccl") && !strings.Contains(filepath.Base(p), "gccl") {
			continue
		}
		if strings.Contains(p, "/") && !m.exists(p) {
			out = append(out, finding{Verdict: fail, Found: fmt.Sprintf("LD_PRELOAD names %s, which is not there", p), Remedy: "correct the path"})
			continue
		}
		add(p, "LD_PRELOAD")
	}
	for _, name := range pathVariables {
		p := m.env[name]
		if p == "" {
			continue
		}
		if !m.exists(p) {
			out = append(out, finding{Verdict: fail, Found: fmt.Sprintf("%s names %s, which is not there", name, p), Remedy: "correct the path, or unset it"})
			continue
		}
		add(p, name)
	}
	look := func(folder, via string) {
		for _, p := range append(m.glob(filepath.Join(folder, "libnccl.so*")), m.glob(filepath.Join(folder, "libgccl.so"))...) {
			add(p, via)
		}
	}
	for _, d := range splitPath(m.env["LD_LIBRARY_PATH"], ":") {
		look(d, "LD_LIBRARY_PATH")
	}
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if root := m.env[v]; root != "" {
			look(filepath.Join(root, "lib"), v)
			for _, p := range pythonFolders {
				look(filepath.Join(root, p), v+", Python package")
			}
		}
	}
	for _, root := range []string{"/usr", "/usr/local"} {
		for _, p := range pythonFolders {
			look(filepath.Join(root, p), "system's Python package")
		}
	}
	for _, d := range systemFolders {
		look(d, "system's folders")
	}
	list := make([]string, 0, len(found))
	for _, c := range found {
		list = append(list, c.String())
	}
	sort.Strings(list)
	f := finding{Verdict: ok, Found: "no library of NCCL's name in the usual places", Details: list}
	switch {
	case len(list) == 1:
		f.Found = "one library of NCCL's name"
	case len(list) > 1:
		f.Verdict = warn
		f.Found = fmt.Sprintf("%d different libraries of NCCL's name", len(list))
		f.Remedy = "LD_PRELOAD comes before LD_LIBRARY_PATH, that before the system's folders, and a Python package may load its own by path: " +
			"gcclLibraryPath(), or gccl-doctor --pid of the running process, says which one is used"
	}
	return append(append(out, f), m.loaded()...)
}

func splitPath(s, separators string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(separators, r) })
}

// loaded looks into a running process.
func (m *machine) loaded() []finding {
	if m.pid == 0 {
		return nil
	}
	maps := m.text("proc", fmt.Sprint(m.pid), "maps")
	if maps == "" {
		return with(one(unknown, "the libraries of process %d cannot be read", m.pid), "run as the same user, or as root")
	}
	paths := map[string]bool{}
	for _, l := range strings.Split(maps, "\n") {
		w := strings.Fields(l)
		if len(w) < 6 {
			continue
		}
		base := filepath.Base(w[5])
		if strings.HasPrefix(base, "libnccl.so") || base == "libgccl.so" {
			paths[w[5]] = true
		}
	}
	list := make([]string, 0, len(paths))
	for p := range paths {
		list = append(list, p)
	}
	sort.Strings(list)
	switch len(list) {
	case 0:
		return one(note, "process %d has no library of NCCL's name loaded", m.pid)
	case 1:
		return one(ok, "process %d has loaded %s", m.pid, list[0])
	}
	return []finding{{Verdict: fail, Found: fmt.Sprintf("process %d has loaded %d libraries of NCCL's name", m.pid, len(list)), Details: list,
		Remedy: "load one of them only: preload it, or open it by path before the other is opened"}}
}
