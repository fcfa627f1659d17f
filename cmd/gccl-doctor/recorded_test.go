package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/topo/discover"
)

// recorded makes a machine from a recording: lines "path: content" and "path -> target" for files and symbolic links, "hex path: bytes"
// for files that are no text ("at" before a byte string says where it is), and for what is in no file
//
//	env NAME=VALUE            a variable
//	statfs PATH TOTAL FREE    a file system, in MiB
//	refused CALL TEXT         a system call that fails
//	cpus N, pid N             what the process may use; --pid
//	gpu BUSID NAME            a GPU that NVML shows
//	nvml TEXT                 NVML fails
//
// "#" begins a comment.
func recorded(t *testing.T, text string) *machine {
	t.Helper()
	root := t.TempDir()
	m := &machine{root: root, env: map[string]string{}, affinity: 8, systemHas: map[string]error{}}
	var gpus []discover.GPU
	var nvmlError error
	sizes := map[string][2]uint64{}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "env":
			name, value, _ := strings.Cut(rest, "=")
			m.env[name] = value
		case "statfs":
			var path string
			var total, free uint64
			must(t, i, scan(rest, "%s %d %d", &path, &total, &free))
			sizes[path] = [2]uint64{total << 20, free << 20}
		case "refused":
			call, why, _ := strings.Cut(rest, " ")
			m.systemHas[call] = errors.New(why)
		case "cpus":
			must(t, i, scan(rest, "%d", &m.affinity))
		case "pid":
			must(t, i, scan(rest, "%d", &m.pid))
		case "gpu":
			id, name, _ := strings.Cut(rest, " ")
			gpus = append(gpus, discover.GPU{Index: len(gpus), BusID: id, Name: name})
		case "nvml":
			nvmlError = errors.New(rest)
		case "hex":
			path, content, _ := strings.Cut(rest, ": ")
			write(t, i, filepath.Join(root, path), string(unhex(t, i, content)))
		default:
			if at, target, found := strings.Cut(line, " -> "); found {
				path := filepath.Join(root, at)
				must(t, i, os.MkdirAll(filepath.Dir(path), 0o755))
				must(t, i, os.Symlink(target, path))
			} else if at, content, found := strings.Cut(line, ": "); found {
				write(t, i, filepath.Join(root, at), strings.ReplaceAll(content, `\n`, "\n")+"\n")
			} else {
				t.Fatalf("line %d is not understood: %q", i+1, line)
			}
		}
	}
	m.gpus = func() ([]discover.GPU, error) { return gpus, nvmlError }
	m.statfs = func(path string) (uint64, uint64, error) {
		s, found := sizes["/"+strings.TrimPrefix(strings.TrimPrefix(path, root), "/")]
		if !found {
			return 0, 0, errors.New("no such file or directory")
		}
		return s[0], s[1], nil
	}
	m.settings = param.MapEnv{Vars: m.env}
	return m
}

func scan(s, format string, args ...any) error {
	_, err := fmt.Sscanf(s, format, args...)
	return err
}

func must(t *testing.T, line int, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("line %d: %v", line+1, err)
	}
}

func write(t *testing.T, line int, path, content string) {
	t.Helper()
	must(t, line, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, line, os.WriteFile(path, []byte(content), 0o644))
}

// unhex reads "at 100 0d000100": bytes at offsets, all hexadecimal, the gaps zero.
func unhex(t *testing.T, line int, s string) []byte {
	t.Helper()
	var out []byte
	w := strings.Fields(s)
	for i := 0; i+2 < len(w); i += 3 {
		var at int
		must(t, line, scan(w[i+1], "%x", &at))
		b, err := hex.DecodeString(w[i+2])
		must(t, line, err)
		if n := at + len(b); n > len(out) {
			out = append(out, make([]byte, n-len(out))...)
		}
		copy(out[at:], b)
	}
	return out
}
