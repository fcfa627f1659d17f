// Package xlog owns the log: levels, subsystems, the line format and where
// lines go. It stands on go.uber.org/zap.
//
// It must not know settings (internal/param hands it a Config), communicators
// or devices. A Logger is a value that is passed down; there is no process-wide
// one here.
package xlog

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Config says what is printed and where. The zero value prints at the default
// level to standard error.
type Config struct {
	Level      Level  // used if LevelSet
	LevelSet   bool   // the user asked for a level; only then a version line is printed
	Subsys     Subsys // 0: DefaultSubsys
	File       string // pattern with %h, %p and %%; empty: standard error
	TimeFormat string // strftime form; used if TimeFormatSet, may be empty for no time
	// TimeFormatSet tells an empty format from none.
	TimeFormatSet bool
	TimeLevels    Levels       // levels whose lines carry the time; 0: all
	Sink          func(Record) // replaces file and standard error
	Host          string       // default: the host name up to the first dot
	Now           func() time.Time
}

// Record is one line for a Sink.
type Record struct {
	Time   time.Time
	Level  Level
	Subsys Subsys
	Rank   int    // -1: not known
	Text   string // the message with the logger's names and values
	Line   string // the whole line without newline
}

// Logger prints whole lines. A nil *Logger prints nothing, so that a package
// need not ask whether it was given one. Safe for use by several goroutines.
type Logger struct {
	out    *output
	rank   int
	suffix string // " name value" pairs
}

// output is shared by all loggers derived from one New.
type output struct {
	cfg    Config
	level  Level
	subsys Subsys
	zap    *zap.Logger
	sink   *fileSink
	where  string // "host:pid"
}

// New makes the root logger. It never fails: what does not work (a file that
// cannot be opened) is said in one line on standard error, where the lines then
// go.
//
// The caller owns the logger and closes it once; loggers derived from it share
// its file. One per process is enough.
func New(cfg Config) *Logger {
	if cfg.Host == "" {
		cfg.Host = shortHost()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	o := &output{cfg: cfg, level: DefaultLevel, subsys: cfg.Subsys}
	if cfg.LevelSet {
		o.level = cfg.Level
	}
	if o.subsys == 0 {
		o.subsys = DefaultSubsys
	}
	pid := os.Getpid()
	o.where = cfg.Host + ":" + strconv.Itoa(pid)
	if cfg.Sink == nil {
		path := ""
		if o.level > Version {
			path = ExpandFile(cfg.File, cfg.Host, pid)
		}
		o.sink = openSink(path, stderrFD)
		o.zap = zap.New(newCore(o.sink))
	}
	return &Logger{out: o, rank: -1}
}

// Nop returns a logger that prints nothing.
func Nop() *Logger { return nil }

// Close releases the log file. Lines written later go nowhere.
func (l *Logger) Close() {
	if l != nil && l.out.sink != nil {
		l.out.sink.close()
	}
}

// WithRank returns a logger whose lines carry the rank.
func (l *Logger) WithRank(rank int) *Logger {
	if l == nil {
		return nil
	}
	c := *l
	c.rank = rank
	return &c
}

// With returns a logger whose lines end in "name value".
func (l *Logger) With(name string, value any) *Logger {
	if l == nil {
		return nil
	}
	c := *l
	c.suffix += " " + name + " " + fmt.Sprint(value)
	return &c
}

// Enabled says whether a line would be printed; ask before costly formatting.
// Errors and warnings are printed whatever the subsystems are.
func (l *Logger) Enabled(level Level, sub Subsys) bool {
	if l == nil || level > l.out.level {
		return false
	}
	return level <= Warn || l.out.subsys&sub != 0
}

// Error says that an operation failed. Log a failure once, where its cause is
// known.
func (l *Logger) Error(sub Subsys, format string, args ...any) { l.log(Error, sub, format, args) }

// Warn says that something goes on, but worse; for example a fallback with its
// reason.
func (l *Logger) Warn(sub Subsys, format string, args ...any) { l.log(Warn, sub, format, args) }

// Info is for one line per object.
func (l *Logger) Info(sub Subsys, format string, args ...any) { l.log(Info, sub, format, args) }

// Debug is for one line per operation.
func (l *Logger) Debug(sub Subsys, format string, args ...any) { l.log(Debug, sub, format, args) }

// Trace is for one line per chunk.
func (l *Logger) Trace(sub Subsys, format string, args ...any) { l.log(Trace, sub, format, args) }

// Version prints the version line if the user asked for any level.
func (l *Logger) Version(text string) {
	if l == nil || !l.out.cfg.LevelSet || l.out.level < Version {
		return
	}
	l.emit(Version, Init, text)
}

func (l *Logger) log(level Level, sub Subsys, format string, args []any) {
	if !l.Enabled(level, sub) {
		return
	}
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	l.emit(level, sub, text)
}

func (l *Logger) emit(level Level, sub Subsys, text string) {
	o := l.out
	text = oneLine(text + l.suffix)
	var b strings.Builder
	b.WriteString(o.where)
	if l.rank >= 0 {
		b.WriteString(" rank ")
		b.WriteString(strconv.Itoa(l.rank))
	}
	b.WriteByte(' ')
	b.WriteString(level.String())
	b.WriteByte(' ')
	b.WriteString(sub.String())
	b.WriteByte(' ')
	b.WriteString(text)
	now := o.cfg.Now()
	line := b.String()
	if stamp := o.cfg.stamp(level, now); stamp != "" {
		line = stamp + " " + line
	}
	if o.cfg.Sink != nil {
		o.cfg.Sink(Record{Time: now, Level: level, Subsys: sub, Rank: l.rank, Text: text, Line: line})
		return
	}
	o.zap.Log(zapLevel(level), line)
}

// zapLevel maps our levels onto zap's numbers; trace and version have no name
// of their own there.
func zapLevel(l Level) zapcore.Level {
	switch l {
	case Error:
		return zapcore.ErrorLevel
	case Warn:
		return zapcore.WarnLevel
	case Info, Version:
		return zapcore.InfoLevel
	case Debug:
		return zapcore.DebugLevel
	}
	return zapcore.DebugLevel - 1
}

// newCore makes the zap core: the line is already complete, so its encoder only
// ends it. Levels and subsystems were checked before the text was formatted.
func newCore(sink zapcore.WriteSyncer) zapcore.Core {
	enc := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "m", LineEnding: "\n"})
	return zapcore.NewCore(enc, sink, zapcore.DebugLevel-1)
}

func shortHost() string {
	h, err := os.Hostname()
	if err != nil || h == "" {
		return "unknown-host"
	}
	short, _, _ := strings.Cut(h, ".")
	return short
}

// oneLine keeps a message on its line whatever a peer or a file put into it.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
