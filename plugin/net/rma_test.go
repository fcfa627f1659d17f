package netplugin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xlog"
	"github.com/gccl/gccl/net/transport"
	"github.com/gccl/gccl/net/transport/conformance"
)

func onesided(t testing.TB, name string, defines ...string) string {
	return build(t, name, []string{"testdata/rma.c"}, defines...)
}

// rmaTransport finds what a variable leads to, and what the log says of it.
func rmaTransport(t testing.TB, variable, so string) (Transport, *strings.Builder) {
	t.Helper()
	s, _, err := param.LoadFrom(param.MapEnv{Vars: map[string]string{variable: so}})
	if err != nil {
		t.Fatal(err)
	}
	said := new(strings.Builder)
	log := xlog.New(xlog.Config{LevelSet: true, Level: xlog.Info, Subsys: xlog.All, Sink: func(r xlog.Record) { fmt.Fprintln(said, r.Text) }})
	tr, err := FromSettings(s, "", log)
	if err != nil {
		t.Fatal(err)
	}
	return tr, said
}

func rmaMaker(variable string, so func(testing.TB) string) conformance.Maker {
	return conformance.Maker{Scale: 4, Open: func(t testing.TB, rank int, secret transport.Secret) transport.Endpoint {
		tr, _ := rmaTransport(t, variable, so(t))
		e, err := tr.Open(transport.Options{Rank: rank, Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}}
}

// An rma plugin of v14 passes the suite.
func TestRmaConformance(t *testing.T) {
	defer func(d time.Duration) { stuck = d }(stuck)
	stuck = 100 * time.Millisecond // one test connects to nobody, and this plugin waits in connect
	conformance.Run(t, rmaMaker("NCCL_RMA_PLUGIN", func(t testing.TB) string { return onesided(t, "rma") }))
}

// A gin plugin of v13 whose devices are of the proxy kind carries as well, whichever variable names it.
func TestGinProxy(t *testing.T) {
	for _, variable := range []string{"NCCL_GIN_PLUGIN", "NCCL_RMA_PLUGIN", "NCCL_NET_PLUGIN"} {
		tr := conformance.NewTraffic(t, rmaMaker(variable, func(t testing.TB) string { return onesided(t, "gin", "ONLY_GIN") }), 5)
		for range 3 {
			tr.Round()
		}
		tr.Reconnect()
		tr.Round()
	}
}

// What only kernels could use is refused with the reason.
func TestGinForKernels(t *testing.T) {
	tr, _ := rmaTransport(t, "NCCL_GIN_PLUGIN", onesided(t, "gdaki", "ONLY_GIN", "TYPE=3"))
	_, err := tr.Open(transport.Options{})
	if err == nil || !strings.Contains(err.Error(), "type GDAKI: they serve kernels that are compiled for them") {
		t.Errorf("%v", err)
	}
	tr, said := rmaTransport(t, "NCCL_GIN_PLUGIN", build(t, "gin14", []string{"testdata/gin14.c"}))
	if !tr.Empty() || !strings.Contains(said.String(), "ncclGinPlugin_v14") || !strings.Contains(said.String(), "no calls for a host") {
		t.Errorf("a gin table of v14: %v, log %s", tr.rmas, said)
	}
}

// A collnet table is spoken of and not used.
func TestCollNet(t *testing.T) {
	so := build(t, "collnet", []string{example + "net.c", example + "tables.c", "testdata/collnet.c"})
	tr, said := rmaTransport(t, "NCCL_NET_PLUGIN", so)
	if tr.Empty() || !strings.Contains(said.String(), "ncclCollNetPlugin_v10") || !strings.Contains(said.String(), "is not used") {
		t.Errorf("log %s", said)
	}
}
