package xlog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DefaultTimeFormat is the strftime form of the time in front of a line.
const DefaultTimeFormat = "[%F %T]"

// Levels is a set of levels.
type Levels uint8

// AllLevels is every level.
const AllLevels Levels = 0xff

// ParseLevels reads a value of NCCL_DEBUG_TIMESTAMP_LEVELS: a comma list of
// NCCL_DEBUG names or ALL; a leading ^ means all but these. WARN stands for
// errors too, which NCCL does not tell apart.
func ParseLevels(list string) (set Levels, unknown []string) {
	rest, inverted := strings.CutPrefix(strings.TrimSpace(list), "^")
	for _, w := range strings.Split(rest, ",") {
		w = strings.TrimSpace(w)
		if w == "" {
			continue
		}
		if strings.EqualFold(w, "ALL") {
			set = AllLevels
			continue
		}
		l, ok := ParseLevel(w)
		if !ok {
			unknown = append(unknown, w)
			continue
		}
		set |= 1 << l
		if l == Warn {
			set |= 1 << Error
		}
	}
	if inverted {
		set = ^set
	}
	return set, unknown
}

// stamp returns the time for a line of this level, or nothing.
func (c *Config) stamp(level Level, now time.Time) string {
	if c.TimeLevels != 0 && c.TimeLevels&(1<<level) == 0 {
		return ""
	}
	format := DefaultTimeFormat
	if c.TimeFormatSet {
		format = c.TimeFormat
	}
	// As in NCCL (src/debug.cc) an underscore stands for a space, which is hard to
	// put on some command lines; the space behind the time is added in any case.
	format = strings.ReplaceAll(format, "_", " ")
	return strings.TrimRight(oneLine(FormatTime(format, now)), " ")
}

// FormatTime writes t in the strftime form that NCCL_DEBUG_TIMESTAMP_FORMAT
// has: the usual conversions, and %Nf with a digit N from 1 to 9 for N digits of
// the second's fraction. A conversion it does not know stays as it is.
func FormatTime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		c := format[i]
		if c >= '1' && c <= '9' && i+1 < len(format) && format[i+1] == 'f' {
			i++
			fmt.Fprintf(&b, "%.*s", int(c-'0'), fmt.Sprintf("%09d", t.Nanosecond()))
			continue
		}
		if s, ok := conversion(c, t); ok {
			b.WriteString(s)
		} else {
			b.WriteByte('%')
			b.WriteByte(c)
		}
	}
	return b.String()
}

// layouts has the conversions that Go's time layouts can express.
var layouts = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'I': "03",
	'M': "04", 'S': "05", 'p': "PM", 'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04",
	'D': "01/02/06", 'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January",
	'j': "002", 'z': "-0700", 'Z': "MST", 'c': "Mon Jan _2 15:04:05 2006", 'r': "03:04:05 PM",
	'x': "01/02/06", 'X': "15:04:05",
}

func conversion(c byte, t time.Time) (string, bool) {
	switch c {
	case '%':
		return "%", true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'n', 't':
		return " ", true
	}
	layout, ok := layouts[c]
	if !ok {
		return "", false
	}
	return t.Format(layout), true
}
