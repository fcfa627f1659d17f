package topo

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// switched is a machine of four GPUs on NVLink switches with two equal network devices.
func switched(t *testing.T) *Machine {
	t.Helper()
	var b strings.Builder
	b.WriteString(`<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="106">`)
	for sw := range 2 {
		fmt.Fprintf(&b, `<pci busid="0000:%d0:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">`, sw+1)
		for i := range 2 {
			fmt.Fprintf(&b, `<pci busid="0000:%d%d:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="%d" sm="80" rank="%d" gdr="1">`, sw+1, i+1, 2*sw+i, 2*sw+i)
			b.WriteString(`<nvlink target="0000:c0:00.0" count="12" tclass="0x068000"/></gpu></pci>`)
		}
		fmt.Fprintf(&b, `<pci busid="0000:%d9:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16"><nic>`, sw+1)
		fmt.Fprintf(&b, `<net name="mlx5_%d" dev="%d" speed="200000" port="1" guid="0x%d" gdr="1"/></nic></pci></pci>`, sw, sw, sw+7)
	}
	b.WriteString(`</cpu></system>`)
	m, err := Read("switched.xml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func searched(t *testing.T, o Options) *Decision {
	t.Helper()
	s, err := Build(switched(t), o)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Search(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// through is the bandwidth of the ring channels that begin at each network device.
func through(d *Decision) map[string]float64 {
	out := map[string]float64{}
	for _, c := range d.Ring.Channels {
		out[c.In.Net.Name] += d.Ring.BWInter
	}
	return out
}

func TestDegradedNetworkDeviceMovesChannels(t *testing.T) {
	o := DefaultOptions()
	o.Nodes = 2
	before := searched(t, o)
	if got := through(before); got["mlx5_0"] == 0 || got["mlx5_0"] != got["mlx5_1"] {
		t.Fatalf("equal devices carry %v, the test shows nothing", got)
	}
	link := before.System.NetLink(0, "mlx5_0", 1)
	if link != "NET/0-0" || before.System.NetLink(0, "mlx5_0", 2) != "" {
		t.Fatalf("the device's link is %q", link)
	}
	o.Measured = []Measured{{link, 3}}
	after := searched(t, o)
	if got := through(after); got["mlx5_0"] > 3 || got["mlx5_1"] < through(before)["mlx5_1"] {
		t.Errorf("with mlx5_0 at 3 GB/s the devices carry %v, before %v", got, through(before))
	}
	for _, n := range after.System.Nodes[NETNode] {
		if want := map[string]float64{"mlx5_0": 3, "mlx5_1": 25}[n.Net.Name]; n.Net.BW != want {
			t.Errorf("%s has %g GB/s, want %g", n.Net.Name, n.Net.BW, want)
		}
	}
	// Links of other machines change nothing.
	o.Measured = []Measured{{"NET/0-9", 1}, {"DEV/0-1>DEV/0-2", 1}}
	if got := through(searched(t, o)); !reflect.DeepEqual(got, through(before)) {
		t.Errorf("measurements of unknown links: %v", got)
	}
}

func TestMergeMeasured(t *testing.T) {
	got := MergeMeasured([]Measured{{"b", 2}, {"a", 1}}, nil, []Measured{{"b", 3}, {"c", -1}, {"d", 0}, {"e", 1e9}})
	if want := []Measured{{"a", 1}, {"b", 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
