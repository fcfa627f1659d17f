package main

import (
	"bytes"
	"fmt"
	"html"
	"strings"

	"github.com/gccl/gccl/topo"
	"github.com/gccl/gccl/topo/place"
)

// Rows of the drawing in pixels.
const (
	titleHeight = 56.0
	rowHeight   = 74.0
	boxHeight   = 40.0
	linkRoom    = 92.0 // below the devices: NVLinks
	laneHeight  = 78.0
	maxLanes    = 12
)

// colours are told apart with the usual kinds of colour blindness (Okabe and Ito, 2008).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#8b5a2b"}

var fills = map[topo.Kind]string{topo.CPUNode: "#dfe7f2", topo.PCINode: "#eeeeee", topo.DEVNode: "#dcefdc", topo.NICNode: "#fbe8d0"}

type drawing struct {
	bytes.Buffer
	l     *layout
	hosts int
}

// draw makes the picture of a machine: the tree of CPUs and PCI, the NVLinks below it, and under each other the orders in which
// channels visit the devices, at the devices' columns.
func draw(found *topo.Decision, title string) []byte {
	s := found.System
	d := &drawing{l: arrange(s), hosts: len(s.Hosts)}
	lanes, left := lanesOf(found)
	bottom := titleHeight + rowHeight*float64(d.l.deep) + boxHeight
	room := 24.0
	if hasNVLinks(s) {
		room = linkRoom
	}
	height := bottom + room + laneHeight*float64(len(lanes)) + 24
	width := max(d.l.width, 560)
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="11">`+"\n", width, height, width, height)
	d.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	d.text(margin, 24, "start", 15, "#000", title)
	d.text(margin, 42, "start", 11, "#444", summary(found))
	for _, b := range d.l.cpus {
		d.tree(b)
	}
	d.between(s)
	d.nvlinks(s, bottom)
	y := bottom + room
	for i, lane := range lanes {
		d.lane(lane, y, colours[i%len(colours)])
		y += laneHeight
	}
	if left > 0 {
		d.text(margin, y+14, "start", 11, "#444", "and "+plural(left, "more order"))
	}
	d.WriteString("</svg>\n")
	return d.Bytes()
}

func summary(found *topo.Decision) string {
	s := found.System
	out := []string{fmt.Sprintf("%s on %s, %s", plural(len(s.Ranks), "rank"), plural(s.Count(topo.DEVNode), "device"), plural(s.Count(topo.NETNode), "network device"))}
	for _, g := range graphsOf(found) {
		out = append(out, fmt.Sprintf("%s %d × %.4g GB/s (%s)", g.name, g.N(), g.BWIntra, g.TypeIntra))
	}
	return strings.Join(out, "; ") + ". Numbers at lines are GB/s."
}

func (d *drawing) text(x, y float64, anchor string, size int, colour, text string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" fill="%s">%s</text>`+"\n", x, y, anchor, size, colour, html.EscapeString(text))
}

func (d *drawing) line(x1, y1, x2, y2 float64, colour string, width float64) {
	fmt.Fprintf(d, `<path d="M%.1f %.1fL%.1f %.1f" stroke="%s" stroke-width="%.1f" fill="none"/>`+"\n", x1, y1, x2, y2, colour, width)
}

