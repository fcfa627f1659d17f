package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func parseOptions(args ...string) (options, error) {
	var o options
	f := pflag.NewFlagSet("gccl-perf", pflag.ContinueOnError)
	o.bind(f)
	err := f.Parse(args)
	return o, err
}

func TestPlanOfOptions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		nranks int
		args   string
		want   string // coll/type/op/root/count of every measurement
	}{
		{"defaults", 4, "", "all_reduce/float/sum/-1/8388608"},
		{"factor", 2, "-b 8 -e 64 -f 2", "all_reduce/float/sum/-1/2 all_reduce/float/sum/-1/4 all_reduce/float/sum/-1/8 all_reduce/float/sum/-1/16"},
		{"long names", 2, "--minbytes 8 --maxbytes 8 --op max --datatype half", "all_reduce/half/max/-1/4"},
		{"step", 2, "-b 1K -e 2K -i 512", "all_reduce/float/sum/-1/256 all_reduce/float/sum/-1/384 all_reduce/float/sum/-1/512"},
		{"size 0 with a factor ends", 2, "-b 0 -e 64 -f 2", "all_reduce/float/sum/-1/0"},
		{"no operator", 2, "-b 64 -e 64 --coll all_gather -o all", "all_gather/float/none/-1/8"},
		{"all roots", 3, "-b 8 -e 8 --coll broadcast -r all", "broadcast/float/none/0/2 broadcast/float/none/1/2 broadcast/float/none/2/2"},
		{"one root", 3, "-b 8 -e 8 --coll reduce -r 2 -o avg -d bf16", "reduce/bfloat16/avg/2/4"},
		{"blocks are cut to 16 bytes", 3, "-b 100 -e 100 --coll alltoall -d uint8", "alltoall/uint8/none/-1/32"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := testPlan(t, tt.nranks, strings.Fields(tt.args)...)
			var got []string
			for _, m := range p.measurements {
				got = append(got, strings.Join([]string{m.coll.name, m.typ.name, m.op, itoa(m.root), itoa(int(m.count))}, "/"))
			}
			if g := strings.Join(got, " "); g != tt.want {
				t.Errorf("got  %s\nwant %s", g, tt.want)
			}
		})
	}
}

func TestPlanOfEverything(t *testing.T) {
	p := testPlan(t, 4, "--coll", "all", "-o", "all", "-d", "all", "-r", "all", "-b", "8", "-e", "8")
	// reducing: 12 types × 6 operators, reduce also × 4 roots; others × 12 types, the three rooted ones × 4 roots
	want := 12*6*(1+1+4) + 12*(1+1+1+1) + 12*4*3
	if len(p.measurements) != want {
		t.Errorf("%d measurements, want %d", len(p.measurements), want)
	}
	if p := testPlan(t, 3, "--coll", "all", "-b", "8", "-e", "8"); len(p.measurements) != len(collectives)-1 {
		t.Errorf("3 ranks: %d collectives, want all but hypercube", len(p.measurements))
	}
}

func TestPlanRefuses(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-b 64 -e 8", "-b 64 is more than -e 8"},
		{"-b x", `"x" is no size`},
		{"-o minus", `"minus" is unknown; one of sum, prod`},
		{"-d float7", `"float7" is unknown`},
		{"--coll all_reducex", "is unknown"},
		{"--coll broadcast -r 4", "is no rank; 0 to 2"},
		{"--coll broadcast -r 1x", "is no rank"},
		{"--coll hypercube", "works for 2, 4, 8"},
		{"-a 4", "-a: 4"},
		{"-R 3", "-R: 3"},
		{"-t 0", "-t: 0 is less than 1"},
		{"-n -1", "-n: -1 is less than 0"},
		{"-i 0 -e 64M", "gets nowhere"},
		{"-T 0s", "is no waiting time"},
		{"--nonsense", "unknown flag"},
	} {
		_, err := tryPlan(3, strings.Fields(tt.args)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.args, err, tt.want)
		}
	}
}

func TestIterationsFor(t *testing.T) {
	var o options
	for bytes, want := range map[int64]int{8: 20, 4<<20 - 1: 20, 4 << 20: 10, 32 << 20: 4} {
		if got := o.iterationsFor(bytes); got != want {
			t.Errorf("%d bytes: %d iterations, want %d", bytes, got, want)
		}
	}
	o.iterations = 7
	if got := o.iterationsFor(1 << 30); got != 7 {
		t.Errorf("-n 7: %d iterations", got)
	}
}

func TestJobText(t *testing.T) {
	p := testPlan(t, 4, "-b", "8", "-e", "64", "-f", "8", "--coll", "all", "--window", "--pin", "-o", "mulsum", "-d", "f8e5m2", "-r", "3")
	golden(t, "job.golden", []byte(p.jobText("00ff")))
}
