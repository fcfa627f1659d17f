// Command capi is the Go core of the library (buildmode c-shared, libgccl_core.so): it decodes what the C front
// hands over (core.h), calls package comm, and encodes results and error texts.
//
// It owns the table of handles and the guard that keeps panics from the host program. It must not hold policy: that is
// package comm's.
package main

// main is demanded by the build mode and never runs.
func main() {}
