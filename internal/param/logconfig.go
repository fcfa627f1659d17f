package param

import (
	"fmt"
	"strings"

	"github.com/gccl/gccl/internal/xlog"
)

// LogConfig returns what the settings say about the log, and what in them could
// not be understood.
func (s *Settings) LogConfig() (xlog.Config, []Warning) {
	var warns []Warning
	unknown := func(id ID, words []string) {
		if len(words) > 0 {
			warns = append(warns, Warning{Name: Lookup(id).Name, Text: fmt.Sprintf("%s has unknown words, which are ignored: %s",
				Lookup(id).Name, strings.Join(words, " "))})
		}
	}
	c := xlog.Config{
		LevelSet:      s.IsSet(NCCLDebug),
		File:          s.Str(NCCLDebugFile),
		TimeFormat:    s.Str(NCCLDebugTimestampFormat),
		TimeFormatSet: true,
	}
	// The table lets only words through that the log knows.
	c.Level, _ = xlog.ParseLevel(s.Str(NCCLDebug))
	var bad []string
	c.Subsys, bad = xlog.ParseSubsys(s.Str(NCCLDebugSubsys))
	unknown(NCCLDebugSubsys, bad)
	c.TimeLevels, bad = xlog.ParseLevels(s.Str(NCCLDebugTimestampLevels))
	unknown(NCCLDebugTimestampLevels, bad)
	return c, warns
}

// LogWarnings writes those warnings to the log that this process has not written
// before: mistakes as warnings, minor ones at level INFO.
func LogWarnings(l *xlog.Logger, ws []Warning) {
	for _, w := range Unseen(ws) {
		if w.Minor {
			l.Info(xlog.Env, "%s", w.Text)
		} else {
			l.Warn(xlog.Env, "%s", w.Text)
		}
	}
}
