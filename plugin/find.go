package plugin

import (
	"strings"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
	"github.com/gccl/gccl/internal/xlog"
)

// Open opens the libraries that a value of the kind's variable names, in its order; set says whether the variable is set at
// all. One that the user has named and that cannot be opened is an error with the dynamic loader's words; the absence of the
// default one is nothing.
func Open(k Kind, value string, set bool) ([]*Library, error) {
	var out []*Library
	for _, w := range resolve(k, value, set) {
		l, why := first(w.tries)
		if l != nil {
			out = append(out, l)
			continue
		}
		if w.asked {
			name := param.Lookup(k.Variable()).Name
			return nil, xerr.New(xerr.InvalidUsage, "plugin load", "%s names the %s plugin %q, which cannot be opened: %s",
				name, k, w.tries[0], strings.Join(why, "; ")).
				WithHint("correct %s or LD_LIBRARY_PATH, or set %s=none to go without", name, name)
		}
	}
	return out, nil
}

func first(tries []string) (l *Library, why []string) {
	for _, name := range tries {
		l, text := openLibrary(name)
		if l != nil {
			return l, nil
		}
		why = append(why, text)
	}
	return nil, why
}

// others are the kinds whose libraries are searched as well, in order: always, or where the kind's own give nothing.
var others = map[Kind]struct {
	kinds  []Kind
	always bool
}{
	Gin:      {[]Kind{Net}, true},
	Rma:      {[]Kind{Gin, Net}, true},
	Tuner:    {[]Kind{Net}, false},
	Profiler: {[]Kind{Net}, false},
}

// Find returns the tables of a kind that the settings lead to, in the order of preference. A library without a table of the
// kind is worth a line of the log and no error, as in NCCL: it may be there for another kind.
func Find(k Kind, s *param.Settings, log *xlog.Logger) ([]Table, error) {
	value, set := s.Str(k.Variable()), s.IsSet(k.Variable())
	own, err := Open(k, value, set)
	if err != nil {
		return nil, err
	}
	var out []Table
	seen := map[*Library]bool{}
	for _, l := range own {
		seen[l] = true
		if t, ok := l.Table(k); ok {
			out = append(out, t)
		} else {
			log.Info(xlog.Init, "%s has no %s plugin that this version knows: neither %s nor an older one", l, k, k.symbols()[0].name)
		}
	}
	o := others[k]
	if !o.always && (len(out) > 0 || isNone(value, set)) {
		return out, nil
	}
	for _, other := range o.kinds {
		libs, err := Open(other, s.Str(other.Variable()), s.IsSet(other.Variable()))
		if err != nil { // said by whoever looks for that kind
			continue
		}
		for _, l := range libs {
			if t, ok := l.Table(k); ok && !seen[l] {
				out = append(out, t)
			}
			seen[l] = true
			if !o.always && len(out) > 0 {
				return out, nil
			}
		}
	}
	return out, nil
}
