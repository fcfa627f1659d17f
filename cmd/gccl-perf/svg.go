package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"os"
	"sort"
	"strconv"
)

// plot is a sink that draws time and bandwidth over size, all logarithmic, one line for each collective, type, operator, root and
// place, and writes it to a file at the end.
type plot struct {
	file   string
	title  string
	nranks int
	curves []curve
}

type curve struct {
	name   string
	points []point
}

type point struct{ bytes, us float64 }

func (p *plot) begin(pl *plan, _ []event) {
	p.nranks = pl.nranks
	mode := "batched mean"
	if pl.latency {
		mode = "isolated calls, median"
	}
	if p.title != "" {
		return
	}
	p.title = fmt.Sprintf("%d ranks, %s buffers, %s", pl.nranks, pl.buffers(), mode)
}

func (p *plot) row(r row) {
	for place, s := range r.places {
		if s == nil || s.P50 <= 0 {
			continue
		}
		name := r.coll.name + " " + r.typ.name
		if r.op != "none" {
			name += " " + r.op
		}
		if r.root > 0 {
			name += " root " + strconv.Itoa(r.root)
		}
		name += [...]string{"", " in place"}[place]
		p.add(name, point{float64(r.coll.shownBytes(r.count, r.typ.width, p.nranks)), s.P50})
	}
}

func (p *plot) add(name string, pt point) {
	if pt.bytes <= 0 {
		return // no place on a logarithmic axis
	}
	for i := range p.curves {
		if p.curves[i].name == name {
			p.curves[i].points = append(p.curves[i].points, pt)
			return
		}
	}
	p.curves = append(p.curves, curve{name, []point{pt}})
}

func (p *plot) end(*collector) {}

// write puts the picture into the file; without a point there is nothing to draw.
func (p *plot) write() error {
	picture, err := p.draw()
	if err != nil {
		return err
	}
	return os.WriteFile(p.file, picture, 0o644)
}

// Geometry of the picture in pixels: two panels, one above the other, and the legend on the right.
const (
	plotWidth, plotHeight   = 860, 700
	plotLeft, plotRight     = 70, 230
	plotTop, plotBottom     = 40, 50
	plotMiddle, plotGap     = 380, 20 // the end of the upper panel, and what is free below it
	legendStep, maxInLegend = 18, 20
)

// plotColours are told apart with the usual kinds of colour blindness (Okabe and Ito, 2008).
var plotColours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442"}

type axis struct{ low, high, from, to float64 } // exponents, pixels

func (a axis) at(exponent float64) float64 {
	return a.from + (exponent-a.low)/(a.high-a.low)*(a.to-a.from)
}

// panel is one of the diagrams: a quantity over size.
type panel struct {
	what        string
	top, bottom float64
	of          func(point) float64
}

var panels = []panel{
	{"time (µs)", plotTop, plotMiddle, func(pt point) float64 { return pt.us }},
	{"size over time (GB/s)", plotMiddle + plotGap, plotHeight - plotBottom, func(pt point) float64 { return pt.bytes / pt.us / 1e3 }},
}

func (p *plot) draw() ([]byte, error) {
	x := axis{math.Inf(1), math.Inf(-1), plotLeft, plotWidth - plotRight}
	for _, c := range p.curves {
		for _, pt := range c.points {
			x.low, x.high = min(x.low, math.Floor(math.Log2(pt.bytes))), max(x.high, math.Ceil(math.Log2(pt.bytes)))
		}
	}
	if len(p.curves) == 0 {
		return nil, fmt.Errorf("nothing was measured that could be drawn")
	}
	x.high = max(x.high, x.low+1)

	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	fmt.Fprintf(&b, `<text x="%d" y="24" font-size="14">%s</text>`+"\n", plotLeft, html.EscapeString(p.title))
	for _, q := range panels {
		p.drawPanel(&b, q, x)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">size (bytes)</text>`+"\n", (plotLeft+plotWidth-plotRight)/2, plotHeight-12)
	for i, c := range p.curves {
		if i == maxInLegend {
			fmt.Fprintf(&b, `<text x="%d" y="%d">and %d more</text>`+"\n", plotWidth-plotRight+15, plotTop+i*legendStep+8, len(p.curves)-i)
			break
		}
		at := plotTop + i*legendStep + 8
		fmt.Fprintf(&b, `<path d="M%d %dh22" stroke="%s" stroke-width="2"/><text x="%d" y="%d">%s</text>`+"\n",
			plotWidth-plotRight+15, at, plotColours[i%len(plotColours)], plotWidth-plotRight+43, at+4, html.EscapeString(c.name))
	}
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

// drawPanel draws the axes and all curves of a panel. Below the last panel stand the sizes.
func (p *plot) drawPanel(b *bytes.Buffer, q panel, x axis) {
	y := axis{math.Inf(1), math.Inf(-1), q.bottom, q.top}
	for _, c := range p.curves {
		for _, pt := range c.points {
			v := math.Log10(q.of(pt))
			y.low, y.high = min(y.low, math.Floor(v)), max(y.high, math.Ceil(v))
		}
	}
	y.high = max(y.high, y.low+1)
	for e := x.low; e <= x.high; e += math.Ceil((x.high - x.low) / 12) {
		fmt.Fprintf(b, `<path d="M%.1f %.0fV%.0f" stroke="#ddd"/>`, x.at(e), q.top, q.bottom)
		if q.bottom == plotHeight-plotBottom {
			fmt.Fprintf(b, `<text x="%.1f" y="%.0f" text-anchor="middle">%s</text>`, x.at(e), q.bottom+18, formatSize(int64(math.Exp2(e))))
		}
		b.WriteByte('\n')
	}
	for e := y.low; e <= y.high; e++ {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			plotLeft, y.at(e), plotWidth-plotRight, plotLeft-6, y.at(e)+4, strconv.FormatFloat(math.Pow(10, e), 'g', -1, 64))
	}
	middle := (q.top + q.bottom) / 2
	fmt.Fprintf(b, `<text x="18" y="%.0f" text-anchor="middle" transform="rotate(-90 18 %.0f)">%s</text>`+"\n", middle, middle, q.what)
	for i, c := range p.curves {
		drawCurve(b, q, plotColours[i%len(plotColours)], c, x, y)
	}
}

func drawCurve(b *bytes.Buffer, q panel, colour string, c curve, x, y axis) {
	points := append([]point(nil), c.points...)
	sort.SliceStable(points, func(i, j int) bool { return points[i].bytes < points[j].bytes })
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, colour)
	for k, pt := range points {
		if k > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(b, "%.1f,%.1f", x.at(math.Log2(pt.bytes)), y.at(math.Log10(q.of(pt))))
	}
	b.WriteString("\"/>\n")
	for _, pt := range points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"><title>%s: %s B, %s µs, %.3g GB/s</title></circle>`+"\n",
			x.at(math.Log2(pt.bytes)), y.at(math.Log10(q.of(pt))), colour, html.EscapeString(c.name), formatSize(int64(pt.bytes)), formatTime(pt.us),
			pt.bytes/pt.us/1e3)
	}
}
