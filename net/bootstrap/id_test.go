package bootstrap

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gccl/gccl/internal/xerr"
)

func addrsOf(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range texts {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func TestIDKeepsAddresses(t *testing.T) {
	many := []string{}
	for i := range 30 {
		many = append(many, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}).String())
	}
	for name, c := range map[string]struct{ in, want []string }{
		"none":     {nil, nil},
		"usual":    {[]string{"10.1.2.3", "2001:db8::7", "fe80::a:b:c%enp1s0", "127.0.0.1", "::1"}, nil},
		"no lo":    {[]string{"10.1.2.3"}, nil},
		"only lo6": {[]string{"::1"}, nil},
		"too many": {append(slices.Clone(many), "127.0.0.1", "::1"), append(slices.Clone(many[:14]), "127.0.0.1", "::1")},
		"a big one is left out, a small one behind it is not": {
			[]string{"2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4", "2001:db8::5", "10.0.0.1", "::1"},
			[]string{"2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4", "10.0.0.1", "::1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == nil {
				c.want = c.in
			}
			id, err := newID(addrsOf(c.in...), 4711, 99)
			if err != nil {
				t.Fatal(err)
			}
			info, err := parseID(id)
			if err != nil {
				t.Fatal(err)
			}
			var got []netip.Addr
			for _, a := range info.room.Addrs {
				if a.Port() != 4711 {
					t.Errorf("port %d", a.Port())
				}
				got = append(got, a.Addr())
			}
			if !slices.Equal(got, addrsOf(c.want...)) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
			if info.pid != 99 {
				t.Errorf("pid %d", info.pid)
			}
		})
	}
}

func TestIDsDiffer(t *testing.T) {
	a, _ := newID(nil, 1, 1)
	b, _ := newID(nil, 1, 1)
	if slices.Equal(a[:8], b[:8]) || slices.Equal(a[idAtSecret:idAtCRC], b[idAtSecret:idAtCRC]) {
		t.Error("two ids share their random part")
	}
}

func TestIDRefused(t *testing.T) {
	good, err := newID(addrsOf("10.0.0.1", "127.0.0.1"), 7, 7)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*ID)
		part   string
	}{
		"zeros":            {func(id *ID) { *id = ID{} }, "all zeros"},
		"another library":  {func(id *ID) { id[8] = 0 }, "version"},
		"first half only":  {func(id *ID) { clear(id[52:]) }, "checksum"},
		"one bit":          {func(id *ID) { id[20] ^= 1 }, "checksum"},
		"unknown kind":     {func(id *ID) { id[9] = 77; id.seal() }, "kind 77"},
		"more than fits":   {func(id *ID) { id[idAtCount] = 200; id.seal() }, "malformed"},
		"unknown tag":      {func(id *ID) { id[idAtList] = 99; id.seal() }, "malformed"},
		"trailing bytes":   {func(id *ID) { id[IDBytes-1] = 1; id.seal() }, "malformed"},
		"long fixed text":  {func(id *ID) { id[9], id[idAtCount] = idKindText, 76; id.seal() }, "76 bytes"},
		"wrong fixed text": {func(id *ID) { id[9], id[idAtCount] = idKindText, 3; id.seal() }, "fixed address"},
	} {
		t.Run(name, func(t *testing.T) {
			id := good
			c.change(&id)
			err := CheckID(id)
			wantError(t, err, xerr.InvalidArgument, c.part, "ncclGetUniqueId")
		})
	}
	if err := CheckID(good); err != nil {
		t.Error(err)
	}
	if s := good.String(); s != "id made by pid 7 at 10.0.0.1:7" {
		t.Error(s)
	}
}

func TestStaticForms(t *testing.T) {
	for text, bad := range map[string]string{
		"10.0.0.1:5000":                       "",
		"[2001:db8::1]:5000":                  "",
		"[fe80::1%eth0]:5000":                 "",
		"node7.example.org:5000":              "",
		"":                                    "missing port",
		"10.0.0.1":                            "missing port",
		"10.0.0.1:":                           "port",
		"10.0.0.1:0":                          "port",
		"10.0.0.1:65536":                      "port",
		"10.0.0.1:http":                       "port",
		":5000":                               "host is empty",
		"2001:db8::1:5000":                    "too many colons",
		"[node7]:5000":                        "no IPv6 address",
		"0.0.0.0:5000":                        "no address of one host",
		"[::]:5000":                           "no address of one host",
		strings.Repeat("x", 80) + ".org:5000": "room",
	} {
		t.Run(text, func(t *testing.T) {
			id, err := StaticID(text)
			if bad != "" {
				wantError(t, err, xerr.InvalidArgument, bad)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			again, _ := StaticID(text)
			if again != id {
				t.Error("not a function of the text")
			}
			info, err := parseID(id)
			if err != nil || info.static != text {
				t.Errorf("%q %v", info.static, err)
			}
			if id.String() != "fixed id "+text {
				t.Error(id.String())
			}
		})
	}
}

func FuzzID(f *testing.F) {
	id, err := newID(addrsOf("10.0.0.1", "fe80::1%eth0", "2001:db8::1", "::1"), 7, 7)
	if err != nil {
		f.Fatal(err)
	}
	fixed, err := StaticID("node:77")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(id[:])
	f.Add(fixed[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var id ID
		copy(id[:], b)
		id.seal() // or hardly any input would get past the checksum
		info, err := parseID(id)
		if err != nil {
			return
		}
		if id[9] != idKindAddrs {
			return
		}
		var addrs []netip.Addr
		for _, a := range info.room.Addrs {
			addrs = append(addrs, a.Addr())
		}
		list, n := packAddrs(addrs)
		back, ok := unpackAddrs(append(list, 0), n)
		if !ok || n > len(addrs) || len(back) != n {
			t.Fatalf("%v becomes %v", addrs, back)
		}
	})
}
