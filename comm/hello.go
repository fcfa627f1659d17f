package comm

import (
	"encoding/binary"
	"fmt"
	"sort"
	"strings"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
)

// hello is what a rank tells all others at creation. It travels as opaque bytes of the bootstrap.
type hello struct {
	Version    uint32 // of the API: 23007
	Build      string // of the library
	Nonce      arena.Nonce
	Socket     string // where the process serves its arena; empty for one rank
	AreaOffset uint64
	AreaSize   uint64
	HostID     string // the user's NCCL_HOSTID; empty if unset
	NoShare    bool   // NCCL_SHM_DISABLE=1
	Device     []byte // what the device says of itself; nothing in host mode
	CPUs       string // where the process may run: ownCPUs
	Machine    string // boot and network namespace: ownMachine
	Topology   bool   // the rank has a use for the topology
	Trace      bool   // the rank writes a trace
	NoCard     string // why kernels cannot use a card's queues here; empty: they can, or nobody asks
	// Trouble is what keeps this rank from taking part; all ranks fail with it.
	Trouble     string
	TroubleCode xerr.Code
	Agree       []pair // settings that must be the same on all ranks
}

type pair struct{ Name, Value string }

const helloFormat = 4

// Limits of what a peer may say (guesses, far above real values).
const (
	maxHelloText  = 4096
	maxHelloPairs = 512
)

func (h *hello) encode() []byte {
	b := []byte{helloFormat}
	b = binary.BigEndian.AppendUint32(b, h.Version)
	b = appendText(b, h.Build)
	b = append(b, h.Nonce[:]...)
	b = appendText(b, h.Socket)
	b = binary.BigEndian.AppendUint64(b, h.AreaOffset)
	b = binary.BigEndian.AppendUint64(b, h.AreaSize)
	b = appendText(b, h.HostID)
	b = append(b, flag(h.NoShare))
	b = appendText(b, h.CPUs)
	b = appendText(b, h.Machine)
	b = appendText(b, string(h.Device))
	b = append(b, flag(h.Topology), flag(h.Trace))
	b = appendText(b, h.NoCard)
	b = appendText(b, h.Trouble)
	b = append(b, byte(h.TroubleCode))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h.Agree)))
	for _, p := range h.Agree {
		b = appendText(b, p.Name)
		b = appendText(b, p.Value)
	}
	return b
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func appendText(b []byte, s string) []byte {
	if len(s) > maxHelloText {
		s = s[:maxHelloText]
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

// reader takes fields off a message; after the first that does not fit all give zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) u8() byte {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) u32() uint32 {
	if v := r.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if v := r.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (r *reader) text() string {
	n := r.u32()
	if n > maxHelloText {
		r.bad = true
		return ""
	}
	return string(r.take(int(n)))
}

func decodeHello(b []byte) (*hello, error) {
	r := reader{b: b}
	if f := r.u8(); f != helloFormat {
		return nil, fmt.Errorf("format %d is not %d", f, helloFormat)
	}
	h := &hello{Version: r.u32(), Build: r.text()}
	copy(h.Nonce[:], r.take(arena.NonceBytes))
	h.Socket = r.text()
	h.AreaOffset, h.AreaSize = r.u64(), r.u64()
	h.HostID = r.text()
	h.NoShare = r.u8() != 0
	h.CPUs = r.text()
	h.Machine = r.text()
	if d := r.text(); d != "" {
		h.Device = []byte(d)
	}
	h.Topology = r.u8() != 0
	h.Trace = r.u8() != 0
	h.NoCard = r.text()
	h.Trouble, h.TroubleCode = r.text(), xerr.Code(r.u8())
	n := r.u32()
	if n > maxHelloPairs {
		r.bad = true
	}
	for i := uint32(0); i < n && !r.bad; i++ {
		h.Agree = append(h.Agree, pair{r.text(), r.text()})
	}
	if r.bad || len(r.b) != 0 {
		return nil, fmt.Errorf("%d bytes are malformed", len(b))
	}
	return h, nil
}

// agreeing lists the settings that all ranks must share, by name.
func agreeing(s *param.Settings) []pair {
	var out []pair
	for name, value := range s.Agree() {
		out = append(out, pair{name, value})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// disagreement compares the hellos of all ranks. Every rank computes the same answer from the same table.
func disagreement(hs []*hello) error {
	const op = "communicator init"
	if t := table(hs, func(h *hello) string { return fmt.Sprint(h.Version) }); t != "" {
		return xerr.New(xerr.InvalidUsage, op, "ranks have different versions: %s", t).
			WithHint("load the same library on all ranks")
	}
	if t := table(hs, func(h *hello) string { return h.Build }); t != "" {
		return xerr.New(xerr.InvalidUsage, op, "ranks have different builds of the library: %s", t).
			WithHint("load the same library on all ranks")
	}
	for _, p := range hs[0].Agree {
		t := table(hs, func(h *hello) string {
			for _, q := range h.Agree {
				if q.Name == p.Name {
					return q.Value
				}
			}
			return "unknown"
		})
		if t != "" {
			return xerr.New(xerr.InvalidUsage, op, "%s differs between ranks: %s", p.Name, t).
				WithHint("set %s alike on all ranks", p.Name)
		}
	}
	if t := table(hs, func(h *hello) string { return fmt.Sprint(h.AreaSize) }); t != "" { // follows from what was compared above
		return xerr.New(xerr.Internal, op, "ranks compute different area sizes: %s", t)
	}
	return nil
}

// table writes which ranks have which value, or nothing if all have the same.
func table(hs []*hello, value func(*hello) string) string {
	ranks := map[string][]int{}
	var order []string
	for r, h := range hs {
		v := value(h)
		if ranks[v] == nil {
			order = append(order, v)
		}
		ranks[v] = append(ranks[v], r)
	}
	if len(order) < 2 {
		return ""
	}
	sort.SliceStable(order, func(i, j int) bool { return ranks[order[i]][0] < ranks[order[j]][0] })
	var parts []string
	for i, v := range order {
		if i == 8 {
			parts = append(parts, fmt.Sprintf("and %d more values", len(order)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s", rankText(ranks[v]), v))
	}
	return strings.Join(parts, ", ")
}

// rankText writes ranks as "rank 3" or "ranks 0-2, 5".
func rankText(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d:", ranks[0])
	}
	return "ranks " + rankList(ranks) + ":"
}

func rankList(ranks []int) string {
	var b strings.Builder
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if i == j {
			fmt.Fprint(&b, ranks[i])
		} else {
			fmt.Fprintf(&b, "%d-%d", ranks[i], ranks[j])
		}
		i = j + 1
	}
	return b.String()
}
