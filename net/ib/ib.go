// Package ib owns the transport over verbs, InfiniBand and RoCE: libibverbs is opened at run time and nothing is linked.
//
// It must not know windows, signals or communicators.
package ib

/*
#cgo CFLAGS: -std=gnu11 -O3 -Wall -Wextra
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "ib.h"

static void ib_close_ep(gccl_net_ep *e) { e->ops->close(e); }
static int ib_conn_faulted(gccl_net_conn *c) { return gccl_net_faulted(&c->fault); }
*/
import "C"

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
)

// Transport is the transport.
type Transport struct{ cfg Config }

var _ transport.Transport = (*Transport)(nil)

// New makes the transport.
func New(c Config) *Transport { return &Transport{c} }

// Name is "ib".
func (*Transport) Name() string { return "ib" }

// Devices lists the ports that are up and that the settings allow, fastest first.
func (t *Transport) Devices() ([]transport.Device, error) {
	ps, err := t.cfg.ports()
	if err != nil {
		return nil, err
	}
	out := make([]transport.Device, len(ps))
	for i, p := range ps {
		out[i] = p.Device
	}
	return out, nil
}

type text [C.GCCL_NET_TEXT]C.char

func (t *text) String() string { return C.GoString(&t[0]) }

type endpoint struct {
	p     *C.gccl_net_ep
	opt   transport.Options
	rails []port
}

// maxRails is how many ports an endpoint uses.
const maxRails = C.GCCL_IB_RAILS

// together are the ports that are used together: those of one link layer, the fastest first; ones much slower than it are left out.
func together(ps []port) []port {
	first := ps[0]
	ps = slices.DeleteFunc(ps, func(p port) bool { return p.ethernet != first.ethernet || 2*p.Speed < first.Speed })
	return ps[:min(len(ps), maxRails)]
}

// Together says why connections of these ports would not go over all of them; nil if they do.
func (t *Transport) Together(want []transport.Device) error {
	ps, err := t.cfg.ports()
	if err != nil {
		return err
	}
	ps = slices.DeleteFunc(ps, func(p port) bool {
		return !slices.ContainsFunc(want, func(d transport.Device) bool { return d.Name == p.Name })
	})
	if len(ps) > 0 {
		ps = together(ps)
	}
	if len(ps) < len(want) {
		var names []string
		for _, p := range ps {
			names = append(names, p.Name)
		}
		return xerr.New(xerr.InvalidUsage, "ib transport", "of %d ports only %s would be used together: the others have another link layer, are down or less than half as fast, or there are more than %d",
			len(want), strings.Join(names, " "), maxRails)
	}
	return nil
}

