package gin_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/gccl/gccl/device/host/exec/world"
	"github.com/gccl/gccl/net/gin"
	"github.com/gccl/gccl/net/loop"
	"github.com/gccl/gccl/net/shm"
	"github.com/gccl/gccl/net/socket"
	"github.com/gccl/gccl/net/transport"
)

// The blocks of entries, against a file that was computed from the field lists of the vendor's header alone.
func TestEntriesAreMlx5s(t *testing.T) {
	f, err := os.Open("testdata/wqe.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checked := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(line, ": ")
		var e gin.Entry
		var value, qpn, index uint32
		_, err := fmt.Sscanf(rest, "%x %x %x %x %x %x %x %x %x %x",
			&e.Opcode, &value, &qpn, &index, &e.Bytes, &e.LKey, &e.RKey, &e.LAddr, &e.RAddr, &e.Add)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		e.Value = value != 0
		var want []byte
		for range 4 {
			lines.Scan()
			b, err := hex.DecodeString(strings.TrimSpace(lines.Text()))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, b...)
		}
		got := e.Encode(qpn, index)
		if !bytes.Equal(got[:], want) {
			t.Errorf("%s:\n got %x\nwant %x", name, got, want)
		}
		if back, why := gin.DecodeEntry(got, qpn, index); why != "" || back != e {
			t.Errorf("%s: decoded %+v (%s)", name, back, why)
		}
		checked++
	}
	if checked < 11 {
		t.Errorf("only %d entries were checked", checked)
	}
}

// Completions: bytes by the field lists of mlx5_cqe64 and mlx5_err_cqe.
func TestCompletionsAreMlx5s(t *testing.T) {
	for _, c := range []struct {
		c       gin.Completion
		n       uint64
		entries uint32
		want    map[int]byte // what is not 0
	}{
		{gin.Completion{Opcode: gin.Write, QPN: 0x0a0b0c, Index: 0x1234}, 0, 16,
			map[int]byte{56: 8, 57: 0x0a, 58: 0x0b, 59: 0x0c, 60: 0x12, 61: 0x34}},
		{gin.Completion{Opcode: gin.Read, QPN: 1, Index: 0xffff, Bytes: 0x01020304}, 16, 16,
			map[int]byte{44: 1, 45: 2, 46: 3, 47: 4, 56: 0x10, 59: 1, 60: 0xff, 61: 0xff, 63: 1}},
		{gin.Completion{Opcode: gin.FetchAdd, Syndrome: 0x13, QPN: 7, Index: 2}, 31, 16,
			map[int]byte{55: 0x13, 56: 0x12, 59: 7, 61: 2, 63: 0xd1}},
	} {
		got := c.c.Encode(c.n, c.entries)
		for i, b := range got {
			if b != c.want[i] {
				t.Errorf("%+v: byte %d is 0x%02x, want 0x%02x", c.c, i, b, c.want[i])
			}
		}
		if back, why := gin.DecodeCompletion(got); why != "" || back != c.c {
			t.Errorf("%+v became %+v (%s)", c.c, back, why)
		}
	}
	if _, why := gin.DecodeCompletion([64]byte{63: 0xf0}); !strings.Contains(why, "not written") {
		t.Errorf("an unwritten completion: %q", why)
	}
}

