package gin

import (
	"slices"
	"strings"

	"github.com/gccl/gccl/internal/xerr"
)

// Backends are the names that GCCL_GIN may list.
var Backends = []string{"host", "proxy"}

// Backend picks how a device asks for network operations: the first of its own backends, best first, that the user's list allows; an empty list allows
// all. why is for the log.
func Backend(list string, can []string) (name, why string, err error) {
	const op, remedy = "gin", "unset GCCL_GIN, or list names of host and proxy"
	var allowed []string
	for _, w := range strings.Split(strings.ToLower(list), ",") {
		if w = strings.TrimSpace(w); w == "" {
			continue
		}
		if !slices.Contains(Backends, w) {
			return "", "", xerr.New(xerr.InvalidUsage, op, "GCCL_GIN=%s: there is no backend %q", list, w).WithHint(remedy)
		}
		allowed = append(allowed, w)
	}
	for _, c := range can {
		if len(allowed) == 0 {
			return c, "best that the device can use", nil
		}
		if slices.Contains(allowed, c) {
			return c, "asked for by GCCL_GIN=" + list, nil
		}
	}
	return "", "", xerr.New(xerr.InvalidUsage, op, "GCCL_GIN=%s: this device can use %s", list, strings.Join(can, ", ")).WithHint(remedy)
}
