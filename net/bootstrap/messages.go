package bootstrap

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

var errMalformed = errors.New("malformed message body")

// Limits of what a peer may say about itself (guesses, far above real values).
const (
	maxHostBytes = 256
	maxAddrs     = 64
	maxTextBytes = 64 << 10
	maxRanks     = 1 << 24
	maxTagBytes  = 1 << 10
)

// Member is what a rank tells all others about itself.
type Member struct {
	Rank  int
	Host  string
	PID   int
	Addrs []netip.AddrPort // where the service of its process listens
	Hello []byte
}

// who names a member for people.
func (m Member) who() string { return fmt.Sprintf("rank %d (%s, pid %d)", m.Rank, m.Host, m.PID) }

func (m Member) encode(e *encoder) {
	e.u32(uint32(m.Rank))
	e.u32(uint32(m.PID))
	e.str(m.Host)
	e.addrs(m.Addrs)
	e.bytes(m.Hello)
}

func (e *encoder) addrs(as []netip.AddrPort) {
	e.u32(uint32(len(as)))
	for _, a := range as {
		b, err := a.MarshalBinary()
		if err != nil {
			b = nil
		}
		e.bytes(b)
	}
}

func (d *decoder) addrs() []netip.AddrPort {
	n := d.count(4)
	if n > maxAddrs {
		d.bad = true
	}
	var out []netip.AddrPort
	for range n {
		var a netip.AddrPort
		if err := a.UnmarshalBinary(d.bytes()); err != nil {
			d.bad = true
		}
		if d.bad {
			return nil
		}
		out = append(out, a)
	}
	return out
}

// encodeAddrs is the body of kindWelcome: where the host can be found.
func encodeAddrs(as []netip.AddrPort) []byte {
	var e encoder
	e.addrs(as)
	return e.b
}

func decodeAddrs(b []byte) ([]netip.AddrPort, error) {
	d := decoder{b: b}
	as := d.addrs()
	if !d.done() {
		return nil, errMalformed
	}
	return as, nil
}

func decodeMember(d *decoder) Member {
	m := Member{Rank: int(d.u32()), PID: int(d.u32()), Host: d.str()}
	m.Addrs = d.addrs()
	m.Hello = d.bytes()
	if d.bad || len(m.Host) > maxHostBytes || m.Rank >= maxRanks {
		d.bad = true
		return Member{}
	}
	return m
}

// registration is the first frame of a member.
type registration struct {
	nranks  int
	timeout time.Duration // how long this member is ready to wait
	member  Member
}

func (r registration) encode() []byte {
	var e encoder
	e.u32(uint32(r.nranks))
	e.u64(uint64(r.timeout))
	r.member.encode(&e)
	return e.b
}

func decodeRegistration(b []byte) (registration, error) {
	d := decoder{b: b}
	r := registration{nranks: int(d.u32()), timeout: time.Duration(d.u64())}
	r.member = decodeMember(&d)
	if !d.done() || r.nranks < 1 || r.nranks > maxRanks || r.timeout <= 0 {
		return registration{}, errMalformed
	}
	return r, nil
}

// table is the host's answer when all members have come.
type table struct {
	here    bool // the control star stays on these connections
	nonce   [nonceBytes]byte
	members []Member
}

func (t table) encode() []byte {
	var e encoder
	here := byte(0)
	if t.here {
		here = 1
	}
	e.u8(here)
	e.b = append(e.b, t.nonce[:]...)
	e.u32(uint32(len(t.members)))
	for _, m := range t.members {
		m.encode(&e)
	}
	return e.b
}

func decodeTable(b []byte) (table, error) {
	d := decoder{b: b}
	t := table{here: d.u8() == 1}
	copy(t.nonce[:], d.take(nonceBytes))
	n := d.count(20)
	for i := range n {
		m := decodeMember(&d)
		if d.bad || m.Rank != i {
			return table{}, errMalformed
		}
		t.members = append(t.members, m)
	}
	if !d.done() {
		return table{}, errMalformed
	}
	return t, nil
}

// notice is an error on the wire: a rejection, the end of an init, or the news
// that a rank has failed. rank is -1 if it speaks of no particular one.
type notice struct {
	code  xerr.Code
	rank  int
	retry bool // a later attempt may succeed
	text  string
	hint  string
}

func (n notice) encode() []byte {
	var e encoder
	e.u8(byte(n.code))
	e.u32(uint32(int32(n.rank)))
	retry := byte(0)
	if n.retry {
		retry = 1
	}
	e.u8(retry)
	e.str(clip(n.text))
	e.str(clip(n.hint))
	return e.b
}

func decodeNotice(b []byte) (notice, error) {
	d := decoder{b: b}
	n := notice{code: xerr.Code(d.u8()), rank: int(int32(d.u32())), retry: d.u8() == 1, text: d.str(), hint: d.str()}
	if !d.done() || n.code <= xerr.Success || n.code > xerr.Timeout || len(n.text) > maxTextBytes || len(n.hint) > maxTextBytes {
		return notice{}, errMalformed
	}
	return n, nil
}

// errorFor turns a notice into the error that a call on object returns.
func (n notice) errorFor(op, object string) *xerr.Error {
	e := xerr.New(n.code, op, "%s", n.text).WithObject("%s", object)
	if n.rank >= 0 {
		e = e.WithRank(n.rank)
	}
	if n.hint != "" {
		e = e.WithHint("%s", n.hint)
	}
	return e
}

// opKey names one collective exchange: the n-th one with this tag.
type opKey struct {
	tag string
	seq uint64
}

// tagged is the body of kindGather, kindGathered and kindGatherFailed (key and
// payload) and of kindMessage (rank, tag, payload; the rank is the receiver on
// the way to the host and the sender on the way from it).
type tagged struct {
	key  opKey
	rank int
	data []byte
}

func (t tagged) encode() []byte {
	e := encoder{b: make([]byte, 0, 20+len(t.key.tag)+len(t.data))}
	e.str(t.key.tag)
	e.u64(t.key.seq)
	e.u32(uint32(t.rank))
	e.bytes(t.data)
	return e.b
}

func decodeTagged(b []byte) (tagged, error) {
	d := decoder{b: b}
	t := tagged{key: opKey{tag: d.str(), seq: d.u64()}, rank: int(d.u32()), data: d.bytes()}
	if !d.done() || len(t.key.tag) > maxTagBytes || t.rank >= maxRanks {
		return tagged{}, errMalformed
	}
	return t, nil
}

func encodeList(parts [][]byte) []byte {
	total := 4
	for _, p := range parts {
		total += 4 + len(p)
	}
	e := encoder{b: make([]byte, 0, total)}
	e.u32(uint32(len(parts)))
	for _, p := range parts {
		e.bytes(p)
	}
	return e.b
}

// decodeList copies the parts: the body may be shared by the ranks of a process.
func decodeList(b []byte) ([][]byte, error) {
	d := decoder{b: append([]byte(nil), b...)}
	n := d.count(4)
	parts := make([][]byte, n)
	for i := range parts {
		parts[i] = d.bytes()
	}
	if !d.done() {
		return nil, errMalformed
	}
	return parts, nil
}

func clip(s string) string {
	if len(s) > maxTextBytes {
		return s[:maxTextBytes]
	}
	return s
}
