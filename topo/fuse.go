package topo

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Fusion is what the user wants of network devices that act as one. The rules are those of NCCL 2.30.7 (src/graph/topo.cc, and
// src/transport/net_ib/init.cc for what a fused device is like), read 2026-11-30; docs/channel-search.md says where they differ here.
type Fusion struct {
	Level MergeLevel // devices at most so far apart become one
	Force string     // NCCL_NET_FORCE_MERGE: groups of devices, by name
	Rails bool       // NCCL_NET_MERGE_POLICY=RAIL: only devices of one rail become one by Level
	Off   bool       // NCCL_IB_MERGE_NICS=0
}

// MergeLevel is how far apart devices may hang that become one.
type MergeLevel int

// The levels of NCCL_NET_MERGE_LEVEL.
const (
	MergeNone MergeLevel = iota // LOC: a device with itself
	MergePort                   // PORT: ports and functions of one adapter
	MergePIX                    // PIX: below one switch
	MergePXB                    // PXB: below one port of a CPU
	MergePHB                    // PHB: below one CPU
	MergeSYS                    // SYS: on one host
)

// MergeLevels are the names of the levels. P2C and PXN are ways of GPUs, which no two devices have: NCCL takes the names.
var MergeLevels = []string{"LOC", "PORT", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}

// ParseMergeLevel returns the level with a name of MergeLevels.
func ParseMergeLevel(name string) (MergeLevel, error) {
	of := [...]MergeLevel{MergeNone, MergePort, MergePIX, MergePXB, MergePXB, MergePXB, MergePHB, MergeSYS}
	if i := slices.Index(MergeLevels, strings.ToUpper(name)); i >= 0 {
		return of[i], nil
	}
	return 0, cannotFuse("%q is no level of merging: %s are", name, strings.Join(MergeLevels, ", "))
}

// maxFused is how many devices become one: as many as the transports carry over together (net/ib), and NCCL's limit for plugins
// before v12. NCCL itself has 8.
const maxFused = 4

// FusionError says why devices cannot become one as the user wants.
type FusionError struct{ Text string }

func (e *FusionError) Error() string { return e.Text }

func cannotFuse(format string, args ...any) error { return &FusionError{fmt.Sprintf(format, args...)} }

// Fuse makes one device of several on every host: first those that Force names, then by Level what is left. The parts stay in the
// description and are used no more; devices that are fused already are left alone. An error is a *FusionError; the machine may be
// half changed then.
func (m *Machine) Fuse(f Fusion) error {
	for _, host := range m.netsByHost() {
		w := fuser{m: m}
		for _, n := range host { // by number
			if d, err := parseNumber(n.net.Dev); err == nil {
				w.next = max(w.next, int(d)+1)
			}
			if n.net.IsNet != 0 && !strings.Contains(n.net.Name, "+") {
				w.nets = append(w.nets, n)
			}
		}
		if err := w.force(f); err != nil {
			return err
		}
		if err := w.auto(f); err != nil {
			return err
		}
	}
	return nil
}

// netPlace is a network device and where it hangs.
type netPlace struct {
	net *Net
	nic *NIC
	pci []*PCI // from the CPU's port down to the adapter; none for virtual ones
	cpu *CPU
	in  bool // part of a fused device, or named by the user to stand alone
}

// netsByHost lists the devices: hosts in the order of the description, devices in that of their numbers.
func (m *Machine) netsByHost() [][]*netPlace {
	all := map[string][]*netPlace{}
	add := func(c *CPU, pci []*PCI, nics []*NIC) {
		for _, nic := range nics {
			for _, n := range nic.Nets {
				if n.Dev != "" {
					all[c.HostHash] = append(all[c.HostHash], &netPlace{net: n, nic: nic, pci: slices.Clone(pci), cpu: c})
				}
			}
		}
	}
	var down func(c *CPU, above []*PCI, p *PCI)
	down = func(c *CPU, above []*PCI, p *PCI) {
		here := append(slices.Clone(above), p)
		add(c, here, p.NICs)
		for _, sub := range p.PCI {
			down(c, here, sub)
		}
	}
	for _, c := range m.CPUs {
		for _, p := range c.PCI {
			down(c, nil, p)
		}
		add(c, nil, c.NICs)
	}
	var hosts [][]*netPlace
	for _, c := range m.CPUs {
		host := all[c.HostHash]
		if len(host) == 0 {
			continue // was there before, or has none
		}
		delete(all, c.HostHash)
		slices.SortStableFunc(host, func(a, b *netPlace) int {
			x, _ := parseNumber(a.net.Dev)
			y, _ := parseNumber(b.net.Dev)
			return cmp.Compare(x, y)
		})
		hosts = append(hosts, host)
	}
	return hosts
}

// fuser fuses the devices of one host.
type fuser struct {
	m    *Machine
	nets []*netPlace // that may be fused
	next int         // number of the next device
}

// force obeys NCCL_NET_FORCE_MERGE: groups between semicolons, of devices between commas, each a whole name with or without ":port".
func (w *fuser) force(f Fusion) error {
	for _, text := range strings.Split(f.Force, ";") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		var group []*netPlace
		words := strings.Split(text, ",")
		for _, word := range words {
			found, err := w.named(word)
			if err != nil {
				return cannotFuse("the group %q: %v", text, err)
			}
			group = append(group, found)
		}
		if len(group) > maxFused {
			return cannotFuse("the group %q has %d devices; at most %d become one", text, len(group), maxFused)
		}
		if f.Off && len(group) > 1 {
			return cannotFuse("the group %q is asked for, and NCCL_IB_MERGE_NICS=0 forbids it", text)
		}
		for _, n := range group[1:] {
			if !likeSpeeds(group[0], n) {
				return cannotFuse("the group %q: of %s (%d Mbit/s) and %s (%d Mbit/s) one would carry nothing: transports leave a device aside that has less than half the speed of another",
					text, group[0].net.Name, group[0].net.Speed, n.net.Name, n.net.Speed)
			}
		}
		if err := w.fuse(group); err != nil {
			return err
		}
	}
	return nil
}

