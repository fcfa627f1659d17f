package gin_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
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

// The words of descriptors, against a file that was computed from the field offsets alone.
func TestDescriptorsAreNCCLs(t *testing.T) {
	f, err := os.Open("testdata/gfd.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var name string
	var d gin.Descriptor
	checked := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, " "):
			var rest string
			name, rest, _ = strings.Cut(line, ": ")
			var weak int
			d = gin.Descriptor{}
			if _, err := fmt.Sscanf(rest, "%x %x %x %x %x %x %x %x %x %x %x %x %x", &d.Op, &weak, &d.Bytes, &d.Value, &d.SrcWindow, &d.SrcOff,
				&d.DstWindow, &d.DstOff, &d.SignalWindow, &d.SignalOff, &d.Counter, &d.Signal, &d.SignalValue); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			d.Weak = weak != 0
		default:
			fields := strings.Fields(line)
			format := map[string]gin.Format{"64": gin.Format64, "64w": gin.Format64Wide, "128": gin.Format128}[fields[0]]
			got, ok := d.Encode(format)
			if fields[1] == "-" {
				if ok {
					t.Errorf("%s: format %s says what it cannot say", name, fields[0])
				}
				continue
			}
			var text []string
			for _, w := range got {
				text = append(text, fmt.Sprintf("%016x", w))
			}
			if want := strings.Join(fields[1:], " "); !ok || strings.Join(text, " ") != want {
				t.Errorf("%s, format %s:\n got %s\nwant %s", name, fields[0], strings.Join(text, " "), want)
			}
			back, why := gin.Decode(format, got)
			if why != "" || back != d {
				t.Errorf("%s, format %s: decoded %+v (%s)", name, fields[0], back, why)
			}
			checked++
		}
	}
	if checked < 19 {
		t.Errorf("only %d descriptors were checked", checked)
	}
}

// Any words either are refused or mean something that the format can say again.
func FuzzDescriptor(f *testing.F) {
	f.Add(1, []byte{})
	f.Add(0, bytes.Repeat([]byte{1}, 64))
	for _, d := range []gin.Descriptor{{Op: gin.Put, Bytes: 9}, {Op: gin.Put | gin.Inline, Bytes: 8, Value: 1 << 60}, {Op: gin.VASignal | gin.SignalAdd, SignalValue: 7}} {
		for _, format := range []gin.Format{gin.Format64, gin.Format64Wide, gin.Format128} {
			w, _ := d.Encode(format)
			var b []byte
			for _, v := range w {
				b = binary.LittleEndian.AppendUint64(b, v)
			}
			f.Add(int(format), b)
		}
	}
	f.Fuzz(func(t *testing.T, form int, b []byte) {
		format, n := []gin.Format{gin.Format64, gin.Format128, gin.Format64Wide}[uint(form)%3], 8
		if format == gin.Format128 {
			n = 16
		}
		words := make([]uint64, n)
		for i := range words {
			var w [8]byte
			copy(w[:], b[min(len(b), 8*i):])
			words[i] = binary.LittleEndian.Uint64(w[:]) | 1
		}
		d, why := gin.Decode(format, words)
		if why != "" {
			return
		}
		if d.Op&gin.Inline != 0 && d.Bytes > 8 {
			t.Fatalf("%+v", d)
		}
		again, ok := d.Encode(format)
		if !ok {
			return // windows of more than 32 bits, which no host gives out
		}
		if e, why := gin.Decode(format, again); why != "" && d.Bytes < 1<<57 || e.Op != d.Op || e.Bytes != d.Bytes || e.SignalValue != d.SignalValue {
			t.Fatalf("%+v became %+v (%s)", d, e, why)
		}
	})
}

// rig is ranks with a window and a context each.
type rig struct {
	*hosts
	win []*world.Buf
	ctx []*gin.Context
}

const (
	winBytes = 1 << 17
	window   = 7
	nsignals = 8
)