// Open opens the ports that are used together.
func (t *Transport) Open(o transport.Options) (transport.Endpoint, error) {
	ps, err := t.cfg.ports()
	if err != nil {
		return nil, err
	}
	if o.Devices != nil {
		ps = slices.DeleteFunc(ps, func(p port) bool {
			return !slices.ContainsFunc(o.Devices, func(d transport.Device) bool { return d.Name == p.Name })
		})
		if len(ps) == 0 {
			return nil, xerr.New(xerr.InvalidArgument, "ib transport", "none of the devices %v is there", o.Devices)
		}
	}
	ps = together(ps)
	// Rails are numbered by name, so that equal hosts number them alike.
	slices.SortStableFunc(ps, func(a, b port) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	var why text
	c := C.gccl_ib_config{traffic_class: C.int32_t(t.cfg.TrafficClass), service_level: C.int32_t(t.cfg.ServiceLevel),
		timeout: C.int32_t(t.cfg.Timeout), retry_count: C.int32_t(t.cfg.RetryCount)}
	e := &endpoint{opt: o, rails: ps}
	if e.p = C.gccl_ib_open(C.int32_t(o.Rank), &c, &why[0]); e.p == nil {
		return nil, xerr.New(xerr.System, "ib transport", "%v", &why)
	}
	for _, p := range ps {
		name := C.CString(p.hca)
		rc := C.gccl_ib_add_rail(e.p, name, C.int(p.number), C.int(p.gid), &why[0])
		C.free(unsafe.Pointer(name))
		if rc < 0 {
			C.ib_close_ep(e.p)
			return nil, xerr.New(xerr.System, "ib transport", "%v", &why)
		}
	}
	return e, nil
}

func (e *endpoint) C() unsafe.Pointer { return unsafe.Pointer(e.p) }

func (e *endpoint) Close() error {
	C.ib_close_ep(e.p)
	return nil
}

type conn struct {
	ep   *endpoint
	peer int
	p    *C.gccl_net_conn
	blob []byte
}

// The blob of a connection: random bytes (16), number of rails (1), and for each the queue pair (4), LID (2), MTU (1), link
// layer (1) and GID (16).
const (
	blobRandom = 16
	blobRail   = 24
)

func (e *endpoint) NewConn(peer int) (transport.Conn, error) {
	var why text
	p := C.gccl_ib_conn(e.p, C.int32_t(peer), &why[0])
	if p == nil {
		return nil, xerr.New(xerr.System, "ib transport", "%v", &why).WithRank(peer)
	}
	b := make([]byte, blobRandom, transport.MaxBlob)
	if _, err := rand.Read(b); err != nil {
		C.gccl_ib_discard(p)
		return nil, xerr.Wrap(xerr.System, "ib transport", err, "no random numbers")
	}
	n := int(C.gccl_ib_rails(p))
	b = append(b, byte(n))
	for i := range n {
		var a C.gccl_ib_address
		C.gccl_ib_address_of(p, C.int(i), &a)
		b = binary.LittleEndian.AppendUint32(b, uint32(a.qpn))
		b = binary.LittleEndian.AppendUint16(b, uint16(a.lid))
		b = append(b, byte(a.mtu), byte(a.link))
		for _, v := range a.gid {
			b = append(b, byte(v))
		}
	}
	return &conn{e, peer, p, b}, nil
}

func decodeBlob(b []byte) ([]C.gccl_ib_address, error) {
	bad := fmt.Errorf("%d bytes that are no name of an ib connection", len(b))
	if len(b) < blobRandom+1 || len(b) > transport.MaxBlob {
		return nil, bad
	}
	n := int(b[blobRandom])
	rest := b[blobRandom+1:]
	if n < 1 || n > maxRails || len(rest) != n*blobRail {
		return nil, bad
	}
	out := make([]C.gccl_ib_address, n)
	for i := range out {
		r := rest[i*blobRail:]
		a := &out[i]
		a.qpn = C.uint32_t(binary.LittleEndian.Uint32(r))
		a.lid = C.uint16_t(binary.LittleEndian.Uint16(r[4:]))
		a.mtu, a.link = C.uint8_t(r[6]), C.uint8_t(r[7])
		for k := range a.gid {
			a.gid[k] = C.uint8_t(r[8+k])
		}
		if a.qpn >= 1<<24 || a.mtu < 1 || a.mtu > 5 || (a.link != C.VB_LINK_ETHERNET && a.link != C.VB_LINK_INFINIBAND) {
			return nil, bad
		}
	}
	return out, nil
}

func (c *conn) Blob() []byte      { return c.blob }
func (c *conn) C() unsafe.Pointer { return unsafe.Pointer(c.p) }

// Connect connects the queue pairs and has both ends prove the secret over every rail, which also proves the rails.
func (c *conn) Connect(ctx context.Context, remote []byte) error {
	err := c.connect(ctx, remote)
	if err == nil {
		C.gccl_ib_start(c.p)
		return nil
	}
	C.gccl_ib_discard(c.p)
	code := xerr.System
	switch {
	case errors.Is(err, transport.ErrUnproved):
		code = xerr.Remote
	case ctx.Err() != nil:
		code = xerr.Timeout
	}
	return xerr.Wrap(code, "ib connect", err, "no connection with rank %d", c.peer).WithRank(c.peer).
		WithHint("name the ports that lead to all ranks with NCCL_IB_HCA, and the GID with NCCL_IB_GID_INDEX")
}

func (c *conn) connect(ctx context.Context, remote []byte) error {
	to, err := decodeBlob(remote)
	if err != nil {
		return err
	}
	n := min(len(to), int(C.gccl_ib_rails(c.p)))
	var why text
	if C.gccl_ib_connect(c.p, C.int(n), &to[0], &why[0]) < 0 {
		return errors.New(why.String())
	}
	for i := range n {
		if err := c.prove(ctx, i, remote, to[:n]); err != nil {
			return fmt.Errorf("over %s: %w", c.ep.rails[i].Name, err)
		}
	}
	return nil
}

func (c *conn) proof(rail int, from, to, nonce []byte) []byte {
	m := hmac.New(sha256.New, c.ep.opt.Secret[:])
	m.Write([]byte("gccl ib rail"))
	m.Write([]byte{byte(rail)})
	m.Write(from)
	m.Write(to)
	m.Write(nonce)
	return m.Sum(nil)
}

// prove says a nonce, answers the other end's with a proof, and checks the answer to its own. A nonce that finds no queue pair
// at the other end, because it is not as far yet, is said again over a queue pair that begins anew.
func (c *conn) prove(ctx context.Context, rail int, remote []byte, to []C.gccl_ib_address) error {
	var mine [32]byte
	if _, err := rand.Read(mine[:]); err != nil {
		return err
	}
	say := func(b []byte) error {
		if C.gccl_ib_say(c.p, C.int(rail), unsafe.Pointer(&b[0]), C.int(len(b))) < 0 {
			return c.fault()
		}
		return nil
	}
	if err := say(mine[:]); err != nil {
		return err
	}
	theirs, err := c.hear(ctx, rail, func() error {
		if C.gccl_ib_again(c.p, C.int(rail)) < 0 {
			return errors.New("the queue pair cannot be reset")
		}
		var why text
		if C.gccl_ib_connect(c.p, C.int(len(to)), &to[0], &why[0]) < 0 {
			return errors.New(why.String())
		}
		return say(mine[:])
	})
	if err != nil {
		return err
	}
	if err := say(c.proof(rail, c.blob, remote, theirs)); err != nil {
		return err
	}
	answer, err := c.hear(ctx, rail, func() error { return errors.New("it does not answer any more") })
	if err != nil {
		return err
	}
	if !hmac.Equal(answer, c.proof(rail, remote, c.blob, mine[:])) {
		return transport.ErrUnproved
	}
	return nil
}

func (c *conn) fault() error {
	if C.ib_conn_faulted(c.p) == 0 {
		return errors.New("no room in the send queue")
	}
	return errors.New(C.GoString(&c.p.fault.text[0]))
}

// hear waits for a message of the proof.
func (c *conn) hear(ctx context.Context, rail int, again func() error) ([]byte, error) {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		var b [C.GCCL_NET_MSG]byte
		switch rc := C.gccl_ib_hear(c.p, C.int(rail), unsafe.Pointer(&b[0])); {
		case rc > 0:
			return b[:32], nil
		case rc == C.GCCL_NET_ETIMEOUT:
			if err := again(); err != nil {
				return nil, err
			}
		case rc < 0:
			return nil, c.fault()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("it did not answer: %w", ctx.Err())
		case <-time.After(pause):
		}
	}
}
