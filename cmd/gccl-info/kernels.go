package main

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
)

// library is the path of libgccl.so in the folder lib beside this program's.
func library() string {
	me, err := os.Executable()
	if err != nil {
		return "libgccl.so"
	}
	return filepath.Join(filepath.Dir(me), "..", "lib", "libgccl.so")
}

// kernels says whether a library carries CUDA kernels: they have a section of their own (device/cuda/build/fatbin.S).
func kernels(library string) string {
	f, err := elf.Open(library)
	if err != nil {
		return "unknown: " + err.Error()
	}
	defer f.Close()
	s := f.Section(".gccl_fatbin")
	if s == nil {
		return "none: host mode only, built without make cuda"
	}
	return fmt.Sprintf("%d bytes", s.Size)
}
