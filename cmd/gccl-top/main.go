// Command gccl-top shows the communicators that run on this machine: how far each rank is, how fast it goes, and which ranks keep the
// others waiting. It asks the processes of the same user over their sockets (package internal/status); they need not be prepared.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/status"
)

// answerLimit is how long one process may take to answer.
const answerLimit = 2 * time.Second

func main() {
	if err := command(os.Stdout).Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "gccl-top:", err)
		os.Exit(1)
	}
}

func command(out io.Writer) *cobra.Command {
	var (
		once, asJSON bool
		dir          string
		interval     time.Duration
	)
	c := &cobra.Command{
		Use:           "gccl-top",
		Short:         "Show the communicators that run on this machine",
		Long:          "Shows the communicators of this user's processes until it is interrupted. Other users' are not shown.",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			if interval <= 0 {
				return fmt.Errorf("--interval is %v: it must be above 0", interval)
			}
			if asJSON && !once {
				return fmt.Errorf("--json goes with --once")
			}
			if dir == "" {
				s, _, err := param.LoadFrom(param.Process())
				if err != nil {
					return err
				}
				dir = s.Str(param.GCCLTopDir)
			}
			return run(out, status.Folder(dir), interval, once, asJSON)
		},
	}
	c.Flags().BoolVar(&once, "once", false, "look twice, an interval apart, print and end")
	c.Flags().BoolVar(&asJSON, "json", false, "with --once: print JSON")
	c.Flags().DurationVar(&interval, "interval", time.Second, "time between two looks, over which rates are")
	c.Flags().StringVar(&dir, "dir", "", "folder of the sockets (default that of GCCL_TOP_DIR)")
	return c
}

// run looks again and again.
func run(out io.Writer, dir string, interval time.Duration, once, asJSON bool) error {
	before, _ := status.List(dir, answerLimit)
	for {
		time.Sleep(interval)
		now, errs := status.List(dir, answerLimit)
		v := merge(before, now, errs)
		before = now
		if asJSON {
			e := json.NewEncoder(out)
			e.SetIndent("", "  ")
			return e.Encode(v)
		}
		if !once && terminal(out) {
			fmt.Fprint(out, "\x1b[H\x1b[2J") // ECMA-48: home, erase the screen
		}
		if err := v.print(out); err != nil || once {
			return err
		}
	}
}

func terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
