package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// dataType is one row of nccl-tests' type names.
type dataType struct {
	name  string
	width int
}

var dataTypes = []dataType{
	{"int8", 1}, {"uint8", 1}, {"int32", 4}, {"uint32", 4}, {"int64", 8}, {"uint64", 8},
	{"half", 2}, {"float", 4}, {"double", 8}, {"bfloat16", 2}, {"f8e4m3", 1}, {"f8e5m2", 1},
}

// typeAliases are other spellings that users of NCCL write.
var typeAliases = map[string]string{
	"float16": "half", "fp16": "half", "float32": "float", "fp32": "float", "float64": "double", "fp64": "double",
	"bf16": "bfloat16", "fp8_e4m3": "f8e4m3", "fp8_e5m2": "f8e5m2", "float8e4m3": "f8e4m3", "float8e5m2": "f8e5m2",
}

var opNames = []string{"sum", "prod", "max", "min", "avg", "mulsum"}

// defaultIterations counts for small sizes; iterationsFor lowers it for large ones.
const defaultIterations = 20

// options are the command line after parsing, before anything is checked against the number of ranks.
type options struct {
	minBytes, maxBytes, stepBytes string
	factor                        int
	iterations, warmup, checks    int
	op, dataType, root            string
	average                       int
	threads, processes            int
	collective                    string
	register                      int
	window, latency, pin          bool
	hostStream, jsonLines         bool
	outOfPlaceOnly                bool
	svgFile, title, rankProgram   string
	recorded                      []string
	calibrate                     string
	timeout                       time.Duration
}

func (o *options) bind(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVarP(&o.minBytes, "minbytes", "b", "32M", "smallest size in bytes (8, 64K, 1.5M, 1G)")
	f.StringVarP(&o.maxBytes, "maxbytes", "e", "32M", "largest size")
	f.StringVarP(&o.stepBytes, "stepbytes", "i", "1M", "step between sizes, where there is no step factor")
	f.IntVarP(&o.factor, "stepfactor", "f", 0, "factor between sizes")
	f.IntVarP(&o.iterations, "iters", "n", 0, "timed calls of each size (default 20, less from 4 MiB on)")
	f.IntVarP(&o.warmup, "warmup_iters", "w", 1, "calls before the timed ones")
	f.IntVarP(&o.checks, "check", "c", 1, "checked calls of each size, with fresh inputs; 0 checks nothing")
	f.StringVarP(&o.op, "op", "o", "sum", strings.Join(opNames, "/")+"/all")
	f.StringVarP(&o.dataType, "datatype", "d", "float", "element type, or all")
	f.StringVarP(&o.root, "root", "r", "0", "root rank, or all")
	f.IntVarP(&o.average, "average", "a", 1, "time over the ranks: 0 rank 0, 1 average, 2 smallest, 3 largest")
	f.IntVarP(&o.threads, "nthreads", "t", 1, "ranks as threads of each process")
	f.IntVarP(&o.processes, "processes", "P", 1, "processes")
	f.StringVar(&o.collective, "coll", "all_reduce", strings.Join(collectiveNames(), "/")+"/all")
	f.IntVarP(&o.register, "local_register", "R", 0, "buffers: 0 ordinary, 1 ncclCommRegister, 2 ncclMemAlloc and windows")
	f.BoolVar(&o.window, "window", false, "the same as -R 2")
	f.BoolVar(&o.latency, "latency", false, "time isolated calls: fresh inputs and a barrier before each; median, mean, p99")
	f.BoolVar(&o.outOfPlaceOnly, "out-of-place", false, "leave the in-place columns out")
	f.BoolVar(&o.hostStream, "stream", false, "use a host stream instead of the NULL stream")
	f.BoolVar(&o.pin, "pin", false, "rank r runs on core r modulo cores")
	f.BoolVar(&o.jsonLines, "json", false, "JSON lines instead of the table")
	f.StringVar(&o.svgFile, "svg", "", "write a plot of time and bandwidth over size to this file")
	f.StringVar(&o.title, "title", "", "title of the plot (default what was run)")
	f.StringArrayVar(&o.recorded, "recorded", nil, "measure nothing and draw a line of recorded results: NAME=FILE, an output of --json; NAME=FILE;key=value;time=field leaves rows out, and names the field of the time. May be given several times")
	f.StringVar(&o.calibrate, "calibrate", "", "measure this machine with -P processes of -t threads and write its costs to this file (-: standard output), for GCCL_TUNE_FILE")
	f.DurationVarP(&o.timeout, "timeout", "T", 2*time.Minute, "end the run when no rank gets on for so long")
	f.StringVar(&o.rankProgram, "rank-program", "", "the rank program (default gccl-perf-rank beside this one)")
}

// measurement is one line of the table.
type measurement struct {
	coll       collective
	typ        dataType
	op         string // "none" where the operation does not reduce
	root       int    // -1 where there is none
	count      int64
	iterations int
	inPlace    bool
}

