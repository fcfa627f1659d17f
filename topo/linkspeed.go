package topo

import "strings"

// Nominal bandwidths in GB/s, with which NCCL 2.30.7 computes (shared/topo/FORMAT.md, sections 2 and 3). They are used as they
// are, right or wrong, so that decisions can be compared; measured ones replace them by Options.Measured.

// laneRates are in Gbit/s of one lane. A text fits the first key it begins with.
var laneRates = []struct {
	text string
	rate float64
}{
	{"2.5 GT/s", 1.5}, {"5 GT/s", 3}, {"8 GT/s", 6}, {"16 GT/s", 12}, {"32 GT/s", 24},
	{"5.0 GT/s PCIe", 3}, {"8.0 GT/s PCIe", 6}, {"16.0 GT/s PCIe", 12}, {"32.0 GT/s PCIe", 24}, {"64.0 GT/s PCIe", 48},
}

// unknownLaneRate is Gen3's.
const unknownLaneRate = 6

func pciBW(speed string, width int) float64 {
	if width <= 0 {
		width = 16
	}
	rate := float64(unknownLaneRate)
	for _, l := range laneRates {
		if strings.HasPrefix(speed, l.text) {
			rate = l.rate
			break
		}
	}
	return float64(width) * rate / 8
}

// nvlinkBW is of one link of a GPU with the compute capability.
func nvlinkBW(sm int) float64 {
	switch {
	case sm >= 100:
		return 40.1
	case sm >= 90:
		return 20.6
	case sm == 86:
		return 12
	case sm >= 70:
		return 20
	case sm >= 60:
		return 18
	}
	return 20
}

// xgmiBW is of one xGMI link of an AMD GPU: 48 for gfx94x and gfx95x (RCCL issue 1210 shows three such links as 144), 36 for
// gfx90a, 24 before (RCCL, src/graph/topo.h, the constants *_XGMI_WIDTH). Files of the first generation have a number there.
func xgmiBW(gcn string) float64 {
	switch {
	case strings.HasPrefix(gcn, "gfx94"), strings.HasPrefix(gcn, "gfx95"):
		return 48
	case strings.HasPrefix(gcn, "gfx90a"), gcn == "910":
		return 36
	}
	return 24
}

// Between partitions of a split GPU, and how much of the NVLink rate each has.
const (
	partitionBW     = 2618
	partitionNVLink = 0.5
)

// setVendor fills what the bandwidth rules ask about a CPU, and the bandwidth of its links to other CPUs of its host.
func (c *CPUInfo) setVendor() {
	c.x86, c.arm, c.ppc = c.Arch == "x86_64", c.Arch == "arm64", c.Arch == "ppc64"
	c.intel = c.x86 && strings.HasPrefix(c.Vendor, "GenuineIntel")
	c.amd = c.x86 && strings.HasPrefix(c.Vendor, "AuthenticAMD")
	zhaoxin := c.x86 && (strings.HasPrefix(c.Vendor, "CentaurHauls") || strings.HasPrefix(c.Vendor, "  Shanghai  "))
	switch {
	case c.ppc:
		c.betweenBW = 32
	case c.arm:
		c.betweenBW = 6
	case c.intel:
		c.betweenBW = intelBetween(c.Family, c.Model)
	case c.amd:
		c.betweenBW = 16
	case zhaoxin && c.Family == 7 && c.Model == 0x5B: // Yongfeng
		c.betweenBW = 9
	case zhaoxin:
		c.betweenBW = 6
	default:
		c.betweenBW = LocalBW
	}
}

func intelBetween(family, model int) float64 {
	switch {
	case family != 6:
		return 6
	case model >= 0xCF: // Emerald Rapids
		return 40
	case model >= 0x8F: // Sapphire Rapids
		return 22
	case model >= 0x55: // Skylake to Ice Lake
		return 10
	}
	return 6
}
