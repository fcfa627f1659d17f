package netplugin

/*
#include "pair.h"

static void tp_close_ep(gccl_net_ep *e) { e->ops->close(e); }
static gccl_net_conn *tp_base(np_conn *c) { return &c->base; }
static void tp_take(np_pair *p) { p->send = p->recv = NULL; }

static np_bulk *tp_bulk(np_pair *p, int recvs, int dmabuf, uint64_t most) {
  np_bulk *b = calloc(1, sizeof *b);
  if (!b) return NULL;
  b->m = p->m;
  b->send = p->send;
  b->recv = p->recv;
  b->recvs = recvs;
  b->dmabuf = dmabuf;
  b->most = most;
  np_pair_deregister(p);
  p->send = p->recv = NULL;
  return b;
}
*/
import "C"

import (
	"bytes"
	stdctx "context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/plugin"
)

// Transport goes over the first net plugin that works, or else over the first rma plugin.
type Transport struct {
	modules []*module
	rmas    []*rmaModule
	log     *xlog.Logger
}

var _ transport.Transport = Transport{}

// FromSettings finds the plugins that NCCL_NET_PLUGIN, NCCL_RMA_PLUGIN and NCCL_GIN_PLUGIN lead to; with a name, only those
// that call themselves so. An error says that one that the user named cannot be loaded.
func FromSettings(s *param.Settings, name string, log *xlog.Logger) (Transport, error) {
	tables, err := plugin.Find(plugin.Net, s, log)
	if err != nil {
		return Transport{}, err
	}
	t := Transport{log: log}
	for _, table := range tables {
		m, err := moduleOf(table)
		if err != nil {
			log.Warn(xlog.Init, "%v", err)
			continue
		}
		if c, ok := table.Library.Table(plugin.CollNet); ok {
			log.Info(xlog.Init, "%v is not used: this version has no collectives in the network", c)
		}
		if name == "" || strings.EqualFold(m.name(), name) {
			t.modules = append(t.modules, m)
		}
	}
	t.rmas, err = rmaModules(s, name, log)
	return t, err
}

// Empty says that there is no plugin.
func (t Transport) Empty() bool { return len(t.modules) == 0 && len(t.rmas) == 0 }

// Name is "plugin", whichever it is: it must be the same on all ranks.
func (Transport) Name() string { return "plugin" }

// Devices lists the devices of the plugin that would be taken.
func (t Transport) Devices() ([]transport.Device, error) {
	c, err := choose(t.modules, transport.Secret{}, t.log)
	if err != nil {
		return nil, xerr.Wrap(xerr.System, "plugin devices", err, "no devices")
	}
	defer c.close()
	var out []transport.Device
	for _, p := range c.devices {
		out = append(out, p.Device)
	}
	return out, nil
}

func join(errs []error) error {
	if len(errs) == 0 {
		return errors.New("there is none")
	}
	return errors.Join(errs...)
}

// Open makes an endpoint over the first plugin that works.
func (t Transport) Open(o transport.Options) (transport.Endpoint, error) {
	c, err := choose(t.modules, o.Secret, t.log)
	if err != nil && len(t.rmas) > 0 {
		e, rmaErr := openRma(t.rmas, o, t.log)
		if rmaErr == nil {
			return e, nil
		}
		err = errors.Join(err, rmaErr)
	}
	if err != nil {
		return nil, xerr.Wrap(xerr.System, "plugin transport", err, "cannot open")
	}
	e := &endpoint{context: c, opt: o}
	for d, p := range c.devices {
		for _, want := range o.Devices {
			if o.Devices != nil && want.Name == p.Name {
				e.use = append(e.use, d)
			}
		}
		if o.Devices == nil {
			e.use = append(e.use, d)
		}
	}
	device := C.int(1)
	for _, d := range e.use {
		if !c.devices[d].dmabuf {
			device = 0
		}
	}
	if len(e.use) > 0 {
		e.p = C.np_ep_open(C.int32_t(o.Rank), c.m.name, device)
	}
	if e.p == nil {
		c.close()
		return nil, xerr.New(xerr.System, "plugin transport", "out of memory, or none of the wanted devices is there")
	}
	return e, nil
}

type endpoint struct {
	*context
	p   *C.gccl_net_ep
	opt transport.Options
	use []int // devices

	mu   sync.Mutex
	held []int       // devices of connections, once for each
	lost atomic.Bool // a call of the plugin has not come back: its context must stay
}

