package xlog

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// stderrFile stands in for standard error; the second result reads it.
func stderrFile(t *testing.T) (fd int, read func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stderr")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return int(f.Fd()), func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

func TestSinkFallsBackToStderr(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ path, why string }{
		"no directory":        {filepath.Join(dir, "no", "log"), "no such file or directory"},
		"a directory":         {dir, "is a directory"},
		"pipe without reader": {pipe, "a pipe that nobody reads"},
		"full device":         {"/dev/full", "no space left on device"},
	} {
		t.Run(name, func(t *testing.T) {
			fd, read := stderrFile(t)
			s := openSink(tt.path, fd)
			for _, l := range []string{"one\n", "two\n"} {
				if n, err := s.Write([]byte(l)); n != len(l) || err != nil {
					t.Errorf("write: %d %v", n, err)
				}
			}
			s.close()
			lines := strings.Split(strings.TrimSuffix(read(), "\n"), "\n")
			if len(lines) != 3 || !strings.Contains(lines[0], tt.path) || !strings.Contains(lines[0], tt.why) {
				t.Fatalf("standard error has %q", lines)
			}
			if lines[1] != "one" || lines[2] != "two" {
				t.Errorf("lines are %q", lines[1:])
			}
		})
	}
}

// openPipe returns a sink on a named pipe with a reader that has read nothing.
func openPipe(t *testing.T) (*fileSink, *os.File, func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	fd, read := stderrFile(t)
	return openSink(path, fd), r, read
}

func TestSinkDoesNotWaitForASlowPipe(t *testing.T) {
	s, r, _ := openPipe(t)
	defer s.close()
	line := []byte(strings.Repeat("x", 999) + "\n")
	for s.dropped < 3 {
		_, _ = s.Write(line)
	}
	buf := make([]byte, 1<<20)
	if _, err := r.Read(buf); err != nil {
		t.Fatal(err)
	}
	_, _ = s.Write([]byte("after\n"))
	n, err := r.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(buf[:n]); !strings.HasPrefix(got, "3 log lines were lost") || !strings.HasSuffix(got, "\nafter\n") {
		t.Errorf("after the pipe was read: %q", got)
	}
}

func TestSinkLeavesAPipeWhoseReaderWent(t *testing.T) {
	s, r, read := openPipe(t)
	r.Close()
	_, _ = s.Write([]byte("line\n"))
	if got := read(); !strings.Contains(got, "broken pipe") || !strings.HasSuffix(got, "\nline\n") {
		t.Errorf("standard error has %q", got)
	}
}

func TestStderrWithoutReaderLosesLines(t *testing.T) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	s := openSink("", p[1])
	s.stuck = true // as if the first wait were over
	line := []byte(strings.Repeat("x", 999) + "\n")
	for i := 0; s.dropped == 0 && i < 1<<20; i++ {
		_, _ = s.Write(line)
	}
	if s.dropped != 1 {
		t.Error("a full pipe took everything")
	}
}

func TestLongLineIsCutOff(t *testing.T) {
	fd, read := stderrFile(t)
	s := openSink("", fd)
	_, _ = s.Write([]byte(strings.Repeat("x", 10_000) + "\n"))
	got := read()
	if len(got) != maxLine || !strings.HasSuffix(got, "[line cut off]\n") {
		t.Errorf("%d bytes, end %q", len(got), got[len(got)-20:])
	}
}

func TestWriteAfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := New(Config{File: path})
	l.Warn(Net, "one")
	l.Close()
	l.Close()
	l.Warn(Net, "two")
	b, err := os.ReadFile(path)
	if err != nil || bytes.Count(b, []byte("\n")) != 1 {
		t.Errorf("%q %v", b, err)
	}
}

const childEnv = "XLOG_TEST_CHILD"

// lineForm is what every line of a file looks like.
var lineForm = regexp.MustCompile(`^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] \S+:\d+ rank (\d) warn NET line (\d+) x{200}$`)

// TestOneFileForManyProcesses starts this test again as 8 processes that append
// to one file and are killed while they do.
func TestOneFileForManyProcesses(t *testing.T) {
	if path := os.Getenv(childEnv); path != "" {
		child(path)
	}
	path := filepath.Join(t.TempDir(), "log.%q%%")
	want := strings.ReplaceAll(path, "%%", "%")
	const procs, each = 8, 50
	cmds := make([]*exec.Cmd, procs)
	outs := make([]*bufio.Reader, procs)
	for i := range cmds {
		c := exec.Command(os.Args[0], "-test.run=^TestOneFileForManyProcesses$")
		c.Env = append(os.Environ(), childEnv+"="+path, fmt.Sprintf("XLOG_TEST_RANK=%d", i))
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		cmds[i], outs[i] = c, bufio.NewReader(out)
	}
	for i, c := range cmds {
		// The child says on standard output when its lines are written, then goes on
		// writing until it is killed.
		if s, err := outs[i].ReadString('\n'); s != "written\n" {
			t.Errorf("child %d: %q %v", i, s, err)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	b, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	seen := map[string]bool{}
	torn := 0
	for i, l := range lines {
		m := lineForm.FindStringSubmatch(l)
		if m == nil {
			// The kernel ends a killed process's write between two pages of the file (generic_perform_write of Linux's
			// mm/filemap.c looks for fatal signals there), so each process may leave the beginning of its last line.
			if torn++; torn > procs {
				t.Fatalf("not a whole line, and more of them than processes: %q", l)
			}
			next := strings.LastIndex(l, "[")
			if next <= 0 && i == len(lines)-1 {
				continue
			}
			if m = lineForm.FindStringSubmatch(l[max(next, 0):]); m == nil {
				t.Fatalf("not a whole line: %q", l)
			}
		}
		if key := m[1] + "/" + m[2]; seen[key] {
			t.Errorf("line %s is there twice", key)
		} else {
			seen[key] = true
		}
	}
	for rank := range procs {
		for i := range each {
			if key := fmt.Sprintf("%d/%d", rank, i); !seen[key] {
				t.Fatalf("line %s is lost", key)
			}
		}
	}
}

func child(path string) {
	rank := int(os.Getenv("XLOG_TEST_RANK")[0] - '0')
	l := New(Config{File: path}).WithRank(rank)
	for i := 0; ; i++ {
		l.Warn(Net, "line %d %s", i, strings.Repeat("x", 200))
		if i == 50 {
			fmt.Println("written")
		}
		if i > 2000 {
			select {} // killed by the parent
		}
	}
}
