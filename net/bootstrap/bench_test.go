package bootstrap

import (
	"fmt"
	"testing"
)

// benchmarkSpread runs f with ranks as processes have them (a service each) and as
// threads have them.
func benchmarkSpread(b *testing.B, f func(b *testing.B, svc []*Service)) {
	for _, n := range []int{2, 8, 64} {
		b.Run(fmt.Sprintf("processes %d", n), func(b *testing.B) { f(b, services(b, n, n, Options{})) })
		b.Run(fmt.Sprintf("threads %d", n), func(b *testing.B) { f(b, services(b, n, 1, Options{})) })
	}
}

// BenchmarkJoin is one whole life: id, join, close.
func BenchmarkJoin(b *testing.B) {
	benchmarkSpread(b, func(b *testing.B, svc []*Service) {
		for b.Loop() {
			id := mustID(b, svc[0])
			closeAll(groups(b, joinAll(b.Context(), len(svc), func(r int) *Service { return svc[r] }, func(int) JoinConfig { return JoinConfig{ID: id} })))
		}
	})
}

func BenchmarkBarrier(b *testing.B) {
	benchmarkSpread(b, func(b *testing.B, svc []*Service) {
		id := mustID(b, svc[0])
		gs := groups(b, joinAll(b.Context(), len(svc), func(r int) *Service { return svc[r] }, func(int) JoinConfig { return JoinConfig{ID: id} }))
		b.ResetTimer()
		for _, err := range each(gs, func(g *Group) error {
			for range b.N {
				if err := g.Barrier(b.Context()); err != nil {
					return err
				}
			}
			return nil
		}) {
			if err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		closeAll(gs)
	})
}
