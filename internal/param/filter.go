package param

import (
	"strings"

	"github.com/gccl/gccl/internal/xerr"
)

// InterfaceFilter is a parsed NCCL_SOCKET_IFNAME (NCCL user guide, env.rst):
//
//	eth,ib      names that start with one of these
//	=eth0,eth1  exactly these names
//	^docker,lo  all but names that start with one of these
//	^=docker0   all but exactly these
//
// A leading = holds for the whole list; before a later word it holds for that
// word. Spaces around words are dropped. The zero value lets every name pass.
type InterfaceFilter struct {
	Exclude bool
	Words   []FilterWord
}

// FilterWord is one word of an InterfaceFilter.
type FilterWord struct {
	Name  string
	Exact bool // the whole name, not its beginning
}

// ParseInterfaceFilter reads a filter. Refused are marks without a name ("=",
// "^") and a list that both wants and excludes, because whatever was meant,
// guessing picks a wrong interface.
func ParseInterfaceFilter(text string) (InterfaceFilter, error) {
	var f InterfaceFilter
	rest, exclude := strings.CutPrefix(strings.TrimSpace(text), "^")
	f.Exclude = exclude
	rest, allExact := strings.CutPrefix(strings.TrimSpace(rest), "=")
	if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "^") || strings.HasPrefix(rest, "=") {
		return InterfaceFilter{}, badFilter(text, "a mark stands twice")
	}
	for _, w := range splitList(rest) {
		inner, not := strings.CutPrefix(w, "^")
		if not && !exclude {
			return InterfaceFilter{}, badFilter(text, "it both names and excludes interfaces")
		}
		name, exact := strings.CutPrefix(strings.TrimSpace(inner), "=")
		if name = strings.TrimSpace(name); name == "" || strings.ContainsAny(name, "^=") {
			return InterfaceFilter{}, badFilter(text, "a mark stands without a name")
		}
		f.Words = append(f.Words, FilterWord{Name: name, Exact: exact || allExact})
	}
	if len(f.Words) == 0 && (exclude || allExact) {
		return InterfaceFilter{}, badFilter(text, "a mark stands without a name")
	}
	return f, nil
}

func badFilter(text, why string) error {
	return xerr.New(xerr.InvalidUsage, "read settings", "the interface filter %q cannot be read: %s", text, why).
		WithHint("accepted: eth,ib for name beginnings, =eth0,eth1 for whole names, ^docker,lo to exclude")
}

// Empty says whether there is no filter at all.
func (f InterfaceFilter) Empty() bool { return len(f.Words) == 0 }

// Match says whether an interface of this name may be used.
func (f InterfaceFilter) Match(name string) bool {
	if len(f.Words) == 0 {
		return true
	}
	for _, w := range f.Words {
		if w.Exact && name == w.Name || !w.Exact && strings.HasPrefix(name, w.Name) {
			return !f.Exclude
		}
	}
	return f.Exclude
}

// String writes the filter so that ParseInterfaceFilter reads it back.
func (f InterfaceFilter) String() string {
	var b strings.Builder
	if f.Exclude {
		b.WriteByte('^')
	}
	all := len(f.Words) > 0
	for _, w := range f.Words {
		all = all && w.Exact
	}
	if all {
		b.WriteByte('=')
	}
	for i, w := range f.Words {
		switch {
		case i > 0:
			b.WriteByte(',')
		case w.Exact && !all:
			// A leading = would hold for all words.
			b.WriteByte(',')
		}
		if w.Exact && !all {
			b.WriteByte('=')
		}
		b.WriteString(w.Name)
	}
	return b.String()
}

// InterfaceFilter returns the filter that a setting holds. The error, of code
// InvalidUsage, names the variable too.
func (s *Settings) InterfaceFilter(id ID) (InterfaceFilter, error) {
	f, err := ParseInterfaceFilter(s.Str(id))
	if err != nil {
		return f, xerr.Annotate("read settings", err, "").WithObject("%s", Lookup(id).Name)
	}
	return f, nil
}
