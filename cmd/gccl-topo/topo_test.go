package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gccl/gccl/topo/discover"
	"github.com/gccl/gccl/topo/discover/bus"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// twoNodes is a machine of two NUMA nodes; gpus are on its driver.
func twoNodes(t *testing.T, gpus []discover.GPU, err error) *discover.Local {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"proc/sys/kernel/hostname": "test", "sys/devices/system/node/node0/cpumap": "f", "sys/devices/system/node/node1/cpumap": "f0"} {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &discover.Local{Sources: discover.Sources{Root: root, CPU: func() discover.CPUKind {
		return discover.CPUKind{Arch: "x86_64", Vendor: "AuthenticAMD", Family: 175, Model: 1}
	},
		GPUs: func() ([]discover.GPU, error) { return gpus, err }, Devices: bus.Devices}}
}

func run(local *discover.Local, args ...string) (string, error) {
	if local == nil {
		local = &discover.Local{Sources: discover.Sources{CPU: func() discover.CPUKind { panic("this machine is not asked for") }}}
	}
	cmd := command(local)
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.Execute()
	return out.String(), err
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it anew); got\n%s", path, got)
	}
}

func TestOutputs(t *testing.T) {
	noDriver := errors.New("no driver")
	for _, c := range []struct {
		name  string
		local *discover.Local
		args  []string
		err   error
	}{
		{"show-file.txt", nil, []string{"show", "testdata/mesh.xml"}, nil},
		{"show-cpus.txt", twoNodes(t, nil, noDriver), []string{"show", "--ranks", "3"}, nil},
		{"show-gpus.txt", twoNodes(t, []discover.GPU{{Index: 0, BusID: "0000:01:00.0", SM: 90}, {Index: 1, BusID: "0000:02:00.0", SM: 90}}, nil), []string{"show", "--ranks", "3"}, nil},
		{"search-file.txt", nil, []string{"search", "testdata/mesh.xml"}, nil},
		{"search-nodes.txt", nil, []string{"search", "testdata/mesh.xml", "--nodes", "2"}, nil},
		{"search-cpus.txt", twoNodes(t, nil, noDriver), []string{"search", "--ranks", "6"}, nil},
		{"diff.txt", nil, []string{"diff", "testdata/mesh.xml", "testdata/mesh-changed.xml"}, errDiffer},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := run(c.local, c.args...)
			if !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			golden(t, c.name, out)
		})
	}
}

func TestMergeLevels(t *testing.T) {
	if _, err := run(nil, "search", "testdata/mesh.xml", "--merge-level", "NEAR"); err == nil || !strings.Contains(err.Error(), `--merge-level: "NEAR" is no level of merging`) {
		t.Errorf("a level that there is not: %v", err)
	}
	if _, err := run(nil, "search", "testdata/mesh.xml", "--force-merge", "a,b"); err == nil || !strings.Contains(err.Error(), "there is no network device a") {
		t.Errorf("a device that there is not: %v", err)
	}
	out, err := run(nil, "search", "../../topo/testdata/xml/oci-h100-8gpu-k8s.xml", "--nodes", "2")
	if err != nil || !strings.Contains(out, "NET/16 ") {
		t.Errorf("fused devices are not used: %v\n%s", err, out)
	}
}

func TestNoDifference(t *testing.T) {
	if out, err := run(nil, "diff", "testdata/mesh.xml", "testdata/mesh.xml"); err != nil || out != "" {
		t.Errorf("%v, %q", err, out)
	}
}

// The JSON has the fields of NCCL's decisions as they are published for comparison.
func TestJSON(t *testing.T) {
	out, err := run(nil, "search", "testdata/mesh.xml", "--nodes", "2", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]map[string]any
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	r := all["mesh"]["2-node"]
	for _, field := range []string{"nodes", "maxBw", "totalBw", "rank_order", "gpu_gpu", "gpu_net", "graphs", "channels", "ring_orders", "trees"} {
		if r[field] == nil {
			t.Errorf("no field %s", field)
		}
	}
	ring := r["graphs"].(map[string]any)["ring"].(map[string]any)
	for _, field := range []string{"pattern", "crossNic", "nChannels", "bwIntra", "bwInter", "typeIntra", "typeInter", "sameChannels", "channels"} {
		if ring[field] == nil {
			t.Errorf("no field %s in the ring", field)
		}
	}
}

// A drawing is XML, has every rank and network device by name, and a lane for each order.
func TestDrawing(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "mesh.svg")
	if _, err := run(nil, "search", "testdata/mesh.xml", "--nodes", "2", "--svg", picture); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{">rank 0<", ">rank 3<", ">NET 0<", ">NUMA node 1<", "one of 2 nodes", ">ring, channel", ">tree, channel"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in the drawing", want)
		}
	}
}

func TestErrors(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.xml")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"no such file", []string{"show", "testdata/nothing.xml"}},
		{"no element in it", []string{"diff", empty, empty}},
		{"empty.xml", []string{"search", empty}},
		{"--ranks is for this machine", []string{"show", "testdata/mesh.xml", "--ranks", "3"}},
		{"accepts 2 arg(s)", []string{"diff", empty}},
		{"nodes", []string{"search", "testdata/mesh.xml", "--nodes", "0"}},
	} {
		if _, err := run(nil, c.args...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: error %v, want %q", c.args, err, c.says)
		}
	}
}

// Files for diff are whatever somebody has.
func FuzzFlatten(f *testing.F) {
	for _, name := range []string{"testdata/mesh.xml", "testdata/mesh-changed.xml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	mesh, err := os.ReadFile("testdata/mesh.xml")
	if err != nil {
		f.Fatal(err)
	}
	base, err := flatten("mesh", mesh)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		one, err := flatten("fuzz", b)
		if err != nil {
			return
		}
		if n := printDiff(io.Discard, one, one); n != 0 {
			t.Errorf("%d differences of a file from itself", n)
		}
		printDiff(io.Discard, base, one)
	})
}

// The pictures of docs/topology.md are what the command draws.
func TestPictures(t *testing.T) {
	for _, name := range []string{"hgx-a100-8gpu-4nic", "rtx3090-8gpu-ib56"} {
		path := filepath.Join("../../docs/pictures", name+".svg")
		out := filepath.Join(t.TempDir(), "out.svg")
		if *update {
			out = path
		}
		if _, err := run(nil, "search", filepath.Join("../../topo/testdata/xml", name+".xml"), "--nodes", "2", "--svg", out); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale: go test ./cmd/gccl-topo -update, and look at it", path)
		}
	}
}
