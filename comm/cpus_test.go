package comm

import (
	"encoding/hex"
	"testing"
)

func mask(cpus ...int) string {
	b := make([]byte, cpuBytes)
	for _, c := range cpus {
		b[c/8] |= 1 << (c % 8)
	}
	return hex.EncodeToString(b)
}

func TestCrowded(t *testing.T) {
	for name, c := range map[string]struct {
		sets []string
		want bool
	}{
		"each bound to its own":   {[]string{mask(0), mask(1)}, false},
		"both bound to one":       {[]string{mask(3), mask(3)}, true},
		"two share two":           {[]string{mask(0, 1), mask(0, 1)}, false},
		"three share two":         {[]string{mask(0, 1), mask(0, 1), mask(0, 1)}, true},
		"far apart":               {[]string{mask(0), mask(1023)}, false},
		"one does not say":        {[]string{mask(0, 1, 2), ""}, true},
		"one says something else": {[]string{mask(0, 1, 2), "zz"}, true},
		"one says too little":     {[]string{mask(0, 1, 2), "ff"}, true},
		"one rank":                {[]string{mask(5)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := crowded(c.sets); got != c.want {
				t.Errorf("crowded is %v", got)
			}
		})
	}
}

func TestOwnCPUsAreSome(t *testing.T) {
	if crowded([]string{ownCPUs()}) {
		t.Errorf("this process may run nowhere: %q", ownCPUs())
	}
}
