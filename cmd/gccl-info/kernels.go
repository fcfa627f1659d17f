package main

import (
	"debug/elf"
	"fmt"
)

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
