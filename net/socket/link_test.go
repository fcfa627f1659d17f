package socket

import (
	"testing"

	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

// What went over the streams stands in the counters of the devices, payload and heads, and none was busier than its connection.
func TestLinksCount(t *testing.T) {
	var eps []transport.Endpoint
	tr := conformance.NewTraffic(t, conformance.Maker{Open: func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint {
		e, err := New(Config{Threads: 1, Sockets: 2}).Open(transport.Options{Rank: rank, Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		eps = append(eps, e)
		return e
	}}, 3)
	for range 5 {
		tr.Round()
	}
	a, _ := tr.Stats()
	var bytes uint64
	for _, l := range transport.Links(eps[0].C()) {
		bytes += l.Bytes
		if l.Device == "" || l.Busy > a.Busy || (l.Bytes > 0) != (l.Busy > 0) {
			t.Errorf("%+v, the connection was busy for %v", l, a.Busy)
		}
	}
	if a.TxBytes == 0 || bytes < a.TxBytes || bytes > 2*a.TxBytes+(1<<20) {
		t.Errorf("the devices have carried %d bytes, the connection %d", bytes, a.TxBytes)
	}
}
