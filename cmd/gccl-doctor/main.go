// Command gccl-doctor looks at this machine for what keeps collectives from working, or makes them slow, and says what to do about it.
// It changes nothing. With --peer it tries whether the network lets two machines talk.
//
// The exit status is 0 without failures, 1 with some, 2 if it could not look.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/version"
)

// errFailures makes the exit status when findings are failures; they are printed already.
var errFailures = errors.New("failures were found")

func main() {
	err := command(os.Stdout, thisMachine).Execute()
	switch {
	case errors.Is(err, errFailures):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "gccl-doctor:", err)
		os.Exit(2)
	}
}

// report is what is printed.
type report struct {
	Version  string    `json:"version"`
	Host     string    `json:"host"`
	Findings []finding `json:"findings"`
	Failures int       `json:"failures"`
	Warnings int       `json:"warnings"`
}

func command(out io.Writer, look func(pid int) *machine) *cobra.Command {
	var (
		asJSON       bool
		pid          int
		peer, listen string
	)
	c := &cobra.Command{
		Use:   "gccl-doctor",
		Short: "Look for what keeps collectives from working on this machine",
		Long: "Looks for what keeps collectives from working on this machine, or makes them slow, and says what to do about it.\n" +
			"With --listen on one machine and --peer on another it tries whether the network lets both talk.\n" +
			"The exit status is 0 without failures, 1 with some, 2 if it could not look.",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			m := look(pid)
			if listen != "" || peer != "" {
				return network(out, m, listen, peer, asJSON)
			}
			return printReport(out, m, examine(m), asJSON)
		},
	}
	c.SetOut(out)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().IntVar(&pid, "pid", 0, "also look at the libraries that this process has loaded")
	c.Flags().StringVar(&listen, "listen", "", "address to wait for --peer on, such as :7001; until interrupted")
	c.Flags().StringVar(&peer, "peer", "", "address where gccl-doctor --listen waits: try the network between both machines")
	return c
}

// network is --listen and --peer.
func network(out io.Writer, m *machine, listen, peer string, asJSON bool) error {
	if listen != "" && peer != "" {
		return errors.New("--listen and --peer exclude each other")
	}
	s, _, err := param.LoadFrom(m.settings)
	if err != nil {
		return err
	}
	p := prober{ports: realNetwork}
	if lo, hi, set := s.Range(param.GCCLPortRange); set {
		p.lo, p.hi = int(lo), int(hi)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if listen != "" {
		return p.listen(ctx, listen, out)
	}
	findings, err := p.try(ctx, peer)
	if err != nil {
		return err
	}
	return printReport(out, m, findings, asJSON)
}

func printReport(out io.Writer, m *machine, list []finding, asJSON bool) error {
	r := report{Version: version.Library, Host: m.text("proc/sys/kernel/hostname"), Findings: list, Failures: count(list, fail), Warnings: count(list, warn)}
	var err error
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = r.print(out)
	}
	if err == nil && r.Failures > 0 {
		err = errFailures
	}
	return err
}

func (r report) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, f := range r.Findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Verdict, f.Check, f.Found)
		for _, d := range f.Details {
			fmt.Fprintf(w, "\t\t  %s\n", d)
		}
		if f.Remedy != "" {
			fmt.Fprintf(w, "\t\t=> %s\n", f.Remedy)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s, %s\n", plural(r.Failures, "failure"), plural(r.Warnings, "warning"))
	return err
}
