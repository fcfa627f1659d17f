package reduce

import (
	"runtime"

	"github.com/klauspost/cpuid/v2"
)

// Best is the set of kernels for this processor, judged by cpuid. C code without Go judges for itself; both must
// agree, or two parts of a process would time different kernels.
func Best() string {
	switch {
	case cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512VL, cpuid.AVX512DQ, cpuid.AVX2, cpuid.F16C):
		return "avx512"
	case cpuid.CPU.Supports(cpuid.AVX2, cpuid.F16C):
		return "avx2"
	case runtime.GOARCH == "arm64": // NEON is part of the base set
		return "neon"
	}
	return "c"
}