// named is the device of a word, which nobody has named before.
func (w *fuser) named(word string) (*netPlace, error) {
	name, port, hasPort := strings.Cut(strings.TrimSpace(word), ":")
	number := 0
	if hasPort {
		var err error
		if number, err = strconv.Atoi(port); err != nil || number < 0 {
			return nil, fmt.Errorf("%q is no port", port)
		}
	}
	if name == "" {
		return nil, fmt.Errorf("a name is missing")
	}
	var found *netPlace
	for _, n := range w.nets {
		switch {
		case n.net.Name != name || hasPort && n.net.Port != number:
		case n.in:
			return nil, fmt.Errorf("%s is named twice", word)
		case found != nil:
			return nil, fmt.Errorf("%s has several ports here: name one as in %s:%d", name, name, found.net.Port)
		default:
			found = n
		}
	}
	if found == nil {
		return nil, fmt.Errorf("there is no network device %s; there are %s", word, w.names())
	}
	found.in = true
	return found, nil
}

func (w *fuser) names() string {
	var list []string
	for _, n := range w.nets {
		list = append(list, n.net.Name)
	}
	return strings.Join(list, " ")
}

// auto fuses ports of fabrics by distance. Interfaces, which have no port number, NCCL's own transport over TCP does not fuse.
func (w *fuser) auto(f Fusion) error {
	if f.Off || f.Level == MergeNone {
		return nil
	}
	for i, a := range w.nets {
		if a.in || a.net.Port == 0 {
			continue
		}
		group := []*netPlace{a}
		for _, b := range w.nets[i+1:] {
			if len(group) < maxFused && !b.in && b.net.Port != 0 && apart(a, b) <= f.Level && likeSpeeds(a, b) &&
				(!f.Rails || a.net.Rail != Unknown && a.net.Rail == b.net.Rail) {
				group = append(group, b)
			}
		}
		for _, n := range group {
			n.in = true
		}
		if err := w.fuse(group); err != nil {
			return err
		}
	}
	return nil
}

// likeSpeeds: transports leave a device aside that has less than half the speed of another (net/ib, net/socket).
func likeSpeeds(a, b *netPlace) bool {
	return a.net.Speed <= 0 || b.net.Speed <= 0 || 2*a.net.Speed >= b.net.Speed && 2*b.net.Speed >= a.net.Speed
}

// apart is the distance of two devices of one host.
func apart(a, b *netPlace) MergeLevel {
	if a.nic == b.nic {
		return MergePort
	}
	if a.cpu != b.cpu {
		return MergeSYS
	}
	n := commonDepth([]*netPlace{a, b})
	switch {
	case n < len(a.pci) && n < len(b.pci) && sameSlot(a.pci[n].BusID, b.pci[n].BusID):
		return MergePort
	case n == 0:
		return MergePHB
	case n == len(a.pci) && n == len(b.pci): // two nic elements of one device
		return MergePort
	case n+1 == len(a.pci) && n+1 == len(b.pci):
		return MergePIX
	}
	return MergePXB
}

// sameSlot says whether two bus ids differ in the function alone.
func sameSlot(a, b string) bool {
	return len(a) == len(b) && len(a) > 0 && strings.EqualFold(a[:len(a)-1], b[:len(b)-1])
}

