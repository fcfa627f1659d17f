package bootstrap

import (
	"context"
	"fmt"

	"github.com/gccl/gccl/internal/xerr"
)

// maxPartBytes bounds one rank's part of an exchange.
const maxPartBytes = 64 << 20

// AllGather gives every rank the bytes of all ranks, by rank. All ranks make
// the same calls in the same order.
func (g *Group) AllGather(ctx context.Context, in []byte) ([][]byte, error) {
	return g.AllGatherTag(ctx, "", in)
}

// AllGatherTag is AllGather among the calls with the same tag: calls with
// different tags may come in any order, for example from several goroutines.
func (g *Group) AllGatherTag(ctx context.Context, tag string, in []byte) ([][]byte, error) {
	return g.exchange(ctx, "g"+tag, in)
}

// Barrier returns when all ranks have called it.
func (g *Group) Barrier(ctx context.Context) error {
	_, err := g.exchange(ctx, "b", nil)
	return err
}

func (g *Group) exchange(ctx context.Context, tag string, in []byte) ([][]byte, error) {
	if len(tag) > maxTagBytes || len(in) > maxPartBytes || len(in)*len(g.members) > maxFrameBytes/2 {
		return nil, xerr.New(xerr.InvalidArgument, opGroup, "a part of %d bytes from each of %d ranks, or a tag of %d bytes, is above the limits (%d bytes a rank, %d together, %d for the tag)",
			len(in), len(g.members), len(tag), maxPartBytes, maxFrameBytes/2, maxTagBytes).WithObject("%s", g.label).WithRank(g.rank)
	}
	c := make(chan answer, 1)
	g.mu.Lock()
	if err := g.unusableLocked(); err != nil {
		g.mu.Unlock()
		return nil, err
	}
	key := opKey{tag: tag, seq: g.seq[tag]}
	g.seq[tag]++
	g.waits[key] = c
	g.mu.Unlock()
	g.link.send(frame{kindGather, tagged{key: key, rank: g.rank, data: in}.encode()})
	select {
	case a := <-c:
		return a.parts, a.err
	case <-ctx.Done():
		g.mu.Lock()
		delete(g.waits, key)
		g.mu.Unlock()
		return nil, ctxError(ctx, g, "the wait for all ranks")
	}
}

