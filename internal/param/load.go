package param

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/gccl/gccl/internal/xerr"
)

// Load reads the settings from the process's environment, as C sees it now, and
// from the configuration files.
//
// The error, of code InvalidUsage, names variable, value and what is accepted.
// The settings are usable also then: the bad value counts as not given. Warnings
// are for the log; Unseen leaves out those that were already said.
func Load() (*Settings, []Warning, error) { return LoadFrom(Process()) }

// LoadFrom is Load from another place.
func LoadFrom(env Env) (*Settings, []Warning, error) {
	all, warns := gather(env)
	s := new(Settings)
	var errs []error
	for id := ID(0); id < numIDs; id++ {
		d := Lookup(id)
		s.v[id] = defaultValue(d)
		found, ok := lookup(all, d)
		if !ok {
			continue
		}
		v, err := parse(d, found.value)
		if err != nil {
			if d.Strict {
				errs = append(errs, badValue(found, err))
			} else {
				warns = append(warns, ignored(d, found, err))
			}
			continue
		}
		v.origin = found.origin
		s.v[id] = v
		warns = append(warns, remarks(d, found)...)
	}
	warns = append(warns, unknownNames(all)...)
	return s, warns, errors.Join(errs...)
}

// lookup finds a setting under its name or the first alias that is set. An empty
// variable of a number or an enum counts as not set.
func lookup(all map[string]setting, d *Def) (setting, bool) {
	for _, name := range append([]string{d.Name}, d.Aliases...) {
		f, ok := all[name]
		if ok && (strings.TrimSpace(f.value) != "" || d.Type == TypeString || d.Type == TypeList) {
			return f, true
		}
	}
	return setting{}, false
}

func badValue(f setting, err error) error {
	return xerr.New(xerr.InvalidUsage, "read settings", "%s has the unreadable value %q (%s)", f.name, f.value, f.origin).
		WithHint("%s", err)
}

func ignored(d *Def, f setting, err error) Warning {
	what := defaultValue(d).text
	if what == "" {
		what = "no value"
	}
	return Warning{Name: f.name, Text: fmt.Sprintf("%s has the unreadable value %q (%s): the default holds, %s; %s",
		f.name, f.value, f.origin, what, err)}
}

// remarks is what there is to say about a setting that was read well.
func remarks(d *Def, f setting) (out []Warning) {
	switch d.State {
	case Deprecated, Removed:
		out = append(out, Warning{Name: f.name, Text: fmt.Sprintf("%s (%s) is %s: %s", f.name, f.origin, d.State, d.Text)})
	case NoEffect:
		out = append(out, Warning{Name: f.name, Minor: true, Text: fmt.Sprintf("%s (%s) has no effect in host mode", f.name, f.origin)})
	}
	if f.name != d.Name {
		out = append(out, Warning{Name: f.name, Minor: true, Text: fmt.Sprintf("%s (%s) is an old name of %s", f.name, f.origin, d.Name)})
	}
	return out
}

// unknownNames speaks of names with our prefixes that are not in the table: the
// other names of NCCL do nothing here, the rest are likely mistakes.
func unknownNames(all map[string]setting) []Warning {
	var names []string
	for name := range all {
		if ours(name) && !known(name) && !foreign(name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var out []Warning
	for _, name := range names {
		if otherNCCL[name] {
			out = append(out, Warning{Name: name, Minor: true, Text: fmt.Sprintf("%s (%s) is a setting of NCCL that does nothing here", name, all[name].origin)})
			continue
		}
		text := fmt.Sprintf("%s (%s) is not a known setting and is ignored", name, all[name].origin)
		if near := Nearest(name); near != "" {
			text += "; did you mean " + near + "?"
		}
		out = append(out, Warning{Name: name, Text: text})
	}
	return out
}

func ours(name string) bool {
	return strings.HasPrefix(name, "NCCL_") || strings.HasPrefix(name, "GCCL_")
}

var (
	defaultsOnce sync.Once
	defaults     *Settings
)

// Defaults returns the settings of an empty environment.
func Defaults() *Settings {
	defaultsOnce.Do(func() {
		defaults = new(Settings)
		for id := ID(0); id < numIDs; id++ {
			defaults.v[id] = defaultValue(Lookup(id))
		}
	})
	return defaults
}

// defaultValue parses the table's text; a test proves that all of them parse.
func defaultValue(d *Def) value {
	if d.Default == "" {
		return value{}
	}
	v, err := parse(d, d.Default)
	if err != nil {
		return value{}
	}
	return v
}

// said has the warnings that Unseen has let through in this process.
var said sync.Map

// Unseen returns those warnings that this process has not been given before, so
// that a program with many communicators reads each line once.
func Unseen(ws []Warning) []Warning {
	var out []Warning
	for _, w := range ws {
		if _, old := said.LoadOrStore(w.Text, true); !old {
			out = append(out, w)
		}
	}
	return out
}
