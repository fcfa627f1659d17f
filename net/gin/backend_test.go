package gin_test

import (
	"testing"

	"github.com/gccl/gccl/net/gin"
)

func TestBackend(t *testing.T) {
	host := []string{"host"}
	for _, c := range []struct {
		list string
		can  []string
		want string
	}{
		{"", host, "host"}, {"host", host, "host"}, {"Proxy, HOST", host, "host"}, {"proxy", host, ""}, {"gdr", host, ""},
		{"proxy", []string{"host", "proxy"}, "proxy"}, {"host,proxy", []string{"proxy", "host"}, "proxy"},
	} {
		got, why, err := gin.Backend(c.list, c.can)
		if got != c.want || (err == nil) != (c.want != "") || (err == nil) != (why != "") {
			t.Errorf("GCCL_GIN=%q of %v: %q (%s), %v", c.list, c.can, got, why, err)
		}
	}
}
