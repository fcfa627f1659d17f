package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gccl/gccl/algo/plan"
)

// verifyCommand checks a file of plans as a communicator with GCCL_PLAN_FILE would.
func verifyCommand() *cobra.Command {
	var cliques string
	cmd := &cobra.Command{
		Use:          "verify FILE",
		Short:        "Verify the plans in a file",
		Args:         cobra.ExactArgs(1),
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			f, err := plan.ParseFile(string(text))
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			groups, err := f.Groups()
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			for _, g := range groups {
				var c *plan.Cliques
				if cliques != "" {
					if c, err = plan.ParseCliques(cliques, g.NRanks); err != nil {
						return err
					}
				}
				if err := g.Verify(c); err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "verified: %s %s, %d ranks, root %d\n", g.Coll, g.Plans[0].Method, g.NRanks, g.Root); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&cliques, "cliques", "", cliquesHelp)
	return cmd
}
