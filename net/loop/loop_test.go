package loop

import (
	"testing"

	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

var maker = conformance.Maker{OneProcess: true, Open: func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint {
	e, err := Transport{}.Open(transport.Options{Rank: rank, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return e
}}

func TestConformance(t *testing.T) { conformance.Run(t, maker) }
func BenchmarkSpeed(b *testing.B)  { conformance.Speed(b, maker) }
