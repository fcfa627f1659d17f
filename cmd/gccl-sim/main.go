// Command gccl-sim says how long a collective would take on a machine of any size, by running the library's own plans in
// virtual time.
package main

import "os"

func main() {
	if err := command().Execute(); err != nil {
		os.Exit(1)
	}
}
