package param

import (
	"math"
	"testing"
	"time"
)

func TestParseInt(t *testing.T) {
	good := map[string]int64{
		"0": 0, "8": 8, "-1": -1, "+3": 3, "0x10": 16, "0XfF": 255, "-0x10": -16, "010": 8, " 4 ": 4, "\t7\n": 7,
		"9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	}
	for in, want := range good {
		if got, err := ParseInt(in); err != nil || got != want {
			t.Errorf("%q: got %d %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", " ", "x", "4MB", "yes", "1 2", "0x", "08", "--1", "-+1", "1_000", "1.5",
		"18446744073709551615", "9223372036854775808", "0x1_0"} {
		if got, err := ParseInt(in); err == nil {
			t.Errorf("%q was read as %d", in, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	good := map[string]int64{
		"0": 0, "4194304": 4 << 20, "4M": 4 << 20, "4MB": 4 << 20, "4MiB": 4 << 20, "4 mib": 4 << 20, "0x400000": 4 << 20,
		"64k": 64 << 10, "2G": 2 << 30, "1TiB": 1 << 40, "17B": 17, " 8K ": 8 << 10, "8388607T": 8388607 << 40,
	}
	for in, want := range good {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("%q: got %d %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "M", "4X", "4MM", "4iB", "-1", "-1K", "8388608T", "18446744073709551615", "4  M", "1.5G", "0x4M", "4 " + "M B"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("%q was read as %d", in, got)
		}
	}
}

func TestParseDuration(t *testing.T) {
	good := map[string]time.Duration{"90": 90 * time.Second, "30m": 30 * time.Minute, "1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond, "0": 0}
	for in, want := range good {
		if got, err := parseDuration(in, "s"); err != nil || time.Duration(got) != want {
			t.Errorf("%q: got %v %v, want %v", in, time.Duration(got), err, want)
		}
	}
	for _, in := range []string{"", "-1", "-5s", "x", "10 s", "9223372036854775807"} {
		if got, err := parseDuration(in, "s"); err == nil {
			t.Errorf("%q was read as %d", in, got)
		}
	}
	for d, want := range map[time.Duration]string{30 * time.Minute: "30m", time.Hour: "1h", 90 * time.Second: "1m30s", 10 * time.Second: "10s"} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v is written %q", d, got)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"4MB", "0x10", "-1", "99999999999999T", " 4 M", "é", "4é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		n, err := ParseSize(in)
		if err == nil && n < 0 {
			t.Errorf("%q is %d", in, n)
		}
		for _, id := range All() {
			d := Lookup(id)
			v, err := parse(d, in)
			if err != nil {
				continue
			}
			// What was accepted reads back as itself.
			again, err := parse(d, v.text)
			if err != nil || again.text != v.text || again.num != v.num || again.hi != v.hi {
				t.Errorf("%s: %q became %q, then %q %v", d.Name, in, v.text, again.text, err)
			}
		}
	})
}