// answered hands the host's answer to the call that waits for it.
func (g *Group) answered(kind frameKind, t tagged) error {
	var a answer
	if kind == kindGathered {
		parts, err := decodeList(t.data)
		if err == nil && len(parts) != len(g.members) {
			err = errMalformed
		}
		if err != nil {
			return err
		}
		a.parts = parts
	} else {
		n, err := decodeNotice(t.data)
		if err != nil {
			return err
		}
		a.err = n.errorFor(opGroup, g.label)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.waits[t.key]; c != nil {
		delete(g.waits, t.key)
		c <- a
	}
	return nil
}

// mailKey names a queue of messages: who sent them, and under which tag.
type mailKey struct {
	from int
	tag  string
}

// mailbox holds messages that nobody has asked for yet, and the calls that
// wait for the next ones.
type mailbox struct {
	messages [][]byte
	waiting  []chan answer
}

// maxMailBytes bounds the messages that wait unread at one rank.
const maxMailBytes = maxFrameBytes

// Send gives data to a rank; it does not wait for the receiver. Messages of
// one sender and tag keep their order.
func (g *Group) Send(to int, tag string, data []byte) error {
	if to < 0 || to >= len(g.members) || len(tag) > maxTagBytes || len(data) > maxPartBytes {
		return xerr.New(xerr.InvalidArgument, opGroup, "message of %d bytes to rank %d of %d with a tag of %d bytes", len(data), to, len(g.members), len(tag)).
			WithObject("%s", g.label).WithRank(g.rank)
	}
	g.mu.Lock()
	err := g.gone[to]
	if g.closing {
		err = g.errClosed()
	} else if err == nil {
		err = g.gone[0] // messages go through rank 0
	}
	g.mu.Unlock()
	if err != nil {
		return err
	}
	g.link.send(frame{kindMessage, tagged{key: opKey{tag: tag}, rank: to, data: data}.encode()})
	return nil
}

// Recv waits for the next message of a rank with this tag.
func (g *Group) Recv(ctx context.Context, from int, tag string) ([]byte, error) {
	if from < 0 || from >= len(g.members) {
		return nil, xerr.New(xerr.InvalidArgument, opGroup, "message from rank %d of %d", from, len(g.members)).WithObject("%s", g.label).WithRank(g.rank)
	}
	key := mailKey{from, tag}
	c := make(chan answer, 1)
	g.mu.Lock()
	box := g.mail[key]
	if box != nil && len(box.messages) > 0 {
		m := box.messages[0]
		box.messages = box.messages[1:]
		g.mailSize -= len(m)
		g.dropEmptyLocked(key, box)
		g.mu.Unlock()
		return m, nil
	}
	err := g.gone[from]
	if g.closing {
		err = g.errClosed()
	} else if err == nil {
		err = g.gone[0]
	}
	if err != nil {
		g.mu.Unlock()
		return nil, err
	}
	if box == nil {
		box = &mailbox{}
		g.mail[key] = box
	}
	box.waiting = append(box.waiting, c)
	g.mu.Unlock()
	select {
	case a := <-c:
		if a.err != nil {
			return nil, a.err
		}
		return a.parts[0], nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range box.waiting {
		if w == c {
			box.waiting = append(box.waiting[:i], box.waiting[i+1:]...)
			g.dropEmptyLocked(key, box)
			return nil, ctxError(ctx, g, fmt.Sprintf("the wait for a message of rank %d", from))
		}
	}
	// It came at the same moment.
	a := <-c
	if a.err != nil {
		return nil, a.err
	}
	return a.parts[0], nil
}

// OnMessage has f called for every message with this tag, by the goroutine that
// reads: f must not block, and nobody may call Recv with the tag. Messages that
// came before are not given to it.
func (g *Group) OnMessage(tag string, f func(from int, data []byte)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.handlers == nil {
		g.handlers = map[string]func(int, []byte){}
	}
	g.handlers[tag] = f
}

// deliver takes a message from the host. t.rank is its sender.
func (g *Group) deliver(t tagged) error {
	if t.rank < 0 || t.rank >= len(g.members) {
		return errMalformed
	}
	m := append([]byte(nil), t.data...)
	key := mailKey{t.rank, t.key.tag}
	g.mu.Lock()
	if f := g.handlers[t.key.tag]; f != nil {
		g.mu.Unlock()
		f(t.rank, m)
		return nil
	}
	defer g.mu.Unlock()
	box := g.mail[key]
	if box == nil {
		box = &mailbox{}
		g.mail[key] = box
	}
	if len(box.waiting) > 0 {
		c := box.waiting[0]
		box.waiting = box.waiting[1:]
		c <- answer{parts: [][]byte{m}}
		g.dropEmptyLocked(key, box)
		return nil
	}
	if g.mailSize += len(m); g.mailSize > maxMailBytes {
		return fmt.Errorf("more than %d bytes of messages wait unread", maxMailBytes)
	}
	box.messages = append(box.messages, m)
	return nil
}

func (g *Group) dropEmptyLocked(key mailKey, box *mailbox) {
	if len(box.messages) == 0 && len(box.waiting) == 0 {
		delete(g.mail, key)
	}
}

// wakeMailLocked ends the waits for messages of a rank.
func (g *Group) wakeMailLocked(from int, err error) {
	for key, box := range g.mail {
		if key.from != from {
			continue
		}
		for _, c := range box.waiting {
			c <- answer{err: err}
		}
		box.waiting = nil
		g.dropEmptyLocked(key, box)
	}
}
