package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/net/ib"
	"github.com/gccl/gccl/net/socket"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/topo/discover"
	"github.com/gccl/gccl/topo/discover/nvml"
)

// probeTime bounds how long the library may take to answer: opening a driver is the slowest part of it.
const probeTime = 30 * time.Second

// probe runs gccl-info-probe, which lies beside this program, and gives what it prints.
func probe(env []string, args ...string) (string, error) {
	me, err := os.Executable()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(me), "gccl-info-probe"), args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("the library did not answer within %v", probeTime)
		}
		return out.String(), fmt.Errorf("gccl-info-probe: %w: %s", err, strings.TrimSpace(out.String()))
	}
	return out.String(), nil
}

// libraryFacts are what the library says of itself.
func libraryFacts(ask func(env []string, args ...string) (string, error)) []fact {
	text, err := ask(nil)
	if err != nil {
		return []fact{{"library", "unknown: " + err.Error()}}
	}
	said := map[string]string{}
	for _, l := range strings.Split(text, "\n") {
		key, value, _ := strings.Cut(l, " ")
		said[key] = value
	}
	return []fact{{"library", said["path"]}, {"library build", build(filepath.Join(filepath.Dir(said["path"]), "libgccl_core.so"))},
		{"cuda kernels", kernels(said["path"])}, {"device", said["device"]}}
}

// build says from which source a Go library was built: its version control's stamp.
func build(path string) string {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "unknown: " + err.Error()
	}
	revision, changed := "unknown source", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", with changes on top"
		}
	}
	return fmt.Sprintf("%s%s, %s", revision, changed, info.GoVersion)
}

// machineFacts are the devices.
func machineFacts(f *discover.Facts) []fact {
	var out []fact
	for _, g := range f.GPUs {
		out = append(out, fact{fmt.Sprintf("gpu %d", g.Index), fmt.Sprintf("%s at %s, compute capability %d.%d", g.Name, g.BusID, g.SM/10, g.SM%10)})
	}
	if len(f.GPUs) == 0 {
		out = append(out, fact{"gpus", "none: " + noteAbout(f.Notes, "GPUs: ", "the driver shows none")})
	}
	nodes := make([]string, 0, len(f.Nodes))
	for _, n := range f.Nodes {
		nodes = append(nodes, fmt.Sprintf("%d (CPUs %s)", n.ID, n.CPUs.List()))
	}
	if len(nodes) > 0 {
		out = append(out, fact{"numa nodes", strings.Join(nodes, ", ")})
	}
	return out
}

func noteAbout(notes []string, prefix, otherwise string) string {
	for _, n := range notes {
		if rest, found := strings.CutPrefix(n, prefix); found {
			return rest
		}
	}
	return otherwise
}

// networkFacts are the transports between machines in the order in which they are tried (comm/network.go), each with its devices or the reason
// why it has none.
func networkFacts(s *param.Settings) []fact {
	want := s.Str(param.NCCLNet)
	describe := func(name string, t transport.Transport, err error) fact {
		value := ""
		var devices []transport.Device
		if err == nil {
			devices, err = t.Devices()
		}
		for i, d := range devices {
			if i > 0 {
				value += ", "
			}
			value += d.Name
			if d.Speed > 0 {
				value += fmt.Sprintf(" (%g Gb/s)", float64(d.Speed)/1000)
			}
		}
		switch {
		case err != nil:
			value = "not used: " + err.Error()
		case value == "":
			value = "not used: no device"
		}
		if want != "" && !strings.EqualFold(want, name) {
			value = "not used: " + s.Describe(param.NCCLNet)
		}
		return fact{"network " + name, value}
	}
	verbs, ibErr := ib.FromSettings(s)
	tcp, tcpErr := socket.FromSettings(s)
	return []fact{describe("ib", verbs, ibErr), describe("socket", tcp, tcpErr)}
}

func thisMachine() *discover.Facts { return discover.Discover(discover.Sources{GPUs: nvml.GPUs}) }