// commonDepth is how many PCI devices all have above them.
func commonDepth(group []*netPlace) int {
	for depth := 0; ; depth++ {
		for _, n := range group {
			if depth >= len(n.pci) || n.pci[depth] != group[0].pci[depth] {
				return depth
			}
		}
	}
}

// fuse makes one device of a group. It hangs where the parts hang together, on a device of its own that is as wide as theirs are.
func (w *fuser) fuse(group []*netPlace) error {
	if len(group) < 2 {
		return nil
	}
	first := group[0]
	level := MergePort
	for i, a := range group {
		for _, b := range group[i+1:] {
			level = max(level, apart(a, b))
		}
	}
	if level == MergeSYS {
		return cannotFuse("%s: devices of different NUMA nodes cannot become one", joinNames(group))
	}
	net := join(group)
	net.Dev = strconv.Itoa(w.next)
	w.next++
	for _, n := range group {
		n.net.IsNet = 0
		if n.net.GIN <= 0 && n.net.RMA <= 0 && n.net.Coll <= 0 {
			n.net.Keep = 0
		}
	}
	depth := commonDepth(group)
	switch {
	case slices.IndexFunc(group, func(n *netPlace) bool { return n.nic != first.nic }) < 0:
		first.nic.Nets = append(first.nic.Nets, net)
		return nil
	case depth > 0 && depth == len(first.pci):
		p := first.pci[depth-1]
		p.NICs[0].Nets = append(p.NICs[0].Nets, net)
		return nil
	case len(first.pci) == 0:
		first.cpu.NICs = append(first.cpu.NICs, &NIC{Nets: []*Net{net}})
		return nil
	}
	leaf := first.pci[len(first.pci)-1]
	p := *leaf
	p.PCI, p.GPUs, p.Peers = nil, nil, nil
	p.NICs = []*NIC{{Nets: []*Net{net}}}
	p.BusID = w.freeBus(leaf.BusID)
	if level > MergePort {
		if width := jointWidth(group, depth); width > 0 {
			p.LinkWidth, p.HasWidth = width, true
		}
	}
	if depth > 0 {
		up := first.pci[depth-1]
		up.PCI = append(up.PCI, &p)
	} else {
		first.cpu.PCI = append(first.cpu.PCI, &p)
	}
	return nil
}

// join is the device that a group is together: the sum of the speeds, what the first has otherwise.
func join(group []*netPlace) *Net {
	net := *group[0].net
	net.Name, net.Speed, net.Keep = joinNames(group), 0, Unknown
	net.GIN, net.RMA = Unknown, Unknown // kernels use the parts
	planes := 0
	for _, n := range group {
		speed := n.net.Speed
		if speed <= 0 {
			speed = 10000 // as Build takes it
		}
		net.Speed += speed
		net.GDR = min(net.GDR, n.net.GDR)
		if n.net.Rail != net.Rail {
			net.Rail = Unknown
		}
		if n.net.Plane < 0 || n.net.Plane >= virtualPlane || planes < 0 {
			planes = -1
		} else {
			planes |= 1 << n.net.Plane
		}
	}
	if net.Plane = Unknown; planes > 0 {
		net.Plane = planes | 1<<virtualPlane
	}
	return &net
}

// virtualPlane is the bit that keeps the planes of fused devices, a set, from those of others.
const virtualPlane = 14

func joinNames(group []*netPlace) string {
	var names []string
	for _, n := range group {
		names = append(names, n.net.Name)
	}
	return strings.Join(names, "+")
}

// jointWidth adds up the lanes of the group's ways below what it has in common: the parts', unless a switch above some is narrower.
func jointWidth(group []*netPlace, depth int) int {
	below := map[*PCI][]*netPlace{}
	var order []*PCI
	for _, n := range group {
		if depth >= len(n.pci) {
			return 0
		}
		p := n.pci[depth]
		if below[p] == nil {
			order = append(order, p)
		}
		below[p] = append(below[p], n)
	}
	sum := 0
	for _, p := range order {
		width := max(p.LinkWidth, 0)
		if depth+1 < len(below[p][0].pci) {
			if parts := jointWidth(below[p], depth+1); parts > 0 && (width == 0 || parts < width) {
				width = parts
			}
		}
		sum += width
	}
	return sum
}

// freeBus is the next bus id that no device has.
func (w *fuser) freeBus(busID string) string {
	bus, ok := parseBusID(busID)
	for ok {
		bus++
		id := fmt.Sprintf("%04x:%02x:%02x.%x", bus>>20, bus>>12&0xff, bus>>4&0xff, bus&0xf)
		if w.m.FindPCI(id) == nil {
			return id
		}
	}
	return busID
}
