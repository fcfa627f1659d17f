package cost

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestTextRoundTrip(t *testing.T) {
	for _, name := range BuiltinNames {
		m, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(m.String())
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("error %v, got\n%v\nwant\n%v", err, again, m)
		}
	}
	if _, err := Builtin("abacus"); err == nil {
		t.Error("no error")
	}
}

func TestParseRefuses(t *testing.T) {
	m, _ := Builtin("host")
	good := m.String()
	for text, want := range map[string]string{
		"":                                "empty",
		"name x":                          "the first line",
		"gccl_machine 2":                  "this library reads 1",
		good + "speed 3":                  `no number "speed"`,
		good + "cpus 3":                   "a second time",
		good + "proto x 1":                "want a name",
		good + "proto x 1 0":              "rate 0",
		"gccl_machine 1\ncpus -1":         "no whole number",
		"gccl_machine 1\ncpus 4294967296": "no whole number",
		"gccl_machine 1\ncall_ns NaN":     "no number",
		"gccl_machine 1\nuser_ns_per_byte 5:1 4:1": "order of bytes",
		"gccl_machine 1\nuser_ns_per_byte 5":       "not bytes:value",
		"gccl_machine 1\nfabric torus":             "none of flat",
		"gccl_machine 1\nstage_bytes 1":            "less than 64 KiB",
		"gccl_machine 1\nstage_bytes 65536":        "no user_ns_per_byte",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestCurve(t *testing.T) {
	c := Curve{{Bytes: 10, Value: 1}, {Bytes: 1000, Value: 3}}
	for bytes, want := range map[float64]float64{0: 1, 10: 1, 100: 2, 1000: 3, 1e9: 3} {
		if got := c.At(bytes); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %g: %g, want %g", bytes, got, want)
		}
	}
	if Curve(nil).At(5) != 0 {
		t.Error("a curve without points is not 0")
	}
}

func TestFabric(t *testing.T) {
	rail := Fabric{Kind: "rail", Leaf: 2, Hop: 10, Over: 3}
	fat := Fabric{Kind: "fat", Leaf: 2, Pod: 2, Hop: 10, Over: 3}
	for _, c := range []struct {
		f              *Fabric
		fc, fi, tc, ti int
		want           Path
	}{
		{&Fabric{Kind: "flat"}, 0, 0, 9, 1, Path{0, 1}},
		{&rail, 0, 1, 1, 1, Path{0, 1}}, {&rail, 0, 1, 1, 2, Path{20, 3}}, {&rail, 0, 1, 2, 1, Path{20, 3}},
		{&fat, 0, 1, 1, 2, Path{0, 1}}, {&fat, 0, 1, 2, 1, Path{20, 3}}, {&fat, 0, 1, 4, 1, Path{40, 9}},
	} {
		if got := c.f.Between(c.fc, c.fi, c.tc, c.ti); got != c.want {
			t.Errorf("%s %d/%d to %d/%d: %v, want %v", c.f.Kind, c.fc, c.fi, c.tc, c.ti, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range BuiltinNames {
		m, _ := Builtin(name)
		f.Add(m.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(m.String())
		if err != nil && m.Name != "" && m.Fabric.Kind != "" {
			t.Fatalf("error %v\n%s", err, m)
		}
		if err == nil && !reflect.DeepEqual(m, again) {
			t.Fatalf("got\n%s\nwant\n%s", again, m)
		}
	})
}