// Each field of an entry that may be wrong is named.
func TestWrongEntries(t *testing.T) {
	const qpn, index = 0x010002, 9
	write := gin.Entry{Opcode: gin.Write, Bytes: 100, LKey: 0x751, RKey: 0x751, LAddr: 8, RAddr: 16}
	value := gin.Entry{Opcode: gin.Write, Value: true, Bytes: 5, RKey: 0x751}
	add := gin.Entry{Opcode: gin.FetchAdd, Bytes: 8, LKey: 0x53, RKey: 0x52, RAddr: 8, Add: 1}
	for _, c := range []struct {
		e    gin.Entry
		at   int
		to   byte
		want string
	}{
		{write, 0, 1, "opcode modifier 0x01"},
		{write, 2, 8, "index 8 where entry 9 is due"},
		{write, 3, 0x0a, "opcode 0x0a"},
		{write, 5, 1, "queue pair"},
		{write, 7, 4, "2 data segments"},
		{write, 7, 5, "ds 5"},
		{write, 7, 1, "ds 1"},
		{write, 7, 0x43, "beside ds"},
		{write, 8, 1, "signature"},
		{write, 10, 1, "reserved bytes"},
		{write, 11, 1, "fm_ce_se 0x01"},
		{write, 11, 0xa0, "two fences"},
		{write, 15, 1, "immediate"},
		{write, 31, 1, "remote address segment"},
		{write, 35, 0, "means 2^31"},
		{value, 35, 13, "for 13 bytes"},
		{value, 35, 0, "0 bytes"},
		{value, 34, 1, "where a block holds 28"},
		{value, 3, gin.Read, "no write"},
		{add, 7, 3, "no data segment"},
		{add, 23, 4, "multiple of 8"},
		{add, 47, 1, "compare"},
		{add, 51, 16, "of 16 bytes"},
	} {
		b := c.e.Encode(qpn, index)
		b[c.at] = c.to
		if _, why := gin.DecodeEntry(b, qpn, index); !strings.Contains(why, c.want) {
			t.Errorf("byte %d = 0x%02x: %q, want %q", c.at, c.to, why, c.want)
		}
	}
}

// Any block either is refused, or means something that its builder says again in the same bytes.
func FuzzEntry(f *testing.F) {
	for _, e := range []gin.Entry{{Opcode: gin.Write, Bytes: 9, LKey: 1, RKey: 2}, {Opcode: gin.Write, Value: true, Bytes: 8, Add: 1 << 60},
		{Opcode: gin.Read, Bytes: 1}, {Opcode: gin.FetchAdd, Bytes: 8, Add: 7, Fence: true}, {}, {Silent: true}} {
		b := e.Encode(3, 5)
		f.Add(b[:], uint32(3), uint32(5))
	}
	f.Fuzz(func(t *testing.T, in []byte, qpn, index uint32) {
		var b [gin.EntryBytes]byte
		copy(b[:], in)
		e, why := gin.DecodeEntry(b, qpn, index)
		if why != "" {
			return
		}
		if e.Value && e.Bytes > 8 || b[11]&^0xa8 != 0 || b[11]&0x20 != 0 {
			return // more than the builders make: longer values, solicited, the small fence
		}
		again := e.Encode(qpn, index)
		used := 16 * int(b[7]&0x3f)
		if e.Value {
			used = 36 + int(e.Bytes)
		}
		if !bytes.Equal(again[:used], b[:used]) {
			t.Fatalf("%+v:\n read %x\nagain %x", e, b[:used], again[:used])
		}
	})
}

func FuzzCompletion(f *testing.F) {
	ok, bad := gin.Completion{Opcode: gin.Read, Bytes: 7, QPN: 9, Index: 3}.Encode(3, 4), gin.Completion{Syndrome: 5}.Encode(0, 4)
	f.Add(ok[:])
	f.Add(bad[:])
	f.Fuzz(func(t *testing.T, in []byte) {
		var b [gin.EntryBytes]byte
		copy(b[:], in)
		c, why := gin.DecodeCompletion(b)
		if why != "" {
			return
		}
		again := c.Encode(uint64(b[63]&1), 1)
		if back, why := gin.DecodeCompletion(again); why != "" || back != c {
			t.Fatalf("%+v became %+v (%s)", c, back, why)
		}
	})
}

// nicRig is ranks with a window and send queues each.
type nicRig struct {
	*hosts
	win []*world.Buf
	q   []*gin.Queues
}

