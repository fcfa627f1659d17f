package comm

import (
	"encoding/binary"
	"time"
)

// How ranks whose memory is not mapped say how far they are: a question to each over the control plane, answered by the goroutine
// that reads there, whatever the program of that rank is doing.

// askLimit is how long the answers may take. A guess: they take well under a millisecond in one room; a rank that is stopped never answers.
const askLimit = time.Second

const lateTag = "late"

// lateMessage is a question, or its answer.
type lateMessage struct {
	answer   bool
	number   uint64 // of the question
	seq      uint64 // the collective in question
	finished uint64
	joined   bool
}

const lateBytes = 1 + 3*8 + 1

func (m lateMessage) encode() []byte {
	b := []byte{flag(m.answer)}
	b = binary.BigEndian.AppendUint64(b, m.number)
	b = binary.BigEndian.AppendUint64(b, m.seq)
	b = binary.BigEndian.AppendUint64(b, m.finished)
	return append(b, flag(m.joined))
}

func decodeLate(b []byte) (lateMessage, bool) {
	if len(b) != lateBytes || b[0] > 1 || b[lateBytes-1] > 1 {
		return lateMessage{}, false
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(b[1+8*i:]) }
	return lateMessage{answer: b[0] == 1, number: n(0), seq: n(1), finished: n(2), joined: b[lateBytes-1] == 1}, true
}

// questions are those that a communicator waits for answers to.
type questions struct {
	last uint64
	open map[uint64]chan lateAnswer
}

type lateAnswer struct {
	rank int
	m    lateMessage
}

// askable says whether there is anybody to ask.
func (c *Comm) askable() bool {
	if c.group == nil || c.device() != nil {
		return false
	}
	for q := range c.nranks {
		if c.remote(q) {
			return true
		}
	}
	return false
}

// ask fills in what the remote ranks say, as far as they say it in time.
func (c *Comm) ask(r *roll) {
	answers := make(chan lateAnswer, c.nranks)
	c.mu.Lock()
	c.asked.last++
	number := c.asked.last
	if c.asked.open == nil {
		c.asked.open = map[uint64]chan lateAnswer{}
	}
	c.asked.open[number] = answers
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.asked.open, number)
		c.mu.Unlock()
	}()
	waiting := 0
	for q := range c.nranks {
		if c.remote(q) && c.group.Send(q, lateTag, lateMessage{number: number, seq: r.seq}.encode()) == nil {
			waiting++
		}
	}
	limit := time.NewTimer(askLimit)
	defer limit.Stop()
	for ; waiting > 0; waiting-- {
		select {
		case a := <-answers:
			r.ranks[a.rank] = mark{seen: true, finished: a.m.finished, joined: a.m.joined, process: "alive"}
		case <-limit.C:
			return
		case <-c.ctx.Done():
			return
		}
	}
}

// hear takes a message of another rank: it answers a question, or keeps an answer that is waited for. It does not block.
func (c *Comm) hear(from int, b []byte) {
	m, ok := decodeLate(b)
	if !ok {
		return
	}
	if m.answer {
		c.mu.Lock()
		answers := c.asked.open[m.number]
		c.mu.Unlock()
		if answers != nil && c.remote(from) {
			select {
			case answers <- lateAnswer{from, m}:
			default: // more than one answer of a rank
			}
		}
		return
	}
	var r roll
	if c.e.live.with(c, func() { r = c.roll(m.seq) }) {
		_ = c.group.Send(from, lateTag, lateMessage{answer: true, number: m.number, seq: m.seq,
			finished: r.ranks[c.rank].finished, joined: r.ranks[c.rank].joined}.encode()) // it may have left
	}
}
