package comm

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/topo"
	"github.com/gccl/gccl/topo/discover"
	"github.com/gccl/gccl/topo/place"
)

// view is what a rank contributes to the topology: where it runs, and the machine as its process sees it.
type view struct {
	Host     string      // hash of the host; empty if unknown
	Node     int         // NUMA node of the CPUs on which the rank was made
	Bus      string      // where its GPU is; empty in host mode, or if the driver does not tell
	Machine  []byte      // topology file, compressed; empty if an earlier rank of the same process tells it
	Refused  [][2]string // bus ids between which the driver refuses direct access; of the rank that tells Machine
	Trouble  string      // what was wrong with NCCL_TOPO_FILE
	Measured []topo.Measured
}

// Limits of what a peer may say (guesses, far above real values).
const (
	maxMachineBytes = 4 << 20
	maxMeasured     = 4096
	maxRefused      = 4096
	maxViewNode     = 1 << 16
)

const viewFormat = 3

func (v view) encode() []byte {
	b := []byte{viewFormat}
	b = appendText(b, v.Host)
	b = binary.BigEndian.AppendUint32(b, uint32(int32(v.Node)))
	b = appendText(b, v.Bus)
	b = appendText(b, v.Trouble)
	b = binary.BigEndian.AppendUint32(b, uint32(len(v.Machine)))
	b = append(b, v.Machine...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(v.Refused)))
	for _, p := range v.Refused {
		b = appendText(appendText(b, p[0]), p[1])
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(v.Measured)))
	for _, m := range v.Measured {
		b = appendText(b, m.Link)
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(m.GBs))
	}
	return b
}

func decodeView(b []byte) (view, error) {
	r := reader{b: b}
	if f := r.u8(); f != viewFormat {
		return view{}, fmt.Errorf("format %d is not %d", f, viewFormat)
	}
	v := view{Host: r.text(), Node: int(int32(r.u32())), Bus: r.text(), Trouble: r.text()}
	n := r.u32()
	if n > maxMachineBytes || v.Node < discover.Unknown || v.Node > maxViewNode {
		r.bad = true
	}
	v.Machine = slices.Clone(r.take(int(n)))
	n = r.u32()
	if n > maxRefused {
		r.bad = true
	}
	for i := uint32(0); i < n && !r.bad; i++ {
		v.Refused = append(v.Refused, [2]string{r.text(), r.text()})
	}
	n = r.u32()
	if n > maxMeasured {
		r.bad = true
	}
	for i := uint32(0); i < n && !r.bad; i++ {
		v.Measured = append(v.Measured, topo.Measured{Link: r.text(), GBs: math.Float64frombits(r.u64())})
	}
	if r.bad || len(r.b) != 0 {
		return view{}, fmt.Errorf("%d bytes are malformed", len(b))
	}
	return v, nil
}

// ownView looks at the machine. tell: this rank is the first of its process and tells what the process sees.
func (c *Comm) ownView(tell bool) view {
	f := c.e.local.Facts()
	v := view{Host: f.HostHash(), Node: f.NodeOf(discover.ThisAffinity()), Measured: c.e.measured.list()}
	if len(v.Measured) > maxMeasured {
		v.Measured = v.Measured[:maxMeasured]
	}
	if d := c.device(); d != nil && d.UUID != nil {
		if uuid, ok := d.UUID(d.Hello(c.ctl)); ok {
			if g := f.GPUWith(uuid); g != nil {
				v.Bus = g.BusID
			}
		}
	}
	if !tell {
		return v
	}
	m, err := c.describe(f)
	if err != nil {
		v.Trouble = err.Error()
		return v
	}
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.DefaultCompression)
	if err = m.WriteXML(w); err == nil {
		err = w.Close()
	}
	if err == nil && b.Len() > maxMachineBytes {
		err = fmt.Errorf("the description of the machine has %d bytes, at most %d are sent", b.Len(), maxMachineBytes)
	}
	if err != nil {
		v.Trouble = err.Error()
		return v
	}
	v.Machine = b.Bytes()
	v.Refused = f.Refused()
	v.Refused = v.Refused[:min(len(v.Refused), maxRefused)]
	return v
}

// describe is the machine of NCCL_TOPO_FILE, or what discovery finds.
func (c *Comm) describe(f *discover.Facts) (*topo.Machine, error) {
	name := c.set.Str(param.NCCLTopoFile)
	if name == "" {
		return f.Machine(), nil
	}
	data, err := os.ReadFile(name)
	if err != nil { // as with NCCL
		c.log.Warn(xlog.Graph, "%s is ignored: %v", c.set.Describe(param.NCCLTopoFile), err)
		return f.Machine(), nil
	}
	m, err := topo.Read(name, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.set.Describe(param.NCCLTopoFile), err)
	}
	oneHost(m, f.HostHash())
	place.Fill(m, f.Machine())
	return m, nil
}

// oneHost gives the CPUs of a file this host's hash: the file is of some machine of this kind. One that names several hosts is of an
// NVLink domain and stays as it is.
func oneHost(m *topo.Machine, hash string) {
	for _, cpu := range m.CPUs {
		if cpu.HostHash != m.CPUs[0].HostHash {
			return
		}
	}
	for _, cpu := range m.CPUs {
		cpu.HostHash = hash
	}
}

// exchangeViews gathers the views of all ranks. One that is malformed counts as trouble of its rank.
func (c *Comm) exchangeViews(ctx context.Context) ([]view, error) {
	if c.group == nil {
		return []view{c.ownView(true)}, nil
	}
	tell := true
	for r := range c.rank {
		tell = tell && c.hellos[r].Nonce != c.hellos[c.rank].Nonce
	}
	all, err := c.group.AllGatherTag(ctx, "machine", c.ownView(tell).encode())
	if err != nil {
		return nil, err
	}
	views := make([]view, len(all))
	for r, b := range all {
		if views[r], err = decodeView(b); err != nil {
			views[r] = view{Node: discover.Unknown, Trouble: fmt.Sprintf("%s sent a view that is not understood: %v", c.who(r), err)}
		}
	}
	return views, nil
}

// mergeViews joins what the processes see to one description.
func mergeViews(views []view) (*topo.Machine, error) {
	var merged *topo.Machine
	for r, v := range views {
		if v.Trouble != "" {
			return nil, fmt.Errorf("rank %d: %s", r, v.Trouble)
		}
		if len(v.Machine) == 0 {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(v.Machine)), 16*maxMachineBytes))
		if err != nil {
			return nil, fmt.Errorf("rank %d: its description of the machine: %w", r, err)
		}
		m, err := topo.Read(fmt.Sprintf("view of rank %d", r), text)
		if err != nil {
			return nil, err
		}
		if merged == nil {
			merged = m
		} else {
			place.Merge(merged, m)
		}
	}
	if merged == nil {
		return nil, fmt.Errorf("no rank has described a machine")
	}
	return merged, nil
}
