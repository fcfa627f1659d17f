package comm

import (
	"strings"
	"testing"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
)

func settingsOf(t *testing.T, env map[string]string) *param.Settings {
	t.Helper()
	s, _, err := param.LoadFrom(param.MapEnv{Vars: env})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConfigDefaults(t *testing.T) {
	c := UndefConfig()
	if err := c.Resolve(nil, settingsOf(t, nil)); err != nil {
		t.Fatal(err)
	}
	want := Config{Blocking: 1, CGAClusterSize: 4, MinCTAs: 1, MaxCTAs: 64, TrafficClass: Undef, NvlsCTAs: Undef,
		NChannelsPerNetPeer: Undef, GraphUsageMode: 2, NumRmaCtx: 1, MaxP2pPeers: Undef, GraphStreamOrdering: 1}
	if c != want {
		t.Errorf("defaults are %+v", c)
	}
}

func TestConfigFields(t *testing.T) {
	for _, c := range []struct {
		name        string
		set         int32 // in the configuration; Undef: open
		env, value  string
		want        int32
		bad         bool
		parentValue int32 // 0: no parent
	}{
		{name: "blocking", set: 0, want: 0},
		{name: "blocking", set: 2, bad: true},
		{name: "blocking", set: -1, bad: true},
		{name: "blocking", set: 1, env: "NCCL_COMM_BLOCKING", value: "0", want: 0},
		{name: "cgaClusterSize", set: 20, want: 8},
		{name: "cgaClusterSize", set: -1, bad: true},
		{name: "cgaClusterSize", set: 2, env: "NCCL_CGA_CLUSTER_SIZE", value: "9", want: 8},
		{name: "minCTAs", set: 0, bad: true},
		{name: "minCTAs", set: 3, want: 3}, // alone, with maxCTAs open
		{name: "maxCTAs", set: 100, want: 64},
		{name: "maxCTAs", set: 8, env: "NCCL_MAX_CTAS", value: "16", want: 16},
		{name: "maxCTAs", set: Undef, parentValue: 12, want: 12},
		{name: "maxCTAs", set: 5, parentValue: 12, want: 5},
		{name: "splitShare", set: 2, bad: true},
		{name: "splitShare", set: 0, env: "NCCL_COMM_SPLIT_SHARE_RESOURCES", value: "1", want: 1},
		{name: "shrinkShare", set: 1, want: 1},
		{name: "trafficClass", set: -7, want: -7},
		{name: "collnetEnable", set: 3, bad: true},
		{name: "CTAPolicy", set: 4, bad: true},
		{name: "CTAPolicy", set: 3, want: 2}, // ZERO drops EFFICIENCY
		{name: "CTAPolicy", set: 0, env: "NCCL_CTA_POLICY", value: "EFFICIENCY", want: 1},
		{name: "CTAPolicy", set: 1, env: "NCCL_CTA_POLICY", value: "nonsense", want: 1},
		{name: "nvlsCTAs", set: 0, bad: true},
		{name: "nChannelsPerNetPeer", set: 65, bad: true},
		{name: "nvlinkCentricSched", set: 2, bad: true},
		{name: "graphUsageMode", set: 3, bad: true},
		{name: "graphUsageMode", set: 1, env: "NCCL_GRAPH_MIXING_SUPPORT", value: "1", want: 2},
		{name: "graphUsageMode", set: 1, env: "NCCL_GRAPH_MIXING_SUPPORT", value: "0", want: 0},
		{name: "numRmaCtx", set: -1, bad: true},
		{name: "numRmaCtx", set: 1, env: "NCCL_NUM_RMA_CTX", value: "0", want: 0},
		{name: "maxP2pPeers", set: 0, bad: true},
		{name: "graphStreamOrdering", set: 0, want: 1}, // mode 2 needs it
		{name: "graphStreamOrdering", set: 5, bad: true},
	} {
		env := map[string]string{}
		if c.env != "" {
			env[c.env] = c.value
		}
		at := func(cfg *Config) *int32 {
			for i := range fields {
				if fields[i].name == c.name {
					return fields[i].at(cfg)
				}
			}
			t.Fatalf("no field %s", c.name)
			return nil
		}
		cfg := UndefConfig()
		*at(&cfg) = c.set
		var parent *Config
		if c.parentValue != 0 {
			p := UndefConfig()
			if err := p.Resolve(nil, settingsOf(t, nil)); err != nil {
				t.Fatal(err)
			}
			*at(&p) = c.parentValue
			parent = &p
		}
		err := cfg.Resolve(parent, settingsOf(t, env))
		switch {
		case c.bad:
			if xerr.CodeOf(err) != xerr.InvalidArgument || !strings.Contains(err.Error(), c.name) {
				t.Errorf("%s %d: %v", c.name, c.set, err)
			}
		case err != nil:
			t.Errorf("%s %d: %v", c.name, c.set, err)
		case *at(&cfg) != c.want:
			t.Errorf("%s %d with %v: got %d, want %d", c.name, c.set, env, *at(&cfg), c.want)
		}
	}
}

func TestConfigTogether(t *testing.T) {
	c := UndefConfig()
	c.MinCTAs, c.MaxCTAs = 8, 4
	if err := c.Resolve(nil, settingsOf(t, nil)); xerr.CodeOf(err) != xerr.InvalidArgument {
		t.Errorf("minCTAs 8, maxCTAs 4: %v", err)
	}
	c = UndefConfig()
	c.NetName = "mine"
	if err := c.Resolve(&Config{NetName: "parent"}, settingsOf(t, map[string]string{"NCCL_NET": "Socket"})); err != nil || c.NetName != "Socket" {
		t.Errorf("net %q, %v", c.NetName, err)
	}
}
