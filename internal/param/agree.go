package param

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"sort"
)

// Agree returns the settings that must be the same on all ranks, by name, as
// text. Ranks exchange AgreeHash and, if that differs, these values, to say who
// has what.
func (s *Settings) Agree() map[string]string {
	out := make(map[string]string)
	for id := ID(0); id < numIDs; id++ {
		if d := Lookup(id); d.Agree {
			out[d.Name] = s.Show(id)
		}
	}
	return out
}

// AgreeHash is a hash of Agree that is the same on every machine.
func (s *Settings) AgreeHash() uint64 { return HashValues(s.Agree()) }

// HashValues hashes names and values in the order of the names.
func HashValues(values map[string]string) uint64 {
	names := make([]string, 0, len(values))
	for n := range values {
		names = append(names, n)
	}
	sort.Strings(names)
	h := sha256.New()
	for _, n := range names {
		// Zero bytes cannot occur in variables, so they keep name and value apart.
		_, _ = io.WriteString(h, n+"\x00"+values[n]+"\x00")
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}
