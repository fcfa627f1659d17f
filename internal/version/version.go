// Package version owns the version numbers of the library.
//
// It must not import anything: the generators and every tool use it.
package version

const (
	// Library is the version of this library.
	Library = "0.1.0"
	// NCCL is the version of NCCL whose C interface it offers.
	NCCL = "2.30.7"
	// NCCLCode is what ncclGetVersion answers: major*10000 + minor*100 + patch.
	NCCLCode = 23007
)
