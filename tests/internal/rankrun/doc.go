// Package rankrun builds C test programs against the public header and the built library, and runs them with a
// deadline.
//
// It owns the compile line, the clean environment, the process group of a run and what is captured of it. It knows
// the library as a file only and must never load it: a test process is a Go program, and two Go runtimes must not meet
// in one process.
//
// The library is looked for in $GCCL_LIB_DIR, or build/lib; a missing library is an error and no reason to skip.
// $GCCL_TEST_CC and $GCCL_TEST_CFLAGS change the compiler and add options, such as those of a sanitizer.
package rankrun
