package cost

import "fmt"

// Built in are machines to plan for without having them.
//
// host: fitted to tests/perf/results/host.md (2 ranks on 2 cores of an AMD EPYC, float all-reduce); "gccl-perf --calibrate"
// makes the numbers of another machine. Its signal is a guess. Between hosts it has 25 Gbit/s Ethernet; latency and gap are guesses for TCP.
//
// dgx: eight GPUs a host and 400 Gbit/s for each of them, on rails. Copies at 300 of NVLink's 450 GB/s; LL carries a flag for
// each 4 bytes and so half, LL128 120 of 128 bytes. Latencies are those of NCCL 2.30.7's tuner (Simple: NVLink 3.4 µs, network 14 µs,
// tree; LL 0.6 and 5, LL128 1.9 and 8.5, for which one factor stands here).
func builtin(name string) *Machine {
	switch name {
	case "host":
		return &Machine{
			Name: name, Call: 25, Op: 15, Poll: 5, Signal: 20, Switch: 1500, Inside: Link{Latency: 55},
			User:    Curve{{8 << 10, 0.020}, {128 << 10, 0.0165}, {8 << 20, 0.0147}, {32 << 20, 0.030}, {64 << 20, 0.069}},
			Scratch: Curve{{8 << 10, 0.060}, {128 << 10, 0.0275}, {1 << 20, 0.0175}, {8 << 20, 0.0243}, {64 << 20, 0.030}},
			Between: Link{Latency: 20_000, Gap: 3000, Rate: 3}, Fabric: Fabric{Kind: "flat"},
			Stage: 2 << 20, Eager: 512, Protos: []Proto{Simple}, Channels: 1,
		}
	case "dgx":
		return &Machine{
			Name: name, Call: 8000, Op: 100, Poll: 10, Signal: 20, Inside: Link{Latency: 3400},
			User: Level(1. / 300), Scratch: Level(1. / 300),
			Between: Link{Latency: 14_000, Gap: 200, Rate: 48}, Fabric: Fabric{Kind: "rail", Leaf: 32, Hop: 500},
			Stage: 32 << 20, Eager: 64 << 10,
			Protos:   []Proto{Simple, {Name: "ll", Latency: 0.3, Rate: 0.5}, {Name: "ll128", Latency: 0.6, Rate: 120. / 128}},
			Channels: 16, ChannelRate: 20,
		}
	}
	return nil
}

// BuiltinNames lists the machines.
var BuiltinNames = []string{"host", "dgx"}

// Builtin is a machine by name, to be changed freely.
func Builtin(name string) (*Machine, error) {
	if m := builtin(name); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("no machine %q; there are %v", name, BuiltinNames)
}
