package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
	"github.com/gccl/gccl/algo/sim"
	"github.com/gccl/gccl/algo/tune"
)

type choice struct {
	ranks               int
	cliques             string
	sizes               []string
	file, machine, topo string
	nodes               int
	algo, proto         string
	eager               string
	simulate, tab, json bool
}

// chooseCommand says what the library would choose, from the same settings, and what it thinks of the other methods.
func chooseCommand() *cobra.Command {
	var o choice
	cmd := &cobra.Command{
		Use:   "choose collective",
		Short: "Say which method a size takes, and why",
		Long: "choose prints the method that the library takes for each size, and every candidate with its predicted time.\n" +
			"The choice comes from the fixed table of host mode, from --tune-file as with GCCL_TUNE_FILE, or, for a machine and for several cliques, from the predictions.",
		Args:         cobra.ExactArgs(1),
		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, args []string) error { return o.run(cmd.OutOrStdout(), args[0]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&o.ranks, "ranks", 4, "number of ranks")
	f.StringVar(&o.cliques, "cliques", "", cliquesHelp)
	f.StringSliceVar(&o.sizes, "sizes", []string{"8", "4K", "256K", "16M"}, "sizes of the largest send buffer")
	f.StringVar(&o.file, "tune-file", "", "what GCCL_TUNE_FILE would name: a machine or a table")
	f.StringVar(&o.machine, "machine", "", "a machine that is built in, "+strings.Join(cost.BuiltinNames, " or "))
	f.StringVar(&o.topo, "topo", "", "a topology file (NCCL_TOPO_FILE): its GPUs are the ranks, a clique on each node")
	f.IntVar(&o.nodes, "nodes", 1, "equal machines of the topology file")
	f.StringVar(&o.algo, "algo", "", "what NCCL_ALGO would say")
	f.StringVar(&o.proto, "proto", "", "what NCCL_PROTO would say")
	f.StringVar(&o.eager, "eager", "512", "largest eager message: 512 where every rank has a processor, 8K where they share, or GCCL_EAGER_BYTES")
	f.BoolVar(&o.simulate, "simulate", false, "also run each candidate in virtual time, all ranks of it")
	f.BoolVar(&o.tab, "table", false, "print the whole table instead, in the form that GCCL_TUNE_FILE takes")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// settings are those that the library would make.
func (o *choice) settings() (s tune.Settings, err error) {
	s = tune.Settings{Algo: o.algo, Proto: o.proto}
	if s.EagerBytes, err = cost.ParseBytes(o.eager); err != nil {
		return s, fmt.Errorf("--eager: %w", err)
	}
	if o.cliques != "" {
		if s.Cliques, err = plan.ParseCliques(o.cliques, o.ranks); err != nil {
			return s, err
		}
	}
	switch {
	case o.file != "" && o.machine != "" || o.topo != "" && o.file+o.machine+o.cliques != "":
		return s, fmt.Errorf("--tune-file, --machine and --topo: one of them; --topo has cliques of its own")
	case o.topo != "":
		if s.Machine, s.Cliques, err = fromTopology(o.topo, o.nodes); err == nil {
			o.ranks = s.Cliques.Ranks()
		}
	case o.machine != "":
		s.Machine, err = cost.Builtin(o.machine)
	case o.file != "":
		var text []byte
		if text, err = os.ReadFile(o.file); err == nil {
			s.Machine, s.Table, err = tune.ParseFile(string(text))
		}
	}
	return s, err
}

// verdict is the answer for one size.
type verdict struct {
	Coll       string      `json:"coll"`
	Ranks      int         `json:"ranks"`
	Cliques    int         `json:"cliques"`
	Bytes      int64       `json:"bytes"`
	Method     string      `json:"method"`
	Proto      string      `json:"proto"`
	Channels   int         `json:"channels"`
	Why        string      `json:"why"`
	Candidates []candidate `json:"candidates"`
}

type candidate struct {
	Method    string   `json:"method"`
	Proto     string   `json:"proto,omitempty"`
	Channels  int      `json:"channels,omitempty"`
	US        *float64 `json:"predicted_us"`
	Simulated *float64 `json:"simulated_us,omitempty"`
	Against   string   `json:"against,omitempty"`
}

func (o *choice) run(w io.Writer, name string) error {
	coll, err := plan.ParseColl(name)
	if err != nil {
		return err
	}
	s, err := o.settings()
	if err != nil {
		return err
	}
	if o.ranks < 1 || o.ranks > planner.MaxRanks {
		return fmt.Errorf("--ranks %d is not in 1 … %d", o.ranks, planner.MaxRanks)
	}
	table, notes, err := tune.Default(o.ranks, s)
	if err != nil {
		return err
	}
	if o.tab {
		_, err := io.WriteString(w, table.String())
		return err
	}
	model := tune.NewModel(s.OnMachine(), o.ranks, s.Cliques, nil)
	for _, text := range o.sizes {
		bytes, err := cost.ParseBytes(text)
		if err != nil {
			return fmt.Errorf("--sizes: %w", err)
		}
		v := verdict{Coll: coll.String(), Ranks: o.ranks, Cliques: s.Cliques.Count(), Bytes: bytes, Why: why(&s, notes, coll)}
		row, ok := table.Row(coll, bytes)
		if !ok {
			return fmt.Errorf("%s of %d ranks in %d cliques has no method", coll, o.ranks, v.Cliques)
		}
		v.Method, v.Proto, v.Channels = row.Method, row.Proto, row.Channels
		for _, c := range model.Candidates(coll, bytes) {
			if c.Method == row.Method && c.Against != "" {
				return fmt.Errorf("%s of %d bytes, %d ranks in %d cliques has no method: %s: %s", coll, bytes, o.ranks, v.Cliques, c.Method, c.Against)
			}
			v.Candidates = append(v.Candidates, o.judge(c, &s, coll, bytes))
		}
		if err := v.print(w, o.json); err != nil {
			return err
		}
	}
	return nil
}

// judge turns a candidate into what is printed.
func (o *choice) judge(c tune.Candidate, s *tune.Settings, coll plan.Coll, bytes int64) candidate {
	out := candidate{Method: c.Method, Proto: c.Proto, Channels: c.Channels, Against: c.Against}
	if c.Against != "" {
		return out
	}
	us := c.NS / 1e3
	out.US = &us
	if o.simulate && coll != plan.SendRecv {
		m := s.OnMachine()
		j := planner.Job{Coll: coll, Method: c.Method, Ranks: o.ranks, Cliques: s.Cliques}
		world, err := sim.Build(o.ranks, j.Plan, sim.Setting{Cliques: s.Cliques, Fabric: m.Fabric})
		if err == nil {
			var t sim.Timed
			if t, err = world.Time(m, float64(bytes), sim.Weather{}); err == nil {
				took := t.NS / 1e3
				out.Simulated = &took
			}
		}
		if err != nil {
			out.Against = err.Error()
		}
	}
	return out
}

// why says what decided.
func why(s *tune.Settings, notes []string, c plan.Coll) string {
	for _, n := range notes {
		if strings.HasPrefix(n, c.String()) {
			return n
		}
	}
	for _, r := range s.Table {
		if r.Coll == c {
			return "a row of the table in the file"
		}
	}
	switch {
	case s.Algo != "":
		return fmt.Sprintf("NCCL_ALGO=%s, then the smallest predicted time", s.Algo)
	case s.Machine != nil:
		return fmt.Sprintf("smallest predicted time on machine %s, within a tenth, so that the table stays short", s.Machine.Name)
	case s.Cliques.Count() > 1:
		return "several cliques: smallest predicted time on the built-in host machine, within a tenth"
	}
	return "the fixed table of host mode, from measurements: eager up to its limit, then direct"
}

func (v *verdict) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return encode(w, v)
	}
	way := ""
	if v.Proto != "" || v.Channels > 1 {
		way = fmt.Sprintf(", protocol %s, %d channels", v.Proto, max(v.Channels, 1))
	}
	fmt.Fprintf(w, "%s of %d bytes, %d ranks in %d cliques: %s%s\n  because: %s\n", v.Coll, v.Bytes, v.Ranks, v.Cliques, v.Method, way, v.Why)
	for _, c := range v.Candidates {
		if c.US == nil {
			fmt.Fprintf(w, "  %-9s    no: %s\n", c.Method, c.Against)
			continue
		}
		line := fmt.Sprintf("  %-9s %14.2f us predicted", c.Method, *c.US)
		if c.Simulated != nil {
			line += fmt.Sprintf(" %14.2f us simulated", *c.Simulated)
		}
		if c.Channels > 1 || c.Proto != "simple" {
			line += fmt.Sprintf("  %s, %d channels", c.Proto, c.Channels)
		}
		fmt.Fprintln(w, line)
	}
	_, err := fmt.Fprintln(w)
	return err
}
