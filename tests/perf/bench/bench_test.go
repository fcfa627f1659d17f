package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestMedianAndSpread(t *testing.T) {
	if m := median([]float64{5, 1, 3}); m != 3 {
		t.Error(m)
	}
	if m := median([]float64{4, 1, 2, 3}); m != 2.5 {
		t.Error(m)
	}
	if s := spread([]float64{5, 4, 6}); s != 0.4 {
		t.Error(s)
	}
	if !math.IsNaN(median(nil)) || !math.IsNaN(spread(nil)) || number(math.NaN()) != nil {
		t.Error("nothing measured must stay nothing")
	}
}

func TestRegimesNeverMix(t *testing.T) {
	for ncores, want := range map[int]string{1: "4 8", 2: "2 4 8", 4: "2 8", 16: "2"} {
		var got []string
		for _, r := range regimes(ncores, 5) {
			got = append(got, map[int]string{2: "2", 4: "4", 8: "8"}[r.ranks])
			if r.yield != (r.ranks > ncores) {
				t.Errorf("%d ranks on %d cores: yield %v", r.ranks, ncores, r.yield)
			}
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%d cores: ranks %s, want %s", ncores, g, want)
		}
	}
}

func TestParseLines(t *testing.T) {
	text := `{"what":"probe","method":"two-shot","bytes":8,"p50":9,"mean":9,"p99":9,"wrong":0}
{"what":"probe","method":"best","bytes":8,"p50":0.1,"mean":0.2,"p99":0.3,"wrong":0}`
	got, err := parseLines([]byte(text), "best")
	if err != nil || len(got) != 1 || got[8].p50 != 0.1 || got[8].mean != 0.2 || got[8].p99 != 0.3 {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"", "hello", `{"bytes":8,"wrong":2}`} {
		if _, err := parseLines([]byte(bad), ""); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestParseOurs(t *testing.T) {
	into := map[int64]figure{}
	text := `{"kind":"run","init_us":5}
{"kind":"row","bytes":8,"time_us":2,"p50_us":1,"p99_us":3,"wrong":0,"front_ns":70}
{"kind":"row","bytes":16,"time_us":2,"p50_us":1,"p99_us":3,"wrong":0}
{"kind":"end","wrong":0}`
	if err := parseOurs([]byte(text), into); err != nil || into[8] != (figure{1, 2, 3, 70}) || into[16].frontNS >= 0 {
		t.Errorf("%v %v", into, err)
	}
	for _, bad := range []string{`{"kind":"row","bytes":8,"wrong":1}`, `{"kind":"row","bytes":8,"wrong":null}`, "x"} {
		if err := parseOurs([]byte(bad), into); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestVersionNumber(t *testing.T) {
	for text, want := range map[string]string{"mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs": "4.1.4", "HYDRA build details:\n    Version:     4.0.2": "4.0.2", "none": "of unknown version"} {
		if got := versionNumber(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// made-up figures of two rounds: ours 1 and 3 µs per 8 bytes, peers slower.
func madeUp(r regime) table {
	tab := table{}
	for _, s := range r.sizes {
		us := float64(s.bytes) / 8
		for _, round := range []float64{1, 3} {
			tab.add(ours+" window", s.bytes, figure{us * round, us * round * 1.5, us * 9, 50})
			tab.add("Open MPI 4.1.4", s.bytes, figure{us * 4, us * 5, us * 6, -1})
			tab.add(nameProbe, s.bytes, figure{us / 2, us, us * 2, -1})
		}
	}
	return tab
}

func TestReport(t *testing.T) {
	r := regimes(2, 2)[0]
	r.sizes = r.sizes[:3]
	tab := madeUp(r)
	names := []string{ours + " window", ours + " malloc", "Open MPI 4.1.4", nameProbe}
	var out bytes.Buffer
	writeRegime(&out, r, tab, names)
	writeLifecycle(&out, &lifecycle{InitThreadsUS: 12345, InitProcessesUS: 6789, CycleUS: 321.5, Fds: [2]int64{5, 5}, Threads: [2]int64{7, 8}, RSSKB: [2]int64{9000, 9100}, OneRankKB: 88.4, OneRankOwn: 4096})
	golden(t, "testdata/report.md.golden", out.Bytes())

	rows := rowsOf(r, tab, []string{"window", "malloc"}, []string{"Open MPI 4.1.4", nameProbe}, "2 processes, pinned")
	encoded, err := json.MarshalIndent(result{Commit: "c", Machine: "m", Command: "bench", Date: "d", Rows: rows}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/report.json.golden", encoded)
}

func TestLifecycleLines(t *testing.T) {
	var l lifecycle
	for _, text := range []string{`{"what":"threads","ranks":64,"us":5}`, `{"what":"cycles","cycles":9,"us":2,"fds":[4,4],"threads":[6,6],"rss_kb":[1,2]}`, `{"what":"one","comms":16,"kb_each":3.5,"own_bytes":-1,"once_kb":9}`} {
		if err := l.take([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	want := lifecycle{InitThreadsUS: 5, CycleUS: 2, Fds: [2]int64{4, 4}, Threads: [2]int64{6, 6}, RSSKB: [2]int64{1, 2}, OneRankKB: 3.5, OneRankOwn: -1}
	if l != want {
		t.Errorf("%+v", l)
	}
	if l.take([]byte(`{"what":"else"}`)) == nil || l.take([]byte("x")) == nil {
		t.Error("nonsense was taken")
	}
}

func TestParseBench(t *testing.T) {
	got := parseBench("goos: linux\nBenchmarkQueue/drain/64-2  100  90.5 ns/op  12.5 M/s\nBenchmarkQueue/drain/64-2  100  95 ns/op  10.5 M/s\n" +
		"BenchmarkIdle  1  10000000000 ns/op  0.5 %cpu/thread  180 us/first\nPASS\n")
	want := []ginFigure{{"Queue/drain/64", "M/s", 11.5, 2 / 11.5}, {"Idle", "%cpu/thread", 0.5, 0}, {"Idle", "us/first", 180, 0}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
