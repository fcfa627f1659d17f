package comm

import (
	"encoding/binary"
	"fmt"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/device/host/control"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
)

// lsaSize is the number of ranks of an LSA team: the greatest that divides the world into equal runs of consecutive ranks, each
// inside one clique. Kernels compute with that shape. All ranks come to the same answer.
func (c *Comm) lsaSize(nranks int) int {
	size, run := 0, 0
	for r := range nranks {
		if run++; r+1 == nranks || c.apart(r, r+1) {
			size, run = gcd(size, run), 0
		}
	}
	return gcd(size, int(c.set.Int(param.NCCLLsaTeamSize))) // 0 leaves it
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// kernelStride is the unit of the distance between ranks in the flat range as compiled kernels know it (ncclWindow_vidmem.stride4G).
const kernelStride = 4 << 30

// deviceAPI says why this rank cannot make device communicators, or nil.
func (c *Comm) deviceAPI() error {
	const op = "device communicator"
	if !c.set.Bool(param.NCCLWinEnable) {
		return xerr.New(xerr.InvalidUsage, op, "windows are switched off (%s), and its resources live in one", c.set.Describe(param.NCCLWinEnable))
	}
	if c.set.Size(param.GCCLLsaStride)%kernelStride != 0 {
		return xerr.New(xerr.InvalidUsage, op, "%s: kernels count the distance between ranks in units of 4 GiB", c.set.Describe(param.GCCLLsaStride)).
			WithHint("use a multiple of 4 GiB")
	}
	return nil
}

// NewResources makes the resource window of a device communicator: bytes of zeroed memory at every rank. Collective, in the
// order of windows. digest stands for what was asked for, which must be the same on all ranks.
func (c *Comm) NewResources(bytes, digest uint64) (control.Window, error) {
	none := control.Window{}
	if err := c.usable("device communicator"); err != nil {
		return none, err
	}
	if err := c.deviceAPI(); err != nil { // all ranks have the same settings
		return none, err
	}
	at, free, err := c.resourceMemory(bytes)
	if aerr := c.agreeOnResources(digest, err); aerr != nil {
		if err == nil {
			free()
		}
		return none, aerr
	}
	w, err := c.registerWindow(at, bytes, 0, true)
	free() // when the window, which pins it, goes
	return w, err
}

// resourceMemory is memory of zeros for a resource window.
func (c *Comm) resourceMemory(bytes uint64) (at uintptr, free func(), err error) {
	if d := c.device(); d != nil {
		at, err = d.NewMemory(c.ctl, bytes)
		return at, func() { d.FreeMemory(at) }, err
	}
	a, err := arena.Process()
	if err != nil {
		return 0, nil, err
	}
	al, err := a.Alloc(bytes)
	return a.Base() + uintptr(al.Offset), func() { _ = a.Free(al) }, err
}

// RefuseResources takes the place of NewResources on a rank whose requirements are wrong: the others, who wait for it, hear why.
func (c *Comm) RefuseResources(code xerr.Code, text string) {
	if c.group != nil && c.usable("device communicator") == nil && c.deviceAPI() == nil {
		tag, msg := c.resourcesMessage(0, xerr.New(code, "device communicator", "%s", text))
		go func() { _, _ = c.group.AllGatherTag(c.ctx, tag, msg) }() // this rank need not wait for them
	}
}

// resourcesMessage is what this rank has to say in the next agreement.
func (c *Comm) resourcesMessage(digest uint64, err error) (tag string, msg []byte) {
	c.mu.Lock()
	c.devSeq++
	tag = fmt.Sprintf("device communicator %d", c.devSeq)
	c.mu.Unlock()
	msg = binary.BigEndian.AppendUint64([]byte{byte(xerr.CodeOf(err))}, digest)
	if err != nil {
		msg = appendText(msg, err.Error())
	}
	return tag, msg
}

// agreeOnResources compares what the ranks ask for, and tells all of them what kept any.
func (c *Comm) agreeOnResources(digest uint64, err error) error {
	if c.group == nil {
		return err
	}
	tag, msg := c.resourcesMessage(digest, err)
	parts, gerr := c.group.AllGatherTag(c.ctx, tag, msg)
	if err != nil {
		return err
	}
	if gerr != nil {
		return gerr
	}
	for r, b := range parts {
		rd := reader{b: b}
		code, theirs := xerr.Code(rd.u8()), rd.u64()
		switch {
		case code != xerr.Success:
			return xerr.New(code, "device communicator", "%s cannot make its part: %s", c.who(r), rd.text())
		case rd.bad || theirs != digest:
			return xerr.New(xerr.InvalidUsage, "device communicator", "%s asks for other requirements than %s", c.who(r), c.who(c.rank)).WithRank(r).
				WithHint("pass the same requirements, and make device communicators in the same order, on all ranks")
		}
	}
	return nil
}
