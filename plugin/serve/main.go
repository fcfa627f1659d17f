// Command serve is build/lib/libnccl-net-gccl.so: a net plugin that gives NCCL this library's network, over TCP, or over
// verbs devices where there are any. Go lists devices and makes connections, C moves the bytes.
//
// It must not know anything of this library's communicators: it runs in processes that use NCCL.
package main

/*
#cgo CFLAGS: -std=gnu11 -O3 -Wall -Wextra -fvisibility=hidden
#cgo LDFLAGS: -pthread
#include <stdlib.h>
#include "serve.h"
*/
import "C"

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	stdnet "net"
	"net/netip"
	"runtime"
	"runtime/cgo"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/net/ib"
	"github.com/gccl/gccl/net/socket"
	"github.com/gccl/gccl/net/transport"
)

func main() {}

// network is what there is, looked up once for the process. Devices are only added, by NCCL's orders to join some.
var network struct {
	once      sync.Once
	err       error
	transport joiner
	helped    bool // connections have threads of their own for large messages

	mu      sync.Mutex
	devices []*device
}

// joiner is a transport that uses several devices together.
type joiner interface {
	transport.Transport
	Together([]transport.Device) error // why it does not use these together; nil if it does
}

const helpedFrom = 4 // CPUs that the process may use

// device is what NCCL sees; the strings live for ever.
type device struct {
	parts     []transport.Device // what it consists of: itself, but for joined ones
	index     []C.int            // their numbers
	name, pci *C.char
	speed     int        // Mbit/s
	meet      netip.Addr // where connections are arranged
}

func find(dev C.int) *device {
	network.mu.Lock()
	defer network.mu.Unlock()
	if dev < 0 || int(dev) >= len(network.devices) {
		return nil
	}
	return network.devices[dev]
}

// look finds the devices: those of verbs if there are any that work, otherwise interfaces.
func look() error {
	n := &network
	n.once.Do(func() {
		set, _, err := param.Load()
		if err != nil {
			n.err = err
			return
		}
		tcp, err := socket.FromSettings(set)
		if err != nil {
			n.err = err
			return
		}
		ifaces, err := tcp.Devices()
		if err != nil {
			n.err = err
			return
		}
		n.transport = tcp
		devices := ifaces
		if verbs, err := ib.FromSettings(set); err == nil {
			if ports, err := verbs.Devices(); err == nil && len(ports) > 0 {
				n.transport, devices = verbs, ports
			}
		}
		// Copying is TCP's; a thread that takes the CPU from NCCL's own threads, or from the peer, helps nobody.
		n.helped = n.transport == tcp && (set.Int(param.NCCLSocketNthreads) > 0 || runtime.NumCPU() >= helpedFrom)
		for i, d := range devices {
			o := &device{parts: []transport.Device{d}, index: []C.int{C.int(i)}, name: C.CString(d.Name), speed: d.Speed, meet: ifaces[0].Addrs[0]}
			if d.Speed <= 0 {
				o.speed = 10000 // what NCCL takes for an unknown one
			}
			if len(d.Addrs) > 0 && n.transport == tcp {
				o.meet = d.Addrs[0]
			}
			if d.PCI != "" {
				o.pci = C.CString("/sys/bus/pci/devices/" + d.PCI)
			}
			n.devices = append(n.devices, o)
		}
	})
	return n.err
}

// result says what is wrong through the log function: results of NCCL carry no text.
func result(err error) C.int {
	if err == nil {
		return C.NP_OK
	}
	text := C.CString(err.Error())
	defer C.free(unsafe.Pointer(text))
	C.sv_warn(text)
	return C.NP_SYSTEM
}

//export gcclServeInit
func gcclServeInit() C.int { return result(look()) }

//export gcclServeDevices
func gcclServeDevices(n *C.int) C.int {
	err := look()
	network.mu.Lock()
	defer network.mu.Unlock()
	*n = C.int(len(network.devices))
	return result(err)
}

//export gcclServeDevice
func gcclServeDevice(dev C.int, name, pci **C.char, speed *C.int, parts *C.np_vdevice_v9) C.int {
	d := find(dev)
	if d == nil {
		return C.NP_INTERNAL
	}
	*name, *pci, *speed = d.name, d.pci, C.int(d.speed)
	parts.ndevs = C.int(copy(parts.devs[:], d.index))
	return C.NP_OK
}