// hold counts a connection of a device against the plugin's limit, as long as the endpoint is open.
func (e *endpoint) hold(dev int) error {
	if err := e.reserve(dev); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held = append(e.held, dev)
	return nil
}

func (e *endpoint) C() unsafe.Pointer { return unsafe.Pointer(e.p) }

func (e *endpoint) Close() error {
	C.tp_close_ep(e.p)
	if !e.lost.Load() {
		e.context.close()
	}
	for _, dev := range e.held {
		e.release(dev)
	}
	return nil
}

// conn is a connection that is being made.
type conn struct {
	ep      *endpoint
	p       *C.np_conn
	control *C.np_pair
	bulk    *C.np_pair
	dev     int
	peer    int
	id      transport.ConnID
}

// The blob: who this is, the handle of the control connection, and which plugin it is for.
const (
	blobName = 64
	blobMin  = len(transport.ConnID{}) + C.NP_HANDLE
)

func (e *endpoint) NewConn(peer int) (transport.Conn, error) {
	const op = "plugin transport"
	id, err := transport.NewConnID()
	if err != nil {
		return nil, xerr.Wrap(xerr.System, op, err, "no random numbers")
	}
	c := &conn{ep: e, peer: peer, id: id, dev: e.use[(e.opt.Rank+peer)%len(e.use)]} // both ends choose the same one
	if err := e.hold(c.dev); err != nil {
		return nil, xerr.Wrap(xerr.System, op, err, "no connection").WithRank(peer)
	}
	c.p = C.np_conn_new(e.p, C.int32_t(peer))
	if c.p == nil {
		return nil, xerr.New(xerr.System, op, "out of memory")
	}
	if c.control, err = c.listen(); err != nil {
		c.discard()
		return nil, xerr.Wrap(xerr.System, op, err, "plugin %s", e.name()).WithRank(peer)
	}
	return c, nil
}

func (c *conn) listen() (*C.np_pair, error) {
	p := (*C.np_pair)(C.calloc(1, C.sizeof_np_pair))
	p.m, p.ctx, p.dev = c.ep.m, c.ep.ctx, C.int(c.dev)
	var why text
	if C.np_pair_listen(p, &why[0]) != 0 {
		C.free(unsafe.Pointer(p))
		return nil, errors.New(why.String())
	}
	return p, nil
}

func (c *conn) Blob() []byte {
	b := append([]byte(nil), c.id[:]...)
	b = append(b, C.GoBytes(unsafe.Pointer(&c.control.mine[0]), C.NP_HANDLE)...)
	name := c.ep.name()
	return append(b, name[:min(len(name), blobName)]...)
}

func (c *conn) C() unsafe.Pointer { return unsafe.Pointer(C.tp_base(c.p)) }

// discard frees what there is. No call of the plugin may be running.
func (c *conn) discard() {
	for _, p := range []*C.np_pair{c.control, c.bulk} {
		if p != nil {
			C.np_pair_close(p)
			C.free(unsafe.Pointer(p))
		}
	}
	C.np_conn_discard(c.p)
}

// stuck is how long a call of a plugin may take after the deadline, though it must not block at all.
var stuck = 5 * time.Second

// Connect makes the control connection, proves the secret over it, and makes the one for bulk.
func (c *conn) Connect(ctx stdctx.Context, remote []byte) error {
	err, blocked := bounded(ctx, func() error { return c.connect(ctx, remote) })
	if blocked {
		c.ep.lost.Store(true)
		return xerr.New(xerr.Timeout, "plugin connect", "plugin %s blocks in a call that must not block", c.ep.name()).WithRank(c.peer)
	}
	if err == nil {
		C.free(unsafe.Pointer(c.control))
		C.free(unsafe.Pointer(c.bulk))
		C.np_conn_start(c.p)
		return nil
	}
	c.discard()
	code := xerr.System
	if ctx.Err() != nil {
		code = xerr.Timeout
	}
	return xerr.Wrap(code, "plugin connect", err, "no connection with rank %d over plugin %s", c.peer, c.ep.name()).WithRank(c.peer)
}

// bounded runs f, which ends with ctx unless a call of the plugin blocks: then what f holds is lost.
func bounded(ctx stdctx.Context, f func() error) (err error, blocked bool) {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	select {
	case err = <-ended:
		return err, false
	case <-ctx.Done():
	}
	select {
	case err = <-ended:
		return err, false
	case <-time.After(stuck):
		return nil, true
	}
}

