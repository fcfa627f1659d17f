package socket

import (
	"testing"

	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

var maker = conformance.Maker{Open: func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint {
	e, err := New(Config{}).Open(transport.Options{Rank: rank, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return e
}}

func TestMain(m *testing.M) {
	if !conformance.Child(maker) {
		m.Run()
	}
}

func TestConformance(t *testing.T) { conformance.Run(t, maker) }
func BenchmarkSpeed(b *testing.B)  { conformance.Speed(b, maker) }
func TestEndings(t *testing.T)     { conformance.Endings(t, maker) }
