package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	stdnet "net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// listening starts gccl-doctor --listen with the given network and gives its address.
func listening(t *testing.T, p prober) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- p.listen(ctx, "127.0.0.1:0", w) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("listen: %v", err)
		}
	})
	line := make([]byte, 200)
	n, err := r.Read(line)
	go func() { _, _ = io.Copy(io.Discard, r) }()
	port := regexp.MustCompile(`ADDRESS:(\d+)`).FindSubmatch(line[:n])
	if err != nil || port == nil {
		t.Fatalf("%v, %q", err, line[:n])
	}
	return "127.0.0.1:" + string(port[1])
}

// behind makes connections to all but the control port fail.
func behind(address string, obstacle func(ctx context.Context, address string) (stdnet.Conn, error)) portsOf {
	out := realNetwork
	out.dial = func(ctx context.Context, to string) (stdnet.Conn, error) {
		if to == address {
			return realNetwork.dial(ctx, to)
		}
		return obstacle(ctx, to)
	}
	return out
}

func refuse(context.Context, string) (stdnet.Conn, error) {
	return nil, &stdnet.OpError{Op: "dial", Err: os.NewSyscallError("connect", unix.ECONNREFUSED)}
}

func drop(ctx context.Context, _ string) (stdnet.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// small lets only small packets through.
type small struct {
	stdnet.Conn
	left int
}

func (s *small) Write(b []byte) (int, error) {
	if len(b) > s.left {
		if _, err := s.Conn.Write(b[:s.left]); err != nil {
			return 0, err
		}
		s.left = 0
		return len(b), nil // as TCP does: it keeps them
	}
	s.left -= len(b)
	return s.Conn.Write(b)
}

func shrink(ctx context.Context, to string) (stdnet.Conn, error) {
	c, err := realNetwork.dial(ctx, to)
	if err != nil {
		return nil, err
	}
	return &small{c, 1000}, nil
}

func TestPeer(t *testing.T) {
	type dialer func(context.Context, string) (stdnet.Conn, error)
	good := func(f finding) string {
		if f.Verdict != ok || !strings.HasSuffix(f.Found, ": 3 of 3 ports work") || f.Remedy != "" {
			return fmt.Sprintf("%+v", f)
		}
		return ""
	}
	bad := func(words ...string) func(f finding) string {
		return func(f finding) string {
			text := fmt.Sprintf("%+v", f)
			for _, w := range append(words, ": 0 of 3 ports work") {
				if f.Verdict != fail || !strings.Contains(text, w) {
					return text
				}
			}
			return ""
		}
	}
	for _, c := range []struct {
		name        string
		here, there dialer
		out, back   func(finding) string
	}{
		{"open", nil, nil, good, good},
		{"refused", refuse, nil, bad("(refused)", "rejects"), good},
		{"dropped", nil, drop, good, bad("(dropped)", "drops connections")},
		{"stalled", shrink, nil, bad("(stalled)", "MTU"), good},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := prober{ports: realNetwork}
			if c.there != nil {
				server = prober{ports: behind("", c.there), limit: 300 * time.Millisecond}
			}
			address := listening(t, server)
			client := prober{ports: realNetwork}
			if c.here != nil {
				client = prober{ports: behind(address, c.here), limit: time.Second}
			}
			got, err := client.try(context.Background(), address)
			if err != nil || len(got) != 2 {
				t.Fatal(got, err)
			}
			if text := c.out(got[0]); text != "" {
				t.Errorf("from here: %s", text)
			}
			if text := c.back(got[1]); text != "" {
				t.Errorf("to here: %s", text)
			}
		})
	}
}

func TestPeerIsNotThere(t *testing.T) {
	l, err := stdnet.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	var out bytes.Buffer
	c := command(&out, func(int) *machine { return recorded(t, "") })
	c.SetArgs([]string{"--peer", address})
	if err := c.Execute(); err == nil || !strings.Contains(out.String(), "cannot be reached") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// A server that gets nonsense, or a client of another version, goes on serving.
func TestStrangers(t *testing.T) {
	address := listening(t, prober{ports: realNetwork})
	for _, text := range []string{"GET / HTTP/1.0\n", "{\"gccl_doctor\":99}\n", "{\"gccl_doctor\":1,\"token\":\"short\"}\n"} {
		c, err := stdnet.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, text)
		_ = c.(*stdnet.TCPConn).CloseWrite()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		answer, _ := io.ReadAll(c)
		if strings.HasPrefix(text, "{") && !strings.Contains(string(answer), "another version") {
			t.Errorf("%q is answered %q", text, answer)
		}
		_ = c.Close()
	}
	if got, err := (prober{ports: realNetwork}).try(context.Background(), address); err != nil || got[0].Verdict != ok {
		t.Errorf("%v, %v", got, err)
	}
}
