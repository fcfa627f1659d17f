package transport

import (
	"errors"
	stdnet "net"
	"sync"
	"time"
)

// Stream is a connection of the operating system whose dialing end has proved the secret.
type Stream struct {
	Conn  stdnet.Conn
	Hello Hello
}

// Acceptor is the listening side of an endpoint: it lets in streams for connections that are expected, and closes all
// others.
type Acceptor struct {
	secret    Secret
	listeners []stdnet.Listener
	wg        sync.WaitGroup

	mu       sync.Mutex
	expected map[ConnID]chan Stream
	greeting map[stdnet.Conn]struct{} // nil once closed
}

const (
	// maxGreeting bounds how many strangers are spoken with at a time: anybody may connect.
	maxGreeting = 256
	// greetingTime bounds a conversation with a stranger. A guess: ranks of a loaded machine may not run for seconds.
	greetingTime = 20 * time.Second
	// maxStreams bounds the streams that have proved the secret and wait for their connection to take them.
	maxStreams = 64
)

// NewAcceptor accepts on listeners, which it owns, until Close.
func NewAcceptor(secret Secret, listeners ...stdnet.Listener) *Acceptor {
	a := &Acceptor{secret: secret, listeners: listeners, expected: map[ConnID]chan Stream{}, greeting: map[stdnet.Conn]struct{}{}}
	for _, l := range listeners {
		a.wg.Add(1)
		go a.accept(l)
	}
	return a
}

// Expect returns where the streams for a connection arrive.
func (a *Acceptor) Expect(id ConnID) <-chan Stream {
	a.mu.Lock()
	defer a.mu.Unlock()
	ch := make(chan Stream, maxStreams)
	a.expected[id] = ch
	return ch
}

// Forget ends an expectation and closes streams that nobody took.
func (a *Acceptor) Forget(id ConnID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ch, ok := a.expected[id]
	if !ok {
		return
	}
	delete(a.expected, id)
	close(ch)
	for s := range ch {
		_ = s.Conn.Close()
	}
}

// Close stops listening and ends all conversations.
func (a *Acceptor) Close() {
	for _, l := range a.listeners {
		_ = l.Close()
	}
	a.mu.Lock()
	for c := range a.greeting {
		_ = c.Close()
	}
	a.greeting = nil
	ids := make([]ConnID, 0, len(a.expected))
	for id := range a.expected {
		ids = append(ids, id)
	}
	a.mu.Unlock()
	for _, id := range ids {
		a.Forget(id)
	}
	a.wg.Wait()
}

func (a *Acceptor) accept(l stdnet.Listener) {
	defer a.wg.Done()
	for pause := time.Millisecond; ; {
		c, err := l.Accept()
		switch {
		case err == nil:
			pause = time.Millisecond
			if a.enter(c) {
				a.wg.Add(1)
				go a.greet(c)
			} else {
				_ = c.Close()
			}
		case errors.Is(err, stdnet.ErrClosed):
			return
		default: // no descriptors, or a stranger gone again: the listener still works
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
			if !a.open() {
				return
			}
		}
	}
}

func (a *Acceptor) open() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.greeting != nil
}

func (a *Acceptor) enter(c stdnet.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.greeting == nil || len(a.greeting) >= maxGreeting {
		return false
	}
	a.greeting[c] = struct{}{}
	return true
}

func (a *Acceptor) greet(c stdnet.Conn) {
	defer a.wg.Done()
	_ = c.SetDeadline(time.Now().Add(greetingTime))
	h, answer, err := ProveAsListener(c, func(id ConnID) (Secret, bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		_, known := a.expected[id]
		return a.secret, known
	})
	if err == nil {
		_, err = c.Write(answer)
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.greeting, c)
	if ch := a.expected[h.To]; err == nil && ch != nil && len(ch) < cap(ch) {
		ch <- Stream{c, h} // has room: all senders hold the lock
		return
	}
	_ = c.Close()
}
