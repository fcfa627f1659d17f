package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// group is a set of consecutive ranks that live and die together: a process started here, or one started by
// the front-end at the other end of a connection.
type group interface {
	ranks() (first, n int)
	// start hands the job over. Events then come through the channel given at creation, the last of them
	// "exit" with an empty text when all went well.
	start(job string) error
	// kill ends the group now. It may be called at any time and more than once.
	kill()
}

func groupName(g group) string {
	first, n := g.ranks()
	if n == 1 {
		return fmt.Sprintf("rank %d", first)
	}
	return fmt.Sprintf("ranks %d to %d", first, first+n-1)
}

// process is a rank process of this machine.
type process struct {
	cmd      *exec.Cmd
	control  *os.File
	first, n int
}

// findRankProgram returns the rank program: the named one, or gccl-perf-rank beside this executable.
func findRankProgram(named string) (string, error) {
	path := named
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("cannot find this program's folder: %w", err)
		}
		path = filepath.Join(filepath.Dir(self), "gccl-perf-rank")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no rank program: %w; build it with make build, or name it with --rank-program", err)
	}
	return path, nil
}

// spawn starts the process that runs ranks first to first+n-1. barrier may be nil.
func spawn(program string, first, n, nranks int, barrier *os.File, stderr io.Writer, source int, to chan<- event) (*process, error) {
	controlRead, controlWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	eventsRead, eventsWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe: %w", errors.Join(err, controlRead.Close(), controlWrite.Close()))
	}
	cmd := exec.Command(program)
	cmd.ExtraFiles = []*os.File{controlRead, eventsWrite}
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GCCL_PERF_") }), "GCCL_PERF_RANK="+strconv.Itoa(first), "GCCL_PERF_SIZE="+strconv.Itoa(nranks),
		"GCCL_PERF_THREADS="+strconv.Itoa(n), "GCCL_PERF_BARRIER=0")
	if barrier != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, barrier)
		cmd.Env = append(cmd.Env, "GCCL_PERF_BARRIER=1")
	}
	cmd.Stdout, cmd.Stderr = stderr, stderr // results have their own pipe; what the library prints must not mix with the table
	err = cmd.Start()
	controlRead.Close()
	eventsWrite.Close()
	if err != nil {
		controlWrite.Close()
		eventsRead.Close()
		return nil, fmt.Errorf("cannot start the process of rank %d: %w", first, err)
	}
	p := &process{cmd: cmd, control: controlWrite, first: first, n: n}
	go func() {
		readErr := readEvents(eventsRead, hostName(), source, to)
		if readErr != nil {
			p.kill()
		}
		eventsRead.Close()
		text := exitText(cmd.Wait())
		controlWrite.Close()
		if readErr != nil {
			text = readErr.Error()
		}
		to <- event{Event: "exit", Rank: first, Text: text, source: source}
	}()
	return p, nil
}

// exitText is empty for a process that ended well.
func exitText(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		if err != nil {
			return err.Error()
		}
		return ""
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Sprintf("killed by signal %d (%v)", int(status.Signal()), status.Signal())
	}
	return fmt.Sprintf("ended with exit code %d", exit.ExitCode())
}

func (p *process) ranks() (int, int) { return p.first, p.n }

func (p *process) start(job string) error {
	if _, err := io.WriteString(p.control, job); err != nil {
		return fmt.Errorf("cannot send the job to rank %d: %w", p.first, err)
	}
	return nil
}

func (p *process) kill() { _ = p.cmd.Process.Kill() } // fails only where the process has ended already

// newBarrierFile makes an unlinked file of one zeroed barrier line per rank (rank/shbarrier.h).
func newBarrierFile(nranks int) (*os.File, error) {
	const lineBytes = 128
	dir := "/dev/shm"
	if _, err := os.Stat(dir); err != nil {
		dir = ""
	}
	f, err := os.CreateTemp(dir, "gccl-perf-barrier-")
	if err != nil {
		return nil, fmt.Errorf("barrier file: %w", err)
	}
	if err := errors.Join(os.Remove(f.Name()), f.Truncate(int64(nranks)*lineBytes)); err != nil {
		return nil, fmt.Errorf("barrier file: %w", errors.Join(err, f.Close()))
	}
	return f, nil
}
