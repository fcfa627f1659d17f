//go:build !cgo

package param

import "os"

// environ serves tools that are built without C. The library itself always has
// it.
func environ() []string { return os.Environ() }
