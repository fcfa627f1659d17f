package conformance

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
)

// Run runs the suite.
func Run(t *testing.T, m Maker) {
	if m.Scale == 0 {
		m.Scale = 1
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T, Maker)
	}{
		{"put", testPut}, {"inline", testInline}, {"get", testGet}, {"weak", testWeak}, {"order", testOrder}, {"completions", testCompletions},
		{"flush", testFlush}, {"back-pressure", testBackPressure}, {"limits", testLimits}, {"foreign blobs", testBlobs}, {"deregistered", testDeregistered},
		{"close", testClose}, {"secret", testSecret}, {"nobody", testNobody}, {"several connections", testSeveral}, {"both ways", testBothWays}, {"soak", testSoak},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, m) })
	}
}

// sizes are around every boundary that a transport may have.
var sizes = []int{0, 1, 7, 8, 9, 63, 64, 65, 255, 4095, 4096, 4097, 65535, 65536, 65537, 300_000, 1<<20 - 1, 1<<20 + 1, 3 << 20}

func (m Maker) sizes() []int {
	return slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return n > 4<<20/m.Scale })
}

func testPut(t *testing.T, m Maker) {
	const room = 4 << 20
	a, b := m.pair(t, room)
	for i, n := range m.sizes() {
		fill(a.mem, i)
		clear(b.mem)
		off, loff := 128+i, 64+3*i
		a.post(b, put(a, loff, off, n), msg(byte(i)))
		if e := b.next(transport.Message, a); len(e.Data) != 1 || e.Data[0] != byte(i) {
			t.Fatalf("message %v, want %d", e.Data, i)
		}
		same(t, "put", b.mem[off:off+n], a.mem[loff:loff+n])
		for _, outside := range [][]byte{b.mem[:off], b.mem[off+n:]} {
			for k, v := range outside {
				if v != 0 {
					t.Fatalf("size %d: byte %d outside was written", n, k)
				}
			}
		}
	}
}

func testInline(t *testing.T, m Maker) {
	a, b := m.pair(t, 4096)
	for n := 0; n <= transport.MaxMsg; n++ {
		data := make([]byte, n)
		fill(data, n)
		clear(b.mem)
		a.post(b, transport.Work{Op: transport.PutInline, Remote: a.peer, Off: uint64(8 * n), Data: data}, transport.Work{Op: transport.Msg, Data: data})
		same(t, "message", b.next(transport.Message, a).Data, data)
		same(t, "inline", b.mem[8*n:9*n], data)
	}
}

func testGet(t *testing.T, m Maker) {
	const room = 4 << 20
	a, b := m.pair(t, room)
	for i, n := range m.sizes() {
		fill(b.mem, i)
		clear(a.mem)
		off, loff := 128+i, 64+3*i
		a.post(b, transport.Work{Op: transport.Get, Local: a.reg, LocalOff: uint64(loff), Remote: a.peer, Off: uint64(off), Bytes: uint64(n), Signaled: true, Cookie: uint64(i)})
		if e := a.next(transport.Done, b); e.Cookie != uint64(i) {
			t.Fatalf("cookie %d, want %d", e.Cookie, i)
		}
		same(t, "get", a.mem[loff:loff+n], b.mem[off:off+n])
		same(t, "before get", a.mem[:loff], make([]byte, loff))
		same(t, "after get", a.mem[loff+n:], make([]byte, room-loff-n))
	}
}

// A weak message covers its own put.
func testWeak(t *testing.T, m Maker) {
	const n, rounds = 200_000, 20
	a, b := m.pair(t, n*rounds)
	fill(a.mem, 7)
	var work []transport.Work
	for i := range rounds {
		w := msg(byte(i))
		w.Weak = true
		work = append(work, put(a, i*n, i*n, n), w)
	}
	a.post(b, work...)
	seen := map[byte]bool{}
	for range rounds {
		i := b.next(transport.Message, a).Data[0]
		if seen[i] {
			t.Fatalf("message %d came twice", i)
		}
		seen[i] = true
		same(t, "put of a weak message", b.mem[int(i)*n:int(i+1)*n], a.mem[int(i)*n:int(i+1)*n])
	}
}

