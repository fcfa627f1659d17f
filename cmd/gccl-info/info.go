package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/version"
)

// fact is one line of the plain output.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// settingInfo is one line of --env.
type settingInfo struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Origin  string `json:"origin"`
	Default string `json:"default"`
	State   string `json:"state"`
	Text    string `json:"text"`
}

// command makes the command line over an environment; it writes results to out
// and problems to problems.
func command(env param.Env, out, problems io.Writer) *cobra.Command {
	var showEnv, onlySet, asJSON, runProbe bool
	c := &cobra.Command{
		Use:           "gccl-info",
		Short:         "Print what the library is and sees",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			if showEnv || onlySet {
				return printEnv(env, out, problems, onlySet, asJSON)
			}
			if runProbe {
				return printRun(out)
			}
			return printList(out, asJSON, facts(env), func(w io.Writer, f fact) {
				fmt.Fprintf(w, "%s\t%s\n", f.Name, f.Value)
			})
		},
	}
	c.SetOut(out)
	c.SetErr(problems)
	c.Flags().BoolVar(&showEnv, "env", false, "print every setting with value and origin")
	c.Flags().BoolVar(&onlySet, "set", false, "like --env, only settings that are not at their default")
	c.Flags().BoolVar(&runProbe, "run", false, "run an all-reduce of two ranks, and print what the library chose and why: its log")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func facts(env param.Env) []fact {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown: " + err.Error()
	}
	out := []fact{
		{"version", version.Library},
		{"nccl interface", fmt.Sprintf("%s (%d)", version.NCCL, version.NCCLCode)},
		{"platform", runtime.GOOS + "/" + runtime.GOARCH},
		{"host", host},
	}
	out = append(out, libraryFacts(probe)...)
	out = append(out, fact{"usable cpus", fmt.Sprint(runtime.NumCPU())})
	out = append(out, machineFacts(thisMachine())...)
	s, _, err := param.LoadFrom(env)
	if err != nil {
		return append(out, fact{"settings", "communicators cannot be created: " + err.Error()})
	}
	out = append(out, networkFacts(s)...)
	set := 0
	for _, id := range param.All() {
		if s.IsSet(id) {
			set++
		}
	}
	return append(out, fact{"settings", fmt.Sprintf("%d set, of %d (--set and --env print them)", set, len(param.All()))})
}

// printRun has the library choose, and prints its log.
func printRun(out io.Writer) error {
	text, err := probe([]string{"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=ALL", "NCCL_DEBUG_FILE="}, "run")
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// printEnv prints the settings, then what is wrong with them. The error makes
// the exit status.
func printEnv(env param.Env, out, problems io.Writer, onlySet, asJSON bool) error {
	s, warns, bad := param.LoadFrom(env)
	list := []settingInfo{}
	for _, id := range param.All() {
		d := param.Lookup(id)
		if onlySet && !s.IsSet(id) {
			continue
		}
		list = append(list, settingInfo{
			Name: d.Name, Value: s.Show(id), Origin: s.Origin(id).String(),
			Default: param.Defaults().Show(id), State: d.State.String(), Text: d.Text,
		})
	}
	err := printList(out, asJSON, list, func(w io.Writer, i settingInfo) {
		note := ""
		if i.State != param.Public.String() {
			note = "\t" + i.State
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", i.Name, i.Value, i.Origin, note)
	})
	_, logWarns := s.LogConfig()
	for _, w := range append(warns, logWarns...) {
		kind := "warning:"
		if w.Minor {
			kind = "note:"
		}
		fmt.Fprintln(problems, kind, w)
	}
	if err != nil {
		return err
	}
	return bad
}

// printList writes a list as JSON or as aligned columns.
func printList[T any](out io.Writer, asJSON bool, list []T, line func(io.Writer, T)) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(list)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, item := range list {
		line(w, item)
	}
	return w.Flush()
}