// gcclServeJoin makes one device of several, as NCCL_NET_MERGE_LEVEL and NCCL_NET_FORCE_MERGE have NCCL ask: its connections go over
// all of them. Devices of which some would carry nothing are refused.
//
//export gcclServeJoin
func gcclServeJoin(dev *C.int, parts *C.np_vdevice_v9) C.int {
	j := &device{}
	var names []string
	for i := range parts.ndevs {
		if int(i) >= len(parts.devs) {
			return refuse(fmt.Errorf("%d devices; at most %d become one", parts.ndevs, len(parts.devs)))
		}
		d := find(parts.devs[i])
		if d == nil || len(d.parts) != 1 || slices.Contains(j.index, parts.devs[i]) {
			return refuse(fmt.Errorf("device %d cannot be part of another one, or is named twice", parts.devs[i]))
		}
		if len(j.parts) == 0 {
			j.pci, j.meet = d.pci, d.meet
		}
		j.parts, j.index, j.speed = append(j.parts, d.parts[0]), append(j.index, parts.devs[i]), j.speed+d.speed
		names = append(names, d.parts[0].Name)
	}
	if len(j.parts) == 0 {
		return refuse(errors.New("a device of no devices"))
	}
	if err := network.transport.Together(j.parts); err != nil {
		return refuse(err)
	}
	j.name = C.CString(strings.Join(names, "+"))
	network.mu.Lock()
	defer network.mu.Unlock()
	network.devices = append(network.devices, j)
	*dev = C.int(len(network.devices) - 1)
	return C.NP_OK
}

// refuse says why at level INFO: NCCL tries what its level allows, and goes on without.
func refuse(err error) C.int {
	text := C.CString(err.Error())
	defer C.free(unsafe.Pointer(text))
	C.sv_info(text)
	return C.NP_INVALID_USAGE
}

// The handle: magic, name of the connection, secret, address and port of the listener; at its end the sender keeps what it is making.
const (
	handleMagic = "GCCLsv02"
	handleState = C.NP_HANDLE - 8
)

type handle struct {
	id     transport.ConnID
	secret transport.Secret
	at     netip.AddrPort
}

func (h handle) encode() []byte {
	b := append([]byte(handleMagic), h.id[:]...)
	b = append(b, h.secret[:]...)
	at, _ := h.at.MarshalBinary() // 6 or 18 bytes, and a zone
	return append(append(b, byte(len(at))), at...)
}

func decodeHandle(b []byte) (h handle, err error) {
	const fixed = len(handleMagic) + len(h.id) + len(h.secret)
	if len(b) != C.NP_HANDLE || string(b[:len(handleMagic)]) != handleMagic {
		return h, errors.New("a handle of another plugin")
	}
	copy(h.id[:], b[len(handleMagic):])
	copy(h.secret[:], b[len(handleMagic)+len(h.id):])
	n := int(b[fixed])
	if fixed+1+n > handleState {
		return h, errors.New("a handle that is too long")
	}
	return h, h.at.UnmarshalBinary(b[fixed+1 : fixed+1+n])
}

// making is a connection that is being made: a result, sooner or later.
type making struct {
	cancel context.CancelFunc
	ended  chan struct{}
	comm   *C.sv_comm
	err    error
	accept *transport.Acceptor // of a listener
}

// patience bounds the making of a connection; NCCL itself waits for ever.
const patience = 2 * time.Minute

func start(f func(ctx context.Context) (*C.sv_comm, error)) *making {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	m := &making{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(m.ended)
		m.comm, m.err = f(ctx)
	}()
	return m
}

// poll gives the connection once it is there. NULL: not yet.
func (m *making) poll(out *unsafe.Pointer) error {
	*out = nil
	select {
	case <-m.ended:
		*out = unsafe.Pointer(m.comm)
		m.comm = nil
		return m.err
	default:
		return nil
	}
}

// drop ends it, whatever its state.
func (m *making) drop() {
	m.cancel()
	if m.accept != nil {
		m.accept.Close()
	}
	<-m.ended
	if m.comm != nil {
		closeComm(m.comm)
	}
}

// join connects an endpoint of a device with the peer at the other end of a stream that has proved the secret.
func join(ctx context.Context, d *device, secret transport.Secret, s stdnet.Conn, sends bool) (*C.sv_comm, error) {
	ep, err := network.transport.Open(transport.Options{Secret: secret, Devices: d.parts})
	if err != nil {
		return nil, err
	}
	comm, err := connectOver(ctx, ep, s, sends)
	if err != nil {
		_ = ep.Close()
	}
	return comm, err
}

