package socket

import (
	"testing"
	"time"

	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

// with makes endpoints with a configuration and faults; all that was injected is in the list.
func with(c Config, f Faults, injected *[]*Injected) conformance.Maker {
	return conformance.Maker{Scale: 3, Open: func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint {
		e, err := New(c).Open(transport.Options{Rank: rank, Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		f.Seed = f.Seed*31 + uint64(rank) + 1
		i, err := Inject(e, f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(i.Free) // runs after that which closes the endpoint
		*injected = append(*injected, i)
		return e
	}}
}

// The whole suite over calls that do little at a time, are interrupted and find nothing.
func TestConformanceWithSlowCalls(t *testing.T) {
	var in []*Injected
	m := with(Config{Threads: 2, Sockets: 2}, Faults{Seed: 1, Short: 30_000, Interrupt: 10_000, Again: 10_000}, &in)
	conformance.Run(t, m)
	total := 0
	for _, i := range in {
		all, _ := i.Count()
		total += all
	}
	if total < 1000 {
		t.Errorf("only %d faults", total)
	}
}

// Streams break in every way; what they carried goes over the others, and nothing is lost or doubled. 500 breaks, a fixed
// seed, a bounded time.
func TestChaos(t *testing.T) {
	want, bound := 500, 90*time.Second
	if testing.Short() {
		want = 60
	}
	const streams = 8
	var in []*Injected
	m := with(Config{Threads: 2, Sockets: 4}, Faults{Seed: 7, Short: 5_000, Interrupt: 1_000, Again: 1_000, Reset: 150, End: 150, Corrupt: 300}, &in)
	tr := conformance.NewTraffic(t, m, 7)
	broken := func() (n int) {
		for _, i := range in {
			_, b := i.Count()
			n += b
		}
		return n
	}
	retries, ended := uint64(0), time.Now().Add(bound)
	for total := 0; total < want; {
		// One end breaks up to all but one of the streams, then the other end.
		who := in[total%2]
		before := broken()
		who.Allow(streams - 1)
		for broken() < before+streams-1 {
			tr.Round()
			if time.Now().After(ended) {
				t.Fatalf("%d of %d breaks in %v", broken(), want, bound)
			}
		}
		tr.Round()
		a, b := tr.Stats()
		retries += a.Retries + b.Retries
		if a.Paths < 1 || b.Paths < 1 {
			t.Fatalf("no path left: %v; %v", a, b)
		}
		total = broken()
		tr.Reconnect()
	}
	if retries == 0 {
		t.Error("no frame was sent again: the breaks hit nothing")
	}
	t.Logf("%d breaks, %d frames sent again", broken(), retries)
}
