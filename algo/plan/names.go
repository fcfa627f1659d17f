package plan

import (
	"fmt"
	"strings"
)

// The words of the text form, in the order of the values.
var (
	collNames  = []string{"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "gather", "scatter", "send_recv"}
	spaceNames = []string{"send", "recv", "stage", "out", "eager", "slot"}
	kindNames  = []string{"reduce", "put", "get", "signal", "wait", "loop", "end"}
	whenNames  = []string{"always", "send_staged", "recv_staged"}
	syncNames  = []string{"step", "data", "credit"}
)

func nameOf(names []string, k int) string {
	if k < len(names) {
		return names[k]
	}
	return fmt.Sprintf("unknown%d", k)
}

func (c Coll) String() string  { return nameOf(collNames, int(c)) }
func (s Space) String() string { return nameOf(spaceNames, int(s)) }
func (k Kind) String() string  { return nameOf(kindNames, int(k)) }
func (w When) String() string  { return nameOf(whenNames, int(w)) }
func (s Sync) String() string  { return nameOf(syncNames, int(s)) }

// MarshalText gives names to JSON and other encoders.
func (c Coll) MarshalText() ([]byte, error)  { return []byte(c.String()), nil }
func (s Space) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
func (k Kind) MarshalText() ([]byte, error)  { return []byte(k.String()), nil }
func (w When) MarshalText() ([]byte, error)  { return []byte(w.String()), nil }
func (s Sync) MarshalText() ([]byte, error)  { return []byte(s.String()), nil }

// ParseColl finds a collective by its name, with or without separators: all_reduce, AllReduce.
func ParseColl(name string) (Coll, error) {
	bare := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "") }
	for k, known := range collNames {
		if bare(known) == bare(name) {
			return Coll(k), nil
		}
	}
	return 0, fmt.Errorf("no collective %q; there are %v", name, collNames)
}
