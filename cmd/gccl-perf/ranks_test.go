package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compileC builds a C test program; the build needs a C compiler, so this does too.
func compileC(t *testing.T, out string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Fatal("no gcc: the rank program cannot be built; the build needs it too")
	}
	args = append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-I../../include", "-Irank", "-o", out}, args...)
	if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

func TestOracle(t *testing.T) {
	program := filepath.Join(t.TempDir(), "oracletest")
	compileC(t, program, "testdata/oracletest/oracletest.c", "rank/oracle.c", "rank/types.c", "-lm")
	if text, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// rankProgram builds the rank program against the stand-in library.
func rankProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	lib := filepath.Join(dir, "libnccl.so.2")
	compileC(t, lib, "-shared", "-fPIC", "-Wl,-soname,libnccl.so.2", "testdata/fakelib/fakelib.c")
	sources, err := filepath.Glob("rank/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources of the rank program")
	}
	program := filepath.Join(dir, "gccl-perf-rank")
	compileC(t, program, append(sources, lib, "-Wl,-rpath,"+dir, "-lpthread", "-lm")...)
	t.Setenv("FAKE_DIR", dir)
	return program
}

// perf runs the command line in this process, the ranks in their own.
func perf(program string, args ...string) (string, error) {
	var out, log bytes.Buffer
	cmd := command(&out, &log, nil)
	cmd.SetArgs(append(args, "--rank-program", program))
	err := cmd.Execute()
	return out.String() + log.String(), err
}

func TestRanks(t *testing.T) {
	program := rankProgram(t)
	for _, launch := range []string{"-P 2", "-t 4", "-P 2 -t 2", "-P 1"} {
		for _, rest := range []string{"--window --out-of-place=false", "--latency -R 1"} {
			args := strings.Fields(launch + " " + rest + " -b 0 -e 2K -i 1000 --coll all -d int8 -o all -r all -n 2 -c 2 --pin")
			out, err := perf(program, args...)
			if err != nil || !strings.Contains(out, "# Out of bounds values : 0 OK") {
				t.Fatalf("%s %s: %v\n%s", launch, rest, err, out)
			}
		}
	}
	for _, typ := range []string{"uint8", "int32", "uint32", "int64", "uint64", "float", "double"} {
		if out, err := perf(program, strings.Fields("-P 3 -b 1000 -e 1000 --coll all_reduce -o all -n 1 -d "+typ)...); err != nil {
			t.Errorf("%s: %v\n%s", typ, err, out)
		}
	}
}

func TestRanksFindWrongData(t *testing.T) {
	program := rankProgram(t)
	for _, knob := range []string{"FAKE_WRONG", "FAKE_SPILL"} {
		t.Run(knob, func(t *testing.T) {
			t.Setenv(knob, "1")
			out, err := perf(program, "-P", "2", "-b", "64", "-e", "64", "-n", "1")
			if !errors.Is(err, errWrong) || !strings.Contains(out, "FAILED") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestRanksThatFailAreNamed(t *testing.T) {
	program := rankProgram(t)
	for _, tt := range []struct{ knob, rank, want string }{
		{"FAKE_DIE", "2", "rank 2: killed by signal 9"},
		{"FAKE_FAIL", "1", `rank 1: ncclAllReduce: result 3: told to "fail"`},
		{"FAKE_HANG", "1", "no rank got on for 2s"},
	} {
		t.Run(tt.knob, func(t *testing.T) {
			t.Setenv(tt.knob, tt.rank)
			_, err := perf(program, "-P", "3", "-b", "64", "-e", "64", "-T", "2s")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			assertNoRankLeft(t, program)
		})
	}
}

// assertNoRankLeft looks through /proc for processes of the rank program.
func assertNoRankLeft(t *testing.T, program string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == program {
			t.Errorf("%s still runs", link)
		}
	}
}

func TestRankProgramIsMissing(t *testing.T) {
	_, err := perf(filepath.Join(t.TempDir(), "none"), "-P", "2")
	if err == nil || !strings.Contains(err.Error(), "build it with make build") {
		t.Errorf("%v", err)
	}
}
