package param

import (
	"fmt"
	"time"
)

// OriginKind says where a value came from.
type OriginKind int

// The places, from weakest to strongest.
const (
	FromDefault OriginKind = iota
	FromFile
	FromEnvironment
	FromPlugin // an env plugin, in place of the environment
)

// Origin is where a value came from.
type Origin struct {
	Kind OriginKind
	Path string // of the file
	Name string // the name it was found under, which may be an alias
}

func (o Origin) String() string {
	switch o.Kind {
	case FromFile:
		return "file " + o.Path
	case FromEnvironment:
		return "environment"
	case FromPlugin:
		return "env plugin"
	}
	return "default"
}

// Warning is something odd that did not stop the settings from being read.
type Warning struct {
	Name  string // the variable
	Text  string // the whole sentence
	Minor bool   // for level INFO: worth knowing, nobody's mistake
}

func (w Warning) String() string { return w.Text }

// value is one parsed setting.
type value struct {
	raw    string // as found
	text   string // canonical
	num    int64  // int, bool, size, duration in ns, range low
	hi     int64  // range high
	list   []string
	origin Origin
	auto   bool
}

// Settings are the values in force. They do not change; read them once per
// communicator and hand them down. A nil *Settings gives the defaults.
type Settings struct {
	v [numIDs]value
}

// at never fails: an ID outside the table is a mistake in our own code, which
// must not reach the host program as a panic.
func (s *Settings) at(id ID) *value {
	if id < 0 || id >= numIDs {
		return &value{}
	}
	if s == nil {
		s = Defaults()
	}
	return &s.v[id]
}

// Int returns a number: an int as it is, a bool as 0 or 1, a size in bytes, a
// duration in nanoseconds; Auto if it is left to the library.
func (s *Settings) Int(id ID) int64 {
	v := s.at(id)
	if v.auto {
		return Auto
	}
	return v.num
}

// IntOr is Int with a value to use for Auto.
func (s *Settings) IntOr(id ID, auto int64) int64 {
	if v := s.Int(id); v != Auto {
		return v
	}
	return auto
}

// Bool says whether a setting is on; Auto is not.
func (s *Settings) Bool(id ID) bool { v := s.at(id); return !v.auto && v.num != 0 }

// Size returns bytes; Auto if it is left to the library.
func (s *Settings) Size(id ID) int64 { return s.Int(id) }

// Duration returns a time span; 0 if it is left to the library.
func (s *Settings) Duration(id ID) time.Duration { return time.Duration(s.at(id).num) }

// Str returns the canonical text: for an enum the word of the table.
func (s *Settings) Str(id ID) string { return s.at(id).text }

// List returns the words of a list, nil if empty.
func (s *Settings) List(id ID) []string { return append([]string(nil), s.at(id).list...) }

// Range returns the bounds of a range; ok is false if it is unset.
func (s *Settings) Range(id ID) (lo, hi int64, ok bool) {
	v := s.at(id)
	return v.num, v.hi, v.text != "" && !v.auto
}

// IsSet says whether the user gave a value that was accepted.
func (s *Settings) IsSet(id ID) bool { return s.at(id).origin.Kind != FromDefault }

// IsAuto says whether the choice is left to the library.
func (s *Settings) IsAuto(id ID) bool { return s.at(id).auto }

// Origin says where the value came from.
func (s *Settings) Origin(id ID) Origin { return s.at(id).origin }

// Show returns the value as gccl-info prints it.
func (s *Settings) Show(id ID) string {
	v := s.at(id)
	if v.auto {
		return "auto"
	}
	if v.text == "" {
		return "unset"
	}
	return v.text
}

// Describe returns "NAME value (origin)" for a message.
func (s *Settings) Describe(id ID) string {
	d := Lookup(id)
	return fmt.Sprintf("%s %s (%s)", d.Name, s.Show(id), s.Origin(id))
}
