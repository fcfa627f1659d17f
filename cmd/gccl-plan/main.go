// Command gccl-plan prints the plan of a rank as text or JSON, and verifies the plans of all ranks.
package main

import (
	"os"
)

func main() {
	if err := command().Execute(); err != nil {
		os.Exit(1)
	}
}
