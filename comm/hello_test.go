package comm

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gccl/gccl/device/host/arena"
	"github.com/gccl/gccl/internal/xerr"
)

func sampleHello() *hello {
	return &hello{Version: APIVersion, Build: "b", Nonce: arena.Nonce{1, 2}, Socket: "gccl-x", AreaOffset: 4096, AreaSize: 8192,
		HostID: "h", NoShare: true, Trouble: "no memory", TroubleCode: xerr.System, Agree: []pair{{"A", "1"}, {"B", ""}}}
}

func TestHelloRoundTrip(t *testing.T) {
	h := sampleHello()
	got, err := decodeHello(h.encode())
	if err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("got %+v, %v", got, err)
	}
	b := h.encode()
	for n := range b {
		if _, err := decodeHello(b[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are accepted", n, len(b))
		}
	}
	if _, err := decodeHello(append(b, 0)); err == nil {
		t.Error("a byte too many is accepted")
	}
}

func TestDisagreementTable(t *testing.T) {
	hs := make([]*hello, 6)
	for r := range hs {
		hs[r] = sampleHello()
	}
	if err := disagreement(hs); err != nil {
		t.Fatal(err)
	}
	hs[4].Agree = []pair{{"A", "2"}, {"B", ""}}
	hs[1].Agree = nil
	err := disagreement(hs)
	if err == nil || !strings.Contains(err.Error(), "A differs between ranks: ranks 0, 2-3, 5: 1, rank 1: unknown, rank 4: 2") {
		t.Errorf("%v", err)
	}
	hs[3].Version = 22809
	if err := disagreement(hs); err == nil || !strings.Contains(err.Error(), "rank 3: 22809") {
		t.Errorf("%v", err)
	}
}

func FuzzHello(f *testing.F) {
	f.Add(sampleHello().encode())
	f.Add([]byte{helloFormat})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHello(b)
		if err != nil {
			return
		}
		if again, err := decodeHello(h.encode()); err != nil || !reflect.DeepEqual(again, h) {
			t.Errorf("%+v became %+v, %v", h, again, err)
		}
	})
}
