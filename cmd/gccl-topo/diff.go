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

// flat is a file without order: attributes by element.
type flat map[string]map[string]string

// identity says which attributes name an element; "under" is the element around it. Others are counted in their parent.
var identity = map[string][]string{
	"cpu": {"host_hash", "numaid"}, "pci": {"busid"}, "gpu": {"under", "dev", "rank", "mlopart"}, "nvlink": {"under", "target"}, "xgmi": {"under", "target"},
	"c2c": {"under", "bw"}, "net": {"name", "port"}, "pcilink": {"under", "target"}, "graph": {"id"},
}

func flatten(name string, data []byte) (flat, error) {
	f := flat{}
	var path []string
	var counts []map[string]int // of nameless elements, by depth
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			attrs := map[string]string{}
			for _, a := range e.Attr {
				attrs[a.Name.Local] = a.Value
			}
			under := ""
			if len(path) > 0 {
				under = path[len(path)-1]
				attrs["under"] = under
			}
			key := e.Name.Local
			if ids := identity[key]; ids != nil {
				for _, id := range ids {
					if v, ok := attrs[id]; ok && v != "" && id != "under" {
						key += " " + v
					} else if id == "under" {
						key = under + ", " + key
					}
				}
			} else if len(path) > 0 {
				n := counts[len(counts)-1]
				n[key]++
				key = fmt.Sprintf("%s, %s %d", under, e.Name.Local, n[e.Name.Local]-1)
			}
			for again := key; f[key] != nil; { // two elements of one name: both are kept
				again += "'"
				key = again
			}
			f[key] = attrs
			path, counts = append(path, key), append(counts, map[string]int{})
		case xml.EndElement:
			path, counts = path[:len(path)-1], counts[:len(counts)-1]
		}
	}
	if len(f) == 0 {
		return nil, fmt.Errorf("%s: no element in it", name)
	}
	return f, nil
}

// printDiff writes the differences and counts them.
func printDiff(w io.Writer, a, b flat) int {
	n := 0
	say := func(mark, key, text string) {
		n++
		fmt.Fprintln(w, strings.TrimRight(mark+" "+key+" "+text, " "))
	}
	all := slices.Sorted(maps.Keys(a))
	for key := range b {
		if a[key] == nil {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	for _, key := range all {
		x, y := a[key], b[key]
		switch {
		case y == nil && !within(x, a, b):
			say("-", key, list(x)+below(key, a))
		case x == nil && !within(y, b, a):
			say("+", key, list(y)+below(key, b))
		case x == nil || y == nil: // said with what is around it
		default:
			names := maps.Clone(x)
			maps.Copy(names, y)
			for _, attr := range slices.Sorted(maps.Keys(names)) {
				if x[attr] != y[attr] {
					say("~", key, fmt.Sprintf("%s: %s, then %s", attr, shown(x, attr), shown(y, attr)))
				}
			}
		}
	}
	return n
}

// within says whether the element around one is missing in the other file too.
func within(attrs map[string]string, here, there flat) bool {
	under := attrs["under"]
	return under != "" && here[under] != nil && there[under] == nil
}

// below counts what stands in an element.
func below(key string, f flat) string {
	n := 0
	for _, attrs := range f {
		for under := attrs["under"]; under != ""; under = f[under]["under"] {
			if under == key {
				n++
				break
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" with %d elements in it", n)
}

func shown(attrs map[string]string, name string) string {
	if v, ok := attrs[name]; ok {
		return fmt.Sprintf("%q", v)
	}
	return "not there"
}

func list(attrs map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(attrs)) {
		if k == "under" {
			continue
		}
		out = append(out, fmt.Sprintf("%s=%q", k, attrs[k]))
	}
	return strings.Join(out, " ")
}
