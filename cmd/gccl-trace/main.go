// Command gccl-trace merges the traces of several processes (GCCL_TRACE) into one file for Perfetto, and checks traces.
package main

import "os"

func main() {
	if err := command().Execute(); err != nil {
		os.Exit(1)
	}
}
