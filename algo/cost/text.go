package cost

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// The text form has a line for each number: its name and its value; a curve has bytes:value pairs, a protocol a line. What
// follows # is skipped.
//
//	gccl_machine 1
//	name host
//	cpus 2
//	call_ns 25
//	user_ns_per_byte 8192:0.02 131072:0.0165
//	proto ll 0.3 0.5

const textHead = "gccl_machine"

// number is one line of the text form.
type number struct {
	name  string
	int   func(m *Machine) *int
	int64 func(m *Machine) *int64
	float func(m *Machine) *float64
	curve func(m *Machine) *Curve
}

var numbers = []number{
	{name: "cpus", int: func(m *Machine) *int { return &m.CPUs }},
	{name: "call_ns", float: func(m *Machine) *float64 { return &m.Call }},
	{name: "op_ns", float: func(m *Machine) *float64 { return &m.Op }},
	{name: "poll_ns", float: func(m *Machine) *float64 { return &m.Poll }},
	{name: "signal_ns", float: func(m *Machine) *float64 { return &m.Signal }},
	{name: "switch_ns", float: func(m *Machine) *float64 { return &m.Switch }},
	{name: "user_ns_per_byte", curve: func(m *Machine) *Curve { return &m.User }},
	{name: "scratch_ns_per_byte", curve: func(m *Machine) *Curve { return &m.Scratch }},
	{name: "inside_latency_ns", float: func(m *Machine) *float64 { return &m.Inside.Latency }},
	{name: "between_latency_ns", float: func(m *Machine) *float64 { return &m.Between.Latency }},
	{name: "between_gap_ns", float: func(m *Machine) *float64 { return &m.Between.Gap }},
	{name: "between_bytes_per_ns", float: func(m *Machine) *float64 { return &m.Between.Rate }},
	{name: "leaf_cliques", int: func(m *Machine) *int { return &m.Fabric.Leaf }},
	{name: "pod_leaves", int: func(m *Machine) *int { return &m.Fabric.Pod }},
	{name: "hop_ns", float: func(m *Machine) *float64 { return &m.Fabric.Hop }},
	{name: "oversubscription", float: func(m *Machine) *float64 { return &m.Fabric.Over }},
	{name: "stage_bytes", int64: func(m *Machine) *int64 { return &m.Stage }},
	{name: "eager_bytes", int64: func(m *Machine) *int64 { return &m.Eager }},
	{name: "channels", int: func(m *Machine) *int { return &m.Channels }},
	{name: "channel_bytes_per_ns", float: func(m *Machine) *float64 { return &m.ChannelRate }},
}

