package gin

/*
#include "gin.h"
*/
import "C"

import (
	"context"
	"crypto/hmac"
	"crypto/sha512"
	"fmt"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/net/transport"
)

// stepTime bounds each step of the proof; all ranks are known to be alive when it begins.
const stepTime = 15 * time.Second

// Candidate is a transport that may carry traffic between ranks.
type Candidate struct {
	Transport transport.Transport
	// Between says which pairs are worth a try: the same answer on all ranks.
	Between func(a, b int) bool
}

// Need is what a communicator wants from the network. All ranks give the same, but for Rank and Comm.
type Need struct {
	Rank, NRanks int
	Comm         control.Comm        // has its area; its remote peers are set here. The zero Comm: an object of contexts alone
	Area         uintptr             // with Comm
	Remote       func(a, b int) bool // pairs that memory does not join
	Candidates   []Candidate         // best first
	Secret       transport.Secret
	Gather       func(ctx context.Context, tag string, mine []byte) ([][]byte, error)
	Who          func(rank int) string
	Say          func(line string) // for the log
}

// establishing is the state of Establish.
type establishing struct {
	Need
	g       *Gin
	remotes [][]int // by rank: those it reaches through the network, in order; they are in its mirrors in that order
	open    map[int]bool
	why     map[int][]string // by open peer: what was tried
}

// Establish connects this rank with all ranks that memory does not reach, each pair by the first candidate that proves to carry puts and
// signals between them. All ranks call it and all get the same verdict.
func Establish(ctx context.Context, n Need) (*Gin, error) {
	g, err := New(n.Rank, n.NRanks, n.Comm.Pointer())
	if err != nil {
		return nil, err
	}
	e := &establishing{Need: n, g: g, open: map[int]bool{}, why: map[int][]string{}}
	e.remotes = make([][]int, n.NRanks)
	for a := range n.NRanks {
		for b := range n.NRanks {
			if a != b && n.Remote(a, b) {
				e.remotes[a] = append(e.remotes[a], b)
			}
		}
	}
	if err = e.mirrors(); err == nil {
		err = e.run(ctx)
	}
	if err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// mirrors makes the images of the remote ranks' areas.
func (e *establishing) mirrors() error {
	mine := e.remotes[e.Rank]
	if len(mine) == 0 {
		return nil
	}
	size := uint64(C.GIN_PROOF)
	if !e.Comm.Nil() {
		size = e.Comm.AreaBytes()
	} else if err := e.ownArea(); err != nil {
		return err
	}
	base := C.gin_mirror(C.uint64_t(uint64(len(mine)) * size))
	if base == nil {
		return xerr.New(xerr.System, "gin", "no address space for the mirrors of %d ranks of %d bytes each", len(mine), size)
	}
	e.g.p.mirrors.base, e.g.p.mirrors.bytes = base, C.uint64_t(uint64(len(mine))*size)
	for i, q := range mine {
		e.open[q] = true
		e.peer(q).here_off = C.uint64_t(uint64(i) * size)
		if !e.Comm.Nil() {
			e.Comm.SetRemote(q, uintptr(unsafe.Pointer(base))+uintptr(uint64(i)*size))
		}
	}
	for q := range e.NRanks {
		for i, r := range e.remotes[q] {
			if r == e.Rank {
				e.peer(q).mirror_off = C.uint64_t(uint64(i) * size)
			}
		}
	}
	return nil
}

// ownArea makes the area of an object without a communicator.
func (e *establishing) ownArea() error {
	bytes := C.gin_proof_area(C.int32_t(e.NRanks))
	base := C.gin_mirror(bytes)
	if base == nil {
		return outOfMemory()
	}
	e.g.p.area.base, e.g.p.area.bytes = base, bytes
	e.Area = uintptr(unsafe.Pointer(base))
	return nil
}

func (e *establishing) peer(q int) *C.gin_peer {
	return (*C.gin_peer)(unsafe.Add(unsafe.Pointer(e.g.p.peer), q*C.sizeof_gin_peer))
}

func (e *establishing) run(ctx context.Context) error {
	for slot, c := range e.Candidates {
		if slot == MaxTransports {
			break
		}
		left, err := e.try(ctx, slot, c)
		if err != nil || left == 0 {
			return err
		}
	}
	return e.report(ctx)
}

// try uses one transport for the pairs that are still open, and returns how many pairs of all ranks are left.
func (e *establishing) try(ctx context.Context, slot int, c Candidate) (left int, err error) {
	name := c.Transport.Name()
	conns, blobs := map[int]transport.Conn{}, make([][]byte, e.NRanks+1)
	var failure error
	if wanted := e.wanted(c); len(wanted) > 0 {
		conns, failure = e.prepare(slot, c, wanted)
		for q, k := range conns {
			blobs[q] = k.Blob()
		}
	}
	if failure != nil {
		blobs[e.NRanks] = []byte(failure.Error())
	}
	all, err := e.gather(ctx, "gin open "+name, blobs, e.NRanks+1)
	if err != nil {
		for _, k := range conns {
			discard(k)
		}
		return 0, err
	}
	offered := false
	for _, a := range all {
		for _, b := range a[:e.NRanks] {
			offered = offered || len(b) > 0
		}
	}
	for q := range e.open {
		if c.Between == nil || c.Between(e.Rank, q) {
			if failure != nil {
				e.note(q, name, failure.Error())
			} else if text := all[q][e.NRanks]; len(text) > 0 {
				e.note(q, name, fmt.Sprintf("at %s: %s", e.Who(q), text))
			}
		}
	}
	if !offered { // nobody can: all ranks see that
		return 1, nil
	}
	e.join(ctx, slot, name, conns, all)
	if err := e.swapMemory(ctx, slot, name); err != nil {
		return 0, err
	}
	return e.prove(ctx, slot, name)
}

func discard(k transport.Conn) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_ = k.Connect(gone, nil)
}

