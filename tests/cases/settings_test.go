package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// One rank has another setting: all ranks agree on something or all get an error that names it; no hang.
func TestC23DifferentSettings(t *testing.T) { each(t, "c23", []string{"procs"}, []int{3}, shortInit) }

// Unknown names are warned about once a process with the nearest known name; values that cannot be read are defaulted
// with a line, or refused by name.
func TestC24OddSettings(t *testing.T) {
	for _, c := range []struct{ set, near string }{
		{"NCCL_SOCKET_IFNAMES=x", "NCCL_SOCKET_IFNAME"},
		{"NCCL_DEBG=INFO", "NCCL_DEBUG"},
		{"GCCL_INIT_TIMOUT=5", "GCCL_INIT_TIMEOUT"},
	} {
		t.Run(c.set, func(t *testing.T) {
			r := check(t, "alive", "procs", 1, c.set, "NCCL_DEBUG=WARN")
			name := strings.SplitN(c.set, "=", 2)[0]
			lines := linesWith(r.Stderr, name)
			if len(lines) != 1 || !regexp.MustCompile(regexp.QuoteMeta(c.near)+`\b`).MatchString(strings.ReplaceAll(lines[0], name, "")) {
				t.Errorf("want one warning about %s that suggests %s, got %q", name, c.near, lines)
			}
		})
	}
	for _, set := range []string{"NCCL_BUFFSIZE=4MB", "NCCL_P2P_DISABLE=yes", "NCCL_IB_HCA==", "NCCL_NTHREADS= 256 ",
		"NCCL_BUFFSIZE=18446744073709551615", "NCCL_BUFFSIZE=-1"} {
		t.Run(set, func(t *testing.T) { check(t, "alive", "procs", 2, set) })
	}
	t.Run("conf file", func(t *testing.T) {
		dir := t.TempDir()
		conf := filepath.Join(dir, "my.conf")
		text := "# a comment\r\nNCCL_DEBG_FROM_FILE=1\r\nNCCL_SOCKET_IFNAME=nosuch0\n"
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, "refused_filter", "procs", 1, "NCCL_CONF_FILE="+conf)
		// The environment wins over the file.
		check(t, "alive", "procs", 2, "NCCL_CONF_FILE="+conf, "NCCL_SOCKET_IFNAME=lo")
	})
}

func linesWith(text, word string) []string {
	var out []string
	for _, l := range strings.Split(text, "\n") {
		if strings.Contains(l, word) {
			out = append(out, l)
		}
	}
	return out
}

// ours tells the test program's own lines from the library's.
var ours = regexp.MustCompile(`^(ok|not ok|1\.\.1|# )`)

// Log files by pattern, odd destinations, and a standard output that stays the program's own.
func TestC25Logs(t *testing.T) {
	clean := func(t *testing.T, stdout string) {
		t.Helper()
		for _, l := range strings.Split(strings.TrimSpace(stdout), "\n") {
			if !ours.MatchString(l) {
				t.Errorf("a line on standard output that is not the program's: %q", l)
			}
		}
	}
	t.Run("pattern", func(t *testing.T) {
		dir := t.TempDir()
		r := check(t, "c25", "procs", 4, "NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE="+dir+"/log.%h.%p.%%.txt")
		clean(t, r.Stdout)
		files, _ := filepath.Glob(dir + "/*")
		if len(files) != 4 {
			t.Errorf("want a file for each of 4 processes, got %v", files)
		}
		for _, f := range files {
			if !strings.HasSuffix(f, ".%.txt") || strings.Contains(f, "%p") || strings.Contains(f, "%h") {
				t.Errorf("the pattern is not filled in: %s", f)
			}
			wholeLines(t, f)
		}
	})
	t.Run("one file for all", func(t *testing.T) {
		f := filepath.Join(t.TempDir(), "shared.log")
		r := check(t, "c25", "procs", 8, "NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE="+f)
		clean(t, r.Stdout)
		wholeLines(t, f)
	})
	for _, c := range []struct{ name, file string }{
		{"unknown escape", t.TempDir() + "/x.%q.log"},
		{"no such folder", "/nonexistent/folder/x.log"},
		{"full device", "/dev/full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			clean(t, check(t, "c25", "procs", 2, "NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE="+c.file).Stdout)
		})
	}
	t.Run("pipe without reader", func(t *testing.T) {
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		s := spec("c25", "procs", 2, "NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE="+pipe)
		s.Deadline = 20 * time.Second
		clean(t, program.Check(t, s).Stdout)
	})
	t.Run("version", func(t *testing.T) {
		r := check(t, "c25", "procs", 1, "NCCL_DEBUG=VERSION")
		clean(t, r.Stdout)
		lines := linesWith(r.Stderr, "(NCCL ABI 2.30.7)")
		if len(lines) != 1 || !regexp.MustCompile(`GCCL \d+\.\d+ \(NCCL ABI 2\.30\.7\) /.*/libgccl\.so built \S+`).MatchString(lines[0]) {
			t.Errorf("NCCL_DEBUG=VERSION: standard error has not one line with version, path and build: %q", r.Stderr)
		}
	})
}

// wholeLines checks that every line of a log has a time and a rank or process, so none was torn or mixed.
func wholeLines(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
		return
	}
	if len(text) == 0 || text[len(text)-1] != '\n' {
		t.Errorf("%s: %d bytes, want whole lines", file, len(text))
	}
	stamp := regexp.MustCompile(`\d\d:\d\d:\d\d`)
	for _, l := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if len(stamp.FindAllString(l, -1)) != 1 {
			t.Errorf("%s: a line without exactly one time: %q", file, l)
		}
	}
}

// Settings that this build or this machine cannot obey are errors that name variable, value and what there is.
func TestC24RefusedSettings(t *testing.T) {
	other := "neon"
	if runtime.GOARCH == "arm64" {
		other = "avx2"
	}
	for _, c := range []struct{ set, want string }{
		{"GCCL_DEVICE=cuda", `GCCL_DEVICE is cuda, but .*(kernels|driver|libcuda)`},
		{"GCCL_SIMD=" + other, `GCCL_SIMD is ` + other + `: this CPU has .*c`},
		{"GCCL_DETERMINISTIC=1 NCCL_ALGO=ring", `NCCL_ALGO ring .*GCCL_DETERMINISTIC 1`},
	} {
		t.Run(c.set, func(t *testing.T) {
			r := check(t, "refused_setting", "procs", 2, strings.Fields(c.set)...)
			for rank := range 2 {
				if !regexp.MustCompile(fmt.Sprintf(`refused on rank %d: .*%s`, rank, c.want)).MatchString(r.Stdout + r.Stderr) {
					t.Errorf("rank %d: no text like %s:\n%s%s", rank, c.want, r.Stdout, r.Stderr)
				}
			}
		})
	}
	for _, set := range []string{"GCCL_DEVICE=host", "GCCL_DEVICE=auto", "GCCL_SIMD=c", "GCCL_DETERMINISTIC=1"} {
		t.Run(set, func(t *testing.T) { check(t, "alive", "procs", 2, set) })
	}
	t.Run("no windows", func(t *testing.T) {
		r := check(t, "no_windows", "procs", 2, "NCCL_WIN_ENABLE=0")
		if lines := linesWith(r.Stderr, "NCCL_WIN_ENABLE"); len(lines) != 2 {
			t.Errorf("want one line for each of 2 ranks, got %q", lines)
		}
	})
}