// Strong messages come in order, and each covers everything before it.
func testOrder(t *testing.T, m Maker) {
	const puts, n, rounds = 8, 30_000, 30
	a, b := m.pair(t, puts*n)
	want := make([]byte, puts*n)
	for r := range rounds {
		fill(a.mem, r)
		copy(want, a.mem)
		var work []transport.Work
		for i := range puts {
			size := n
			if i%2 == 1 {
				size = 8 // small ones must not overtake with the message
			}
			copy(want[i*n+size:(i+1)*n], b.mem[i*n+size:(i+1)*n])
			work = append(work, put(a, i*n, i*n, size))
		}
		done := msg(byte(r))
		done.Signaled, done.Cookie = true, uint64(r)
		a.post(b, append(work, done)...)
		if got := b.next(transport.Message, a).Data[0]; got != byte(r) {
			t.Fatalf("message %d, want %d", got, r)
		}
		same(t, "puts before a strong message", b.mem, want)
		a.next(transport.Done, b)
	}
}

func testCompletions(t *testing.T, m Maker) {
	const n = 100_000
	a, b := m.pair(t, 2*n)
	var want []uint64
	for i := range 200 {
		w := put(a, 0, 0, []int{0, 8, 5000, n}[i%4])
		switch i % 5 {
		case 3:
			w = transport.Work{Op: transport.Get, Local: a.reg, LocalOff: n, Remote: a.peer, Off: n, Bytes: uint64(i * 10)}
		case 4:
			w = msg(byte(i))
		}
		if w.Signaled = i%3 != 0; w.Signaled {
			w.Cookie = uint64(i) << 32
			want = append(want, w.Cookie)
		}
		a.post(b, w)
	}
	for _, c := range want {
		if e := a.next(transport.Done, b); e.Cookie != c {
			t.Fatalf("completion %#x, want %#x: they come in the order of posting", e.Cookie, c)
		}
	}
	for range 40 {
		b.next(transport.Message, a)
	}
	// A completed source may change: what the receiver has is what was there before.
	fill(a.mem[:n], 1)
	want1 := append([]byte(nil), a.mem[:n]...)
	w := put(a, 0, 0, n)
	w.Signaled = true
	a.post(b, w)
	a.next(transport.Done, b)
	clear(a.mem)
	a.post(b, msg(1))
	b.next(transport.Message, a)
	same(t, "put", b.mem[:n], want1)
}

func testFlush(t *testing.T, m Maker) {
	const n = 50_000
	a, b := m.pair(t, n)
	fill(b.mem, 3)
	a.post(b, transport.Work{Op: transport.Get, Local: a.reg, Remote: a.peer, Bytes: n}, transport.Work{Op: transport.Flush, Signaled: true, Cookie: 9})
	if e := a.next(transport.Done, b); e.Cookie != 9 {
		t.Fatalf("cookie %d", e.Cookie)
	}
	same(t, "get before flush", a.mem, b.mem)
}

// A receiver that does not poll makes the sender's queues full, and nothing is lost.
func testBackPressure(t *testing.T, m Maker) {
	a, b := m.pair(t, 1<<16)
	sent, full := 0, false
	for end := time.Now().Add(limit); !full; {
		var data [8]byte
		binary.LittleEndian.PutUint64(data[:], uint64(sent))
		w := transport.Work{Op: transport.Msg, Data: data[:], Signaled: sent%7 == 0, Cookie: uint64(sent)}
		switch n, err := transport.Post(a.conn, put(a, 0, 0, 1<<15), w); {
		case n == 2:
			sent++
		case err != transport.ErrBusy:
			t.Fatal(err)
		case n == 1:
			a.post(b, w)
			sent++
			full = true
		default:
			full = true
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages posted and queues are not full", sent)
		}
	}
	for i := range sent {
		if got := binary.LittleEndian.Uint64(b.next(transport.Message, a).Data); got != uint64(i) {
			t.Fatalf("message %d, want %d", got, i)
		}
	}
	for i := 0; i < sent; i += 7 {
		if e := a.next(transport.Done, b); e.Cookie != uint64(i) {
			t.Fatalf("completion %d, want %d", e.Cookie, i)
		}
	}
}