func (c *conn) connect(ctx stdctx.Context, remote []byte) error {
	if len(remote) < blobMin || len(remote) > transport.MaxBlob {
		return fmt.Errorf("%d bytes that are no name of a connection", len(remote))
	}
	if name := string(remote[blobMin:]); name != c.ep.name()[:min(len(c.ep.name()), blobName)] {
		return fmt.Errorf("it uses the plugin %q", name)
	}
	var to transport.ConnID
	copy(to[:], remote)
	if err := c.meet(ctx, c.control, remote[len(to):blobMin]); err != nil {
		return err
	}
	var why text
	lane := C.np_lane_net(c.ep.m, c.control.send, c.control.recv, &why[0])
	C.tp_take(c.control)
	if lane == nil {
		return errors.New(why.String())
	}
	c.p.lane = lane
	rw := &laneStream{ctx: ctx, lane: lane}
	if err := prove(rw, c.id, to, c.ep.opt.Secret); err != nil {
		return errors.Join(err, ctx.Err())
	}
	return c.addBulk(ctx, rw)
}

// wait repeats a step until it is done. Pauses grow, as a peer may be long in coming.
func wait(ctx stdctx.Context, step func() (done bool, err error)) error {
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		if done, err := step(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the peer does not come: %w", ctx.Err())
		case <-time.After(pause):
		}
	}
}

// meet connects a pair with the one of a handle.
func (c *conn) meet(ctx stdctx.Context, p *C.np_pair, handle []byte) error {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&p.peer[0])), C.NP_HANDLE), handle)
	return wait(ctx, func() (bool, error) {
		var why text
		switch C.np_pair_connect(p, &why[0]) {
		case 1:
			return true, nil
		case 0:
			return false, nil
		}
		return false, errors.New(why.String())
	})
}

// prove has both ends show that they know the secret.
func prove(rw *laneStream, own, to transport.ConnID, secret transport.Secret) error {
	if bytes.Compare(own[:], to[:]) < 0 {
		return transport.ProveAsDialer(rw, transport.Hello{To: to, From: own, Count: 1}, secret)
	}
	h, answer, err := transport.ProveAsListener(rw, func(id transport.ConnID) (transport.Secret, bool) { return secret, id == own })
	if err != nil {
		return err
	}
	if h.From != to {
		return errors.New("another connection of the peer asks for this one")
	}
	_, err = rw.Write(answer)
	return err
}

// addBulk makes the second connection. Each end tells the other over the first, which is proved, where to connect to and what to say first.
func (c *conn) addBulk(ctx stdctx.Context, rw *laneStream) (err error) {
	if c.bulk, err = c.listen(); err != nil {
		return err
	}
	var mine, said, theirs [C.NP_TOKEN]byte
	if _, err := rand.Read(mine[:]); err != nil {
		return err
	}
	if _, err := rw.Write(append(C.GoBytes(unsafe.Pointer(&c.bulk.mine[0]), C.NP_HANDLE), mine[:]...)); err != nil {
		return err
	}
	told := make([]byte, C.NP_HANDLE+C.NP_TOKEN)
	if _, err := io.ReadFull(rw, told); err != nil {
		return err
	}
	copy(theirs[:], told[C.NP_HANDLE:])
	if err := c.meet(ctx, c.bulk, told[:C.NP_HANDLE]); err != nil {
		return err
	}
	err = wait(ctx, func() (bool, error) {
		var why text
		rc := C.np_pair_token(c.bulk, (*C.uchar)(&theirs[0]), (*C.uchar)(&said[0]), &why[0])
		if rc < 0 {
			return false, errors.New(why.String())
		}
		return rc == 1, nil
	})
	if err != nil {
		return err
	}
	if !hmac.Equal(said[:], mine[:]) {
		return errors.New("a stranger has taken the connection for transfers")
	}
	p := c.ep.devices[c.dev]
	dmabuf := C.int(0)
	if p.dmabuf {
		dmabuf = 1
	}
	if c.p.bulk = C.tp_bulk(c.bulk, C.int(p.recvs), dmabuf, C.uint64_t(p.most)); c.p.bulk == nil {
		return errors.New("out of memory")
	}
	C.free(unsafe.Pointer(c.bulk.token))
	c.bulk.token = nil
	return nil
}
