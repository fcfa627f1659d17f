// Package abi holds the tests of the binary interface: the public headers, the export list and the built library
// are compared with tables of NCCL's symbols, constants and structure layouts (testdata/*.tsv), and the library is
// loaded in the ways in which programs load it.
//
// The package knows the headers, the export list and a shared object file; it must not import any package of the
// library, so that what it sees is what a foreign program sees.
//
// Tests that need the built library look for it in $GCCL_LIB_DIR, or build/lib, and fail when it is not there.
package abi
