// Command gccl-gen writes the files that are derived from tables in the code.
// Each subcommand makes one file; a test of this package compares the committed
// files with fresh ones.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// artefact is one derived file.
type artefact struct {
	name  string // subcommand
	short string
	path  string // from the root of the repository
	write func(io.Writer) error
}

var artefacts = []artefact{
	{"env", "the table of settings", "docs/env.md", writeEnv},
	{"result-text", "the result codes and their texts for the C front", "capi/front/result_text.gen.h", writeResultText},
	{"nvml-names", "functions of the driver's management library that go-nvml calls", "topo/discover/nvml/names.gen.h", writeNVMLNames},
}

func main() {
	root := &cobra.Command{
		Use:           "gccl-gen",
		Short:         "Write files that are derived from tables in the code",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	for _, a := range artefacts {
		root.AddCommand(command(a))
	}
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "gccl-gen:", err)
		os.Exit(1)
	}
}

func command(a artefact) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   a.name,
		Short: "Write " + a.path + ": " + a.short,
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return writeFile(out, a.write) },
	}
	c.Flags().StringVar(&out, "out", a.path, "file to write")
	return c
}

// writeFile replaces a file only when all of its text could be made.
func writeFile(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	tmp := path + ".tmp"
	f, err := os.Create(tmp)
	if err != nil {
		return err
	}
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return err
}
