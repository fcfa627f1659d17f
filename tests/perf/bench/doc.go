// Command bench measures this library against Open MPI, MPICH and a bare C probe in one run and writes the result
// as a table and as JSON.
//
// It owns the choice of sizes, the alternation of the peers and the report. It must not time anything itself: every
// figure comes from a C program with the same timing loop (fresh inputs, a barrier that belongs to the
// measurement, only the call timed). It installs nothing: a peer that is missing is named with its Debian package.
package main