func (e *establishing) note(q int, name, text string) {
	e.why[q] = append(e.why[q], name+": "+text)
}

func (e *establishing) wanted(c Candidate) []int {
	var w []int
	for _, q := range e.remotes[e.Rank] {
		if e.open[q] && (c.Between == nil || c.Between(e.Rank, q)) {
			w = append(w, q)
		}
	}
	return w
}

// prepare opens the endpoint and a connection for each peer.
func (e *establishing) prepare(slot int, c Candidate, wanted []int) (map[int]transport.Conn, error) {
	ep, err := c.Transport.Open(transport.Options{Rank: e.Rank, Secret: e.Secret})
	if err != nil {
		return nil, err
	}
	e.g.endpoint(slot, ep)
	conns := map[int]transport.Conn{}
	for _, q := range wanted {
		k, err := ep.NewConn(q)
		if err != nil {
			for _, k := range conns {
				discard(k)
			}
			e.g.dropEndpoint(slot)
			return nil, err
		}
		conns[q] = k
	}
	return conns, nil
}

// join connects with all peers that have prepared for it.
func (e *establishing) join(ctx context.Context, slot int, name string, conns map[int]transport.Conn, all [][][]byte) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	var wait sync.WaitGroup
	errs := map[int]error{}
	var mu sync.Mutex
	for q, k := range conns {
		blob := all[q][e.Rank]
		if len(blob) == 0 {
			discard(k)
			delete(conns, q)
			continue
		}
		wait.Add(1)
		go func() {
			defer wait.Done()
			err := k.Connect(ctx, blob)
			mu.Lock()
			errs[q] = err
			mu.Unlock()
		}()
	}
	wait.Wait()
	for q, k := range conns {
		if errs[q] != nil {
			e.note(q, name, errs[q].Error())
			continue
		}
		e.g.connect(q, slot, k)
	}
}

// swapMemory registers this rank's memory and imports the peers'. Pairs that cannot are disconnected.
func (e *establishing) swapMemory(ctx context.Context, slot int, name string) error {
	blobs := make([][]byte, e.NRanks+2) // by peer: connected or not; then the registrations
	var failure error
	if e.g.eps[slot] != nil {
		if failure = e.g.register(false, e.Area, e.areaBytes()); failure == nil {
			failure = e.g.register(true, uintptr(unsafe.Pointer(e.g.p.mirrors.base)), uint64(e.g.p.mirrors.bytes))
		}
	}
	for q := range e.open {
		if e.carries(q, slot) && failure == nil {
			blobs[q] = []byte{1}
		}
	}
	if failure == nil {
		blobs[e.NRanks], blobs[e.NRanks+1] = e.g.blob(false, slot), e.g.blob(true, slot)
	}
	all, err := e.gather(ctx, "gin memory "+name, blobs, e.NRanks+2)
	if err != nil {
		return err
	}
	for q := range e.open {
		if !e.carries(q, slot) {
			continue
		}
		bad := failure
		if bad == nil && len(all[q][e.Rank]) == 0 {
			bad = fmt.Errorf("%s has not connected or cannot register memory", e.Who(q))
		}
		if bad == nil {
			bad = e.g.importFrom(q, false, all[q][e.NRanks])
		}
		if bad == nil {
			bad = e.g.importFrom(q, true, all[q][e.NRanks+1])
		}
		if bad != nil {
			e.note(q, name, bad.Error())
			e.g.disconnect(q)
		}
	}
	return nil
}

func (e *establishing) areaBytes() uint64 {
	if e.Comm.Nil() {
		return uint64(e.g.p.area.bytes)
	}
	return e.Comm.AreaBytes()
}

func (e *establishing) carries(q, slot int) bool {
	p := e.peer(q)
	return p.conn != nil && int(p.endpoint) == slot
}

