package socket

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

func FuzzBlob(f *testing.F) {
	good := encodeBlob(transport.ConnID{1}, []place{{netip.MustParseAddrPort("10.0.0.1:77"), 0}, {netip.MustParseAddrPort("[fd00::1]:78"), 1}})
	f.Add(good)
	f.Add(good[:21])
	f.Fuzz(func(t *testing.T, b []byte) {
		id, places, err := decodeBlob(b)
		if err != nil {
			return
		}
		if again := encodeBlob(id, places); string(again) != string(b) && len(places) <= maxPlaces {
			t.Errorf("%x is read as %v and written as %x", b, places, again)
		}
	})
}

// head makes a frame's head; seal fills in the rest.
func head(kind, flags byte, length uint32, seq, ack, off uint64, key, after, aux uint32) []byte {
	b := []byte{0, 0, kind, flags}
	b = binary.LittleEndian.AppendUint32(b, length)
	for _, v := range []uint64{seq, ack, off} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, v := range []uint32{key, after, aux, 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// Whatever a peer says, only registered memory is written, and the connection either works or has failed. Two streams; the
// input is cut into frames whose heads are made believable, so that what lies behind the check word is reached; with raw set
// they are not. What has no registration lands in the first half of the memory, in four places of which the last is there late. With one set there
// is one stream.
func FuzzStreams(f *testing.F) {
	const key, bytes = 1<<18 | 1, 4096
	f.Add(false, false, append(head(1, 0, 8, 0, 0, 16, key, 0, 0), "01234567"...))
	f.Add(false, false, append(append(head(1, 0, 100, 0, 0, 16, key, 0, 0), make([]byte, 100)...), append(head(2, 0, 3, 1, 0, 0, 0, 1, 0), "abc"...)...))
	f.Add(false, false, append(head(2, 0, 3, 5, 0, 0, 0, 1, 0), "abc"...))
	f.Add(false, false, append(head(3, 0, 24, 0, 0, 0, key, 0, 0), make([]byte, 24)...))
	f.Add(false, false, append(head(5, 0, 0, 0, 0, 0, 0, 0, 1), head(6, 0, 0, 0, 0, 0, 0, 0, 1)...))
	f.Add(false, false, append(head(7, 0, 4, 0, 0, 0, 0, 0, 0), "done"...))
	f.Add(true, false, []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n0123456789012345678901234567890"))
	f.Add(false, true, append(head(1, 0, 100, 0, 0, 10, 0, 0, 2), make([]byte, 100)...))
	f.Add(false, true, append(head(1, 0, 100, 0, 0, 450, 0, 0, 3), make([]byte, 100)...))
	f.Add(false, true, append(head(1, 0, 20, 0, 0, 1<<64-10, 0, 0, 1), make([]byte, 20)...))
	f.Fuzz(func(t *testing.T, raw, one bool, in []byte) {
		streams := 2
		if one {
			streams = 1
		}
		any, err := New(Config{}).Open(transport.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer any.Close()
		mem, addr := conformance.Alloc(3 * bytes)
		defer conformance.Free(mem)
		reg, err := transport.Register(any.C(), addr+bytes, bytes)
		if err != nil {
			t.Fatal(err)
		}
		if got := binary.LittleEndian.Uint32(reg.Blob()[4:]); got != key {
			t.Fatalf("key %#x", got)
		}
		c := &conn{ep: any.(*endpoint), peer: 1}
		var far, near []int
		for range streams {
			p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			far, near = append(far, p[0]), append(near, p[1])
		}
		defer func() {
			for _, fd := range far {
				_ = unix.Close(fd)
			}
		}()
		if err := c.adopt(near, make([]int, len(near))); err != nil {
			t.Fatal(err)
		}
		land := conformance.Land(c.C(), addr+bytes, bytes/2, 4, 3)
		t.Cleanup(land.Free) // after the endpoint's end
		for k := 0; len(in) > 0; k++ {
			n := len(in)
			if !raw && n >= headBytes {
				seal(in)
				n = min(n, headBytes+int(min(binary.LittleEndian.Uint32(in[4:]), 1<<20)))
			}
			if _, err := unix.Write(far[k%streams], in[:n]); err != nil {
				break // full, or the other end has had enough
			}
			in = in[n:]
			transport.Poll(any.C(), 4)
		}
		land.Open(4)
		for _, fd := range far {
			_ = unix.Shutdown(fd, unix.SHUT_WR)
		}
		for end := time.Now().Add(5 * time.Second); transport.ConnErr(c.C()) == nil; transport.Poll(any.C(), 4) {
			if time.Now().After(end) {
				t.Fatal("the end of all streams is no failure")
			}
		}
		for i, v := range mem {
			if v != 0 && (i < bytes || i >= 2*bytes) {
				t.Fatalf("byte %d was written, %d to %d are registered", i, bytes, 2*bytes-1)
			}
		}
	})
}
