package ib

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"net/netip"

	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

// A dead peer is noticed within seconds: 67 ms a time-out. Not seven retries, which Soft-RoCE takes for endless (Linux 6.1,
// drivers/infiniband/sw/rxe/rxe_comp.c, COMPST_ERROR_RETRY).
func testConfig() Config {
	c := Defaults()
	c.Timeout, c.RetryCount = 14, 6
	return c
}

func makerOf(c Config) conformance.Maker {
	return conformance.Maker{Scale: 5, Open: func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint {
		e, err := New(c).Open(transport.Options{Rank: rank, Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}}
}

var maker = makerOf(testConfig())

func TestMain(m *testing.M) {
	if !conformance.Child(maker) {
		m.Run()
	}
}

// need skips where there is no device. `make test-rdma` runs these tests in a machine that has two.
func need(t testing.TB) {
	t.Helper()
	if _, err := New(Defaults()).Devices(); err != nil {
		t.Skip("missing capability: a verbs device: ", err)
	}
}

func TestPortsThatAreUsedTogether(t *testing.T) {
	at := func(name string, mbps int, ethernet bool) port {
		return port{Device: transport.Device{Name: name, Speed: mbps}, ethernet: ethernet}
	}
	for _, c := range []struct {
		ports []port
		want  int
	}{
		{[]port{at("a:1", 400, false), at("b:1", 200, false)}, 2},
		{[]port{at("a:1", 400, false), at("b:1", 100, false)}, 1},
		{[]port{at("a:1", 400, false), at("a:2", 400, true)}, 1},
		{[]port{at("a:1", 1, true), at("b:1", 1, true), at("c:1", 1, true), at("d:1", 1, true), at("e:1", 1, true)}, maxRails},
	} {
		if got := together(c.ports); len(got) != c.want {
			t.Errorf("of %v: %v", c.ports, got)
		}
	}
}

func TestConformance(t *testing.T) {
	need(t)
	t.Run("all rails", func(t *testing.T) { conformance.Run(t, maker) })
	t.Run("one rail", func(t *testing.T) {
		ds, err := New(Defaults()).Devices()
		if err != nil {
			t.Fatal(err)
		}
		c := testConfig()
		c.HCA = "=" + ds[0].Name
		conformance.Run(t, makerOf(c))
	})
}

func TestEndings(t *testing.T) {
	need(t)
	conformance.Endings(t, maker)
}

func BenchmarkSpeed(b *testing.B) {
	need(b)
	c := testConfig()
	ds, err := New(c).Devices()
	if err != nil {
		b.Fatal(err)
	}
	c.HCA = "=" + ds[0].Name // as perftest does
	conformance.Speed(b, makerOf(c))
}

func TestHCA(t *testing.T) {
	for text, want := range map[string]map[string]bool{
		"":                {"mlx5_0:1": true},
		"mlx5":            {"mlx5_0:1": true, "mlx5_1:2": true, "rxe0:1": false},
		"mlx5_1":          {"mlx5_1:1": true, "mlx5_10:1": true, "mlx5_0:1": false},
		"=mlx5_1":         {"mlx5_1:1": true, "mlx5_10:1": false},
		"mlx5_0:2,rxe":    {"mlx5_0:2": true, "mlx5_0:1": false, "rxe1:1": true},
		"^mlx5_0:1":       {"mlx5_0:1": false, "mlx5_0:2": true, "rxe0:1": true},
		"^=mlx5_1":        {"mlx5_1:1": false, "mlx5_10:1": true},
		"mlx5_0:1:0:1":    {"mlx5_0:1": true},
		" mlx5_0 , rxe0 ": {"mlx5_0:1": true, "rxe0:1": true},
	} {
		f, err := parseHCA(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		for name, yes := range want {
			if got := f.match(name[:len(name)-2], int(name[len(name)-1]-'0')); got != yes {
				t.Errorf("%q and %s: %v", text, name, got)
			}
		}
	}
	for _, text := range []string{"^", "=", "mlx5_0:x", ":1", "^^mlx5", "mlx5_0:300"} {
		if f, err := parseHCA(text); err == nil {
			t.Errorf("%q is read as %+v", text, f)
		}
	}
}

func TestGIDs(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "rxe0", "ports", "1")
	for i, g := range []struct{ gid, kind string }{
		{"fe80:0000:0000:0000:0200:00ff:fe00:0001", "RoCE v2"},
		{"0000:0000:0000:0000:0000:ffff:0a09:0001", "IB/RoCE v1"},
		{"0000:0000:0000:0000:0000:ffff:0a09:0001", "RoCE v2"},
		{"fd09:0000:0000:0000:0000:0000:0000:0001", "RoCE v2"},
		{"0000:0000:0000:0000:0000:0000:0000:0000", ""},
	} {
		for sub, data := range map[string]string{"gids": g.gid, "gid_attrs/types": g.kind} {
			if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, sub, string(rune('0'+i))), []byte(data+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := port{hca: "rxe0", number: 1}
	got := p.gids(root)
	want := []gid{{0, 2, netip.MustParseAddr("fe80::200:ff:fe00:1")}, {1, 1, netip.MustParseAddr("10.9.0.1")}, {2, 2, netip.MustParseAddr("10.9.0.1")}, {3, 2, netip.MustParseAddr("fd09::1")}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, c := range []struct{ version, index int }{{2, 2}, {1, 1}} {
		if i, err := chooseGID(got, c.version); err != nil || i != c.index {
			t.Errorf("version %d: %d, %v", c.version, i, err)
		}
	}
	if i, err := chooseGID(got[3:], 2); err != nil || i != 3 {
		t.Errorf("IPv6 alone: %d, %v", i, err)
	}
	if _, err := chooseGID(got, 3); err == nil {
		t.Error("a version that is not there was found")
	}
}

func FuzzBlob(f *testing.F) {
	good := make([]byte, blobRandom+1+blobRail)
	good[blobRandom], good[blobRandom+1+6], good[blobRandom+1+7] = 1, 3, 2
	f.Add(good)
	f.Add(good[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeBlob(b)
		if err == nil && (len(a) < 1 || len(a) > maxRails || len(b) != blobRandom+1+len(a)*blobRail) {
			t.Errorf("%d rails from %d bytes", len(a), len(b))
		}
	})
}

// Our declarations against rdma-core's, where they are installed.
func TestDeclarations(t *testing.T) {
	if _, err := os.Stat("/usr/include/infiniband/verbs.h"); err != nil {
		t.Skip("missing capability: the header of rdma-core (Debian: libibverbs-dev)")
	}
	cmd := exec.Command("gcc", "-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", "-I.", "testdata/declarations.c")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Pages of queues are mapped once, and unmapped with their last user.
func TestPages(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pages")
	cmd := exec.Command("gcc", "-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-pthread", "testdata/pages.c", "-o", program)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