func show(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// String is the text form.
func (m *Machine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s 1\nname %s\nfabric %s\n", textHead, m.Name, m.Fabric.Kind)
	for _, n := range numbers {
		b.WriteString(n.name)
		switch {
		case n.int != nil:
			fmt.Fprintf(&b, " %d", *n.int(m))
		case n.int64 != nil:
			fmt.Fprintf(&b, " %d", *n.int64(m))
		case n.float != nil:
			b.WriteString(" " + show(*n.float(m)))
		default:
			for _, p := range *n.curve(m) {
				b.WriteString(" " + show(p.Bytes) + ":" + show(p.Value))
			}
		}
		b.WriteString("\n")
	}
	for _, p := range m.Protos {
		fmt.Fprintf(&b, "proto %s %s %s\n", p.Name, show(p.Latency), show(p.Rate))
	}
	return b.String()
}

// Parse reads the text form. What a file does not name is 0.
func Parse(text string) (*Machine, error) {
	m := &Machine{}
	seen := map[string]bool{}
	for k, line := range strings.Split(text, "\n") {
		words := strings.Fields(strings.SplitN(line, "#", 2)[0])
		if len(words) == 0 {
			continue
		}
		err := fmt.Errorf("the first line is not %q", textHead+" 1")
		if len(seen) > 0 || words[0] == textHead {
			err = m.line(words, seen)
		}
		if err != nil {
			return nil, fmt.Errorf("machine text line %d %q: %w", k+1, line, err)
		}
		seen[words[0]] = true
	}
	if len(seen) == 0 {
		return nil, fmt.Errorf("machine text is empty")
	}
	return m, m.check()
}

func (m *Machine) line(words []string, seen map[string]bool) error {
	name := words[0]
	if seen[name] && name != "proto" {
		return fmt.Errorf("%s a second time", name)
	}
	switch name {
	case textHead:
		if len(words) != 2 || words[1] != "1" {
			return fmt.Errorf("a format of version %v; this library reads 1", words[1:])
		}
		return nil
	case "name", "fabric":
		if len(words) != 2 {
			return fmt.Errorf("want one word after %s", name)
		}
		if name == "name" {
			m.Name = words[1]
			return nil
		}
		if words[1] != "flat" && words[1] != "rail" && words[1] != "fat" {
			return fmt.Errorf("fabric %q is none of flat, rail, fat", words[1])
		}
		m.Fabric.Kind = words[1]
		return nil
	case "proto":
		if len(words) != 4 {
			return fmt.Errorf("want a name, a share of the latency and a share of the rate")
		}
		p := Proto{Name: words[1]}
		if err := parseFloat(words[2], &p.Latency); err != nil {
			return err
		}
		m.Protos = append(m.Protos, p)
		return parseFloat(words[3], &m.Protos[len(m.Protos)-1].Rate)
	}
	for _, n := range numbers {
		if n.name == name {
			return n.parse(m, words[1:])
		}
	}
	return fmt.Errorf("no number %q", name)
}

func (n *number) parse(m *Machine, words []string) error {
	if n.curve != nil {
		return parseCurve(words, n.curve(m))
	}
	if len(words) != 1 {
		return fmt.Errorf("want one number after %s", n.name)
	}
	if n.float != nil {
		return parseFloat(words[0], n.float(m))
	}
	v, err := strconv.ParseInt(words[0], 10, 40)
	if err != nil || v < 0 || n.int != nil && v > math.MaxInt32 {
		return fmt.Errorf("%q is no whole number from 0 on that fits", words[0])
	}
	if n.int != nil {
		*n.int(m) = int(v)
	} else {
		*n.int64(m) = v
	}
	return nil
}

func parseFloat(word string, into *float64) error {
	v, err := strconv.ParseFloat(word, 64)
	if err != nil || v < 0 || v > 1e15 || math.IsNaN(v) {
		return fmt.Errorf("%q is no number from 0 to 1e15", word)
	}
	*into = v
	return nil
}

func parseCurve(words []string, into *Curve) error {
	for _, w := range words {
		bytes, value, ok := strings.Cut(w, ":")
		var p Point
		if !ok {
			return fmt.Errorf("%q is not bytes:value", w)
		}
		if err := parseFloat(bytes, &p.Bytes); err != nil {
			return err
		}
		if err := parseFloat(value, &p.Value); err != nil {
			return err
		}
		if p.Bytes < 1 || len(*into) > 0 && p.Bytes <= (*into)[len(*into)-1].Bytes {
			return fmt.Errorf("the points of a curve are not in the order of bytes, from 1 on: %q", w)
		}
		*into = append(*into, p)
	}
	return nil
}

// check sees to it that times can be computed.
func (m *Machine) check() error {
	switch {
	case m.Stage < 64<<10:
		return fmt.Errorf("machine text: stage_bytes %d is less than 64 KiB", m.Stage)
	case len(m.User) == 0 || len(m.Scratch) == 0:
		return fmt.Errorf("machine text: no user_ns_per_byte or no scratch_ns_per_byte")
	case len(m.Protos) == 0:
		return fmt.Errorf("machine text: no proto")
	}
	for _, p := range m.Protos {
		if p.Rate == 0 {
			return fmt.Errorf("machine text: proto %s has rate 0", p.Name)
		}
	}
	return nil
}

// Find is a machine by its name, or from the file of that name.
func Find(name string) (*Machine, error) {
	if m, err := Builtin(name); err == nil {
		return m, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("machine %q is none of %v, and no file: %w", name, BuiltinNames, err)
	}
	m, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// ParseBytes reads a number of bytes with K, M or G behind it.
func ParseBytes(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMG")
	shift := map[string]int{"": 0, "K": 10, "M": 20, "G": 30}
	by, ok := shift[text[len(digits):]]
	v, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || v < 0 || v > math.MaxInt64>>by>>1 {
		return 0, fmt.Errorf("%q is no size: 8, 64K, 1M, 2G", text)
	}
	return v << by, nil
}
