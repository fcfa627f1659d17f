package plugin

import "strings"

// The rules of NCCL 2.30.7, src/plugin/plugin_open.cc and src/plugin/net.cc.
const (
	maxName   = 254 // bytes of a name that count
	maxEntry  = 255 // bytes from which on an entry of a list is skipped
	staticWay = "STATIC_PLUGIN"
)

// wanted is one library that a variable asks for.
type wanted struct {
	tries []string // for the dynamic loader, in order; "" is the main program
	asked bool     // the user named it: without it there is an error
}

// resolve says which libraries the value of a kind's variable names.
func resolve(k Kind, value string, set bool) []wanted {
	d := kinds[k]
	if !set || (value == "" && !d.emptyIsNone) {
		return []wanted{{tries: []string{d.prefix + ".so"}}}
	}
	entries := []string{value}
	if d.list > 1 {
		entries = strings.Split(value, ",")
	}
	var out []wanted
	for _, e := range entries {
		if e == "" || strings.EqualFold(e, "none") || (d.emptyIsNone && len(e) >= maxEntry) {
			continue
		}
		if len(out) == d.list {
			break
		}
		out = append(out, wanted{tries: tries(d.prefix, e), asked: true})
	}
	return out
}

func tries(prefix, name string) []string {
	name = cut(name)
	if len(name) <= len(staticWay) && strings.EqualFold(name, staticWay[:len(name)]) {
		return []string{""}
	}
	out := []string{name}
	if !strings.Contains(name, "/") && !(strings.HasPrefix(name, "lib") && strings.HasSuffix(name, ".so")) {
		out = append(out, cut(prefix+"-"+name+".so"))
	}
	return out
}

func cut(s string) string { return s[:min(len(s), maxName)] }

// isNone says whether a variable of one value forbids libraries of its kind, those of other kinds included.
func isNone(value string, set bool) bool { return set && strings.EqualFold(value, "none") }