// pattern is what a rank puts; only members of the communicator can compute it.
func (e *establishing) pattern(from int) []byte {
	m := hmac.New(sha512.New, e.Secret[:])
	_, _ = fmt.Fprintf(m, "gin proof %d", from)
	return m.Sum(nil)
}

// prove puts and signals through every connection, and returns how many pairs are left without one.
func (e *establishing) prove(ctx context.Context, slot int, name string) (left int, err error) {
	state := make([][]byte, e.NRanks)
	pending := map[int]bool{}
	mine := e.pattern(e.Rank)
	for q := range e.open {
		if e.carries(q, slot) {
			pending[q] = true
			e.g.with(func() { C.gin_prove(e.g.p, C.int32_t(q), (*C.uchar)(unsafe.Pointer(unsafe.SliceData(mine)))) })
		}
	}
	deadline := time.Now().Add(stepTime)
	for len(pending) > 0 && ctx.Err() == nil && time.Now().Before(deadline) {
		moved := e.g.Help()
		for q := range pending {
			want := e.pattern(q)
			switch C.gin_proved(e.g.p, C.int32_t(q), (*C.uchar)(unsafe.Pointer(unsafe.SliceData(want)))) {
			case 1:
				state[q] = []byte{1}
				delete(pending, q)
			case -1:
				e.note(q, name, "its signal came and its bytes did not")
				delete(pending, q)
			}
		}
		if !moved {
			time.Sleep(50 * time.Microsecond)
		}
	}
	for q := range pending {
		e.note(q, name, "its put did not come")
	}
	e.g.Drain(stepTime)
	var all [][][]byte
	gathered := make(chan struct{})
	go func() {
		defer close(gathered)
		all, err = e.gather(ctx, "gin proof "+name, state, e.NRanks)
	}()
	e.helpUntil(gathered) // what this rank has put may still be on its way out, and a peer waits for it
	if err != nil {
		return 0, err
	}
	carried := 0
	for a := range e.NRanks {
		for _, b := range e.remotes[a] {
			if a < b && len(all[a][b]) > 0 && len(all[b][a]) > 0 {
				carried++
			}
		}
	}
	for q := range e.open {
		if !e.carries(q, slot) {
			continue
		}
		if len(all[q][e.Rank]) > 0 && len(state[q]) > 0 {
			delete(e.open, q)
			continue
		}
		if len(state[q]) > 0 {
			e.note(q, name, "this rank's put did not come there")
		}
		e.g.disconnect(q)
	}
	if carried > 0 {
		e.Say(fmt.Sprintf("%s carries %d of %d pairs of ranks that do not share memory", name, carried, e.pairs()))
	} else {
		e.g.dropEndpoint(slot)
	}
	return e.leftOf(ctx, name)
}

// helpUntil serves the network, which has no thread yet.
func (e *establishing) helpUntil(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
			if !e.g.Help() {
				time.Sleep(50 * time.Microsecond)
			}
		}
	}
}

func (e *establishing) pairs() int {
	n := 0
	for _, r := range e.remotes {
		n += len(r)
	}
	return n / 2
}

// leftOf agrees on whether another transport is needed.
func (e *establishing) leftOf(ctx context.Context, name string) (int, error) {
	all, err := e.gather(ctx, "gin left "+name, [][]byte{make([]byte, len(e.open))}, 1)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, a := range all {
		n += len(a[0])
	}
	return n, nil
}

// gather exchanges lists of byte strings.
func (e *establishing) gather(ctx context.Context, tag string, mine [][]byte, n int) ([][][]byte, error) {
	parts, err := e.Gather(ctx, tag, pack(mine...))
	if err != nil {
		return nil, err
	}
	out := make([][][]byte, len(parts))
	for r, b := range parts {
		if out[r] = unpack(b, n); out[r] == nil {
			return nil, xerr.New(xerr.Remote, "gin", "%s sent %d malformed bytes (%s)", e.Who(r), len(b), tag).WithRank(r)
		}
	}
	return out, nil
}

// report says on all ranks which pairs no transport carries.
func (e *establishing) report(ctx context.Context) error {
	var mine []string
	for _, q := range e.remotes[e.Rank] {
		if e.open[q] {
			tried := "no transport was tried"
			if len(e.why[q]) > 0 {
				tried = strings.Join(e.why[q], "; ")
			}
			mine = append(mine, fmt.Sprintf("%s and %s: %s", e.Who(e.Rank), e.Who(q), tried))
		}
	}
	text := strings.Join(mine, "; ")
	if len(text) > 2048 {
		text = text[:2048]
	}
	all, err := e.gather(ctx, "gin verdict", [][]byte{[]byte(text)}, 1)
	if err != nil {
		return err
	}
	for _, a := range all {
		if len(a[0]) > 0 {
			return xerr.New(xerr.System, "communicator init", "no network between ranks that do not share memory: %s", a[0])
		}
	}
	return nil
}
