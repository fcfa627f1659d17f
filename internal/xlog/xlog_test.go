package xlog

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// fixed is a clock for tests.
func fixed() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC) }

// collect returns a logger and what it printed.
func collect(cfg Config) (*Logger, *[]Record) {
	var got []Record
	cfg.Sink = func(r Record) { got = append(got, r) }
	cfg.Host, cfg.Now = "node1", fixed
	return New(cfg), &got
}

func TestWhatIsPrinted(t *testing.T) {
	emit := func(l *Logger) {
		l.Version("gccl 1")
		l.Error(Net, "e")
		l.Warn(Net, "w")
		l.Info(Init, "i")
		l.Info(Net, "n")
		l.Debug(Init, "d")
		l.Trace(Init, "t")
	}
	tests := []struct {
		debug, subsys string
		want          string
	}{
		{"", "", "e w"},
		{"NONE", "", ""},
		{"VERSION", "", "gccl 1"},
		{"warn", "", "gccl 1 e w"},
		{"INFO", "", "gccl 1 e w i"},
		{"INFO", "NET", "gccl 1 e w n"},
		{"INFO", "^INIT", "gccl 1 e w n"},
		{"ABORT", "ALL", "gccl 1 e w i n d"},
		{"TRACE", "init,net", "gccl 1 e w i n d t"},
	}
	for _, tt := range tests {
		t.Run(tt.debug+"/"+tt.subsys, func(t *testing.T) {
			level, ok := ParseLevel(tt.debug)
			if !ok {
				t.Fatal("level not known")
			}
			set, _ := ParseSubsys(tt.subsys)
			l, got := collect(Config{Level: level, LevelSet: tt.debug != "", Subsys: set})
			emit(l)
			var texts []string
			for _, r := range *got {
				texts = append(texts, r.Text)
			}
			if s := strings.Join(texts, " "); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	l, got := collect(Config{})
	l.WithRank(3).With("comm", "5f3a").With("device", 0).Warn(Bootstrap, "peer %d is slow\nand 100%%", 7)
	where := l.out.where
	want := "[2026-03-04 05:06:07] " + where + " rank 3 warn BOOTSTRAP peer 7 is slow and 100% comm 5f3a device 0"
	if len(*got) != 1 || (*got)[0].Line != want || (*got)[0].Rank != 3 {
		t.Errorf("got  %+v\nwant %s", *got, want)
	}
	l.Warn(Net, "100%")
	if line := (*got)[1].Line; !strings.HasSuffix(line, where+" warn NET 100%") {
		t.Errorf("no rank and no arguments: %q", line)
	}
}

func TestStamp(t *testing.T) {
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"default", Config{}, "[2026-03-04 05:06:07]"},
		{"empty format", Config{TimeFormatSet: true}, ""},
		{"fraction", Config{TimeFormatSet: true, TimeFormat: "%H:%M:%S.%3f"}, "05:06:07.089"},
		{"underscore and trailing space", Config{TimeFormatSet: true, TimeFormat: "%F_%T "}, "2026-03-04 05:06:07"},
		{"another level", Config{TimeLevels: 1 << Info}, ""},
		{"this level", Config{TimeLevels: 1 << Warn}, "[2026-03-04 05:06:07]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.cfg.stamp(Warn, fixed()); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFormatTime(t *testing.T) {
	for format, want := range map[string]string{
		"%Y-%m-%d": "2026-03-04", "%s": "1772600767", "%j %a %b %e": "063 Wed Mar  4", "%%F": "%F",
		"%q": "%q", "%": "%", "x%": "x%", "%9f": "089000000", "%1f": "0", "%0f": "%0f", "%3": "%3", "": "",
	} {
		if got := FormatTime(format, fixed()); got != want {
			t.Errorf("%q: got %q, want %q", format, got, want)
		}
	}
}

func TestParseSubsys(t *testing.T) {
	tests := []struct {
		in      string
		want    Subsys
		unknown []string
	}{
		{"", DefaultSubsys, nil},
		{"ALL", All, nil},
		{"init, Net ,", Init | Net, nil},
		{"^INIT,NET", ^(Init | Net), nil},
		{"^ALL", 0, nil},
		{"ALLOC_HOST", AllocHost, nil},
		{"NETT,COLL", Coll, []string{"NETT"}},
		{"NETT", DefaultSubsys, []string{"NETT"}},
	}
	for _, tt := range tests {
		got, unknown := ParseSubsys(tt.in)
		if got != tt.want || !reflect.DeepEqual(unknown, tt.unknown) {
			t.Errorf("%q: got %v %v, want %v %v", tt.in, got, unknown, tt.want, tt.unknown)
		}
	}
	// ncclDebugLogSubSys of NCCL 2.30.7: plugins are handed these numbers.
	if Bootstrap != 4096 || Destroy != 65536 || AllocHost != 131072 {
		t.Error("the bits are not those of NCCL")
	}
}

func TestParseLevels(t *testing.T) {
	tests := []struct {
		in      string
		want    Levels
		unknown []string
	}{
		{"ALL", AllLevels, nil},
		{"WARN", 1<<Warn | 1<<Error, nil},
		{"^WARN", ^Levels(1<<Warn | 1<<Error), nil},
		{"info,x", 1 << Info, []string{"x"}},
	}
	for _, tt := range tests {
		if got, unknown := ParseLevels(tt.in); got != tt.want || !reflect.DeepEqual(unknown, tt.unknown) {
			t.Errorf("%q: got %b %v", tt.in, got, unknown)
		}
	}
	if _, ok := ParseLevel("LOUD"); ok {
		t.Error("unknown level was taken")
	}
}

func TestNilLoggerPrintsNothing(t *testing.T) {
	l := Nop()
	l.Error(Net, "x")
	l.Version("x")
	l.WarnLimited(&Limiter{}, Net, "x")
	if l.WithRank(1) != nil || l.With("a", 1) != nil || l.Enabled(Error, Net) {
		t.Error("a nil logger became something")
	}
	l.Close()
}

func TestLimiter(t *testing.T) {
	now := fixed()
	l, got := collect(Config{})
	l.out.cfg.Now = func() time.Time { return now }
	each, once := &Limiter{Every: time.Minute}, &Limiter{}
	for i := range 5 {
		l.WarnLimited(each, Net, "each")
		l.WarnLimited(once, Net, "once %d", i)
		now = now.Add(25 * time.Second)
	}
	var texts []string
	for _, r := range *got {
		texts = append(texts, r.Text)
	}
	want := []string{"each", "once 0", "each (2 similar lines left out)"}
	if !reflect.DeepEqual(texts, want) {
		t.Errorf("got %q, want %q", texts, want)
	}
}

func TestExpandFile(t *testing.T) {
	for pattern, want := range map[string]string{
		"/tmp/log.%h.%p": "/tmp/log.node1.77", "a%%h": "a%h", "%q%": "%q%", "": "", "%h": "node1", "%%": "%",
	} {
		if got := ExpandFile(pattern, "node1", 77); got != want {
			t.Errorf("%q: got %q, want %q", pattern, got, want)
		}
	}
	if got := ExpandFile("/log/%h", "../etc/x", 1); got != "/log/.._etc_x" {
		t.Errorf("host with slashes: %q", got)
	}
}

func FuzzExpandFile(f *testing.F) {
	for _, s := range []string{"/tmp/%h.%p", "%%", "%q", "%", "%%%h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		got := ExpandFile(pattern, "h", 1)
		if len(got) > len(pattern) {
			t.Errorf("%q grew to %q", pattern, got)
		}
		if !strings.Contains(pattern, "%") && got != pattern {
			t.Errorf("%q changed to %q", pattern, got)
		}
	})
}

func FuzzFormatTime(f *testing.F) {
	f.Add("[%F %T]")
	f.Add("%9f%q%")
	f.Fuzz(func(t *testing.T, format string) {
		c := Config{TimeFormat: format, TimeFormatSet: true}
		if strings.ContainsAny(c.stamp(Warn, fixed()), "\n\r\x00") {
			t.Errorf("%q breaks the line", format)
		}
	})
}

func ExampleLogger_With() {
	l := New(Config{Sink: func(r Record) { fmt.Println(r.Level, r.Subsys, r.Text) }})
	l.With("comm", "5f3a").Warn(SHM, "no shared memory: %s", "/dev/shm is full")
	// Output: warn SHM no shared memory: /dev/shm is full comm 5f3a
}
