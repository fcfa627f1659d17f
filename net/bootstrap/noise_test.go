package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// addrOf is a loopback address of the service.
func addrOf(t testing.TB, s *Service) string {
	t.Helper()
	at, err := s.listening()
	if err != nil {
		t.Fatal(err)
	}
	return at[len(at)-1].String()
}

// stranger connects and sends b; it returns all that comes back until the
// service closes the connection.
func stranger(t testing.TB, addr string, b []byte) []byte {
	t.Helper()
	conn, err := stdnet.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testDeadline))
	_, _ = conn.Write(b)
	got, err := io.ReadAll(conn)
	if err != nil && !isReset(err) {
		t.Errorf("the service did not close the connection: %v", err)
	}
	return got
}

func pad(b []byte) []byte { return append(b, make([]byte, 200)...) }

// Strangers learn nothing but a fresh nonce, and only if they speak the protocol.
func TestStrangersGetNothing(t *testing.T) {
	logs := &logLines{}
	s := newTestService(t, Options{Log: logs.log, HandshakeTimeout: 300 * time.Millisecond})
	id := mustID(t, s)
	p, err := newPreamble(roomIDOf(t, id))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		send []byte
		want int
	}{
		"http":          {[]byte("GET / HTTP/1.1\r\nHost: gpu-node-1.example.org:50000\r\nAccept: */*\r\n\r\n"), 0},
		"4 GB header":   {pad([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), 0},
		"zeros":         {make([]byte, 4096), 0},
		"nothing":       {nil, 0},
		"half":          {p[:20], 0},
		"wrong proof":   {pad(p[:]), nonceBytes},
		"silent member": {p[:], nonceBytes},
		"unknown room":  {pad(append([]byte(magicText), make([]byte, preambleBytes-len(magicText))...)), nonceBytes},
	} {
		t.Run(name, func(t *testing.T) {
			a := stranger(t, addrOf(t, s), c.send)
			if len(a) != c.want {
				t.Errorf("got %d bytes back, want %d", len(a), c.want)
			}
			if b := stranger(t, addrOf(t, s), c.send); c.want > 0 && bytes.Equal(a, b) {
				t.Error("two strangers got the same nonce")
			}
		})
	}
	if n := logs.matching("dropped a connection from"); n != 1 {
		t.Errorf("%d lines about strangers within %v, want 1: %q", n, noiseEvery, logs.lines)
	}
}

// A member that proved the secret is still not believed about lengths.
func TestMemberWithHugeHeader(t *testing.T) {
	s := newTestService(t, Options{})
	id := mustID(t, s)
	info, err := parseID(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{
		{byte(kindRegister), 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1},
		{byte(kindRegister), 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 7},
		{byte(kindGather), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
		{byte(kindRegister), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9},                      // a number that is not the next
		{byte(kindTaken), 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}, // of what was never sent
		{99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
	} {
		for _, first := range [][]byte{nil, opening{session: session{1}}.frame()} {
			conn := memberConn(t, s, info.room)
			if _, err := conn.Write(append(first, b...)); err != nil {
				t.Fatal(err)
			}
			if f, _, err := readFrame(conn, maxFrameBytes); err == nil {
				t.Errorf("% x was answered by frame %d", b, f.kind)
			}
			conn.Close()
		}
	}
	g := groups(t, joinAll(testCtx(t), 1, func(int) *Service { return s }, func(int) JoinConfig { return JoinConfig{ID: id} }))
	closeAll(g)
}

// Ranks come together while strangers make noise of all kinds.
func TestJoinUnderNoise(t *testing.T) {
	svc := services(t, 8, 8, Options{MaxHalfOpen: 16})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for r := range 2 {
		addr := addrOf(t, svc[r])
		for range 50 { // half-open, three times as many as are kept
			conn, err := stdnet.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
					stranger(t, addr, pad([]byte("GET / HTTP/1.1\r\n\r\n")))
				}
			}
		}()
	}
	for range 5 {
		id := mustID(t, svc[1])
		gs := groups(t, joinAll(testCtx(t), 8, func(r int) *Service { return svc[r] }, func(int) JoinConfig { return JoinConfig{ID: id} }))
		closeAll(gs)
	}
	close(stop)
	wg.Wait()
	waiting := &svc[0].waiting
	waiting.mu.Lock()
	defer waiting.mu.Unlock()
	if n := waiting.conns.Len(); n > 16 {
		t.Errorf("%d half-open connections are kept, the limit is 16", n)
	}
}

// flakyListener fails some accepts the way a full descriptor table does.
type flakyListener struct {
	stdnet.Listener
	fail []error
}

func (l *flakyListener) Accept() (stdnet.Conn, error) {
	if len(l.fail) > 0 {
		err := l.fail[0]
		l.fail = l.fail[1:]
		return nil, &stdnet.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	return l.Listener.Accept()
}

func TestAcceptSurvivesErrors(t *testing.T) {
	logs := &logLines{}
	s := newTestService(t, Options{Log: logs.log})
	ln, err := stdnet.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	room := roomOf(Secret{1})
	if err := s.open(newHub(s, room, "test room")); err != nil {
		t.Fatal(err)
	}
	s.serveListener(&flakyListener{ln, []error{syscall.EMFILE, syscall.EINTR, syscall.ENFILE}})
	conn, err := stdnet.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(testDeadline))
	if err := proveToHost(conn, room); err != nil {
		t.Error(err)
	}
	conn.Close()
	ln.Close()
	if n := logs.matching(fmt.Sprintf("the limit on open files is %d", descriptorLimit())); n != 1 {
		t.Errorf("%d lines name the limit: %q", n, logs.lines)
	}
}

// The host must prove the secret as well.
func TestImpostorHost(t *testing.T) {
	ln, err := stdnet.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			// It answers every room with a secret of its own.
			_, _ = conn.Write(make([]byte, nonceBytes+proofBytes))
			buf := make([]byte, preambleBytes+proofBytes)
			_, _ = io.ReadFull(conn, buf)
			conn.Close()
		}
	}()
	conn, err := stdnet.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testDeadline))
	if err := proveToHost(conn, roomOf(Secret{1})); !errors.Is(err, errImpostor) {
		t.Errorf("got %v", err)
	}
}

func TestClosedService(t *testing.T) {
	s := newTestService(t, Options{})
	id := mustID(t, s)
	s.Close()
	_, err := s.NewID()
	wantError(t, err, xerr.InvalidUsage, "closed")
	_, err = s.Join(testCtx(t), JoinConfig{ID: id, Rank: 0, NRanks: 1})
	wantError(t, err, xerr.InvalidUsage, "closed")
}

// Members that are pushed out by each other come again.
func TestFewHalfOpen(t *testing.T) {
	svc := services(t, 24, 24, Options{MaxHalfOpen: 4})
	id := mustID(t, svc[3])
	gs := groups(t, joinAll(testCtx(t), 24, func(r int) *Service { return svc[r] }, func(int) JoinConfig { return JoinConfig{ID: id} }))
	checkGroup(t, gs)
	closeAll(gs)
}
