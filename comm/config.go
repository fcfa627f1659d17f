package comm

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gccl/gccl/internal/param"
	"github.com/gccl/gccl/internal/xerr"
)

// Undef is a Config field that the caller left open (NCCL_CONFIG_UNDEF_INT of nccl.h).
const Undef int32 = math.MinInt32

// Config is ncclConfig_t with every field of NCCL 2.30.7. Fields are named as there.
type Config struct {
	Blocking, CGAClusterSize, MinCTAs, MaxCTAs                   int32
	SplitShare, ShrinkShare, TrafficClass, CollnetEnable         int32
	CTAPolicy, NvlsCTAs, NChannelsPerNetPeer, NvlinkCentricSched int32
	GraphUsageMode, NumRmaCtx, MaxP2pPeers, GraphStreamOrdering  int32
	NetName, CommName                                            string
	DeviceKind                                                   int32
	SIMD                                                         string // of the reductions: a name of Front.SIMD; "" for the best
}

// UndefConfig is a configuration in which everything is left open.
func UndefConfig() Config {
	c := Config{DeviceKind: 0}
	for _, f := range fields {
		*f.at(&c) = Undef
	}
	return c
}

// field is one line of the table of configuration fields (shared rules: NCCL 2.30.7, src/init.cc).
type field struct {
	name    string
	at      func(*Config) *int32
	def     int32
	lo, hi  int32 // what a configuration may hold
	env     param.ID
	noEnv   bool
	envLo   int32 // what the variable may hold; others are ignored
	envHi   int32
	cap     int32 // larger values of either count as this; 0: none
	parse   func(string) (int32, bool)
	keepOut bool // Undef stays as "automatic" when nobody sets it
}

const anyMax = math.MaxInt32

var fields = []field{
	{name: "blocking", at: func(c *Config) *int32 { return &c.Blocking }, def: 1, lo: 0, hi: 1, env: param.NCCLCommBlocking, envHi: 1},
	{name: "cgaClusterSize", at: func(c *Config) *int32 { return &c.CGAClusterSize }, def: 4, lo: 0, hi: anyMax, env: param.NCCLCgaClusterSize, envHi: anyMax, cap: 8},
	{name: "minCTAs", at: func(c *Config) *int32 { return &c.MinCTAs }, def: 1, lo: 1, hi: anyMax, env: param.NCCLMinCtas, envLo: 1, envHi: anyMax, cap: 64},
	{name: "maxCTAs", at: func(c *Config) *int32 { return &c.MaxCTAs }, def: 64, lo: 1, hi: anyMax, env: param.NCCLMaxCtas, envLo: 1, envHi: anyMax, cap: 64},
	{name: "splitShare", at: func(c *Config) *int32 { return &c.SplitShare }, def: 0, lo: 0, hi: 1, env: param.NCCLCommSplitShareResources, envHi: 1},
	{name: "shrinkShare", at: func(c *Config) *int32 { return &c.ShrinkShare }, def: 0, lo: 0, hi: 1, env: param.NCCLCommShrinkShareResources, envHi: 1},
	{name: "trafficClass", at: func(c *Config) *int32 { return &c.TrafficClass }, def: Undef, lo: math.MinInt32, hi: anyMax, noEnv: true, keepOut: true},
	{name: "collnetEnable", at: func(c *Config) *int32 { return &c.CollnetEnable }, def: 0, lo: 0, hi: 1, env: param.NCCLCollnetEnable, envHi: 1},
	{name: "CTAPolicy", at: func(c *Config) *int32 { return &c.CTAPolicy }, def: 0, lo: 0, hi: 3, env: param.NCCLCtaPolicy, envHi: 3, parse: parsePolicy},
	{name: "nvlsCTAs", at: func(c *Config) *int32 { return &c.NvlsCTAs }, def: Undef, lo: 1, hi: anyMax, env: param.NCCLNvlsNchannels, envLo: 1, envHi: anyMax, keepOut: true},
	{name: "nChannelsPerNetPeer", at: func(c *Config) *int32 { return &c.NChannelsPerNetPeer }, def: Undef, lo: 1, hi: 64, env: param.NCCLNchannelsPerNetPeer, envLo: 1, envHi: anyMax, keepOut: true},
	{name: "nvlinkCentricSched", at: func(c *Config) *int32 { return &c.NvlinkCentricSched }, def: 0, lo: 0, hi: 1, env: param.NCCLNvlinkUtilCentricSchedEnable, envHi: 1},
	{name: "graphUsageMode", at: func(c *Config) *int32 { return &c.GraphUsageMode }, def: 2, lo: 0, hi: 2, env: param.NCCLGraphMixingSupport, envHi: 2, parse: parseMixing},
	{name: "numRmaCtx", at: func(c *Config) *int32 { return &c.NumRmaCtx }, def: 1, lo: 0, hi: anyMax, env: param.NCCLNumRmaCtx, envHi: anyMax},
	{name: "maxP2pPeers", at: func(c *Config) *int32 { return &c.MaxP2pPeers }, def: Undef, lo: 1, hi: anyMax, env: param.NCCLP2pMaxPeers, envLo: 1, envHi: anyMax, keepOut: true},
	{name: "graphStreamOrdering", at: func(c *Config) *int32 { return &c.GraphStreamOrdering }, def: 1, lo: 0, hi: 1, env: param.NCCLGraphStreamOrdering, envHi: 1},
}

