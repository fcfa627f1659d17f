package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// errWrong ends a run whose data was wrong; the table has said so already.
var errWrong = errors.New("wrong results")

func main() {
	stop := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		close(stop)
	}()
	if err := command(os.Stdout, os.Stderr, stop).Execute(); err != nil {
		if !errors.Is(err, errWrong) {
			fmt.Fprintf(os.Stderr, "gccl-perf: %v\n", err)
		}
		os.Exit(1)
	}
}

func command(stdout, stderr io.Writer, stop <-chan struct{}) *cobra.Command {
	var o options
	stderr = shared(stderr)
	cmd := &cobra.Command{
		Use:   "gccl-perf [-P processes] [-t threads] [-b min] [-e max] [-f factor] …",
		Short: "Measure and check collectives",
		Long: "gccl-perf runs collectives over a sweep of sizes, checks the data and prints nccl-tests' table.\n" +
			"Ranks are -P processes of -t threads here, or -t threads in each process that mpirun, torchrun or srun starts.\n" +
			"Across machines rank 0 listens at MASTER_ADDR:MASTER_PORT, Slurm's first node, or GCCL_PERF_ADDR=host:port.",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			if len(o.recorded) > 0 {
				if o.svgFile == "" {
					return fmt.Errorf("--recorded draws what was measured before: it needs --svg FILE")
				}
				return drawRecorded(o.svgFile, o.title, o.recorded)
			}
			w, err := detectWorld(os.Getenv, os.Getppid())
			if err != nil {
				return err
			}
			if o.calibrate != "" {
				if w != nil {
					return fmt.Errorf("--calibrate: it starts its own processes; not under %s", w.launcher)
				}
				return calibrate(o, stdout, stderr, stop)
			}
			if w == nil {
				return runHere(o, stdout, stderr, stop)
			}
			if o.processes != 1 {
				return fmt.Errorf("-P %d: %s starts the processes already", o.processes, w.launcher)
			}
			return runInWorld(w, o, stdout, stderr, stop)
		},
	}
	o.bind(cmd.Flags())
	return cmd
}

// eventRoom lets rank processes report without waiting for the terminal.
const eventRoom = 1024

// shared makes a writer fit for several processes' output at once. A file is that already, and passing it on costs no goroutine.
func shared(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return f
	}
	return &lockedWriter{w: w}
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// runHere runs all ranks as processes of this machine.
func runHere(o options, stdout, stderr io.Writer, stop <-chan struct{}) error {
	p, err := newPlan(o, o.processes*o.threads)
	if err != nil {
		return err
	}
	program, err := findRankProgram(o.rankProgram)
	if err != nil {
		return err
	}
	barrier, err := newBarrierFile(p.nranks)
	if err != nil {
		return err
	}
	defer barrier.Close()
	events := make(chan event, eventRoom)
	var groups []group
	for i := range o.processes {
		g, err := spawn(program, i*o.threads, o.threads, p.nranks, barrier, stderr, i, events)
		if err != nil {
			for _, g := range groups {
				g.kill()
			}
			return err
		}
		groups = append(groups, g)
	}
	return report(p, groups, events, stdout, stderr, stop)
}

func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown-host"
	}
	return host
}

// runInWorld runs this process's share of the ranks and, in the first process, leads the run.
func runInWorld(w *world, o options, stdout, stderr io.Writer, stop <-chan struct{}) error {
	p, err := newPlan(o, w.size*o.threads)
	if err != nil {
		return err
	}
	p.processes = w.size
	program, err := findRankProgram(o.rankProgram)
	if err != nil {
		return err
	}
	host := hostName()
	events := make(chan event, eventRoom)
	if w.rank > 0 {
		conn, reader, err := dialRoot(w, o.threads, host, o.timeout)
		if err != nil {
			return err
		}
		defer conn.Close()
		g, err := spawn(program, w.rank*o.threads, o.threads, p.nranks, nil, stderr, 0, events)
		if err != nil {
			return err
		}
		return serveRoot(conn, reader, g, events, stop)
	}
	l, err := listenFirst(w.addrs)
	if err != nil {
		return err
	}
	defer l.Close()
	remotes, err := acceptAll(l, w, o.threads, o.timeout)
	if err != nil {
		return err
	}
	own, err := spawn(program, 0, o.threads, p.nranks, nil, stderr, 0, events)
	if err != nil {
		for _, r := range remotes {
			r.kill()
		}
		return err
	}
	groups := []group{own}
	for i, r := range remotes {
		groups = append(groups, r)
		go r.follow(i+1, events)
	}
	return report(p, groups, events, stdout, stderr, stop)
}

// report runs the groups and shows the results.
func report(p *plan, groups []group, events <-chan event, stdout, stderr io.Writer, stop <-chan struct{}) error {
	out := bufio.NewWriter(stdout)
	bar := newProgress(stderr, time.Now)
	sinks := []sink{clearing{bar}}
	if p.jsonLines {
		sinks = append(sinks, &jsonLines{w: out, command: strings.Join(os.Args, " "), now: time.Now})
	} else {
		sinks = append(sinks, &table{w: out, latency: p.latency})
	}
	var drawing *plot
	if p.svgFile != "" {
		drawing = &plot{file: p.svgFile, title: p.title}
		sinks = append(sinks, drawing)
	}
	sinks = append(sinks, flushing{out})
	var watch func(*collector)
	if isTerminal(stderr) {
		watch = bar.update
	}
	c, err := runGroups(p, groups, events, sinks, stop, watch)
	bar.clear()
	if err := errors.Join(err, out.Flush()); err != nil {
		return err
	}
	if drawing != nil {
		if err := drawing.write(); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	if c.wrong > 0 {
		return errWrong
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// clearing takes the progress line away before each row.
type clearing struct{ bar *progress }

func (c clearing) begin(*plan, []event) { c.bar.clear() }
func (c clearing) row(row)              { c.bar.clear() }
func (c clearing) end(*collector)       { c.bar.clear() }

// flushing shows each row as soon as it is there.
type flushing struct{ out *bufio.Writer }

func (f flushing) begin(*plan, []event) {}
func (f flushing) row(row)              { _ = f.out.Flush() } // the last flush reports an error
func (f flushing) end(*collector)       {}
