package gin_test

import (
	"os"
	"testing"

	"github.com/gccl/gccl/algo/plan"
	"github.com/gccl/gccl/net/ib"
	"github.com/gccl/gccl/net/loop"
)

// Collectives of four ranks on two and on four hosts over verbs: in the virtual machine of `make test-rdma`.
func TestCollectivesOverRDMA(t *testing.T) {
	if os.Getenv("GCCL_TEST_RDMA") == "" {
		t.Skip("missing capability: a verbs device; make test-rdma has one")
	}
	c := ib.Defaults()
	c.Timeout, c.RetryCount = 14, 6 // Soft-RoCE takes seven for endless
	network = ib.New(c)
	defer func() { network = loop.Transport{} }()
	for _, of := range [][]int{{0, 0, 1, 1}, {0, 1, 2, 3}} {
		h := newHosts(t, of)
		for coll := range plan.SendRecv {
			for _, method := range methods(coll, h.n) {
				h.collective(t, coll, method, 1%h.n, 13, true)
				if method != "eager" {
					h.collective(t, coll, method, 0, 9001, false)
				}
			}
		}
	}
}