func (d *drawing) rect(x, y, w, h float64, fill string) {
	fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="5" fill="%s" stroke="#777"/>`+"\n", x, y, w, h, fill)
}

func (d *drawing) top(b *box) float64 {
	row := b.depth
	if len(b.subs) == 0 && b.node.Kind != topo.CPUNode {
		row = d.l.deep // devices stand in one row
	}
	return titleHeight + rowHeight*float64(row)
}

// tree draws a box and what hangs on it.
func (d *drawing) tree(b *box) {
	y := d.top(b)
	for _, sub := range b.subs {
		x, end := sub.middle(), d.top(sub)
		d.line(x, y+boxHeight, x, end, "#777", 1.5)
		d.text(x+4, end-8, "start", 10, "#444", number(sub.up.BW))
		d.tree(sub)
	}
	d.rect(b.left, y, b.right-b.left, boxHeight, fills[b.node.Kind])
	head, tail := d.label(b.node)
	d.text(b.middle(), y+17, "middle", 12, "#000", head)
	d.text(b.middle(), y+32, "middle", 10, "#444", tail)
}

// label is the name of a box and a line about it.
func (d *drawing) label(n *topo.Node) (head, tail string) {
	narrow := d.l.leaf < leafWidth
	switch n.Kind {
	case topo.CPUNode:
		head = fmt.Sprintf("NUMA node %d", n.CPU.NUMA)
		if n.CPU.NUMA < 0 {
			head = "NUMA node unknown"
		}
		if d.hosts > 1 {
			head += fmt.Sprintf(" of host %d", n.ID.Host())
		}
		return head, strings.TrimSpace(n.CPU.Arch + " " + strings.TrimSpace(n.CPU.Vendor))
	case topo.PCINode:
		return "PCI", shortBus(n.PCI.BusID)
	case topo.DEVNode:
		var ranks []string
		for _, r := range n.Dev.Ranks {
			ranks = append(ranks, fmt.Sprint(r.Rank))
		}
		word := "rank "
		if len(ranks) > 1 {
			word = "ranks "
		}
		return word + strings.Join(ranks, ","), deviceName(n.Dev, narrow)
	case topo.NICNode:
		var names []string
		var gbs float64
		for _, net := range nets(n) {
			names = append(names, fmt.Sprintf("%d", net.Dev))
			gbs += net.BW
		}
		if len(names) == 0 {
			return "NIC", "unused"
		}
		head = "NET " + strings.Join(names, ",")
		if len(names) > 3 {
			head = fmt.Sprintf("NET %s … %s", names[0], names[len(names)-1])
		}
		if narrow {
			return head, number(gbs)
		}
		first := nets(n)[0].Name
		if len(first) > 11 {
			first = first[:10] + "…"
		}
		return head, first + " " + number(gbs)
	}
	return n.String(), ""
}

// deviceName tells where ranks run, as far as there is room.
func deviceName(d *topo.DevInfo, narrow bool) string {
	if place.IsOnCPUs(d.BusID) {
		return "on CPUs"
	}
	name, bus := fmt.Sprintf("GPU %d", d.Dev), shortBus(d.BusID)
	switch {
	case narrow:
		return bus[max(len(bus)-7, 0):]
	case d.Part >= 0:
		return name + fmt.Sprintf(" part %d", d.Part)
	case len(bus) > len("00:00.0"):
		return bus
	}
	return name + " " + bus
}

// between draws links of neighbouring CPUs.
func (d *drawing) between(s *topo.System) {
	for i := 1; i < len(d.l.cpus); i++ {
		a, b := d.l.cpus[i-1], d.l.cpus[i]
		for _, link := range a.node.Out {
			if link.To == b.node {
				y := titleHeight + boxHeight/2
				d.line(a.right, y, b.left, y, "#777", 3)
				d.text((a.right+b.left)/2, y-6, "middle", 10, "#444", number(link.BW))
			}
		}
	}
}

// nvlinks draws the switch as a bar with a line from each device, and direct links as arcs.
func (d *drawing) nvlinks(s *topo.System, y float64) {
	const barDown, barHeight = 44.0, 24.0
	if s.Count(topo.NVSNode) > 0 && len(s.Nodes[topo.DEVNode]) > 0 {
		left, right := d.l.width, 0.0
		for _, dev := range s.Nodes[topo.DEVNode] {
			b := d.l.at[dev]
			for _, link := range dev.Out {
				if b != nil && link.To.Kind == topo.NVSNode {
					left, right = min(left, b.left), max(right, b.right)
					d.line(b.middle(), y, b.middle(), y+barDown, "#2e7d32", 3)
					d.text(b.middle()+5, y+24, "start", 10, "#2e7d32", number(link.BW))
				}
			}
		}
		if right > left {
			d.rect(left, y+barDown, right-left, barHeight, "#b7dcb7")
			d.text((left+right)/2, y+barDown+16, "middle", 12, "#000", "NVLink switches")
		}
	}
	d.mesh(s, y)
}

func hasNVLinks(s *topo.System) bool {
	for _, link := range s.Links {
		if link.Type == topo.NVL {
			return true
		}
	}
	return false
}

// mesh draws direct links as arcs. In a dense mesh of equal links one line says the bandwidth of all.
func (d *drawing) mesh(s *topo.System, y float64) {
	var links []*topo.Link
	equal := true
	for _, link := range s.Links {
		a, b := d.l.at[link.From], d.l.at[link.To]
		if link.Type == topo.NVL && a != nil && b != nil && a.middle() < b.middle() {
			links = append(links, link)
			equal = equal && link.BW == links[0].BW
		}
	}
	dense := equal && len(links) > 8
	for _, link := range links {
		x1, x2 := d.l.at[link.From].middle(), d.l.at[link.To].middle()
		down := min(20+(x2-x1)/14, linkRoom-30)
		fmt.Fprintf(d, `<path d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f" stroke="#2e7d32" stroke-width="%.1f" fill="none" opacity="0.75"/>`+"\n",
			x1, y, x1, y+1.3*down, x2, y+1.3*down, x2, y, 1+link.BW/40)
		if !dense {
			d.text((x1+x2)/2, y+down+9, "middle", 9, "#2e7d32", number(link.BW))
		}
	}
	if dense {
		d.text(d.l.width/2, y+linkRoom-8, "middle", 11, "#2e7d32", fmt.Sprintf("%d direct links of %s each", len(links), number(links[0].BW)))
	}
}

// lane draws one order of devices: a point for each at its column, an arc to the next, forward above the line and back below.
func (d *drawing) lane(lane lane, y float64, colour string) {
	d.line(margin, y, max(d.l.width, 560)-margin, y, "#e5e5e5", 1)
	d.text(margin, y+14, "start", 11, colour, lane.title)
	base := y + 50
	for _, step := range lane.steps {
		a, b := d.l.at[step.from], d.l.at[step.to]
		if a == nil || b == nil || a == b {
			continue
		}
		x1, x2 := a.middle(), b.middle()
		bend := -min(14+abs(x2-x1)/40, 26.0)
		if x2 < x1 {
			bend = -bend
		}
		fmt.Fprintf(d, `<path d="M%.1f %.1fQ%.1f %.1f %.1f %.1f" stroke="%s" stroke-width="1.8" fill="none"/>`+"\n", x1, base, (x1+x2)/2, base+1.6*bend, x2, base, colour)
		// The arrow stands in the middle of the arc, where arcs of one point do not cover each other.
		tip := 5.0
		if x2 < x1 {
			tip = -tip
		}
		mx, my := (x1+x2)/2, base+0.8*bend
		fmt.Fprintf(d, `<path d="M%.1f %.1fL%.1f %.1fL%.1f %.1fZ" fill="%s"/>`+"\n", mx+tip, my, mx-tip, my-4, mx-tip, my+4, colour)
	}
	for _, n := range lane.visits() {
		if b := d.l.at[n]; b != nil {
			fmt.Fprintf(d, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", b.middle(), base, colour)
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }

func number(gbs float64) string {
	if gbs >= topo.LocalBW {
		return "∞"
	}
	return fmt.Sprintf("%.4g", gbs)
}

// shortBus leaves out an all-zero domain.
func shortBus(id string) string { return strings.TrimPrefix(id, "0000:") }
