package main

import (
	"fmt"
	"strings"
)

// jobText is what every rank process reads from its control pipe; rank/job.c is the other side. id is the
// hexadecimal unique id.
func (p *plan) jobText(id string) string {
	var b strings.Builder
	flag := map[bool]int{true: 1}
	fmt.Fprintf(&b, "id %s\n", id)
	fmt.Fprintf(&b, "set buffers %s\n", p.buffers())
	fmt.Fprintf(&b, "set latency %d\n", flag[p.latency])
	fmt.Fprintf(&b, "set stream %d\n", flag[p.hostStream])
	fmt.Fprintf(&b, "set pin %d\n", flag[p.pin])
	fmt.Fprintf(&b, "set timeout %g\n", p.timeout.Seconds())
	for _, m := range p.measurements {
		places := 1
		if m.inPlace {
			places = 3
		}
		fmt.Fprintf(&b, "case %s %s %s %d %d %d %d %d %d\n", m.coll.name, m.typ.name, m.op, max(m.root, 0),
			m.count, m.iterations, p.warmup, p.checks, places)
	}
	b.WriteString("go\n")
	return b.String()
}
