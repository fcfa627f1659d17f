package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gccl/gccl/device/probe"
)

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "gccl-trace",
		Short: "Merge and check traces that GCCL_TRACE has made",
		Example: `  GCCL_TRACE=run.json gccl-perf -P 4 -b 64K -e 64K
  gccl-trace merge -o all.json run.*.json     # then open all.json in https://ui.perfetto.dev or chrome://tracing
  gccl-trace check all.json`,
		SilenceUsage: true,
	}
	var out string
	merge := &cobra.Command{
		Use:   "merge FILE...",
		Short: "One file of many, on one clock",
		Long: `Processes of one machine share a clock. Between machines the clocks are aligned by what the ranks of a communicator have exchanged
when it was made; how well that is known is said for each file.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			inputs, err := read(args)
			if err != nil {
				return err
			}
			var b bytes.Buffer
			notes, err := probe.Merge(&b, inputs)
			if err != nil {
				return err
			}
			for _, n := range notes {
				fmt.Fprintln(cmd.ErrOrStderr(), n)
			}
			if out == "-" {
				_, err = cmd.OutOrStdout().Write(b.Bytes())
				return err
			}
			return os.WriteFile(out, b.Bytes(), 0o644)
		},
	}
	merge.Flags().StringVarP(&out, "output", "o", "-", "file to write; - is standard output")
	check := &cobra.Command{
		Use:   "check FILE...",
		Short: "Whether events nest, pairs end, and operations have their calls",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			inputs, err := read(args)
			if err != nil {
				return err
			}
			bad := 0
			for _, in := range inputs {
				found := in.Trace.Check()
				for _, f := range found {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", in.Name, f)
				}
				bad += len(found)
				cut := map[bool]string{true: ", the file breaks off"}[in.Trace.Cut]
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %d events, %d mistakes%s\n", in.Name, len(in.Trace.Events), len(found), cut)
			}
			if bad > 0 {
				return fmt.Errorf("%d mistakes", bad)
			}
			return nil
		},
	}
	root.AddCommand(merge, check)
	return root
}

func read(names []string) ([]probe.Input, error) {
	var inputs []probe.Input
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		t, err := probe.Read(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		inputs = append(inputs, probe.Input{Name: name, Trace: t})
	}
	return inputs, nil
}
