package gin

/*
#include "gin.h"
*/
import "C"

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/gccl/gccl/internal/xerr"
)

// Bounce gives the object a way to the windows of ranks that its mover does not reach, through bounce memory. All ranks call it, and all succeed or none; gather
// is an all-gather. Preconditions: UseMover; it has not been started.
func (g *Gin) Bounce(ctx context.Context, far func(rank int) bool, who func(rank int) string,
	gather func(ctx context.Context, tag string, mine []byte) ([][]byte, error)) error {
	n := int(g.p.nranks)
	blobs, failure := make([][]byte, n+1), error(nil)
	var why [C.GCCL_NET_TEXT]C.char
	for r := 0; r < n && failure == nil; r++ {
		if r == g.rank || !far(r) {
			continue
		}
		if C.gin_far_open(g.p, C.int32_t(r), &why[0]) < 0 {
			failure = memError("no bounce memory", &why)
			blobs[n] = []byte(failure.Error())
			break
		}
		blobs[r] = blobOf((*C.gccl_net_mr)(unsafe.Pointer(C.gin_far_memory(g.p, C.int32_t(r)))))
	}
	parts, err := gather(ctx, "gin bounce", pack(blobs...))
	if err == nil {
		err = failure
	}
	for r := 0; r < len(parts) && err == nil; r++ {
		list := unpack(parts[r], n+1)
		switch {
		case list == nil:
			err = xerr.New(xerr.Remote, "gin", "%s sent %d malformed bytes (gin bounce)", who(r), len(parts[r])).WithRank(r)
		case len(list[n]) > 0:
			err = xerr.New(xerr.System, "gin", "%s: %s", who(r), list[n]).WithRank(r)
		case r != g.rank && far(r):
			b := list[g.rank]
			if C.gin_far_join(g.p, C.int32_t(r), unsafe.Pointer(unsafe.SliceData(b)), C.uint32_t(len(b)), &why[0]) < 0 {
				err = memError(fmt.Sprintf("no bounce memory of %s", who(r)), &why)
			}
		}
	}
	return err
}
