package abi

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// deadline bounds every program that a test starts: a hang is a failure, not a long wait.
const deadline = 90 * time.Second

func repoRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// includeDir is the folder of the public headers.
func includeDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(repoRoot(t), "include")
	noteInputs(t, dir)
	return dir
}

// noteInputs looks at every file of a folder that programs started by a test will read. The go command keeps the
// result of a passed test until a file changes that the test itself looked at; what a compiler reads it cannot see.
func noteInputs(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// tool finds a program. gcc is what the library itself is built with and must be there; the others may be missing.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if name == "gcc" {
			t.Fatalf("gcc is not installed; the library cannot be built without it")
		}
		t.Skipf("%s is not installed", name)
	}
	return path
}

// cleanEnv is the environment without anything that changes how a library is found or behaves.
func cleanEnv(extra ...string) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "NCCL_") || strings.HasPrefix(name, "GCCL_") || strings.HasPrefix(name, "LD_") {
			continue
		}
		env = append(env, kv)
	}
	return append(env, extra...)
}

type result struct {
	stdout, stderr string
	err            error
}

// runProgram runs a program in a process group of its own and ends the whole group at the deadline, so that forked
// children do not outlive the test.
func runProgram(t *testing.T, env []string, stdin string, name string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr strings.Builder
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, strings.NewReader(stdin), &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		err = errors.Join(errors.New("still running at the deadline of "+deadline.String()), err)
	}
	return result{stdout.String(), stderr.String(), err}
}

// mustRun is runProgram for programs that have to succeed; it returns what they printed.
func mustRun(t *testing.T, env []string, stdin string, name string, args ...string) string {
	t.Helper()
	r := runProgram(t, env, stdin, name, args...)
	if r.err != nil {
		t.Fatalf("%s %s: %v\nstdout:\n%s\nstderr:\n%s", name, strings.Join(args, " "), r.err, r.stdout, r.stderr)
	}
	return r.stdout
}

var warnings = []string{"-Wall", "-Wextra", "-pedantic", "-Werror"}

// writeFile puts text into a new file of the test's folder.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// runGenerated compiles a generated C program against the headers, runs it and demands success.
func runGenerated(t *testing.T, source string) {
	t.Helper()
	src := writeFile(t, "generated.c", source)
	exe := strings.TrimSuffix(src, ".c")
	args := append([]string{"-std=c11", "-I", includeDir(t), "-o", exe, src}, warnings...)
	mustRun(t, cleanEnv(), "", tool(t, "gcc"), args...)
	mustRun(t, cleanEnv(), "", exe)
}

var declaration = regexp.MustCompile(`(?m)\b(p?nccl[A-Z]\w*|gccl[A-Z]\w*)\s*\([^;{}]*\)\s*;`)

// declaredFunctions lists the functions that gccl.h declares, as the compiler sees them.
func declaredFunctions(t *testing.T) []string {
	t.Helper()
	src := writeFile(t, "declared.c", "#include \"gccl.h\"\n")
	text := mustRun(t, cleanEnv(), "", tool(t, "gcc"), "-E", "-P", "-I", includeDir(t), src)
	var names []string
	for _, m := range declaration.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	if len(names) == 0 {
		t.Fatal("no function declaration found in the preprocessed gccl.h")
	}
	return names
}

// macros returns the NCCL_ macros that a file with the given text ends up with, name to text; a macro with
// parameters is found under its name and parameter list.
func macros(t *testing.T, source string) map[string]string {
	t.Helper()
	src := writeFile(t, "macros.c", source)
	text := mustRun(t, cleanEnv(), "", tool(t, "gcc"), "-E", "-dM", "-I", includeDir(t), src)
	found := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		m := regexp.MustCompile(`^#define (NCCL_\w+(?:\([^)]*\))?)\s*(.*)$`).FindStringSubmatch(line)
		if m != nil {
			found[m[1]] = m[2]
		}
	}
	return found
}
