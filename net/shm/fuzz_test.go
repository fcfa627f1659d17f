package shm

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

// pair is two connected ends of this process.
func pair(t *testing.T) (ends [2]*conn) {
	t.Helper()
	var eps [2]transport.Endpoint
	for r := range eps {
		eps[r] = maker.Open(t, r, transport.Secret{1})
		t.Cleanup(func() { _ = eps[r].Close() })
		c, err := eps[r].NewConn(1 - r)
		if err != nil {
			t.Fatal(err)
		}
		ends[r] = c.(*conn)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	other := make(chan error, 1)
	go func() { other <- ends[1].Connect(ctx, ends[0].Blob()) }()
	if err := ends[0].Connect(ctx, ends[1].Blob()); err != nil {
		t.Fatal(err)
	}
	if err := <-other; err != nil {
		t.Fatal(err)
	}
	return ends
}

// slot is one as a peer writes it, behind the turn (segment.h).
func slot(kind byte, key, answer uint32, off, bytes uint64, data string) []byte {
	b := []byte{kind, 0, 0, 0}
	b = binary.LittleEndian.AppendUint32(b, key)
	b = binary.LittleEndian.AppendUint32(b, answer)
	b = binary.LittleEndian.AppendUint64(b, off)
	b = binary.LittleEndian.AppendUint64(b, bytes)
	b = append(b, data...)
	return append(b, make([]byte, rawSlot-len(b))...)
}

// Whatever a peer leaves in its slots, only registered memory is written, and the connection works or has failed.
func FuzzSlots(f *testing.F) {
	const key, bytes = 1<<18 | 1, 4096
	f.Add(slot(1, key, 0, 16, 8, "01234567"))
	f.Add(append(slot(1, key, 0, 16, 2000, ""), slot(2, 0, 0, 0, 3, "abc")...))
	f.Add(slot(1, key, 0, bytes-4, 8, "01234567"))
	f.Add(slot(1, key, 0, 1<<63, 1<<63, ""))
	f.Add(slot(2, 0, 0, 0, 1000, ""))
	f.Add(slot(3, key, key, 0, bytes, "\x00\x00\x00\x00\x00\x00\x00\x80"))
	f.Add(slot(4, key, 0, 0, 8, "01234567"))
	f.Add(slot(9, 0, 0, 0, 0, ""))
	f.Fuzz(func(t *testing.T, in []byte) {
		c := pair(t)[0]
		mem, addr := conformance.Alloc(3 * bytes)
		defer conformance.Free(mem)
		reg, err := transport.Register(c.ep.C(), addr+bytes, bytes)
		if err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(reg.Blob()[4:]); got != key {
			t.Fatalf("key %#x", got)
		}
		for len(in) > 0 {
			var raw [rawSlot]byte
			in = in[copy(raw[:], in):]
			c.hear(raw)
			transport.Poll(c.ep.C(), 4)
		}
		for i, v := range mem {
			if v != 0 && (i < bytes || i >= 2*bytes) {
				t.Fatalf("byte %d was written, %d to %d are registered", i, bytes, 2*bytes-1)
			}
		}
	})
}
