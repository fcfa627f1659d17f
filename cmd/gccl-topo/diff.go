package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// errDiffer makes the exit status 1, as diff's.
var errDiffer = errors.New("the files differ")

func diffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff FILE FILE",
		Short: "Compare two topology files or two graph files, element by element",
		Long: `Compare two topology files or two graph files, element by element: "-" is only in the first, "+" only in the second, "~" in both with
other values. PCI devices are found by bus id, CPUs by host and NUMA node, network devices by name. The order of elements does not count,
except in channels. Exit status 1 if there is a difference.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var files [2]flat
			for i, name := range args {
				data, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				if files[i], err = flatten(name, data); err != nil {
					return err
				}
			}
			if printDiff(cmd.OutOrStdout(), files[0], files[1]) > 0 {
				return errDiffer
			}
			return nil
		},
	}
}

// flat is a file without order: its elements by name.
type flat map[string]*item

type item struct {
	attrs map[string]string
	under string // name of the element around it; empty for the root
	below int    // how many elements are in it
}

// identity says which attributes name an element that is known by itself, and which do in the element around it. Others are counted there.
var (
	identity = map[string][]string{"cpu": {"host_hash", "numaid"}, "pci": {"busid"}, "net": {"name", "port"}, "graph": {"id"}}
	inside   = map[string][]string{"gpu": {"dev", "rank", "mlopart"}, "nvlink": {"target"}, "xgmi": {"target"}, "c2c": {"bw"}, "pcilink": {"target"}}
)

func flatten(file string, data []byte) (flat, error) {
	f, seen := flat{}, map[string]int{}
	var path []string
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			it := &item{attrs: map[string]string{}}
			for _, a := range e.Attr {
				it.attrs[a.Name.Local] = a.Value
			}
			if len(path) > 0 {
				it.under = path[len(path)-1]
			}
			name := nameOf(e.Name.Local, it)
			if n := seen[name]; n > 0 || isCounted(e.Name.Local) && len(path) > 0 {
				seen[name]++
				name = fmt.Sprintf("%s %d", name, n)
			}
			for f[name] != nil { // a name that looks like a number of another
				name += "'"
			}
			seen[name]++
			f[name] = it
			for _, around := range path {
				f[around].below++
			}
			path = append(path, name)
		case xml.EndElement:
			path = path[:len(path)-1]
		}
	}
	if len(f) == 0 {
		return nil, fmt.Errorf("%s: no element in it", file)
	}
	return f, nil
}

func isCounted(element string) bool { return identity[element] == nil && inside[element] == nil }

func nameOf(element string, it *item) string {
	ids, name := identity[element], element
	if ids == nil && it.under != "" {
		ids, name = inside[element], it.under+", "+element
	}
	for _, id := range ids {
		if v := it.attrs[id]; v != "" {
			name += " " + v
		}
	}
	return name
}

// printDiff writes the differences and counts them.
func printDiff(w io.Writer, a, b flat) int {
	n := 0
	say := func(mark, name, text string) {
		n++
		fmt.Fprintln(w, strings.TrimRight(mark+" "+name+" "+text, " "))
	}
	all := slices.Sorted(maps.Keys(a))
	for name := range b {
		if a[name] == nil {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	for _, name := range all {
		x, y := a[name], b[name]
		switch {
		case y == nil && !missing(x, b):
			say("-", name, x.String())
		case x == nil && !missing(y, a):
			say("+", name, y.String())
		case x == nil || y == nil: // said with what is around it
		default:
			if x.under != y.under {
				say("~", name, fmt.Sprintf("in %s, then in %s", x.under, y.under))
			}
			attrs := maps.Clone(x.attrs)
			maps.Copy(attrs, y.attrs)
			for _, attr := range slices.Sorted(maps.Keys(attrs)) {
				if p, q := shown(x, attr), shown(y, attr); p != q {
					say("~", name, fmt.Sprintf("%s: %s, then %s", attr, p, q))
				}
			}
		}
	}
	return n
}

// missing says whether the element around one is not in the other file either.
func missing(it *item, there flat) bool { return it.under != "" && there[it.under] == nil }

func shown(it *item, attr string) string {
	if v, ok := it.attrs[attr]; ok {
		return fmt.Sprintf("%q", v)
	}
	return "not there"
}

func (it *item) String() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(it.attrs)) {
		out = append(out, fmt.Sprintf("%s=%q", k, it.attrs[k]))
	}
	if it.below > 0 {
		out = append(out, "with "+plural(it.below, "element")+" in it")
	}
	return strings.Join(out, " ")
}
