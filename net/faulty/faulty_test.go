package faulty

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/loop"
	"github.com/gccl/gccl/net/shm"
	"github.com/gccl/gccl/net/socket"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

func makerOf(t transport.Transport, opened *[]transport.Endpoint) conformance.Maker {
	return conformance.Maker{Scale: 3, OneProcess: true, Open: func(tb testing.TB, rank int, secret transport.Secret) transport.Endpoint {
		e, err := t.Open(transport.Options{Rank: rank, Secret: secret})
		if err != nil {
			tb.Fatal(err)
		}
		if opened != nil {
			*opened = append(*opened, e)
		}
		return e
	}}
}

func TestConformance(t *testing.T) {
	for _, inner := range []transport.Transport{loop.Transport{}, shm.Transport{}, socket.New(socket.Config{Threads: 1, Sockets: 2})} {
		w := Wrap(inner, Config{Seed: 3, Busy: 300, Partial: 400, Late: 500, Single: 300})
		t.Run(w.Name(), func(t *testing.T) { conformance.Run(t, makerOf(w, nil)) })
	}
}

func TestDropped(t *testing.T) {
	for _, inner := range []transport.Transport{loop.Transport{}, shm.Transport{}, socket.New(socket.Config{})} {
		t.Run(inner.Name(), func(t *testing.T) {
			var eps []transport.Endpoint
			tr := conformance.NewTraffic(t, makerOf(Wrap(inner, Config{Seed: 5, Busy: 100, DropAfter: 500}), &eps), 5)
			here, there := tr.UntilFault(20 * time.Second)
			var x *xerr.Error
			if !errors.As(here, &x) || x.Code != xerr.Remote || !strings.Contains(here.Error()+there.Error(), "as asked") {
				t.Errorf("%v; %v", here, there)
			}
			if Count(eps[0])+Count(eps[1]) == 0 {
				t.Error("nothing went wrong")
			}
		})
	}
}
