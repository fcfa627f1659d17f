package bootstrap

import (
	"fmt"
	"math/rand/v2"
	stdnet "net"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// freePort is a port that nobody used a moment ago, in any family. It lies below the ports that the system gives to
// connections (32768 and up), which other tests take all the time.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(10000)
		ln, err := stdnet.Listen("tcp", fmt.Sprintf(":%d", port))
		if err == nil {
			ln.Close()
			return port
		}
	}
	t.Fatal("no free port between 20000 and 30000 in 100 tries")
	return 0
}

func staticID(t *testing.T, text string) ID {
	t.Helper()
	id, err := StaticID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The same fixed address serves one communicator after the other.
func TestStaticJoin(t *testing.T) {
	for name, spread := range spreads {
		for _, host := range []string{"127.0.0.1", "[::1]", "localhost"} {
			t.Run(name+"/"+host, func(t *testing.T) {
				svc := spread(t, 3)
				id := staticID(t, fmt.Sprintf("%s:%d", host, freePort(t)))
				var before []*Group
				for range 3 {
					gs := groups(t, joinAll(testCtx(t), 3, func(r int) *Service { return svc[r] }, func(int) JoinConfig { return JoinConfig{ID: id} }))
					closeAll(before) // the one before lives until now
					checkGroup(t, gs)
					before = gs
				}
				closeAll(before)
			})
		}
	}
}

// Ranks may come long before rank 0: refused connections are no proof of death.
func TestStaticRankZeroComesLast(t *testing.T) {
	svc := services(t, 3, 3, Options{RefusedLimit: time.Millisecond})
	id := staticID(t, fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	early := make(chan []joined, 1)
	go func() {
		early <- joinAll(testCtx(t), 2, func(r int) *Service { return svc[r+1] }, func(r int) JoinConfig {
			return JoinConfig{ID: id, Rank: r + 1, NRanks: 3, Hello: []byte(fmt.Sprintf("hello of %d", r+1))}
		})
	}()
	time.Sleep(300 * time.Millisecond) // long past RefusedLimit; more only makes the test stricter
	zero := joinAll(testCtx(t), 1, func(int) *Service { return svc[0] }, func(int) JoinConfig { return JoinConfig{ID: id, NRanks: 3} })
	gs := groups(t, append(zero, <-early...))
	checkGroup(t, gs)
	closeAll(gs)
}

func TestStaticAddressIsNotOurs(t *testing.T) {
	s := newTestService(t, Options{RefusedLimit: 50 * time.Millisecond})
	_, err := s.Join(testCtx(t), JoinConfig{ID: staticID(t, "192.0.2.77:4000"), Rank: 0, NRanks: 2})
	wantError(t, err, xerr.System, "192.0.2.77:4000", "rank 0's host")

	ln, lerr := stdnet.Listen("tcp4", "127.0.0.1:0")
	if lerr != nil {
		t.Fatal(lerr)
	}
	defer ln.Close()
	_, err = s.Join(testCtx(t), JoinConfig{ID: staticID(t, ln.Addr().String()), Rank: 0, NRanks: 2})
	wantError(t, err, xerr.System, "already in use")
}

func TestStaticNobodyThere(t *testing.T) {
	s := newTestService(t, Options{})
	_, err := s.Join(testCtx(t), JoinConfig{ID: staticID(t, fmt.Sprintf("127.0.0.1:%d", freePort(t))), Rank: 1, NRanks: 2, Timeout: 200 * time.Millisecond})
	wantError(t, err, xerr.Timeout, "fixed id 127.0.0.1", "connection refused", "rank 1")
}
