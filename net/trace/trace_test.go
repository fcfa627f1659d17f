package trace

import (
	"strings"
	"testing"

	"github.com/gccl/gccl/net/loop"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

var opened []transport.Endpoint

var maker = conformance.Maker{OneProcess: true, Open: func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint {
	e, err := Wrap(loop.Transport{}).Open(transport.Options{Rank: rank, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	opened = append(opened, e)
	return e
}}

func TestConformance(t *testing.T) { conformance.Run(t, maker) }

func TestLines(t *testing.T) {
	opened = nil
	tr := conformance.NewTraffic(t, maker, 1)
	tr.Round()
	var text strings.Builder
	for i, e := range opened {
		lines, total := Lines(e)
		if len(lines) == 0 || total != uint64(len(lines)) {
			t.Errorf("rank %d: %d of %d lines", i, len(lines), total)
		}
		for k, l := range lines {
			if l.Peer != 1-i || k > 0 && l.At < lines[k-1].At {
				t.Errorf("rank %d: %v", i, l)
			}
			text.WriteString(l.String() + "\n")
		}
	}
	for _, want := range []string{"put,", "put inline", "to rank 1: message, 5 bytes", "weak message", "from rank 0: message", "done, 0 bytes, cookie 0x1"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no line has %q:\n%s", want, text.String())
		}
	}
}
