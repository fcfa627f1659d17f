package transport

import (
	"bytes"
	"errors"
	"io"
	stdnet "net"
	"testing"
)

func handshake(t *testing.T, dialer, listener Secret, known bool) (Hello, error, error) {
	t.Helper()
	a, b := stdnet.Pipe()
	defer a.Close()
	want := Hello{To: ConnID{1}, From: ConnID{2}, Index: 3, Count: 4, Path: 5}
	ended := make(chan error, 1)
	go func() {
		ended <- ProveAsDialer(a, want, dialer)
	}()
	h, answer, err := ProveAsListener(b, func(id ConnID) (Secret, bool) {
		if id != want.To {
			t.Errorf("asks for %v", id)
		}
		return listener, known
	})
	if err == nil {
		_, err = b.Write(answer)
	}
	b.Close()
	return h, <-ended, err
}

func TestHandshake(t *testing.T) {
	h, dial, listen := handshake(t, Secret{7}, Secret{7}, true)
	if dial != nil || listen != nil || h != (Hello{To: ConnID{1}, From: ConnID{2}, Index: 3, Count: 4, Path: 5}) {
		t.Errorf("%+v, %v, %v", h, dial, listen)
	}
	for name, c := range map[string]struct {
		dialer, listener Secret
		known            bool
	}{"another secret": {Secret{7}, Secret{8}, true}, "unknown name": {Secret{}, Secret{}, false}} {
		if _, dial, listen := handshake(t, c.dialer, c.listener, c.known); !errors.Is(dial, ErrUnproved) || !errors.Is(listen, ErrUnproved) {
			t.Errorf("%s: %v, %v", name, dial, listen)
		}
	}
}

// A listener that does not know the secret repeats what it heard, or says anything else.
func TestImpostor(t *testing.T) {
	for _, echo := range []bool{true, false} {
		a, b := stdnet.Pipe()
		go func() {
			defer b.Close()
			hello, said := make([]byte, helloBytes), make([]byte, proofBytes)
			_, _ = io.ReadFull(b, hello)
			_, _ = b.Write(make([]byte, nonceBytes))
			_, _ = io.ReadFull(b, said)
			if !echo {
				clear(said)
			}
			_, _ = b.Write(said)
		}()
		if err := ProveAsDialer(a, Hello{Count: 1}, Secret{1}); !errors.Is(err, ErrUnproved) {
			t.Errorf("echo %v: %v", echo, err)
		}
		a.Close()
	}
}

type conversation struct {
	io.Reader
	io.Writer
}

func FuzzListener(f *testing.F) {
	good := Hello{To: ConnID{1}, From: ConnID{2}, Count: 1}.encode(make([]byte, nonceBytes))
	f.Add(append(good, make([]byte, proofBytes)...))
	f.Add(good[:20])
	f.Fuzz(func(t *testing.T, in []byte) {
		var said bytes.Buffer
		_, answer, err := ProveAsListener(conversation{bytes.NewReader(in), &said}, func(ConnID) (Secret, bool) { return Secret{1}, true })
		if err == nil || answer != nil {
			t.Fatal("a stranger was admitted")
		}
		if said.Len() > nonceBytes {
			t.Fatalf("a stranger was told %d bytes", said.Len())
		}
	})
}
