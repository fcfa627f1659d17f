package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

const nameStreams = "plain TCP"

// networkRegime is two processes that share nothing but a network, the loopback interface.
func networkRegime(rounds int) regime {
	return regime{name: "2 ranks over TCP of the loopback interface", ranks: 2, rounds: rounds, floor: nameStreams, sizes: []size{
		{8, 500, 5000}, {4 << 10, 300, 3000}, {32 << 10, 200, 2000}, {256 << 10, 50, 500}, {2 << 20, 10, 60}, {16 << 20, 2, 10},
	}}
}

// networkContenders: ours kept from shared memory, Gloo where PyTorch is at hand, and plain streams, as many as ours has.
func (s *setup) networkContenders() (list []contender, missing []string) {
	for _, open := range []func() (contender, error){
		func() (contender, error) {
			return s.openOurs("tcp", "NCCL_SHM_DISABLE=1", "NCCL_NET=socket", "NCCL_SOCKET_IFNAME=lo")
		},
		s.openGloo, s.openStreams,
	} {
		c, err := open()
		if err != nil {
			missing = append(missing, err.Error())
			continue
		}
		list = append(list, c)
	}
	return list, missing
}

func (s *setup) openGloo() (contender, error) {
	script := filepath.Join(s.root, "tests/perf/gloo/allreduce.py")
	version, err := output(nil, s.python, script, "--version")
	if err != nil {
		return contender{}, fmt.Errorf("Gloo: %s has no PyTorch (--python names another interpreter): %w", s.python, err)
	}
	return contender{
		name:   "Gloo of PyTorch " + strings.TrimSpace(string(version)),
		launch: func(regime) string { return "two processes, not pinned, called from Python" },
		fits:   func(regime) bool { return true },
		measure: func(r regime) (map[int64]figure, error) {
			out, err := output([]string{"GLOO_SOCKET_IFNAME=lo"}, s.python, append([]string{script}, specs(r.sizes)...)...)
			if err != nil {
				return nil, err
			}
			return parseLines(out, "")
		},
	}, nil
}

// openStreams is the floor: one stream, as many as ours has between two processes of one machine.
func (s *setup) openStreams() (contender, error) {
	program := filepath.Join(s.build, "exchange")
	args := append(s.cflags(), "-march=native", "-o", program, filepath.Join(s.root, "tests/perf/tcp/exchange.c"))
	if _, err := output(nil, "gcc", args...); err != nil {
		return contender{}, fmt.Errorf("%s: cannot compile: %w", nameStreams, err)
	}
	return contender{
		name:   nameStreams,
		launch: func(regime) string { return "two pinned processes, one stream" },
		fits:   func(regime) bool { return true },
		measure: func(r regime) (map[int64]figure, error) {
			out, err := output(nil, program, append([]string{"1"}, specs(r.sizes)...)...)
			if err != nil {
				return nil, err
			}
			return parseLines(out, "")
		},
	}, nil
}

// ginFigure is one figure of net/gin's own benchmarks: the median over their runs.
type ginFigure struct {
	What   string  `json:"what"`
	Unit   string  `json:"unit"`
	Value  float64 `json:"value"`
	Spread float64 `json:"spread"`
}

// benchLine is a line of go test -bench: name, iterations, then values with units.
var benchLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)

// parseBench reads the metrics of go test -bench, without ns/op, in the order in which they come first.
func parseBench(text string) []ginFigure {
	values := map[[2]string][]float64{}
	var order [][2]string
	for _, l := range strings.Split(text, "\n") {
		m := benchLine.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		fields := strings.Fields(m[2])
		for i := 0; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil || fields[i+1] == "ns/op" {
				continue
			}
			key := [2]string{m[1], fields[i+1]}
			if values[key] == nil {
				order = append(order, key)
			}
			values[key] = append(values[key], v)
		}
	}
	var list []ginFigure
	for _, key := range order {
		list = append(list, ginFigure{What: key[0], Unit: key[1], Value: median(values[key]), Spread: spread(values[key])})
	}
	return list
}

// gin runs the benchmarks of descriptor queues.
func (s *setup) gin(rounds int) ([]ginFigure, error) {
	var text strings.Builder
	for _, b := range []struct{ name, time, count string }{
		{"Queue", "1s", strconv.Itoa(rounds)}, {"RoundTrip", "1s", strconv.Itoa(rounds)}, {"Idle", "1x", "1"},
	} {
		fmt.Fprintf(os.Stderr, "descriptor queues: %s\n", b.name)
		out, err := output(nil, "go", "test", "-C", s.root, "-run", "^$", "-bench", "^Benchmark"+b.name+"$", "-benchtime", b.time, "-count", b.count, "./net/gin")
		if err != nil {
			return nil, err
		}
		text.Write(out)
	}
	list := parseBench(text.String())
	if len(list) == 0 {
		return nil, fmt.Errorf("the benchmarks of net/gin printed no figure: %.200q", text.String())
	}
	return list, nil
}
