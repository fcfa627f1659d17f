// Command gccl-plan prints plans, verifies them, those of a file too, and says which method the library chooses and why.
package main

import (
	"os"
)

func main() {
	if err := command().Execute(); err != nil {
		os.Exit(1)
	}
}
