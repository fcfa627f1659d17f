package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gccl/gccl/topo"
	"github.com/gccl/gccl/topo/discover"
)

func searchCommand(local *discover.Local) *cobra.Command {
	var ranks int
	o := topo.DefaultOptions()
	var asJSON bool
	var picture, level string
	var fusion topo.Fusion
	c := &cobra.Command{
		Use:   "search [FILE]",
		Short: "Find channels on a machine, and print, write or draw them",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := look(local, args, ranks)
			if err != nil {
				return err
			}
			if fusion.Level, err = topo.ParseMergeLevel(level); err != nil {
				return fmt.Errorf("--merge-level: %w", err)
			}
			if err := s.m.Fuse(fusion); err != nil {
				return err
			}
			d, err := s.search(o)
			if err != nil {
				return err
			}
			if picture != "" {
				if err := os.WriteFile(picture, draw(d, s.drawingTitle(o.Nodes)), 0o644); err != nil {
					return err
				}
			}
			switch {
			case asJSON:
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(map[string]map[string]*topo.Report{s.title: {fmt.Sprintf("%d-node", o.Nodes): d.Report()}})
			case picture == "":
				printChannels(cmd.OutOrStdout(), d)
			}
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&o.Nodes, "nodes", 1, "equal machines in the job")
	f.BoolVar(&asJSON, "json", false, "print everything as JSON")
	f.StringVar(&picture, "svg", "", "draw the machine and its channels into this file")
	f.IntVar(&ranks, "ranks", 0, "ranks on this machine (default: one on each GPU)")
	f.BoolVar(&o.P2PDisable, "p2p-disable", false, "no direct access between GPUs, as NCCL_P2P_DISABLE=1")
	f.BoolVar(&o.NVLSDisable, "nvls-disable", false, "no reduction in NVLink switches, as NCCL_NVLS_ENABLE=0")
	f.BoolVar(&o.PXNDisable, "pxn-disable", false, "no network device by way of another GPU, as NCCL_PXN_DISABLE=1")
	f.IntVar(&o.CrossNic, "cross-nic", o.CrossNic, "0, 1 or 2, as NCCL_CROSS_NIC")
	f.StringVar(&level, "merge-level", "PORT", "how far apart network devices may be that become one, as NCCL_NET_MERGE_LEVEL; LOC: none do")
	f.StringVar(&fusion.Force, "force-merge", "", "network devices that become one, as NCCL_NET_FORCE_MERGE")
	f.BoolVar(&o.Strict, "strict", false, "no better channels than NCCL 2.30.7 would find")
	return c
}

func (s *subject) drawingTitle(nodes int) string {
	title := s.title
	if s.m.Name != "" {
		title += ", " + s.m.Name
	}
	if nodes > 1 {
		title += fmt.Sprintf(", one of %d nodes", nodes)
	}
	return title
}

// printChannels writes the graphs: how many channels of which speed, and the orders.
func printChannels(w io.Writer, d *topo.Decision) {
	for _, g := range graphsOf(d) {
		same := "different orders"
		if g.SameChannels {
			same = "one order"
		}
		fmt.Fprintf(w, "%s: %s, %.4g GB/s each inside, paths up to %s, %s\n", g.name, plural(g.N(), "channel"), g.BWIntra, g.TypeIntra, same)
		if g.Channels[0].In != nil {
			fmt.Fprintf(w, "  to the network %.4g GB/s each, paths up to %s, crossNic %d\n", g.BWInter, g.TypeInter, g.CrossNic)
		}
		for _, o := range ordersOf(g.Graph) {
			fmt.Fprintf(w, "  %s: %s\n", channelsText(o.channels), orderText(o.channel))
		}
	}
	c := d.Report().Channels
	fmt.Fprintf(w, "execution channels: %d for collectives, %d for NVLS, %d for send and receive, %d to a peer\n", c.Coll, c.NVLS, c.P2P, c.PerPeer)
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