// parseMixing: NCCL_GRAPH_MIXING_SUPPORT 1 stands for mode 2, 0 for mode 0.
func parseMixing(s string) (int32, bool) {
	switch s {
	case "0":
		return 0, true
	case "1":
		return 2, true
	}
	return 0, false
}

// parsePolicy reads a number or words joined by a bar.
func parsePolicy(s string) (int32, bool) {
	if n, err := strconv.ParseInt(s, 0, 32); err == nil {
		return int32(n), true
	}
	v := int32(0)
	for _, w := range strings.Split(s, "|") {
		switch strings.ToUpper(strings.TrimSpace(w)) {
		case "DEFAULT":
		case "EFFICIENCY":
			v |= 1
		case "ZERO":
			v |= 2
		default:
			return 0, false
		}
	}
	return v, true
}

// Resolve fills what is open in c: a set variable of the environment beats the configuration, that beats the parent, that
// beats the default. A value that the caller gave and that is out of range is an error.
func (c *Config) Resolve(parent *Config, s *param.Settings) error {
	const op = "communicator configuration"
	for i := range fields {
		f := &fields[i]
		v := f.at(c)
		if *v == Undef || f.keepOut && f.lo == math.MinInt32 {
			continue
		}
		if *v < f.lo || *v > f.hi {
			return xerr.New(xerr.InvalidArgument, op, "%s is %d: it must be %s", f.name, *v, f.accepts()).
				WithHint("start from NCCL_CONFIG_INITIALIZER and set only what you need")
		}
	}
	if c.MinCTAs != Undef && c.MaxCTAs != Undef && c.MinCTAs > c.MaxCTAs {
		return xerr.New(xerr.InvalidArgument, op, "minCTAs %d is larger than maxCTAs %d", c.MinCTAs, c.MaxCTAs).
			WithHint("set minCTAs to at most maxCTAs")
	}
	for i := range fields {
		f := &fields[i]
		v := f.at(c)
		if *v == Undef {
			*v = f.def
			if parent != nil {
				*v = *f.at(parent)
			}
		}
		if e, ok := f.fromEnv(s); ok {
			*v = e
		}
		if f.cap > 0 && *v > f.cap {
			*v = f.cap
		}
	}
	c.MinCTAs = min(c.MinCTAs, c.MaxCTAs)
	if c.CTAPolicy == 3 {
		c.CTAPolicy = 2 // ZERO drops EFFICIENCY
	}
	if c.GraphUsageMode == 2 && c.GraphStreamOrdering == 0 {
		c.GraphStreamOrdering = 1
	}
	c.SIMD = ""
	if !s.IsAuto(param.GCCLSimd) {
		c.SIMD = s.Str(param.GCCLSimd)
	}
	if s.IsSet(param.NCCLNet) {
		c.NetName = s.Str(param.NCCLNet)
	} else if c.NetName == "" && parent != nil {
		c.NetName = parent.NetName
	}
	return nil
}

func (f *field) accepts() string {
	switch {
	case f.hi == 1:
		return "0 or 1"
	case f.hi == anyMax:
		return fmt.Sprintf("at least %d", f.lo)
	}
	return fmt.Sprintf("%d to %d", f.lo, f.hi)
}

func (f *field) fromEnv(s *param.Settings) (int32, bool) {
	if f.noEnv || !s.IsSet(f.env) || s.IsAuto(f.env) {
		return 0, false
	}
	v := int64(0)
	if f.parse != nil {
		n, ok := f.parse(s.Str(f.env))
		if !ok {
			return 0, false
		}
		v = int64(n)
	} else {
		v = s.Int(f.env)
	}
	if v < int64(f.envLo) || v > int64(f.envHi) {
		return 0, false
	}
	return int32(v), true
}
