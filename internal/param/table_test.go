package param

import (
	"regexp"
	"strings"
	"testing"
)

func TestTableIsComplete(t *testing.T) {
	form := regexp.MustCompile(`^(NCCL|GCCL)_[A-Z0-9_]+$`)
	seen := map[string]bool{}
	for _, id := range All() {
		d := Lookup(id)
		if d.ID != id || !form.MatchString(d.Name) || d.Text == "" || d.Subsys == "" {
			t.Errorf("id %d has the line %+v", id, d)
		}
		for _, n := range append([]string{d.Name}, d.Aliases...) {
			if seen[n] {
				t.Errorf("%s is there twice", n)
			}
			seen[n] = true
		}
		if d.Default != "" {
			if _, err := parse(d, d.Default); err != nil {
				t.Errorf("%s: default %q: %v", d.Name, d.Default, err)
			}
		}
		if d.Strict != strings.HasPrefix(d.Name, "GCCL_") {
			t.Errorf("%s: strict %v", d.Name, d.Strict)
		}
		if d.Type == TypeEnum && len(d.Values) == 0 {
			t.Errorf("%s: enum without words", d.Name)
		}
		if d.Type == TypeDuration && unitDuration[d.Unit] == 0 {
			t.Errorf("%s: unit %q", d.Name, d.Unit)
		}
		if !strings.HasSuffix(d.Text, ".") && !strings.HasSuffix(d.Text, ".)") {
			t.Errorf("%s: text is no sentence: %q", d.Name, d.Text)
		}
	}
}

func TestLookupOutsideTheTable(t *testing.T) {
	for _, id := range []ID{-1, numIDs, 1 << 30} {
		if d := Lookup(id); d.Name != "" {
			t.Errorf("id %d is %s", id, d.Name)
		}
		if (*Settings)(nil).Str(id) != "" || Defaults().Int(id) != 0 {
			t.Errorf("id %d has a value", id)
		}
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"NCCL_SOCKET_IFNAMES": "NCCL_SOCKET_IFNAME",
		"NCCL_DEBG":           "NCCL_DEBUG",
		"NCCL_DBEUG":          "NCCL_DEBUG",
		"nccl_debug":          "NCCL_DEBUG",
		"NCCL_DEBUG ":         "NCCL_DEBUG",
		"GCCL_INIT_TIMOUT":    "GCCL_INIT_TIMEOUT",
		"GCCL_DETERMINSTIC":   "GCCL_DETERMINISTIC",
		"NCCL_MAX_NCHANNEL":   "NCCL_MAX_NCHANNELS",
		"NCCL_SOMETHING_ELSE": "",
		"NCCL_X":              "",
		"":                    "",
	} {
		if got := Nearest(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1},
		{"abc", "abd", 1}, {"abcd", "acbd", 1}, {"kitten", "sitting", 3},
	}
	for _, tt := range tests {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q %q: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := distance(tt.b, tt.a); got != tt.want {
			t.Errorf("%q %q: got %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestOtherNamesAreNotInTheTable(t *testing.T) {
	if len(otherNCCL) < 100 {
		t.Errorf("only %d names", len(otherNCCL))
	}
	for n := range otherNCCL {
		if known(n) || foreign(n) || !strings.HasPrefix(n, "NCCL_") {
			t.Errorf("%s is out of place", n)
		}
	}
}