func testLimits(t *testing.T, m Maker) {
	a, b := m.pair(t, 1000)
	for name, w := range map[string]transport.Work{
		"remote end":     put(a, 0, 1, 1000),
		"local end":      put(a, 1, 0, 1000),
		"huge":           {Op: transport.Put, Local: a.reg, Remote: a.peer, Bytes: 1 << 63},
		"wrapping":       {Op: transport.Put, Local: a.reg, Remote: a.peer, Bytes: 8, Off: ^uint64(3)},
		"get":            {Op: transport.Get, Local: a.reg, Remote: a.peer, Bytes: 1001},
		"inline":         {Op: transport.PutInline, Remote: a.peer, Off: 997, Data: make([]byte, 4)},
		"long message":   {Op: transport.Msg, Data: make([]byte, transport.MaxMsg+1)},
		"long inline":    {Op: transport.PutInline, Remote: a.peer, Data: make([]byte, transport.MaxMsg+1)},
		"no operation":   {},
		"some operation": {Op: 77},
	} {
		if n, err := a.tryPost(b, w); n != 0 || !errors.Is(err, xerr.InvalidArgument) {
			t.Errorf("%s: %d taken, error %v", name, n, err)
		}
	}
	// A good one before a bad one is taken, and the connection still works.
	n, err := a.tryPost(b, msg(5), put(a, 0, 1, 1000))
	if n != 1 || !errors.Is(err, transport.ErrBusy) {
		t.Errorf("%d taken, error %v", n, err)
	}
	if got := b.next(transport.Message, a).Data[0]; got != 5 {
		t.Errorf("message %d", got)
	}
}

