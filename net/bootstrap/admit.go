package bootstrap

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"sync"
	"syscall"
	"time"
)

// acceptPause* bound the pause after a failed accept.
const (
	acceptPauseMin = 10 * time.Millisecond
	acceptPauseMax = 500 * time.Millisecond
)

// serveListeners accepts connections until the listeners are closed. No error
// ends that before: running out of descriptors passes.
//
// Preconditions: s.mu is held or the service is not shared yet.
func (s *Service) serveListeners(ls listeners) {
	for _, ln := range ls {
		s.serveListener(ln)
	}
}

func (s *Service) serveListener(ln stdnet.Listener) {
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		pause := acceptPauseMin
		for {
			conn, err := ln.Accept()
			switch {
			case err == nil:
				pause = acceptPauseMin
				if !s.spawn(func() { s.admit(conn) }) {
					conn.Close()
				}
				continue
			case errors.Is(err, stdnet.ErrClosed):
				return
			}
			line := fmt.Sprintf("bootstrap: cannot accept connections on %s: %v", ln.Addr(), err)
			if outOfDescriptors(err) {
				line += "; " + limitHint()
			}
			s.noise.say(func(more string) { s.opt.Log(Warn, line+more) })
			time.Sleep(pause)
			pause = min(2*pause, acceptPauseMax)
		}
	}()
}

// admit takes a new connection through the handshake and into its room.
func (s *Service) admit(conn stdnet.Conn) {
	tune(conn)
	slot := s.waiting.add(conn, s.opt.MaxHalfOpen)
	_ = conn.SetDeadline(time.Now().Add(s.opt.HandshakeTimeout))
	if s.isClosed() { // Close may have run through the list before we were in it
		conn.Close()
	}
	id, hostProof, err := admitMember(conn, s.secretOf)
	// Before the member can know that it is in: it must not be pushed out then.
	s.waiting.remove(slot)
	if err == nil {
		_, err = conn.Write(hostProof)
	}
	if err != nil {
		conn.Close()
		if !errors.Is(err, errNoSuchRoom) {
			level := Warn
			if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
				level = Info // a member whose other candidate address won hangs up like this
			}
			s.noise.say(func(more string) {
				s.opt.Log(level, fmt.Sprintf("bootstrap: dropped a connection from %s: %v%s", conn.RemoteAddr(), err, more))
			})
		}
		return
	}
	h, _ := s.find(id)
	if h == nil {
		conn.Close()
		return
	}
	// The deadline still holds until the member has registered.
	h.connected(conn)
}

func (s *Service) secretOf(id RoomID) (Secret, bool) {
	h, _ := s.find(id)
	if h == nil {
		return Secret{}, false
	}
	return h.room.Secret, true
}

// halfOpen holds the connections that have proved nothing yet, oldest first.
// When there are too many the oldest goes: a flood of silent connections then
// pushes out itself, and a rank that was pushed out tries again.
type halfOpen struct {
	mu    sync.Mutex
	conns list.List
}

func (h *halfOpen) add(conn stdnet.Conn, limit int) *list.Element {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conns.Len() >= limit {
		if oldest, ok := h.conns.Remove(h.conns.Front()).(stdnet.Conn); ok {
			oldest.Close()
		}
	}
	return h.conns.PushBack(conn)
}

func (h *halfOpen) remove(e *list.Element) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns.Remove(e) // no-op if it was pushed out
}

func (h *halfOpen) closeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for e := h.conns.Front(); e != nil; e = e.Next() {
		if conn, ok := e.Value.(stdnet.Conn); ok {
			conn.Close()
		}
	}
}

// noiseEvery is the shortest time between two lines about strangers.
const noiseEvery = 10 * time.Second

// limiter lets one line through per period and counts the others.
type limiter struct {
	every time.Duration

	mu      sync.Mutex
	next    time.Time
	dropped int
}

func (l *limiter) say(log func(more string)) {
	l.mu.Lock()
	now := time.Now()
	if now.Before(l.next) {
		l.dropped++
		l.mu.Unlock()
		return
	}
	more := ""
	if l.dropped > 0 {
		more = fmt.Sprintf(" (%d more like this since the last line)", l.dropped)
	}
	l.next, l.dropped = now.Add(l.every), 0
	l.mu.Unlock()
	log(more)
}
