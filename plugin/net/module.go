// Package netplugin owns NCCL's network plugins as transports: net plugins, and rma and gin plugins of the proxy kind. The
// rest of the library sees a transport like any other.
//
// A plugin is made into lanes of frames (lane.h) and, where it can, transfers beside them (bulk.c); one protocol (carry.h)
// makes puts, gets and messages of them. It must not know communicators, windows or signals.
package netplugin

/*
#cgo CFLAGS: -std=gnu11 -O3 -Wall -Wextra
#include "pair.h"

static int m_properties(np_net *m, int dev, np_props_v12 *p) { return m->properties(m, dev, p); }
static int m_finalize(np_net *m, void *ctx) { return m->finalize(m, ctx); }
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"sync"
	"unsafe"

	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/plugin"
)

// module is a net plugin of this process. There is one for each table, whoever asks for it.
type module struct {
	table plugin.Table
	m     *C.np_net

	mu    sync.Mutex
	off   string      // why it is not used any more in this process
	comms map[int]int // connections by device
}

var (
	modules   = map[unsafe.Pointer]*module{} // by table
	modulesMu sync.Mutex
)

// Steps gives the plugins of the process the steps that profilers follow: a gccl_step_api, which lives for ever. Before the
// first plugin is opened.
func Steps(api unsafe.Pointer) {
	modulesMu.Lock()
	defer modulesMu.Unlock()
	if C.np_steps == nil {
		C.np_steps = (*C.gccl_step_api)(api)
	}
}

type text [C.GCCL_NET_TEXT]C.char

func (t *text) String() string { return C.GoString(&t[0]) }

// moduleOf adapts a table.
func moduleOf(t plugin.Table) (*module, error) {
	modulesMu.Lock()
	defer modulesMu.Unlock()
	if m := modules[t.Addr]; m != nil {
		return m, nil
	}
	p := (*C.np_net)(C.calloc(1, C.sizeof_np_net)) // lives as long as its library: for ever
	if why := C.np_net_open(p, t.Addr, C.int(t.Version), C.np_logger(plugin.LogFunction())); why != nil {
		C.free(unsafe.Pointer(p))
		return nil, fmt.Errorf("%v: %s", t, C.GoString(why))
	}
	m := &module{table: t, m: p, comms: map[int]int{}}
	modules[t.Addr] = m
	return m, nil
}

func (m *module) name() string { return C.GoString(m.m.name) }

// disable keeps a module from being tried again in this process, as NCCL does.
func (m *module) disable(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off == "" {
		m.off = why
	}
}

func (m *module) disabled() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.off
}

// properties are those of a device, in Go.
type properties struct {
	transport.Device
	dmabuf, forceFlush bool
	comms, recvs       int
	most               uint64 // bytes of a transfer
}

// context is a module's context for one endpoint.
type context struct {
	*module
	ctx     unsafe.Pointer
	devices []properties
}

// open makes a context, or says why the module cannot be used.
func (m *module) open(secret transport.Secret) (*context, error) {
	if why := m.disabled(); why != "" {
		return nil, fmt.Errorf("%s is off in this process: %s", m.name(), why)
	}
	c := &context{module: m}
	var ndev C.int
	var why text
	comm := C.uint64_t(binary.LittleEndian.Uint64(secret[:])) // equal on all ranks, as NCCL's hash is
	if C.np_open_context(m.m, comm, &c.ctx, &ndev, &why[0]) != 0 {
		m.disable(why.String())
		return nil, fmt.Errorf("%s: %v", m.name(), &why)
	}
	for d := range int(ndev) {
		p, err := m.properties(d)
		if err != nil {
			c.close()
			m.disable(err.Error())
			return nil, fmt.Errorf("%s: device %d: %w", m.name(), d, err)
		}
		c.devices = append(c.devices, p)
	}
	return c, nil
}

func (c *context) close() { C.m_finalize(c.m, c.ctx) }

func (m *module) properties(dev int) (o properties, err error) {
	var p C.np_props_v12
	if rc := C.m_properties(m.m, C.int(dev), &p); rc != 0 {
		return o, fmt.Errorf("getProperties: %s", C.GoString(C.np_result(rc)))
	}
	switch {
	case p.netDeviceType != C.NP_DEVICE_HOST:
		return o, fmt.Errorf("it has device type %d, which hands data to kernels in a form of its own: no kernel here takes that",
			int(p.netDeviceType))
	case p.ptrSupport&C.NP_PTR_HOST == 0:
		return o, fmt.Errorf("it does not send from host memory (ptrSupport %d)", int(p.ptrSupport))
	case p.maxP2pBytes < 1 || uint64(p.maxP2pBytes) > 1<<40:
		return o, fmt.Errorf("it takes %d bytes at a time, which is not from 1 to 2^40", uint64(p.maxP2pBytes))
	}
	o = properties{
		Device:     transport.Device{NUMA: -1, Speed: int(p.speed)},
		dmabuf:     p.ptrSupport&C.NP_PTR_DMABUF != 0,
		forceFlush: p.forceFlush != 0,
		comms:      int(p.maxComms),
		recvs:      min(max(int(p.maxRecvs), 1), C.NP_RECVS),
		most:       min(uint64(p.maxP2pBytes), C.NP_BULK_MAX),
	}
	if p.name != nil {
		o.Name = C.GoString(p.name)
	}
	return o, nil
}

// connsOf is how many of the plugin's connections one of ours takes: control and bulk, each in both directions.
const connsOf = 4

// reserve counts the connections of a device against its limit.
func (c *context) reserve(dev int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.devices[dev]
	if p.comms > 0 && c.comms[dev]+connsOf > p.comms {
		return fmt.Errorf("device %s of plugin %s has at most %d connections, %d are in use and a rank takes %d",
			p.Name, c.name(), p.comms, c.comms[dev], connsOf)
	}
	c.comms[dev] += connsOf
	return nil
}

func (c *context) release(dev int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.comms[dev] -= connsOf
}

// choose opens the first of several modules that works, in their order, and switches the others off, as NCCL does.
func choose(all []*module, secret transport.Secret, log *xlog.Logger) (*context, error) {
	var tried []error
	for _, m := range all {
		c, err := m.open(secret)
		if err != nil {
			tried = append(tried, err)
			continue
		}
		for _, other := range all {
			if other != m {
				other.disable(m.name() + " was taken")
			}
		}
		log.Info(xlog.Init, "network plugin %s: %v, devices %d, the first is %s", m.name(), m.table, len(c.devices), c.devices[0].Name)
		return c, nil
	}
	return nil, fmt.Errorf("no network plugin works: %w", join(tried))
}
