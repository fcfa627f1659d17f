package main

import (
	"slices"
	"strconv"
	"testing"
)

func itoa(v int) string { return strconv.Itoa(v) }

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "8": 8, "64K": 64 << 10, "64k": 64 << 10, "64M": 64 << 20, "1G": 1 << 30, "1.5M": 3 << 19, "0.5K": 512, "1000": 1000,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "K", "-8", "+8", "8KB", "8 ", "1e9", "0x10", "inf", "nan", "99999999G", "1T"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", text, got)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"8", "64K", "1.5M", "x", "", "1..2G", "Infinity"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := parseSize(text); err == nil && (v < 0 || v > 1<<50) {
			t.Errorf("parseSize(%q) = %d", text, v)
		}
	})
}

func TestFormatSizeRoundTrip(t *testing.T) {
	for _, v := range []int64{0, 8, 1000, 1024, 1536, 3 << 20, 1 << 30} {
		if got, err := parseSize(formatSize(v)); err != nil || got != v {
			t.Errorf("%d: %q gives %d, %v", v, formatSize(v), got, err)
		}
	}
}

func TestSweep(t *testing.T) {
	if got := sweep(8, 65, 1, 2); !slices.Equal(got, []int64{8, 16, 32, 64}) {
		t.Error(got)
	}
	if got := sweep(8, 10, 1, 1); !slices.Equal(got, []int64{8, 9, 10}) {
		t.Error(got)
	}
	if got := sweep(1<<62, 1<<63-1, 1, 4); len(got) != 1 { // would overflow
		t.Error(got)
	}
}
