package conformance

import (
	"encoding/binary"
	"math/rand"
	"testing"
	"time"

	"github.com/gccl/gccl/net/transport"
)

// Traffic runs rounds of random work both ways over a connection on which things go wrong, as long as more says so, and
// checks every byte and that each message comes exactly once. It returns the repeated frames.
type Traffic struct {
	t    testing.TB
	a, b *side
	rng  *rand.Rand
	r    int
}

// NewTraffic connects two endpoints. Between may be called for each before they are connected.
func NewTraffic(t testing.TB, m Maker, seed int64) *Traffic {
	a, b := m.pair(t, 1<<20)
	return &Traffic{t: t, a: a, b: b, rng: rand.New(rand.NewSource(seed))}
}

// Reconnect closes the connection and makes another between the same endpoints.
func (tr *Traffic) Reconnect() {
	transport.CloseConn(tr.a.conn)
	transport.CloseConn(tr.b.conn)
	tr.a.ev, tr.b.ev = nil, nil
	connect(tr.t, tr.a, tr.b)
	tr.a.peer, tr.b.peer = tr.a.imports(tr.b.reg), tr.b.imports(tr.a.reg)
}

// Stats are those of the first end.
func (tr *Traffic) Stats() (a, b transport.Stats) {
	return transport.ConnStats(tr.a.conn), transport.ConnStats(tr.b.conn)
}

// Round sends both ways and compares.
func (tr *Traffic) Round() {
	const half = 1 << 19
	tr.r++
	type expectation struct {
		from, to *side
		want     []byte
		weak     int
	}
	var dirs []expectation
	for i, s := range []*side{tr.a, tr.b} {
		to := []*side{tr.b, tr.a}[i]
		fill(s.mem[:half], 2*tr.r+i)
		want := append([]byte(nil), to.mem[half:]...)
		var work []transport.Work
		weak := 0
		for at := 0; at < half-150_000; {
			n := tr.rng.Intn([]int{64, 3000, 150_000}[tr.rng.Intn(3)])
			from := tr.rng.Intn(half - n)
			if n <= transport.MaxMsg {
				work = append(work, transport.Work{Op: transport.PutInline, Remote: s.peer, Off: uint64(half + at), Data: append([]byte{}, s.mem[from:from+n]...)})
			} else {
				work = append(work, put(s, from, half+at, n))
			}
			copy(want[at:at+n], s.mem[from:from+n])
			if tr.rng.Intn(4) == 0 {
				w := msg(binary.LittleEndian.AppendUint32([]byte{1}, uint32(weak))...)
				w.Weak = true
				weak++
				work = append(work, w)
			}
			at += n
			if len(work) > 60 {
				break
			}
		}
		end := msg(binary.LittleEndian.AppendUint32([]byte{2}, uint32(tr.r))...)
		end.Signaled, end.Cookie = true, uint64(tr.r)
		s.post(to, append(work, end)...)
		dirs = append(dirs, expectation{s, to, want, weak})
	}
	for _, d := range dirs {
		seen := map[uint32]bool{}
		for ended := false; !ended; {
			m := d.to.next(transport.Message, d.from)
			n := binary.LittleEndian.Uint32(m.Data[1:])
			switch {
			case m.Data[0] == 2 && n == uint32(tr.r):
				ended = true
			case m.Data[0] == 1 && !seen[n] && int(n) < d.weak:
				seen[n] = true
			default:
				tr.t.Fatalf("round %d: message %v came again, or belongs to another round", tr.r, m.Data)
			}
		}
		if len(seen) != d.weak {
			tr.t.Fatalf("round %d: %d of %d weak messages before the strong one", tr.r, len(seen), d.weak)
		}
		same(tr.t, "memory", d.to.mem[1<<19:], d.want)
		if e := d.from.next(transport.Done, d.to); e.Cookie != uint64(tr.r) {
			tr.t.Fatalf("completion %d, want %d", e.Cookie, tr.r)
		}
	}
	for _, s := range []*side{tr.a, tr.b} {
		if len(s.ev) > 0 {
			tr.t.Fatalf("round %d: %d events too many, the first of kind %v", tr.r, len(s.ev), s.ev[0].Kind)
		}
	}
}

// Until runs rounds until more is false, at most for a time.
func (tr *Traffic) Until(d time.Duration, more func() bool) bool {
	for end := time.Now().Add(d); more(); tr.Round() {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// UntilFault sends both ways until a connection has failed, and returns the errors of both ends.
func (tr *Traffic) UntilFault(d time.Duration) (a, b error) {
	end := time.Now().Add(d)
	for {
		for _, s := range []*side{tr.a, tr.b} {
			_, _ = transport.Post(s.conn, put(s, 0, 0, 5000), msg(1))
		}
		poll(tr.a, tr.b)
		a, b = transport.ConnErr(tr.a.conn), transport.ConnErr(tr.b.conn)
		if a != nil && b != nil {
			return a, b
		}
		if time.Now().After(end) {
			tr.t.Fatalf("no fault at both ends in %v: %v; %v", d, a, b)
		}
	}
}
