package xlog

import "strings"

// Level is how much is printed. The names of NCCL_DEBUG map onto it.
type Level int8

// The levels, from silent to everything. A line has one of Error to Trace.
const (
	None    Level = iota // NCCL_DEBUG=NONE: print nothing
	Version              // NCCL_DEBUG=VERSION: only the version line
	Error                // an operation failed
	Warn                 // it goes on, worse than it could
	Info                 // one line per object
	Debug                // one line per operation
	Trace                // one line per chunk
)

// DefaultLevel holds when NCCL_DEBUG is not set: failures and fallbacks are
// said. (NCCL itself is silent then.)
const DefaultLevel = Warn

var levelNames = [...]string{"none", "version", "error", "warn", "info", "debug", "trace"}

func (l Level) String() string {
	if l < 0 || int(l) >= len(levelNames) {
		return "unknown"
	}
	return levelNames[l]
}

// ParseLevel reads a value of NCCL_DEBUG in any case. ABORT, which NCCL has
// between INFO and TRACE, is Debug. ok is false for an unknown word.
func ParseLevel(s string) (l Level, ok bool) {
	switch strings.ToUpper(strings.TrimSpace(s)) {
	case "":
		return DefaultLevel, true
	case "NONE":
		return None, true
	case "VERSION":
		return Version, true
	case "WARN":
		return Warn, true
	case "INFO":
		return Info, true
	case "ABORT":
		return Debug, true
	case "TRACE":
		return Trace, true
	}
	return DefaultLevel, false
}
