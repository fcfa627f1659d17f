package clique

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	stdnet "net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/device/host/arena"
)

const peerEnv = "GCCL_TEST_CLIQUE_PEER"

var secret = []byte("a secret of the test")

// TestMain lets the test binary be the other process: it offers its arena, says where, and waits for its input to end.
func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) == "" {
		os.Exit(m.Run())
	}
	at, err := Offer(secret)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	a, _ := arena.Process()
	al, _ := a.Alloc(4096)
	a.Bytes(al)[7] = 77
	fmt.Printf("%x %s %d\n", at.Nonce, at.Socket, al.Offset)
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Printf("%d\n", a.Bytes(al)[8])
	_ = line
}

type peerProcess struct {
	at     Endpoint
	offset uint64
	out    *bufio.Reader
	stop   func() string
}

func startPeer(t *testing.T) *peerProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peerEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &peerProcess{out: bufio.NewReader(out)}
	p.stop = func() string {
		_, _ = in.Write([]byte("\n"))
		last, _ := p.out.ReadString('\n')
		_ = cmd.Wait()
		return strings.TrimSpace(last)
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the peer said %q: %v", line, err)
	}
	var nonce string
	if _, err := fmt.Sscanf(line, "%s %s %d", &nonce, &p.at.Socket, &p.offset); err != nil {
		t.Fatalf("the peer said %q: %v", line, err)
	}
	b, err := hex.DecodeString(nonce)
	if err != nil {
		t.Fatal(err)
	}
	copy(p.at.Nonce[:], b)
	return p
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func openFiles(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

func TestAcquire(t *testing.T) {
	p := startPeer(t)
	before := openFiles(t)
	one, err := Acquire(deadline(t), p.at, secret)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Acquire(deadline(t), p.at, secret)
	if err != nil {
		t.Fatal(err)
	}
	if one != two || Mapped() != 1 {
		t.Errorf("two mappings of one process")
	}
	b := one.bytes(p.offset, 4096)
	if b[7] != 77 {
		t.Errorf("byte 7 is %d", b[7])
	}
	b[8] = 88
	one.Release()
	if got := p.stop(); got != "88" {
		t.Errorf("the peer sees %q", got)
	}
	if b[7] != 77 {
		t.Error("the memory ended with its process")
	}
	two.Release()
	if Mapped() != 0 || openFiles(t) > before {
		t.Errorf("%d mappings, %d files are left of %d", Mapped(), openFiles(t), before)
	}
}

func TestRefused(t *testing.T) {
	p := startPeer(t)
	defer p.stop()
	for what, c := range map[string]struct {
		at     Endpoint
		secret []byte
	}{
		"a wrong secret":  {p.at, []byte("guess")},
		"another process": {Endpoint{Nonce: arena.Nonce{1}, Socket: p.at.Socket}, secret},
		"nobody there":    {Endpoint{Nonce: p.at.Nonce, Socket: "gccl-nobody"}, secret},
	} {
		if q, err := Acquire(deadline(t), c.at, c.secret); err == nil {
			q.Release()
			t.Errorf("%s was accepted", what)
		}
	}
	if Mapped() != 0 {
		t.Errorf("%d mappings are left", Mapped())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Acquire(ctx, p.at, secret); err == nil {
		t.Error("a cancelled wait succeeded")
	}
}

// A stranger that connects and says nothing, or nonsense, gets a challenge and no answer, and is in nobody's way.
func TestStrangers(t *testing.T) {
	p := startPeer(t)
	defer p.stop()
	for _, say := range [][]byte{nil, []byte("GET / HTTP/1.1\r\n\r\n"), make([]byte, askBytes), make([]byte, askBytes+1)} {
		c, err := stdnet.DialUnix("unixpacket", nil, &stdnet.UnixAddr{Name: "@" + p.at.Socket, Net: "unixpacket"})
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1000)
		if n, err := c.Read(buf); n != challengeBytes || err != nil {
			t.Errorf("challenge of %d bytes, %v", n, err)
		}
		if say == nil {
			defer c.Close() // silent, and in the way of nobody below
			continue
		}
		if _, err := c.Write(say); err != nil {
			t.Fatal(err)
		}
		if n, _, _, _, _ := c.ReadMsgUnix(buf, buf); n > 0 {
			t.Errorf("%q was answered with %d bytes", say, n)
		}
		_ = c.Close()
	}
	q, err := Acquire(deadline(t), p.at, secret)
	if err != nil {
		t.Fatal(err)
	}
	q.Release()
}

func TestOfferWithdraw(t *testing.T) {
	if _, err := arena.Process(); err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	for range 3 {
		a, err := Offer(secret)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Offer([]byte("another"))
		if err != nil {
			t.Fatal(err)
		}
		if a != b {
			t.Error("one process has two endpoints at a time")
		}
		Withdraw(secret)
		Withdraw(secret) // without effect
		Withdraw([]byte("another"))
	}
	if n := openFiles(t); n > before+2 { // the poller of the Go runtime opens two
		t.Errorf("%d files are open, %d before", n, before)
	}
}

// A peer whose process does not run for a while cuts a conversation off; the next one succeeds.
func TestCutOff(t *testing.T) {
	p := startPeer(t)
	defer p.stop()
	for _, after := range []int{0, challengeBytes} {
		name := fmt.Sprintf("gccl-test-%d-%d", os.Getpid(), after)
		ln, err := stdnet.ListenUnix("unixpacket", &stdnet.UnixAddr{Name: "@" + name, Net: "unixpacket"})
		if err != nil {
			t.Fatal(err)
		}
		// The first two conversations end before or after the challenge, the third is passed on to the peer.
		done := make(chan error, 1)
		go func() { done <- relay(ln, p.at.Socket, after, 2) }()
		q, err := Acquire(deadline(t), Endpoint{Nonce: p.at.Nonce, Socket: name}, secret)
		if err != nil {
			t.Fatalf("cut off after %d bytes: %v", after, err)
		}
		q.Release()
		_ = ln.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// relay closes the first connections after some bytes, then passes the socket's messages on both ways until it is closed.
func relay(ln *stdnet.UnixListener, to string, after, cut int) error {
	for range cut {
		c, err := ln.AcceptUnix()
		if err != nil {
			return err
		}
		if _, err := c.Write(make([]byte, after)); after > 0 && err != nil {
			return err
		}
		_ = c.Close()
	}
	c, err := ln.AcceptUnix()
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := stdnet.DialUnix("unixpacket", nil, &stdnet.UnixAddr{Name: "@" + to, Net: "unixpacket"})
	if err != nil {
		return err
	}
	defer s.Close()
	for _, way := range [][2]*stdnet.UnixConn{{s, c}, {c, s}, {s, c}} {
		b, oob := make([]byte, 1000), make([]byte, 1000)
		n, m, _, _, err := way[0].ReadMsgUnix(b, oob)
		if err != nil {
			return err
		}
		if _, _, err := way[1].WriteMsgUnix(b[:n], oob[:m], nil); err != nil {
			return err
		}
	}
	return nil
}

// A stranger that keeps a connection open does not hold up the end of the server.
func TestWithdrawEndsConversations(t *testing.T) {
	at, err := Offer(secret)
	if err != nil {
		t.Fatal(err)
	}
	c, err := stdnet.DialUnix("unixpacket", nil, &stdnet.UnixAddr{Name: "@" + at.Socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 1000)
	if _, err := c.Read(buf); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { Withdraw(secret); close(ended) }()
	select {
	case <-ended:
	case <-time.After(askDeadline / 2):
		t.Error("Withdraw waits for a stranger")
	}
	if n, err := c.Read(buf); n != 0 || err == nil {
		t.Errorf("%d bytes, %v after the end of the server", n, err)
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(ask(IDOf(secret), secret, make([]byte, challengeBytes), make([]byte, challengeBytes), theArena))
	good := answer(secret, []byte("c"), []byte("s"), arena.Nonce{3}, 12345)
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parseAsk(b)
		nonce, size, ok := parseAnswer(b, secret, []byte("c"), []byte("s"))
		if ok && (!bytes.Equal(b[:len(b)-macBytes], good[:len(good)-macBytes]) || nonce != (arena.Nonce{3}) || size != 12345) {
			t.Errorf("a forged answer was accepted: %x", b)
		}
	})
}
