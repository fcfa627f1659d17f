package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gccl/gccl/topo"
	"github.com/gccl/gccl/topo/discover"
	"github.com/gccl/gccl/topo/place"
)

// command makes the command line over a machine.
func command(local *discover.Local) *cobra.Command {
	root := &cobra.Command{
		Use:           "gccl-topo",
		Short:         "Show machines, the channels found on them, and how they differ",
		SilenceUsage:  true,
		SilenceErrors: true,
		Example: `  gccl-topo show
  gccl-topo show dgx.xml
  gccl-topo search dgx.xml --nodes 2 --json
  gccl-topo search dgx.xml --svg dgx.svg
  gccl-topo diff yesterday.xml today.xml`,
	}
	root.AddCommand(showCommand(local), searchCommand(local), diffCommand())
	return root
}

// subject is the machine that is looked at.
type subject struct {
	title  string
	notes  []string // what is unknown
	m      *topo.Machine
	places []place.OnCPUs // of ranks without GPUs, as in host mode; none otherwise
	veto   func(from, to *topo.Rank) bool
}

// look reads a file, or looks at this machine and puts ranks on it: on the GPUs in turn, without GPUs on the NUMA nodes. ranks 0: one on
// each.
func look(local *discover.Local, args []string, ranks int) (*subject, error) {
	if len(args) > 0 {
		if ranks > 0 {
			return nil, errors.New("--ranks is for this machine: a file says itself where the ranks are")
		}
		data, err := os.ReadFile(args[0])
		if err != nil {
			return nil, err
		}
		m, err := topo.Read(args[0], data)
		if err != nil {
			return nil, err
		}
		return &subject{title: strings.TrimSuffix(filepath.Base(args[0]), ".xml"), m: m}, nil
	}
	f := local.Facts()
	s := &subject{title: "this machine", notes: f.Notes, m: f.Machine()}
	if f.Host != "" {
		s.title += ", " + f.Host
	}
	if gpus := len(s.m.GPUs()); gpus > 0 {
		if ranks == 0 {
			ranks = gpus
		}
		place.Spread(s.m, ranks)
		s.veto = place.Veto(f.Refused())
		return s, nil
	}
	nodes := []int{discover.Unknown}
	if len(f.Nodes) > 0 {
		nodes = nil
		for _, n := range f.Nodes {
			nodes = append(nodes, n.ID)
		}
	}
	if ranks == 0 {
		ranks = len(nodes)
	}
	for r := range ranks {
		s.places = append(s.places, place.OnCPUs{Rank: r, Node: nodes[r*len(nodes)/ranks]})
	}
	return s, nil
}

// search finds channels.
func (s *subject) search(o topo.Options) (*topo.Decision, error) {
	o.P2PVeto = s.veto
	if len(s.places) > 0 {
		return place.Search(func() (*topo.Machine, error) { return place.Copy(s.m) }, s.places, o)
	}
	sys, err := topo.Build(s.m, o)
	if err != nil {
		return nil, err
	}
	return topo.Search(sys, o)
}

func showCommand(local *discover.Local) *cobra.Command {
	var ranks int
	c := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Print a machine: CPUs and PCI tree, paths, network devices",
		Long: `Print a machine: CPUs and PCI tree, paths between ranks, network devices. Without a file it is this machine, with a rank on each GPU; without GPUs
with a rank on each NUMA node, as in host mode. What is unknown is said.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := look(local, args, ranks)
			if err != nil {
				return err
			}
			s.show(cmd.OutOrStdout())
			return nil
		},
	}
	c.Flags().IntVar(&ranks, "ranks", 0, "ranks on this machine (default: one on each GPU)")
	return c
}

// show prints what is known. A machine that is known too little for paths is shown without them.
func (s *subject) show(w io.Writer) {
	fmt.Fprintln(w, s.title)
	for _, n := range s.notes {
		fmt.Fprintln(w, "unknown:", n)
	}
	if len(s.places) > 0 {
		place.Put(s.m, s.places)
	}
	fmt.Fprintln(w)
	printTree(w, s.m)
	o := topo.DefaultOptions()
	o.P2PVeto = s.veto
	sys, err := topo.Build(s.m, o)
	if err != nil {
		fmt.Fprintf(w, "\nno paths: %v\n", err)
		return
	}
	fmt.Fprintln(w)
	printPaths(w, sys)
	fmt.Fprintln(w)
	printNets(w, sys)
}
