package gin_test

import (
	"strings"
	"testing"

	"github.com/gccl/gccl/net/gin"
)

// What kernels get, for every wish.
func TestForKernels(t *testing.T) {
	for _, c := range []struct {
		w       gin.Wishes
		own     bool
		want    string // direct+net, or a word of the error
		failure bool
	}{
		{gin.Wishes{Type: -1}, true, "direct+proxy", false},
		{gin.Wishes{Type: -1}, false, "proxy", false},
		{gin.Wishes{Type: -1, SoftNIC: true}, true, "direct+gdaki", false},
		{gin.Wishes{Type: -1, SoftNIC: true}, false, "proxy", false},
		{gin.Wishes{Type: 2, SoftNIC: true}, true, "direct+proxy", false},
		{gin.Wishes{Type: 3}, true, "direct+gdaki", false},
		{gin.Wishes{Type: 3}, false, "proxy alone", true},
		{gin.Wishes{Type: 4}, true, "GPI", true},
		{gin.Wishes{Type: 1}, true, "no kind", true},
		{gin.Wishes{Type: -1, Off: true}, true, "NCCL_GIN_ENABLE", true},
		{gin.Wishes{Type: -1, List: "proxy"}, true, "proxy", false},
		{gin.Wishes{Type: -1, List: "host"}, true, "direct+proxy", false},
		{gin.Wishes{Type: -1, List: "GDAKI, proxy"}, true, "gdaki", false},
		{gin.Wishes{Type: -1, List: "gdaki,proxy"}, false, "proxy", false},
		{gin.Wishes{Type: -1, List: "gdaki"}, false, "proxy alone", true},
		{gin.Wishes{Type: 2, List: "direct,gdaki"}, true, "direct+gdaki", false},
		{gin.Wishes{Type: -1, List: "direct"}, true, "direct", false},
		{gin.Wishes{Type: -1, List: "gdr"}, true, "no backend", true},
		{gin.Wishes{Type: 3, NIC: "soft"}, true, "direct+gdaki soft", false},
		{gin.Wishes{Type: 3, NIC: "mlx5"}, true, "direct+gdaki mlx5", false},
		{gin.Wishes{Type: 3, NoCard: "no"}, true, "direct+gdaki soft", false},
		{gin.Wishes{Type: 3, NIC: "mlx5-relay", NoCard: "no"}, true, "direct+proxy", false},
		{gin.Wishes{Type: -1, List: "gdaki", NIC: "mlx5", NoCard: "the reason"}, true, "the reason", true},
		{gin.Wishes{Type: -1, NIC: "mlx4"}, true, "names no NIC", true},
	} {
		got, err := gin.ForKernels(c.w, c.own)
		if c.failure {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, own header %v: %v, %v", c.w, c.own, got, err)
			}
			continue
		}
		var parts []string
		if got.Direct {
			parts = append(parts, "direct")
		}
		if got.Net != "" {
			parts = append(parts, got.Net)
		}
		if got.NIC != gin.Card || c.w.NIC != "" {
			parts[len(parts)-1] = strings.TrimSpace(parts[len(parts)-1] + " " + got.NIC)
		}
		if s := strings.Join(parts, "+"); err != nil || s != c.want || got.Why == "" {
			t.Errorf("%+v, own header %v: %s (%s), %v", c.w, c.own, s, got.Why, err)
		}
	}
}