func connectOver(ctx context.Context, ep transport.Endpoint, s stdnet.Conn, sends bool) (*C.sv_comm, error) {
	c, err := ep.NewConn(0)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.SetDeadline(time.Unix(1, 0)) })
	remote, err := swap(s, c.Blob())
	stop()
	if err != nil {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_ = c.Connect(gone, nil) // frees it
		return nil, fmt.Errorf("the other end has gone: %w", err)
	}
	if err := c.Connect(ctx, remote); err != nil {
		return nil, err
	}
	comm := C.sv_comm_new((*C.gccl_net_ep)(ep.C()), (*C.gccl_net_conn)(c.C()), flag(sends), flag(network.helped), C.uint64_t(cgo.NewHandle(ep)))
	if comm == nil {
		return nil, errors.New("out of memory")
	}
	return comm, nil
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func closeComm(c *C.sv_comm) {
	C.sv_comm_stop(c)
	h := cgo.Handle(C.sv_comm_go(c))
	ep := h.Value().(transport.Endpoint)
	h.Delete()
	_ = ep.Close()
	C.sv_comm_free(c)
}

//export gcclServeListen
func gcclServeListen(dev C.int, to unsafe.Pointer, out *unsafe.Pointer) C.int {
	*out = nil
	d := find(dev)
	if d == nil {
		return C.NP_INTERNAL
	}
	h := handle{}
	var err error
	if h.id, err = transport.NewConnID(); err != nil {
		return result(err)
	}
	if _, err := rand.Read(h.secret[:]); err != nil {
		return result(err)
	}
	l, err := stdnet.ListenTCP("tcp", stdnet.TCPAddrFromAddrPort(netip.AddrPortFrom(d.meet, 0)))
	if err != nil {
		return result(fmt.Errorf("cannot listen on %v: %w", d.meet, err))
	}
	h.at = l.Addr().(*stdnet.TCPAddr).AddrPort()
	acceptor := transport.NewAcceptor(h.secret, l)
	arrived := acceptor.Expect(h.id)
	m := start(func(ctx context.Context) (*C.sv_comm, error) {
		select {
		case s, ok := <-arrived:
			if !ok {
				return nil, errors.New("the listener was closed")
			}
			defer s.Conn.Close()
			return join(ctx, d, h.secret, s.Conn, false)
		case <-ctx.Done():
			return nil, fmt.Errorf("nobody connected: %w", ctx.Err())
		}
	})
	m.accept = acceptor
	b := unsafe.Slice((*byte)(to), C.NP_HANDLE)
	clear(b)
	copy(b, h.encode())
	*out = pack(m)
	return C.NP_OK
}

//export gcclServeAccept
func gcclServeAccept(l unsafe.Pointer, out *unsafe.Pointer) C.int { return result(unpack(l).poll(out)) }

//export gcclServeCloseListen
func gcclServeCloseListen(l unsafe.Pointer) C.int {
	unpack(l).drop()
	release(l)
	return C.NP_OK
}

//export gcclServeConnect
func gcclServeConnect(dev C.int, from unsafe.Pointer, out *unsafe.Pointer) C.int {
	*out = nil
	dv := find(dev)
	if dv == nil {
		return C.NP_INTERNAL
	}
	state := (*unsafe.Pointer)(unsafe.Add(from, handleState))
	if *state == nil {
		h, err := decodeHandle(unsafe.Slice((*byte)(from), C.NP_HANDLE))
		if err != nil {
			return result(err)
		}
		*state = pack(start(func(ctx context.Context) (*C.sv_comm, error) {
			var d stdnet.Dialer
			s, err := d.DialContext(ctx, "tcp", h.at.String())
			if err != nil {
				return nil, err
			}
			defer s.Close()
			stop := context.AfterFunc(ctx, func() { _ = s.SetDeadline(time.Unix(1, 0)) })
			own, err := transport.NewConnID()
			if err == nil {
				err = transport.ProveAsDialer(s, transport.Hello{To: h.id, From: own, Count: 1}, h.secret)
			}
			stop()
			if err != nil {
				return nil, err
			}
			return join(ctx, dv, h.secret, s, true)
		}))
	}
	m := unpack(*state)
	err := m.poll(out)
	if err != nil || *out != nil {
		m.cancel()
		release(*state)
		*state = nil
	}
	return result(err)
}

//export gcclServeClose
func gcclServeClose(c unsafe.Pointer) C.int {
	closeComm((*C.sv_comm)(c))
	return C.NP_OK
}
