// Package param owns the settings of the library: the one table of names,
// types, defaults and texts, the reading of the environment and of
// configuration files, and the immutable Settings that result.
//
// It is the only place that reads the environment, through C: in a shared
// library os.Getenv is a snapshot from load time. It must not know who uses a
// setting; it hands the log its Config and knows nothing else of the library.
package param

// Type is the form of a setting's value.
type Type int

// The forms of values.
const (
	TypeString   Type = iota // any text
	TypeInt                  // decimal, 0x hexadecimal or 0 octal, as strtoll base 0
	TypeBool                 // 0 or 1
	TypeSize                 // bytes: 4194304, 4M, 4MB, 4MiB, 0x400000
	TypeDuration             // 30m, 10s, 1h30m; a bare number has the unit of the table
	TypeEnum                 // one of Values, in any case
	TypeList                 // comma list of words
	TypeRange                // lo-hi
)

var typeNames = [...]string{"string", "int", "bool", "size", "duration", "enum", "list", "range"}

func (t Type) String() string {
	if t < 0 || int(t) >= len(typeNames) {
		return "unknown"
	}
	return typeNames[t]
}

// State is how far a setting can be relied on.
type State int

// The states of a setting.
const (
	Public       State = iota // may be relied on
	Experimental              // may change
	Deprecated                // works; Text names the successor
	Removed                   // does nothing any more; Text says what to do
	NoEffect                  // accepted for programs made for NCCL; does nothing in host mode
)

var stateNames = [...]string{"public", "experimental", "deprecated", "removed", "no effect in host mode"}

func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return "unknown"
	}
	return stateNames[s]
}

// Auto is what Int gives for a setting that was left to the library (its text
// is "auto" or empty).
const Auto int64 = -1 << 63

// Def is one line of the table.
type Def struct {
	ID      ID
	Name    string
	Aliases []string // other names, tried in order when Name is not set
	Type    Type
	Default string   // as a user would write it; "auto": left to the library; "": unset
	Min     int64    // smallest and largest value of numbers; both 0: any
	Max     int64    //
	Clamp   bool     // a value above Max counts as Max
	Unit    string   // "us", "bytes", "s" …
	Values  []string // words of an enum, canonical case
	Subsys  string   // part of the library it belongs to, for grouping
	Text    string   // what it does
	State   State
	Agree   bool // must be the same on all ranks; part of the hash
	Strict  bool // a bad value is an error; otherwise a warning, and the default holds
	Param   *ParamInfo
}

// AutoOK says whether "auto" is a value of the setting.
func (d *Def) AutoOK() bool { return d.Default == "auto" }
