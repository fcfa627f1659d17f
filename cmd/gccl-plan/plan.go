package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/algo/planner"
)

// maxVerifyRanks keeps a verification within seconds and a few hundred megabytes: clocks take ranks times signals.
const maxVerifyRanks = 512

type options struct {
	coll, method       string
	ranks, rank, root  int
	verify, json, list bool
	all                bool
	cliques            string
}

// job is what the options ask a plan for.
func (o *options) job() (planner.Job, error) {
	coll, err := plan.ParseColl(o.coll)
	if err != nil {
		return planner.Job{}, err
	}
	j := planner.Job{Coll: coll, Method: o.method, Ranks: o.ranks, Root: o.root}
	if o.cliques != "" {
		j.Cliques, err = plan.ParseCliques(o.cliques, o.ranks)
	}
	return j, err
}

const cliquesHelp = "ranks that load and store each other: 8 for runs of 8, or all sizes, 4,4,8; default all"

func command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "gccl-plan",
		Short: "Print and verify plans",
		Example: `  gccl-plan --list
  gccl-plan --coll all_reduce --method ring --ranks 8 --rank 3
  gccl-plan --coll broadcast --method tree --ranks 64 --root 5 --verify
  gccl-plan --coll all_reduce --method hier --ranks 8 --cliques 4 --all > plans.txt
  gccl-plan verify plans.txt
  gccl-plan choose all_reduce --ranks 64 --cliques 8 --machine dgx`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.OutOrStdout(), cmd.Flags().Changed("rank"))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.coll, "coll", "all_reduce", "collective")
	f.StringVar(&o.method, "method", planner.Direct, "method; see --list")
	f.IntVar(&o.ranks, "ranks", 4, "number of ranks")
	f.IntVar(&o.rank, "rank", 0, "rank whose plan is printed")
	f.IntVar(&o.root, "root", 0, "root, or the sender of send_recv")
	f.BoolVar(&o.verify, "verify", false, "verify the plans of all ranks; prints a plan only if --rank is given")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVar(&o.list, "list", false, "list collectives and methods")
	f.BoolVar(&o.all, "all", false, "print the plans of all ranks, as GCCL_PLAN_FILE takes them")
	f.StringVar(&o.cliques, "cliques", "", cliquesHelp)
	cmd.AddCommand(verifyCommand(), chooseCommand())
	return cmd
}

func (o *options) run(w io.Writer, rankGiven bool) error {
	if o.list {
		return list(w, o.json)
	}
	j, err := o.job()
	if err != nil {
		return err
	}
	p, err := j.Plan(o.rank)
	if err != nil {
		return err
	}
	if o.verify {
		if o.ranks > maxVerifyRanks {
			return fmt.Errorf("verify %s %s: %d ranks, at most %d", o.coll, o.method, o.ranks, maxVerifyRanks)
		}
		if err := plan.VerifyAll(o.ranks, j.Cliques, j.Plan); err != nil {
			return err
		}
	}
	if o.all {
		return o.showAll(w, j)
	}
	if !o.verify || rankGiven {
		if err := show(w, p, o.json); err != nil {
			return err
		}
	}
	if o.verify && !o.json {
		_, err = fmt.Fprintf(w, "verified: %s %s, %d ranks, root %d\n", o.coll, o.method, o.ranks, o.root)
	} else if o.verify && !rankGiven {
		err = encode(w, map[string]any{"coll": j.Coll, "method": o.method, "ranks": o.ranks, "root": o.root, "verified": true})
	}
	return err
}

func show(w io.Writer, p *plan.Plan, asJSON bool) error {
	if asJSON {
		return encode(w, p)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// showAll prints the plans of all ranks.
func (o *options) showAll(w io.Writer, j planner.Job) error {
	for r := range j.Ranks {
		p, err := j.Plan(r)
		if err != nil {
			return err
		}
		if err := show(w, p, o.json); err != nil {
			return err
		}
	}
	return nil
}

func list(w io.Writer, asJSON bool) error {
	all := map[string][]string{}
	for c := range plan.NumColls {
		all[c.String()] = planner.Methods(c)
		if !asJSON {
			if _, err := fmt.Fprintf(w, "%s %v\n", c, planner.Methods(c)); err != nil {
				return err
			}
		}
	}
	if asJSON {
		return encode(w, all)
	}
	return nil
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
