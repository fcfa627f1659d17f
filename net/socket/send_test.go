package socket

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

// A SEND waits on its way until its place is there, with all that is behind it, and its message comes after its bytes.
func TestSendWaitsForItsPlace(t *testing.T) {
	const each, n = 3 << 20, 6
	sizes := []int{1, 64, 1000, 70_001, each, 20}
	for name, f := range map[string]Faults{"plain": {}, "slow calls": {Seed: 5, Short: 30_000, Interrupt: 10_000, Again: 10_000}} {
		t.Run(name, func(t *testing.T) {
			var in []*Injected
			p := conformance.NewPair(t, with(Config{Threads: 1, Sockets: 1}, f, &in), 16)
			from, fromAt := conformance.Alloc(each)
			to, toAt := conformance.Alloc(each * n)
			t.Cleanup(func() { conformance.Free(from); conformance.Free(to) })
			local, err := transport.Register(p.Endpoint(0), fromAt, each)
			if err != nil {
				t.Fatal(err)
			}
			for i := range from {
				from[i] = byte(i*7 + i>>9 + 1)
			}
			l := conformance.Land(p.Conn(1), toAt, each*n, n, 0)
			t.Cleanup(l.Free)
			for i, size := range sizes {
				p.Post(0, transport.Work{Op: transport.Send, Local: local, Bytes: uint64(size), Off: uint64(i)}, transport.Work{Op: transport.Msg, Data: []byte{byte(i)}})
			}
			for i, size := range sizes {
				if got := p.Messages(1, 300); len(got) != 0 {
					t.Fatalf("before place %d was there a message came: %v", i, got)
				}
				if place := to[i*each : (i+1)*each]; !bytes.Equal(place, make([]byte, each)) {
					t.Fatalf("place %d was written before it was there", i)
				}
				l.Open(i + 1)
				if m := p.Message(1); len(m) != 1 || int(m[0]) != i {
					t.Fatalf("message %v, want %d", m, i)
				}
				if !bytes.Equal(to[i*each:i*each+size], from[:size]) || !bytes.Equal(to[i*each+size:(i+1)*each], make([]byte, each-size)) {
					t.Fatalf("%d bytes for place %d are wrong", size, i)
				}
			}
		})
	}
}

// Over one stream sources may be any memory, and odd lengths and what is behind them stay apart.
func TestSourcesAnywhere(t *testing.T) {
	const most = 1<<20 + 3
	var in []*Injected
	p := conformance.NewPair(t, with(Config{Threads: 1, Sockets: 1}, Faults{Seed: 9, Short: 20_000}, &in), 16)
	from, fromAt := conformance.Alloc(most)
	to, toAt := conformance.Alloc(most + 64)
	t.Cleanup(func() { conformance.Free(from); conformance.Free(to) })
	there, err := transport.Register(p.Endpoint(1), toAt, most+64)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := transport.Import(p.Conn(0), there.Blob())
	if err != nil {
		t.Fatal(err)
	}
	for i := range from {
		from[i] = byte(i*5 + i>>8 + 1)
	}
	for i, size := range []int{1, 63, 64, 65, 127, 128, 129, 4095, 4097, 65_537, most, 3} {
		clear(to)
		p.Post(0, transport.Work{Op: transport.Put, LocalOff: uint64(fromAt), Bytes: uint64(size), Remote: remote, Off: 5},
			transport.Work{Op: transport.Msg, Data: []byte{byte(i)}})
		if m := p.Message(1); len(m) != 1 || int(m[0]) != i {
			t.Fatalf("message %v, want %d", m, i)
		}
		if !bytes.Equal(to[5:5+size], from[:size]) || !bytes.Equal(to[:5], make([]byte, 5)) || !bytes.Equal(to[5+size:], make([]byte, len(to)-5-size)) {
			t.Fatalf("%d bytes are wrong", size)
		}
	}
	if _, err := transport.Post(p.Conn(0), transport.Work{Op: transport.Get, LocalOff: uint64(fromAt), Bytes: 8, Remote: remote}); err == nil {
		t.Error("a GET into memory that is not registered was taken")
	}
}

// With several streams one may die whose bytes would have to go behind some that wait: there SENDs are refused.
func TestSendNeedsOneStream(t *testing.T) {
	p := conformance.NewPair(t, with(Config{Threads: 1, Sockets: 2}, Faults{}, new([]*Injected)), 16)
	mem, at := conformance.Alloc(16)
	t.Cleanup(func() { conformance.Free(mem) })
	local, err := transport.Register(p.Endpoint(0), at, 16)
	if err != nil {
		t.Fatal(err)
	}
	_, err = transport.Post(p.Conn(0), transport.Work{Op: transport.Send, Local: local, Bytes: 16})
	if err == nil || !strings.Contains(err.Error(), "operation 6") {
		t.Errorf("refused with %v", err)
	}
	if _, err = transport.Post(p.Conn(0), transport.Work{Op: transport.Put, LocalOff: uint64(at), Bytes: 16}); err == nil || !strings.Contains(err.Error(), "local registration") {
		t.Errorf("a source without a registration refused with %v", err)
	}
}
