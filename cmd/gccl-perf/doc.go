// Command gccl-perf measures and checks collectives through the public C ABI, with the options and the
// columns of nccl-tests.
//
// This package owns what surrounds the ranks: options, the list of measurements, starting the ranks and
// watching over them, the table, JSON and the plot. The ranks themselves are a C program
// (rank/, built as gccl-perf-rank) that links the library, because a second Go runtime must never meet the library's
// own in one process. So this package must not load the library, and knows the ranks only by two pipes: the
// job goes down as text lines, results come up as JSON lines.
package main
