package bootstrap

import (
	"bytes"
	"io"
	"net/netip"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

func FuzzFrame(f *testing.F) {
	f.Add(append(frameHeader(frame{kindRegister, []byte{7}}, 1), 7))
	f.Add(opening{session: session{1}, taken: 3}.frame())
	f.Add([]byte{byte(kindGather), 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, number, err := readFrame(bytes.NewReader(b), 1<<20)
		if err != nil {
			return
		}
		again := append(frameHeader(got, number), got.body...)
		if !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("% x reads as % x", b, again)
		}
	})
}

// A header alone must not make us allocate what it announces.
func TestFrameHeaderIsNotBelieved(t *testing.T) {
	header := []byte{byte(kindGather), 0, 0, 0, 0x0f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := readFrame(bytes.NewReader(header), maxFrameBytes); err == nil {
		t.Fatal("no error")
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("allocated %d bytes for a header", grown)
	}
	if _, _, err := readFrame(bytes.NewReader([]byte{byte(kindGather), 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1}), maxFrameBytes); err == nil {
		t.Error("a body above the limit is read")
	}
}

// rw reads from one place and writes nowhere.
type rw struct{ io.Reader }

func (rw) Write(b []byte) (int, error) { return len(b), nil }

func FuzzHandshake(f *testing.F) {
	room := roomOf(Secret{9})
	p, err := newPreamble(room.ID)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(p[:], make([]byte, proofBytes)...))
	f.Add([]byte("GCCLbt03"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		lookup := func(id RoomID) (Secret, bool) { return room.Secret, id == room.ID }
		if _, _, err := admitMember(rw{bytes.NewReader(b)}, lookup); err == nil {
			t.Fatalf("% x is admitted", b)
		}
		if err := proveToHost(rw{bytes.NewReader(b)}, room); err == nil {
			t.Fatalf("% x passes for the host", b)
		}
	})
}

func FuzzMessages(f *testing.F) {
	m := Member{Rank: 1, Host: "n", PID: 3, Addrs: []netip.AddrPort{netip.MustParseAddrPort("[fe80::1%e]:4")}, Hello: []byte("h")}
	f.Add(registration{nranks: 2, timeout: time.Second, member: m}.encode())
	f.Add(table{here: true, members: []Member{{Rank: 0, Host: "x", Hello: []byte{}}, m}}.encode())
	f.Add(notice{code: xerr.Timeout, rank: -1, text: "t", hint: "h"}.encode())
	f.Add(tagged{key: opKey{"tag", 7}, rank: 3, data: []byte("d")}.encode())
	f.Add(encodeList([][]byte{{1}, nil, {2, 3}}))
	f.Add(encodeAddrs(m.Addrs))
	f.Add(opening{session: session{1}, taken: 3}.frame()[frameHeaderBytes:])
	f.Add(failureOf(3, notice{code: xerr.Remote, rank: 3, text: "t"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := decodeRegistration(b); err == nil {
			if w, err := decodeRegistration(v.encode()); err != nil || !reflect.DeepEqual(v, w) {
				t.Fatalf("registration %+v becomes %+v, %v", v, w, err)
			}
		}
		if v, err := decodeTable(b); err == nil {
			if w, err := decodeTable(v.encode()); err != nil || !reflect.DeepEqual(v, w) {
				t.Fatalf("table %+v becomes %+v, %v", v, w, err)
			}
		}
		if v, err := decodeNotice(b); err == nil {
			if w, err := decodeNotice(v.encode()); err != nil || v != w {
				t.Fatalf("notice %+v becomes %+v, %v", v, w, err)
			}
		}
		if v, err := decodeTagged(b); err == nil {
			if w, err := decodeTagged(v.encode()); err != nil || !reflect.DeepEqual(v, w) {
				t.Fatalf("%+v becomes %+v, %v", v, w, err)
			}
		}
		if v, err := decodeList(b); err == nil && !bytes.Equal(encodeList(v), b) {
			t.Fatalf("list %q is written differently", v)
		}
		_, _, _ = decodeFailure(b)
		if v, err := decodeAddrs(b); err == nil {
			if w, err := decodeAddrs(encodeAddrs(v)); err != nil || !reflect.DeepEqual(v, w) {
				t.Fatalf("addresses %v become %v, %v", v, w, err)
			}
		}
		if v, err := decodeOpening(b); err == nil && !bytes.Equal(v.frame()[frameHeaderBytes:], b) {
			t.Fatalf("opening %+v is written differently", v)
		}
		if v, err := decodeTaken(b); err == nil && !bytes.Equal(takenFrame(v)[frameHeaderBytes:], b) {
			t.Fatalf("taken %d is written differently", v)
		}
	})
}
