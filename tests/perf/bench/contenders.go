package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// contender is something that can be measured: one round of a regime gives a figure for each size.
type contender struct {
	name    string
	mode    string // ours only: window or malloc
	launch  func(r regime) string
	measure func(r regime) (map[int64]figure, error) // what was measured, and what failed
	fits    func(r regime) bool
}

const (
	nameProbe  = "bare C probe"
	runTimeout = 2 * time.Minute // of one command
	errorText  = 600             // bytes of a failed command's output that are shown
)

// output runs a command and returns its standard output. The command's whole process group ends with it.
func output(env []string, name string, args ...string) ([]byte, error) {
	return outputWithin(runTimeout, env, name, args...)
}

func outputWithin(limit time.Duration, env []string, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("did not end within %v", limit)
	}
	if err != nil {
		text := strings.TrimSpace(stderr.String())
		// the program's own verdict comes last
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, text[max(0, len(text)-errorText):])
	}
	return stdout.Bytes(), nil
}

// line is what the C programs print (mpi/allreduce.c, probe/probe.c).
type line struct {
	What   string  `json:"what"`
	Method string  `json:"method"`
	Bytes  int64   `json:"bytes"`
	P50    float64 `json:"p50"`
	Mean   float64 `json:"mean"`
	P99    float64 `json:"p99"`
	Wrong  int64   `json:"wrong"`
}

func parseLines(out []byte, method string) (map[int64]figure, error) {
	figures := map[int64]figure{}
	for _, text := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("a line that is no result: %.100q", text)
		}
		if l.Method != method {
			continue
		}
		if l.Wrong != 0 {
			return nil, fmt.Errorf("%d wrong elements at %d bytes", l.Wrong, l.Bytes)
		}
		figures[l.Bytes] = figure{p50: l.P50, mean: l.Mean, p99: l.P99, frontNS: -1}
	}
	return figures, nil
}

func specs(sizes []size) []string {
	var list []string
	for _, s := range sizes {
		list = append(list, s.spec())
	}
	return list
}

// withBarrier calls use with a fresh file of zeroed barrier lines.
func withBarrier(use func(path string) ([]byte, error)) ([]byte, error) {
	const bytesForAll = 64 << 10
	f, err := os.CreateTemp("/dev/shm", "gccl-bench-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(f.Truncate(bytesForAll), f.Close()); err != nil {
		return nil, err
	}
	return use(f.Name())
}

// mpiPeer describes one MPI library of Debian.
type mpiPeer struct {
	name, compiler, launcher, pkg string
	args                          func(r regime) []string
	sizes                         func(r regime) []size
}

