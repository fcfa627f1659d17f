package netplugin

/*
#include "carry.h"
#include "rma.h"

static void rma_close_ep(gccl_net_ep *e) { e->ops->close(e); }
static gccl_net_conn *rma_base(np_conn *c) { return &c->base; }
static int rma_finalize(np_rma *m, void *ctx) { return m->finalize(m, ctx); }
*/
import "C"

import (
	"bytes"
	stdctx "context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/plugin"
)

// rmaModule is an rma plugin of this process, or a gin plugin of the proxy kind.
type rmaModule struct {
	table plugin.Table
	m     *C.np_rma
}

func (m *rmaModule) name() string { return C.GoString(m.m.name) }

// rmas are those of this process, by table. One for which there is no use is nil.
var rmas = map[unsafe.Pointer]*rmaModule{}

// rmaModules finds them. Gin tables that no host can use are refused with a line of the log.
func rmaModules(s *param.Settings, name string, log *xlog.Logger) ([]*rmaModule, error) {
	tables, err := plugin.Find(plugin.Rma, s, log)
	if err != nil {
		return nil, err
	}
	gins, err := plugin.Find(plugin.Gin, s, log)
	if err != nil {
		return nil, err
	}
	var out []*rmaModule
	for _, t := range append(tables, gins...) {
		if m := rmaOf(t, log); m != nil && (name == "" || strings.EqualFold(m.name(), name)) && !contains(out, m) {
			out = append(out, m)
		}
	}
	return out, nil
}

func contains(list []*rmaModule, m *rmaModule) bool {
	for _, k := range list {
		if k == m {
			return true
		}
	}
	return false
}

func rmaOf(t plugin.Table, log *xlog.Logger) *rmaModule {
	modulesMu.Lock()
	defer modulesMu.Unlock()
	if m, known := rmas[t.Addr]; known {
		return m
	}
	p := (*C.np_rma)(C.calloc(1, C.sizeof_np_rma)) // as long as its library: for ever
	gin := C.int(0)
	if strings.HasPrefix(t.Symbol, "ncclGin") {
		gin = 1
	}
	rmas[t.Addr] = nil
	if why := C.np_rma_open(p, t.Addr, C.int(t.Version), gin, C.np_logger(plugin.LogFunction())); why != nil {
		log.Info(xlog.Init, "%v is not used: %s", t, C.GoString(why))
		C.free(unsafe.Pointer(p))
		return nil
	}
	rmas[t.Addr] = &rmaModule{t, p}
	return rmas[t.Addr]
}

// openRma makes an endpoint over the first module that works.
func openRma(all []*rmaModule, o transport.Options, log *xlog.Logger) (transport.Endpoint, error) {
	var tried []error
	for _, m := range all {
		e := &rmaEndpoint{rmaModule: m, opt: o}
		var why text
		comm := C.uint64_t(binary.LittleEndian.Uint64(o.Secret[:]))
		if C.np_rma_context(m.m, comm, &e.ctx, &why[0]) != 0 {
			tried = append(tried, fmt.Errorf("%v: %v", m.table, &why))
			continue
		}
		if e.p = C.np_ep_open(C.int32_t(o.Rank), m.m.name, 0); e.p == nil {
			C.rma_finalize(m.m, e.ctx)
			return nil, errors.New("out of memory")
		}
		log.Info(xlog.Init, "network plugin %s: %v", m.name(), m.table)
		return e, nil
	}
	return nil, fmt.Errorf("no rma plugin works: %w", join(tried))
}

type rmaEndpoint struct {
	*rmaModule
	ctx unsafe.Pointer
	p   *C.gccl_net_ep
	opt transport.Options

	lost atomic.Bool // a call of the plugin has not come back: its context must stay
}

func (e *rmaEndpoint) C() unsafe.Pointer { return unsafe.Pointer(e.p) }

func (e *rmaEndpoint) Close() error {
	C.rma_close_ep(e.p)
	if !e.lost.Load() {
		C.rma_finalize(e.m, e.ctx)
	}
	return nil
}

// rmaConn is a connection that is being made: a group of two for the plugin.
type rmaConn struct {
	ep   *rmaEndpoint
	p    *C.np_conn
	pair *C.np_rma_pair
	mine [C.NP_HANDLE]byte
	id   transport.ConnID
	peer int
}

func (e *rmaEndpoint) NewConn(peer int) (transport.Conn, error) {
	const op = "plugin transport"
	id, err := transport.NewConnID()
	if err != nil {
		return nil, xerr.Wrap(xerr.System, op, err, "no random numbers")
	}
	c := &rmaConn{ep: e, id: id, peer: peer}
	c.p = C.np_conn_new(e.p, C.int32_t(peer))
	c.pair = (*C.np_rma_pair)(C.calloc(1, C.sizeof_np_rma_pair))
	if c.p == nil {
		return nil, xerr.New(xerr.System, op, "out of memory")
	}
	c.pair.m, c.pair.ctx = e.m, e.ctx
	var why text
	if C.np_rma_listen(c.pair, (*C.uchar)(&c.mine[0]), &why[0]) != 0 {
		c.discard()
		return nil, xerr.New(xerr.System, op, "plugin %s: %v", e.name(), &why).WithRank(peer)
	}
	return c, nil
}

func (c *rmaConn) discard() {
	C.np_rma_pair_close(c.pair)
	C.free(unsafe.Pointer(c.pair))
	C.np_conn_discard(c.p)
}

// Blob is like that of net plugins.
func (c *rmaConn) Blob() []byte {
	b := append(append([]byte(nil), c.id[:]...), c.mine[:]...)
	name := c.ep.name()
	return append(b, name[:min(len(name), blobName)]...)
}

func (c *rmaConn) C() unsafe.Pointer { return unsafe.Pointer(C.rma_base(c.p)) }

func (c *rmaConn) Connect(ctx stdctx.Context, remote []byte) error {
	err, blocked := bounded(ctx, func() error { return c.connect(ctx, remote) })
	if blocked {
		c.ep.lost.Store(true)
		return xerr.New(xerr.Timeout, "plugin connect", "plugin %s waits in connect for rank %d", c.ep.name(), c.peer).WithRank(c.peer)
	}
	if err == nil {
		C.free(unsafe.Pointer(c.pair))
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

func (c *rmaConn) connect(ctx stdctx.Context, remote []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(remote) < blobMin || len(remote) > transport.MaxBlob {
		return fmt.Errorf("%d bytes that are no name of a connection", len(remote))
	}
	if name := string(remote[blobMin:]); name != c.ep.name()[:min(len(c.ep.name()), blobName)] {
		return fmt.Errorf("it uses the plugin %q", name)
	}
	var to transport.ConnID
	copy(to[:], remote)
	rank := 0 // in the group of two
	if bytes.Compare(c.id[:], to[:]) > 0 {
		rank = 1
	}
	place := func(r int) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&c.pair.handle[r][0])), C.NP_HANDLE) }
	copy(place(rank), c.mine[:])
	copy(place(1-rank), remote[len(to):blobMin])
	var why text
	if c.p.lane = C.np_rma_lane(c.pair, C.int(rank), &why[0]); c.p.lane == nil {
		return errors.New(why.String())
	}
	if err := prove(&laneStream{ctx: ctx, lane: c.p.lane}, c.id, to, c.ep.opt.Secret); err != nil {
		return errors.Join(err, ctx.Err())
	}
	return nil
}
