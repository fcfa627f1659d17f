// Command gccl-info prints what the library is and sees: its version, the
// machine, and with --env every setting with its value and origin.
package main

import (
	"fmt"
	"os"

	"github.com/gccl/gccl/internal/param"
)

func main() {
	if err := command(param.Process(), os.Stdout, os.Stderr).Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "gccl-info:", err)
		os.Exit(1)
	}
}