func newRig(t testing.TB, over transport.Transport, format gin.Format, n, depth int, opts ...option) *rig {
	t.Helper()
	of := make([]int, n)
	for r := range of {
		of[r] = r
	}
	r := &rig{hosts: newHostsOver(t, over, of, opts...)}
	blobs := make([][][]byte, n)
	for q, g := range r.gins {
		b := r.Alloc(winBytes, true)
		clear(b.Bytes())
		r.win = append(r.win, b)
		var err error
		if blobs[q], err = g.AddWindow(window, uintptr(unsafe.Pointer(&b.Bytes()[0])), winBytes); err != nil {
			t.Fatal(err)
		}
		x, err := g.OpenContext(format, nsignals, nsignals, depth)
		if err != nil {
			t.Fatal(err)
		}
		x.StartAt(1<<32 - 3) // indices wrap soon
		r.ctx = append(r.ctx, x)
	}
	for q, g := range r.gins {
		for p := range r.gins {
			if p != q {
				if err := g.ImportWindow(window, p, blobs[p]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return r
}

func (r *rig) post(t testing.TB, from, to int, d gin.Descriptor) uint32 {
	t.Helper()
	mark, ok := r.ctx[from].Post(to, d)
	if !ok {
		t.Fatalf("the format cannot say %+v", d)
	}
	return mark
}

// until waits for a condition; the deadline is for a broken library only.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

func (r *rig) healthy(t testing.TB) {
	t.Helper()
	for q, g := range r.gins {
		if err := g.Err(); err != nil {
			t.Fatalf("rank %d: %v", q, err)
		}
		if f := g.Faults(0); len(f) > 0 {
			t.Fatalf("rank %d: %+v", q, f)
		}
	}
}

// The conformance of backend proxy: both formats over every transport, rings of any depth. What arrives is read back and compared exactly.
func TestProxyConformance(t *testing.T) {
	transports := []transport.Transport{loop.Transport{}, shm.Transport{}, socket.New(socket.Config{})}
	for _, over := range transports {
		for _, format := range []gin.Format{gin.Format64, gin.Format128} {
			for _, depth := range []int{1, 2, 64} {
				t.Run(fmt.Sprintf("%s/%d/%d", over.Name(), 64<<format, depth), func(t *testing.T) {
					r := newRig(t, over, format, 3, depth)
					r.puts(t)
					r.values(t)
					if format == gin.Format128 {
						r.gets(t)
					}
					r.healthy(t)
				})
			}
		}
	}
}

// puts: every rank to every rank, itself included, a strong signal behind each, counters for local completion.
func (r *rig) puts(t *testing.T) {
	sizes := []int{1, 7, 8, 64, 65, 1000, 4096, 9999}
	const src, dst, part = 0, winBytes / 2, 16384
	for q := range r.n {
		for i := range part {
			r.win[q].Bytes()[src+i] = byte(i*3 + q*91)
		}
	}
	marks := make([][]uint32, r.n)
	for q := range r.n {
		marks[q] = make([]uint32, r.n)
		for _, size := range sizes {
			for p := range r.n {
				d := gin.Descriptor{Op: gin.Put | gin.SignalAdd | gin.Counter, Bytes: uint64(size), SrcWindow: window, SrcOff: uint64(size % 5),
					DstWindow: window, DstOff: uint64(dst + q*part), Signal: uint32(q), SignalValue: uint64(size), Counter: 2}
				marks[q][p] = r.post(t, q, p, d)
			}
		}
	}
	total := 0
	for _, size := range sizes {
		total += size
	}
	for p := range r.n {
		for q := range r.n {
			until(t, "a signal", func() bool { return r.ctx[p].Signal(q) >= uint64(total) })
			last := sizes[len(sizes)-1]
			want, got := r.win[q].Bytes()[last%5:last%5+last], r.win[p].Bytes()[dst+q*part:dst+q*part+last]
			if !bytes.Equal(want, got) { // strong signals are in order, so the last put is the last to be told; earlier ones are shorter
				t.Fatalf("rank %d: the bytes of rank %d differ", p, q)
			}
			if rest := r.win[p].Bytes()[dst+q*part+last : dst+(q+1)*part]; len(bytes.Trim(rest, "\x00")) != 0 {
				t.Fatalf("rank %d: bytes behind the puts of rank %d", p, q)
			}
			until(t, "a completion", func() bool { return r.ctx[q].Done(p, marks[q][p]) })
		}
	}
	for q := range r.n {
		if got, want := r.ctx[q].Counter(2), uint64(len(sizes)*r.n); got != want {
			t.Fatalf("rank %d: counter %d, want %d", q, got, want)
		}
		for p := range r.n {
			if got := r.ctx[p].Signal(q); got != uint64(total) {
				t.Fatalf("rank %d: signal of rank %d is %d, want %d", p, q, got, total)
			}
		}
	}
}

// values: up to 8 bytes that ride in the descriptor, and signals that wrap.
func (r *rig) values(t *testing.T) {
	const at = 20000
	value := uint64(0x8877665544332211)
	for size := 1; size <= 8; size++ {
		r.post(t, 0, 1, gin.Descriptor{Op: gin.Put | gin.Inline, Bytes: uint64(size), Value: value, DstWindow: window, DstOff: uint64(at + 16*size)})
	}
	r.post(t, 0, 1, gin.Descriptor{Op: gin.VASignal | gin.SignalAdd, SignalWindow: window, SignalOff: at, SignalValue: 1<<64 - 5})
	for range 10 {
		r.post(t, 0, 1, gin.Descriptor{Op: gin.VASignal | gin.SignalInc, SignalWindow: window, SignalOff: at})
	}
	mark := r.post(t, 0, 1, gin.Descriptor{Op: gin.Put | gin.SignalInc, Signal: 5})
	until(t, "the last signal", func() bool { return r.ctx[1].Signal(5) == 1 })
	until(t, "a completion", func() bool { return r.ctx[0].Done(1, mark) })
	word := binary.LittleEndian.Uint64(r.win[1].Bytes()[at:])
	if word != 5 || !gin.Reached(word, 1<<64-1) || gin.Reached(word, 6) {
		t.Fatalf("the signal by address is %d, want 5", word)
	}
	for size := 1; size <= 8; size++ {
		got := r.win[1].Bytes()[at+16*size : at+16*size+16]
		want := binary.LittleEndian.AppendUint64(nil, value)[:size]
		if !bytes.Equal(got[:size], want) || len(bytes.Trim(got[size:], "\x00")) != 0 {
			t.Fatalf("a value of %d bytes arrived as %x", size, got)
		}
	}
}

// gets, weak signals and a flush: what only the newer format says.
func (r *rig) gets(t *testing.T) {
	for i := range 5000 {
		r.win[2].Bytes()[30000+i] = byte(i * 13)
	}
	r.post(t, 1, 2, gin.Descriptor{Op: gin.Get, Bytes: 5000, SrcWindow: window, SrcOff: 30000, DstWindow: window, DstOff: 40000})
	mark := r.post(t, 1, 2, gin.Descriptor{Op: gin.Flush})
	until(t, "a get", func() bool { return r.ctx[1].Done(2, mark) })
	if !bytes.Equal(r.win[1].Bytes()[40000:45000], r.win[2].Bytes()[30000:35000]) {
		t.Fatal("a get brought other bytes")
	}
	const n = 50
	for i := range n {
		r.post(t, 2, 0, gin.Descriptor{Op: gin.Put | gin.SignalInc, Weak: true, Bytes: 100, SrcWindow: window, SrcOff: 30000, DstWindow: window, DstOff: uint64(45000 + 100*i), Signal: 6})
	}
	until(t, "weak signals", func() bool { return r.ctx[0].Signal(6) >= n })
	if got := r.ctx[0].Signal(6); got != n {
		t.Fatalf("%d weak signals for %d puts", got, n)
	}
	for i := range n {
		if !bytes.Equal(r.win[0].Bytes()[45000+100*i:45100+100*i], r.win[2].Bytes()[30000:30100]) {
			t.Fatalf("weak put %d differs", i)
		}
	}
}

// A descriptor that cannot be obeyed is named, and the ring goes on.
func TestBadDescriptors(t *testing.T) {
	for _, d := range []gin.Descriptor{
		{Op: gin.Put, Bytes: 8, SrcWindow: 99, DstWindow: window},
		{Op: gin.Put, Bytes: winBytes + 1, SrcWindow: window, DstWindow: window},
		{Op: gin.Put, Bytes: 8, SrcWindow: window, DstWindow: window, DstOff: winBytes - 7},
		{Op: gin.Put | gin.SignalInc, Signal: nsignals},
		{Op: gin.Put | gin.Counter, Counter: nsignals},
		{Op: gin.VASignal | gin.SignalInc, SignalWindow: window, SignalOff: 4},
	} {
		r := newRig(t, loop.Transport{}, gin.Format128, 2, 4)
		for _, to := range []int{0, 1} {
			mark := r.post(t, 0, to, d)
			until(t, "the end of a bad descriptor", func() bool { return r.ctx[0].Done(to, mark) })
		}
		err := r.gins[0].Err()
		if err == nil || !strings.Contains(err.Error(), "descriptor") || !strings.Contains(err.Error(), "rank 0") {
			t.Errorf("%+v: %v", d, err)
		}
		mark := r.post(t, 0, 1, gin.Descriptor{Op: gin.Put | gin.SignalInc, Signal: 1})
		until(t, "the one after", func() bool { return r.ctx[0].Done(1, mark) && r.ctx[1].Signal(1) == 1 })
	}
}
