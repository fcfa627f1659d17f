package main

import (
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/algo/cost"
	"github.com/gccl/gccl/algo/tune"
)

// What is written can be read, with the measurements beside the fit.
func TestCalibrationText(t *testing.T) {
	m, err := cost.Builtin("host")
	if err != nil {
		t.Fatal(err)
	}
	s := tune.Samples(false)[1]
	s.NS = 1500
	text := calibrationText(m, []tune.Fitted{{Sample: s, Predicted: 1400}}, 2, time.Unix(0, 0))
	if !strings.Contains(text, "2 ranks on 2 processors, 1970-01-01T00:00:00Z") && !strings.Contains(text, "2 ranks on 0 processors") || !strings.Contains(text, "1.500        1.400") {
		t.Errorf("text %s", text)
	}
	again, _, err := tune.ParseFile(text)
	if err != nil || again == nil || again.String() != m.String() {
		t.Errorf("error %v, got %v", err, again)
	}
}

func TestCalibrationNeedsRanks(t *testing.T) {
	o := options{processes: 1, threads: 1, calibrate: "-"}
	if err := calibrate(o, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "-P sets") {
		t.Errorf("error %v", err)
	}
}

// Small sizes get many calls, and shared processors fewer.
func TestCalibrationCalls(t *testing.T) {
	last := 1 << 30
	for bytes := int64(8); bytes <= 64<<20; bytes *= 4 {
		n := calibrationCalls(bytes, false)
		if n > last || n < 8 || calibrationCalls(bytes, true) > n {
			t.Errorf("%d bytes: %d calls, before it %d", bytes, n, last)
		}
		last = n
	}
}
