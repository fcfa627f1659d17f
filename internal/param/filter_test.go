package param

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/gccl/gccl/internal/xerr"
)

func TestInterfaceFilter(t *testing.T) {
	present := []string{"lo", "eth0", "eth1", "eth10", "docker0", "ib0"}
	tests := []struct {
		text string
		want string // names that match
	}{
		{"", "lo eth0 eth1 eth10 docker0 ib0"},
		{"   ", "lo eth0 eth1 eth10 docker0 ib0"},
		{" , ,", "lo eth0 eth1 eth10 docker0 ib0"},
		{"eth", "eth0 eth1 eth10"},
		{"eth1", "eth1 eth10"},
		{"=eth1", "eth1"},
		{"=eth0,eth1", "eth0 eth1"},
		{"=eth0,=eth1", "eth0 eth1"},
		{" eth0 , ib ", "eth0 ib0"},
		{"= eth1", "eth1"},
		{"^docker,lo", "eth0 eth1 eth10 ib0"},
		{"^docker,^lo", "eth0 eth1 eth10 ib0"},
		{"^=eth1", "lo eth0 eth10 docker0 ib0"},
		{"^ = eth1 , lo", "eth0 eth10 docker0 ib0"},
		{"ib,=eth1", "eth1 ib0"},
		{"wlan", ""},
		{"ETH", ""},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			f, err := ParseInterfaceFilter(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range present {
				if f.Match(n) {
					got = append(got, n)
				}
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}

func TestInterfaceFilterRefuses(t *testing.T) {
	for _, text := range []string{"=", "^", "^=", " = ", "==", "==eth0", "eth0,^lo", "=eth0,=", "^^lo", "=,"} {
		if f, err := ParseInterfaceFilter(text); xerr.CodeOf(err) != xerr.InvalidUsage {
			t.Errorf("%q: got %+v %v", text, f, err)
		}
	}
	s, _, err := LoadFrom(MapEnv{Vars: map[string]string{"NCCL_SOCKET_IFNAME": "="}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.InterfaceFilter(NCCLSocketIfname)
	if !errors.Is(err, xerr.InvalidUsage) || !strings.Contains(err.Error(), "NCCL_SOCKET_IFNAME") {
		t.Errorf("error is %v", err)
	}
}

func FuzzInterfaceFilter(f *testing.F) {
	for _, s := range []string{"", "eth", "=a,b", "^a,^b", "a,=b", "^=a", "=", ",,=a,b", "^ =a , b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseInterfaceFilter(text)
		if err != nil {
			return
		}
		b, err := ParseInterfaceFilter(a.String())
		if err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%q is %+v, written %q, read as %+v %v", text, a, a.String(), b, err)
		}
	})
}