// plan is a checked command line: what is to be measured, in order, with how many ranks.
type plan struct {
	options
	nranks       int
	lowest       int64
	highest      int64
	step         int64
	measurements []measurement
}

func (o options) buffers() string {
	if o.window {
		return "window"
	}
	return [...]string{"malloc", "register", "window"}[o.register]
}

// iterationsFor keeps a default sweep short: a large call takes long and varies little.
func (o options) iterationsFor(bytes int64) int {
	switch {
	case o.iterations > 0:
		return o.iterations
	case bytes >= 32<<20:
		return 4
	case bytes >= 4<<20:
		return 10
	}
	return defaultIterations
}

func oneOrAll(what, value string, known []string) ([]string, error) {
	if value == "all" {
		return known, nil
	}
	for _, k := range known {
		if k == value {
			return []string{value}, nil
		}
	}
	return nil, fmt.Errorf("%s %q is unknown; one of %s, all", what, value, strings.Join(known, ", "))
}

func (o options) types() ([]dataType, error) {
	value := o.dataType
	if full, ok := typeAliases[value]; ok {
		value = full
	}
	var names []string
	for _, t := range dataTypes {
		names = append(names, t.name)
	}
	chosen, err := oneOrAll("-d: data type", value, names)
	var types []dataType
	for _, name := range chosen {
		for _, t := range dataTypes {
			if t.name == name {
				types = append(types, t)
			}
		}
	}
	return types, err
}

func (o options) roots(nranks int) ([]int, error) {
	if o.root == "all" || o.root == "-1" {
		var roots []int
		for r := range nranks {
			roots = append(roots, r)
		}
		return roots, nil
	}
	var root int
	if n, err := fmt.Sscanf(o.root+" ", "%d ", &root); n != 1 || err != nil || root < 0 || root >= nranks {
		return nil, fmt.Errorf("-r: root %q is no rank; 0 to %d, or all", o.root, nranks-1)
	}
	return []int{root}, nil
}

func (o options) check() error {
	positive := []struct {
		name  string
		value int
		least int
	}{{"-t", o.threads, 1}, {"-P", o.processes, 1}, {"-w", o.warmup, 0}, {"-c", o.checks, 0}, {"-n", o.iterations, 0}, {"-f", o.factor, 0}}
	for _, p := range positive {
		if p.value < p.least {
			return fmt.Errorf("%s: %d is less than %d", p.name, p.value, p.least)
		}
	}
	if o.average < 0 || o.average > 3 {
		return fmt.Errorf("-a: %d is none of 0, 1, 2, 3", o.average)
	}
	if o.register < 0 || o.register > 2 {
		return fmt.Errorf("-R: %d is none of 0, 1, 2", o.register)
	}
	if o.timeout <= 0 {
		return fmt.Errorf("-T: %v is no waiting time", o.timeout)
	}
	return nil
}

// newPlan checks the options against the number of ranks and lists the measurements.
func newPlan(o options, nranks int) (*plan, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	p := &plan{options: o, nranks: nranks}
	for _, s := range []struct {
		flag, text string
		into       *int64
	}{{"-b", o.minBytes, &p.lowest}, {"-e", o.maxBytes, &p.highest}, {"-i", o.stepBytes, &p.step}} {
		v, err := parseSize(s.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.flag, err)
		}
		*s.into = v
	}
	if p.lowest > p.highest {
		return nil, fmt.Errorf("-b %s is more than -e %s", o.minBytes, o.maxBytes)
	}
	if o.factor <= 1 && p.step < 1 {
		return nil, fmt.Errorf("-i: a step of %d bytes gets nowhere", p.step)
	}
	names, err := oneOrAll("--coll: collective", o.collective, collectiveNames())
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		c, _ := findCollective(name)
		if c.powerOfTwo && nranks&(nranks-1) != 0 {
			if o.collective == name {
				return nil, fmt.Errorf("--coll %s: works for 2, 4, 8, … ranks, not for %d", name, nranks)
			}
			continue
		}
		if err := p.add(c); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// add appends all measurements of one collective: types, then operators, then roots, then sizes.
func (p *plan) add(c collective) error {
	types, err := p.types()
	if err != nil {
		return err
	}
	ops, err := oneOrAll("-o: operator", p.op, opNames)
	if err != nil {
		return err
	}
	roots, err := p.roots(p.nranks)
	if err != nil {
		return err
	}
	if !c.reduces {
		ops = []string{"none"}
	}
	if !c.rooted {
		roots = []int{-1}
	}
	for _, t := range types {
		for _, op := range ops {
			for _, root := range roots {
				for _, bytes := range sweep(p.lowest, p.highest, p.step, p.factor) {
					p.measurements = append(p.measurements, measurement{
						coll: c, typ: t, op: op, root: root,
						count:      c.blockCount(bytes, t.width, p.nranks),
						iterations: p.iterationsFor(bytes),
						inPlace:    !c.noInPlace && !p.outOfPlaceOnly,
					})
				}
			}
		}
	}
	return nil
}