var mpiPeers = []mpiPeer{
	{
		name: "Open MPI", compiler: "mpicc.openmpi", launcher: "mpirun.openmpi", pkg: "openmpi-bin libopenmpi-dev",
		args: func(r regime) []string {
			args := []string{"--bind-to", "none", "--mca", "btl", "self,vader"}
			if os.Geteuid() == 0 {
				args = append(args, "--allow-run-as-root")
			}
			if r.yield {
				args = append(args, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1")
			}
			return append(args, "-np", strconv.Itoa(r.ranks))
		},
		sizes: func(r regime) []size { return r.sizes },
	},
	{
		name: "MPICH", compiler: "mpicc.mpich", launcher: "mpirun.mpich", pkg: "mpich libmpich-dev",
		args: func(r regime) []string { return []string{"-np", strconv.Itoa(r.ranks)} },
		sizes: func(r regime) []size { // Debian's build spins and cannot yield
			if r.yield {
				return r.fewer()
			}
			return r.sizes
		},
	},
}

// openMPIPeer compiles the MPI program for one peer; the error says which package is missing.
func (s *setup) openMPIPeer(p mpiPeer) (contender, error) {
	for _, tool := range []string{p.compiler, p.launcher} {
		if _, err := exec.LookPath(tool); err != nil {
			return contender{}, fmt.Errorf("%s: no %s; Debian packages %s", p.name, tool, p.pkg)
		}
	}
	program := filepath.Join(s.build, "allreduce."+strings.TrimPrefix(p.compiler, "mpicc."))
	source := filepath.Join(s.root, "tests/perf/mpi/allreduce.c")
	args := append(s.cflags(), "-o", program, source)
	_, err := output(nil, p.compiler, args...)
	if err != nil && p.name == "MPICH" && s.mpichInclude != "" {
		// headers unpacked elsewhere, linked with the installed library
		_, err = output(nil, "gcc", append(args, "-I"+s.mpichInclude, "-l:libmpich.so.12")...)
	}
	if err != nil {
		return contender{}, fmt.Errorf("%s: cannot compile (Debian packages %s): %w", p.name, p.pkg, err)
	}
	version, err := output(nil, p.launcher, "--version")
	if err != nil {
		return contender{}, fmt.Errorf("%s: %w", p.name, err)
	}
	return contender{
		name:   p.name + " " + versionNumber(string(version)),
		launch: func(r regime) string { return p.launcher + " " + strings.Join(p.args(r), " ") },
		fits:   func(regime) bool { return true },
		measure: func(r regime) (map[int64]figure, error) {
			out, err := withBarrier(func(path string) ([]byte, error) {
				args := append(p.args(r), program, path, "1")
				return output([]string{"OMPI_MCA_rmaps_base_oversubscribe=1"}, p.launcher, append(args, specs(p.sizes(r))...)...)
			})
			if err != nil {
				return nil, err
			}
			return parseLines(out, "")
		},
	}, nil
}

// versionNumber is the first word of text that looks like 4.1.4.
func versionNumber(text string) string {
	for _, word := range strings.Fields(text) {
		if parts := strings.Split(word, "."); len(parts) >= 2 {
			if _, err := strconv.Atoi(parts[0]); err == nil {
				return word
			}
		}
	}
	return "of unknown version"
}

func (s *setup) openProbe() (contender, error) {
	program := filepath.Join(s.build, "probe")
	args := append(s.cflags(), "-march=native", "-o", program, filepath.Join(s.root, "tests/perf/probe/probe.c"))
	if _, err := output(nil, "gcc", args...); err != nil {
		return contender{}, fmt.Errorf("probe: cannot compile: %w", err)
	}
	return contender{
		name:   nameProbe,
		launch: func(regime) string { return "two processes on two cores" },
		fits:   func(r regime) bool { return r.ranks == 2 },
		measure: func(r regime) (map[int64]figure, error) {
			out, err := output(nil, program, specs(r.sizes)...)
			if err != nil {
				return nil, err
			}
			return parseLines(out, "best")
		},
	}, nil
}

// oursLine is the part of gccl-perf's JSON lines that is used here.
type oursLine struct {
	Kind    string   `json:"kind"`
	Bytes   int64    `json:"bytes"`
	Mean    float64  `json:"time_us"`
	P50     float64  `json:"p50_us"`
	P99     float64  `json:"p99_us"`
	Wrong   *int64   `json:"wrong"`
	FrontNS *float64 `json:"front_ns"`
	InitUS  float64  `json:"init_us"`
}

// openOurs measures the library that build/bin/gccl-perf-rank links. mode is window, malloc, or a name for what env makes.
func (s *setup) openOurs(mode string, env ...string) (contender, error) {
	program := filepath.Join(s.bin, "gccl-perf")
	for _, file := range []string{program, program + "-rank"} {
		if _, err := os.Stat(file); err != nil {
			return contender{}, fmt.Errorf("ours: %w; run make build", err)
		}
	}
	args := func(r regime, z size) []string {
		list := []string{"-P", strconv.Itoa(r.ranks), "--pin", "--latency", "--out-of-place", "--json", "-c", "1",
			"-b", strconv.FormatInt(z.bytes, 10), "-e", strconv.FormatInt(z.bytes, 10),
			"-n", strconv.Itoa(z.iterations), "-w", strconv.Itoa(z.warmup)}
		if mode == "window" {
			list = append(list, "--window")
		}
		return list
	}
	return contender{
		name: "ours", mode: mode,
		launch: func(r regime) string {
			return strings.Join(append(slices.Clone(env), append([]string{"gccl-perf"}, args(r, r.sizes[0])...)...), " ")
		},
		fits: func(regime) bool { return true },
		measure: func(r regime) (map[int64]figure, error) {
			figures := map[int64]figure{}
			var failures error
			for _, z := range r.sizes {
				out, err := output(env, program, args(r, z)...)
				if err == nil {
					err = parseOurs(out, figures)
				}
				failures = errors.Join(failures, err)
			}
			return figures, failures
		},
	}, nil
}

func parseOurs(out []byte, into map[int64]figure) error {
	for _, text := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
		var l oursLine
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("a line that is no result: %.100q", text)
		}
		if l.Kind != "row" {
			continue
		}
		if l.Wrong == nil || *l.Wrong != 0 {
			return fmt.Errorf("ours: unchecked or wrong at %d bytes", l.Bytes)
		}
		f := figure{p50: l.P50, mean: l.Mean, p99: l.P99, frontNS: -1}
		if l.FrontNS != nil {
			f.frontNS = *l.FrontNS
		}
		into[l.Bytes] = f
	}
	return nil
}