func newNICRig(t testing.TB, over transport.Transport, n, depth int) *nicRig {
	t.Helper()
	of := make([]int, n)
	for r := range of {
		of[r] = r
	}
	r := &nicRig{hosts: newHostsOver(t, over, of)}
	blobs := make([][][]byte, n)
	for k, g := range r.gins {
		b := r.Alloc(winBytes, true)
		clear(b.Bytes())
		r.win = append(r.win, b)
		var err error
		if blobs[k], err = g.AddWindow(window, uintptr(unsafe.Pointer(&b.Bytes()[0])), winBytes); err != nil {
			t.Fatal(err)
		}
		q, err := g.OpenQueues(nsignals, nsignals, depth)
		if err != nil {
			t.Fatal(err)
		}
		q.StartAt(1<<32 - 3) // indices wrap soon, also their low 16 bits
		r.q = append(r.q, q)
	}
	for k, g := range r.gins {
		for p := range r.gins {
			if p != k {
				if err := g.ImportWindow(window, p, blobs[p]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return r
}

// post puts entries through a queue, each with its doorbell, and returns their completions.
func (r *nicRig) post(t testing.TB, from, to int, entries ...gin.Entry) (done []gin.Completion) {
	t.Helper()
	for _, e := range entries {
		r.q[from].Put(to, e)
		r.q[from].Ring(to)
		done = append(done, r.wait(t, from, to))
	}
	return done
}

func (r *nicRig) wait(t testing.TB, from, to int) (c gin.Completion) {
	t.Helper()
	until(t, "a completion", func() bool {
		var ok bool
		var err error
		if c, ok, err = r.q[from].Poll(to); err != nil {
			t.Fatal(err)
		}
		return ok
	})
	return c
}

func (r *nicRig) good(t testing.TB, cs []gin.Completion) {
	t.Helper()
	for _, c := range cs {
		if c.Syndrome != 0 {
			t.Fatalf("%+v", c)
		}
	}
}

func (r *nicRig) healthy(t testing.TB) {
	t.Helper()
	for k, g := range r.gins {
		if err := g.Err(); err != nil {
			t.Fatalf("rank %d: %v", k, err)
		}
		if f := g.Faults(0); len(f) > 0 {
			t.Fatalf("rank %d: %+v", k, f)
		}
	}
}

func write(off, to uint64, n uint32) gin.Entry {
	return gin.Entry{Opcode: gin.Write, Bytes: n, LKey: gin.WindowKey(window), RKey: gin.WindowKey(window), LAddr: off, RAddr: to}
}

func (r *nicRig) signal(rank, signal int, add uint64) gin.Entry {
	q := r.q[rank]
	return gin.Entry{Opcode: gin.FetchAdd, Bytes: 8, LKey: q.SinkKey(), RKey: q.SignalsKey(), RAddr: uint64(8 * signal), Add: add}
}

// Every kind of entry, from every rank to every rank, over every transport, with exact bytes.
func TestNIC(t *testing.T) {
	for _, over := range []transport.Transport{loop.Transport{}, shm.Transport{}, socket.New(socket.Config{})} {
		for _, depth := range []int{1, 2, 16} {
			t.Run(fmt.Sprintf("%s/%d", over.Name(), depth), func(t *testing.T) {
				r := newNICRig(t, over, 3, depth)
				r.kinds(t)
				r.healthy(t)
			})
		}
	}
}

func (r *nicRig) kinds(t *testing.T) {
	const dst, part = winBytes / 2, 16384
	for k := range r.n {
		for i := range part {
			r.win[k].Bytes()[i] = byte(i*3 + k*91)
		}
	}
	for k := range r.n {
		for p := range r.n {
			at := uint64(dst + k*part)
			r.good(t, r.post(t, k, p, write(5, at, 9999), write(0, at, 0),
				gin.Entry{Opcode: gin.Write, Value: true, Bytes: 7, RKey: gin.WindowKey(window), RAddr: at + 10001, Add: 0x88776655443322},
				gin.Entry{}, r.signal(k, k, 1<<63), r.signal(k, k, 1<<63), r.signal(k, k, 3)))
			if got := r.q[p].Signal(k); got != 3 {
				t.Fatalf("signal of rank %d at %d is %d, want 3", k, p, got)
			}
			got := r.win[p].Bytes()[at : at+part]
			tail := []byte{0, 0, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 0}
			if !bytes.Equal(got[:9999], r.win[k].Bytes()[5:5+9999]) || !bytes.Equal(got[9999:10010], tail) {
				t.Fatalf("the bytes of rank %d at rank %d differ", k, p)
			}
			// A read sees the writes before it; old values of atomics come back.
			key := gin.WindowKey(window)
			c := r.post(t, k, p, write(100, at+12000, 500),
				gin.Entry{Opcode: gin.Read, Bytes: 500, LKey: key, RKey: key, LAddr: 120000, RAddr: at + 12000},
				gin.Entry{Opcode: gin.FetchAdd, Bytes: 8, LKey: key, RKey: key, LAddr: 121000, RAddr: at + 16000, Add: 41},
				gin.Entry{Opcode: gin.FetchAdd, Bytes: 8, LKey: key, RKey: key, LAddr: 121008, RAddr: at + 16000, Add: 1, Fence: true})
			r.good(t, c)
			if c[1].Bytes != 500 || c[2].Bytes != 8 {
				t.Fatalf("%+v", c)
			}
			mine := r.win[k].Bytes()
			if !bytes.Equal(mine[120000:120500], mine[100:600]) {
				t.Fatal("a read brought other bytes than the write before it left")
			}
			le := binary.LittleEndian
			if a, b, w := le.Uint64(mine[121000:]), le.Uint64(mine[121008:]), le.Uint64(r.win[p].Bytes()[at+16000:]); a != 0 || b != 41 || w != 42 {
				t.Fatalf("atomics brought %d and %d and left %d", a, b, w)
			}
		}
	}
}

// Sequence-numbered payload with a signal behind it, through a queue of 16 with several entries for each doorbell, while the NIC does
// what it may: delays, other orders, lost packets. What the signal says has arrived has arrived.
func TestNICSignalsAfterData(t *testing.T) {
	for _, over := range []transport.Transport{loop.Transport{}, socket.New(socket.Config{})} {
		for _, o := range []gin.Orders{{}, {Shuffle: 12345}, {Delay: 20 * time.Microsecond}, {Drop: 5}} {
			t.Run(fmt.Sprintf("%s/%+v", over.Name(), o), func(t *testing.T) {
				r := newNICRig(t, over, 2, 16)
				r.gins[0].Order(o)
				const slots, rounds, n = 8, 150, 1000
				src := r.win[0].Bytes()
				got := make([]byte, n)
				for round := range uint64(rounds) {
					k := round % slots
					for i := 0; i+8 <= n; i += 8 {
						binary.LittleEndian.PutUint64(src[k*n+uint64(i):], round<<20|uint64(i))
					}
					// Three writes that make up the slot, in any order, then the signal.
					r.q[0].Put(1, write(k*n, k*n, 400), write(k*n+400, k*n+400, 8), write(k*n+408, k*n+408, n-408), r.signal(0, 2, 1))
					r.q[0].Ring(1)
					until(t, "a signal", func() bool { return r.q[1].Signal(2) > round })
					copy(got, r.win[1].Bytes()[k*n:])
					if !bytes.Equal(got, src[k*n:(k+1)*n]) {
						t.Fatalf("round %d: the signal came and the bytes did not", round)
					}
					for range 4 {
						r.good(t, []gin.Completion{r.wait(t, 0, 1)})
					}
				}
				if got := r.q[1].Signal(2); got != rounds {
					t.Fatalf("%d signals, want %d", got, rounds)
				}
				r.healthy(t)
			})
		}
	}
}

// A mistake completes with the syndrome of a device, is named with rank, context, entry and cause, and what is behind it is
// flushed. Another queue goes on.
func TestNICMistakes(t *testing.T) {
	wk := gin.WindowKey(window)
	for _, c := range []struct {
		name     string
		e        gin.Entry
		o        gin.Orders
		syndrome uint8
		text     string
	}{
		{"local key", gin.Entry{Opcode: gin.Write, Bytes: 8, LKey: 0x9951, RKey: wk}, gin.Orders{}, 4, "no memory of this rank has key 0x9951"},
		{"local range", write(winBytes-7, 0, 8), gin.Orders{}, 4, "8 bytes at 0x1fff9"},
		{"remote key", gin.Entry{Opcode: gin.Write, Bytes: 8, LKey: wk, RKey: 0x9951}, gin.Orders{}, 0x13, "no memory of rank 1 has key 0x9951"},
		{"remote range", write(0, winBytes-7, 8), gin.Orders{}, 0x13, "8 bytes at 0x1fff9"},
		{"write to signals", gin.Entry{Opcode: gin.Write, Bytes: 8, LKey: wk, RKey: 0x52}, gin.Orders{}, 0x13, "does not allow"},
		{"no such signal", gin.Entry{Opcode: gin.FetchAdd, Bytes: 8, LKey: wk, RKey: 0x52, RAddr: 8 * nsignals}, gin.Orders{}, 0x13,
			"does not allow"},
		{"sink as a source", gin.Entry{Opcode: gin.Write, Bytes: 8, LKey: 0x53, RKey: wk}, gin.Orders{}, 4, "the sink"},
		{"lost for good", write(0, 0, 8), gin.Orders{Drop: 8}, 0x15, "did not answer"},
		{"failed on command", write(0, 0, 8), gin.Orders{Fail: 0x14}, 0x14, "on command"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newNICRig(t, loop.Transport{}, 2, 16)
			r.gins[0].Order(c.o)
			r.q[0].Put(1, c.e, write(0, 0, 8), gin.Entry{})
			r.q[0].Ring(1)
			bad, flushed := r.wait(t, 0, 1), []gin.Completion{r.wait(t, 0, 1), r.wait(t, 0, 1)}
			if bad.Syndrome != c.syndrome || flushed[0].Syndrome != 5 || flushed[1].Syndrome != 5 {
				t.Errorf("%+v, then %+v", bad, flushed)
			}
			err := r.gins[0].Err()
			const where = "rank 0: entry 4294967293 to rank 1 in context 0"
			if err == nil || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), where) {
				t.Errorf("error %v, want %q", err, c.text)
			}
			r.good(t, r.post(t, 0, 0, write(0, 64, 8)))
			r.good(t, r.post(t, 1, 0, write(0, 64, 8)))
		})
	}
}

// Bytes that are no entry, and doorbells that do not fit.
func TestNICBadDoorbells(t *testing.T) {
	r := newNICRig(t, loop.Transport{}, 2, 4)
	garbage := write(0, 0, 8).Encode(r.q[0].QPN(1), 1<<32-3)
	garbage[8] = 1
	r.q[0].PutRaw(1, garbage)
	r.q[0].Ring(1)
	if c := r.wait(t, 0, 1); c.Syndrome != 2 {
		t.Errorf("%+v", c)
	}
	if err := r.gins[0].Err(); err == nil || !strings.Contains(err.Error(), "signature 0x01") {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		name string
		do   func(q *gin.Queues)
		want string
	}{
		{"without a record", func(q *gin.Queues) {
			q.Put(1, write(0, 0, 8))
			q.Doorbell(1, binary.LittleEndian.Uint64(func() []byte { b := write(0, 0, 8).Encode(q.QPN(1), 1<<32-3); return b[:8] }()))
		}, "record was not stored"},
		{"of another queue", func(q *gin.Queues) { q.Record(1, 1<<32-2); q.Doorbell(1, 0x0103000008fdff00) }, "another queue pair"},
		{"too many", func(q *gin.Queues) {
			for range 5 {
				q.Put(1, write(0, 0, 8))
			}
			q.Ring(1)
		}, "more entries than are free"},
	} {
		r := newNICRig(t, loop.Transport{}, 2, 4)
		c.do(r.q[0])
		until(t, "an error", func() bool { return r.gins[0].Err() != nil })
		if err := r.gins[0].Err(); !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// BenchmarkNIC: entries that a CPU producer gets through the software NIC over the loop transport, a doorbell for each batch.
func BenchmarkNIC(b *testing.B) {
	for _, batch := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("value/batch%d", batch), func(b *testing.B) {
			r := newNICRig(b, loop.Transport{}, 2, 1<<12)
			b.ResetTimer()
			d := r.q[0].RingMany(1, gin.Entry{Opcode: gin.Write, Value: true, Bytes: 8, RKey: gin.WindowKey(window)}, b.N, batch)
			b.ReportMetric(float64(b.N)/d.Seconds()/1e6, "M/s")
			r.healthy(b)
		})
	}
}
