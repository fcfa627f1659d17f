module github.com/gccl/gccl

go 1.24.0

require (
	go.uber.org/zap v1.28.0
	golang.org/x/sys v0.38.0
)

require go.uber.org/multierr v1.10.0 // indirect