func testBlobs(t *testing.T, m Maker) {
	a, b := m.pair(t, 1000)
	good := b.reg.Blob()
	if len(good) > transport.MaxMemory {
		t.Errorf("a blob of %d bytes", len(good))
	}
	for name, blob := range map[string][]byte{"empty": nil, "short": good[:len(good)-1], "long": append(append([]byte(nil), good...), 0), "zero": make([]byte, len(good))} {
		if _, err := transport.Import(a.conn, blob); !errors.Is(err, xerr.InvalidArgument) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for _, remote := range [][]byte{nil, {1}, make([]byte, transport.MaxBlob+1)} {
		c, err := a.ep.NewConn(1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		if err := c.Connect(ctx, remote); err == nil {
			t.Errorf("connected to a blob of %d bytes", len(remote))
		}
		cancel()
	}
}

// An access to memory that is gone is a fault of that connection, and the rest works.
func testDeregistered(t *testing.T, m Maker) {
	a, b := m.pair(t, 1000)
	mem, addr := Alloc(1000)
	reg, err := transport.Register(b.ep.C(), addr, 1000)
	if err != nil {
		t.Fatal(err)
	}
	remote := a.imports(reg)
	reg.Deregister()
	w := put(a, 0, 0, 1000)
	w.Remote, w.Signaled = remote, true
	fill(a.mem, 1)
	if _, err := transport.Post(a.conn, w); err != nil && !errors.Is(err, xerr.Remote) {
		t.Fatal(err)
	}
	a.next(transport.Fault, b)
	same(t, "memory that is gone", mem, make([]byte, 1000))
	Free(mem)
	if err := transport.ConnErr(a.conn); !errors.Is(err, xerr.Remote) {
		t.Errorf("error %v", err)
	}
	if n, err := transport.Post(a.conn, msg(1)); n != 0 || !errors.Is(err, xerr.Remote) {
		t.Errorf("post on a failed connection: %d taken, error %v", n, err)
	}
	transport.CloseConn(a.conn)
	transport.CloseConn(b.conn)
	a.ev, b.ev = nil, nil
	connect(t, a, b)
	a.peer = a.imports(b.reg)
	a.post(b, put(a, 0, 0, 1000), msg(2))
	b.next(transport.Message, a)
	same(t, "put after a fault", b.mem, a.mem)
}

// What was sent before an end arrives, then the end is a fault that names the rank.
func testClose(t *testing.T, m Maker) {
	a, b := m.pair(t, 1<<20)
	fill(a.mem, 2)
	done := msg(1)
	done.Signaled = true
	a.post(b, put(a, 0, 0, 1<<20), done)
	a.next(transport.Done, b)
	transport.CloseConn(a.conn)
	b.next(transport.Message, b)
	same(t, "put before the end", b.mem, a.mem)
	b.next(transport.Fault, b)
	var x *xerr.Error
	if err := transport.ConnErr(b.conn); !errors.As(err, &x) || x.Code != xerr.Remote || x.Rank != 0 {
		t.Errorf("error %v", err)
	}
	for range 100 {
		poll(b)
	}
	if len(b.ev) != 0 {
		t.Errorf("events after the fault: %v", b.ev)
	}
}

func testSecret(t *testing.T, m Maker) {
	a, b := m.Open(t, 0, secret), m.Open(t, 1, transport.Secret{9})
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	ca, errA := a.NewConn(1)
	cb, errB := b.NewConn(0)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	ended := make(chan error)
	blob := ca.Blob()
	go func() { ended <- cb.Connect(ctx, blob) }()
	if err := ca.Connect(ctx, cb.Blob()); err == nil {
		t.Error("connected to an end with another secret")
	}
	if err := <-ended; err == nil {
		t.Error("connected with another secret")
	}
}

func testNobody(t *testing.T, m Maker) {
	a, b := m.Open(t, 0, secret), m.Open(t, 1, secret)
	defer a.Close()
	ca, errA := a.NewConn(1)
	cb, errB := b.NewConn(0)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	var x *xerr.Error
	if err := ca.Connect(ctx, cb.Blob()); !errors.As(err, &x) || x.Rank != 1 {
		t.Errorf("error %v, want one that names rank 1", err)
	}
	_ = cb.Connect(ctx, make([]byte, 1)) // frees it
	b.Close()
}

func testSeveral(t *testing.T, m Maker) {
	a, b := m.pair(t, 8*1000)
	first := [2]*side{{t: t, ep: a.ep, conn: a.conn}, {t: t, ep: b.ep, conn: b.conn}}
	fill(a.mem, 4)
	for i := range 8 {
		connect(t, a, b)
		a.peer = a.imports(b.reg)
		a.post(b, put(a, 1000*i, 1000*i, 1000), msg(byte(i)))
		if e := b.next(transport.Message, a); e.Conn != b.conn || e.Data[0] != byte(i) {
			t.Fatalf("message %d of another connection", e.Data[0])
		}
		if transport.Peer(b.conn) != 0 {
			t.Errorf("peer %d", transport.Peer(b.conn))
		}
		if i%2 == 0 {
			transport.CloseConn(a.conn)
			transport.CloseConn(b.conn)
		}
	}
	same(t, "puts", b.mem, a.mem)
	a.conn, b.conn = first[0].conn, first[1].conn
	a.post(b, msg(99))
	if e := b.next(transport.Message, a); e.Conn != b.conn || e.Data[0] != 99 {
		t.Error("the first connection is disturbed")
	}
}

func testBothWays(t *testing.T, m Maker) {
	const n = 1 << 18
	a, b := m.pair(t, 2*n)
	for r := range 20 {
		fill(a.mem[:n], 2*r)
		fill(b.mem[:n], 2*r+1)
		a.post(b, put(a, 0, n, n), msg(byte(r)))
		b.post(a, put(b, 0, n, n), msg(byte(r)))
		b.next(transport.Message, a)
		a.next(transport.Message, b)
		same(t, "a to b", b.mem[n:], a.mem[:n])
		same(t, "b to a", a.mem[n:], b.mem[:n])
		a.post(b, msg(1))
		b.post(a, msg(1))
		a.next(transport.Message, b)
		b.next(transport.Message, a)
	}
	if s := transport.ConnStats(a.conn); s.TxBytes != 20*n || s.TxMsgs != 40 || s.RxMsgs != 40 || s.Paths < 1 || s.Retries != 0 {
		t.Errorf("statistics: %v", s)
	}
}

// Random work with a fixed seed; the receiver's memory is compared at every message with a model.
func testSoak(t *testing.T, m Maker) {
	const cells, cell = 64, 20_000
	a, b := m.pair(t, cells*cell)
	rng := rand.New(rand.NewSource(42))
	fill(a.mem, 1)
	model := make([]byte, len(b.mem))
	for r := range 300 / m.Scale {
		var work []transport.Work
		order := rng.Perm(cells)
		for _, c := range order[:1+rng.Intn(12)] { // cells of one round differ: puts are unordered
			n := rng.Intn(cell)
			if rng.Intn(3) > 0 {
				n = rng.Intn(200)
			}
			from := rng.Intn(len(a.mem) - n)
			off := c*cell + rng.Intn(cell-n)
			if n <= transport.MaxMsg && rng.Intn(2) == 0 {
				work = append(work, transport.Work{Op: transport.PutInline, Remote: a.peer, Off: uint64(off), Data: append([]byte{}, a.mem[from:from+n]...)})
			} else {
				work = append(work, put(a, from, off, n))
			}
			copy(model[off:off+n], a.mem[from:from+n])
		}
		end := msg(byte(r), byte(r>>8))
		end.Signaled, end.Cookie = true, uint64(r)
		a.post(b, append(work, end)...)
		if got := b.next(transport.Message, a); int(got.Data[0])|int(got.Data[1])<<8 != r {
			t.Fatalf("message %v, want %d", got.Data, r)
		}
		same(t, "memory", b.mem, model)
		if e := a.next(transport.Done, b); e.Cookie != uint64(r) {
			t.Fatalf("completion %d, want %d", e.Cookie, r)
		}
	}
}
