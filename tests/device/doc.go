// Package device tests the device API from outside: the C++ program in prog/ runs kernels on the CPU, over ranks as threads and as
// processes, and compares what they see; structures are compared with NCCL's layouts (testdata/layouts.tsv), and the header is compiled by
// every compiler that is promised. make cuda compiles the same kernels for GPUs.
//
// GCCL_TEST_CXXFLAGS adds options, such as those of a sanitizer. ThreadSanitizer runs here in any case: kernels' fibers are announced to it, so
// that it finds a forgotten barrier.
package device
