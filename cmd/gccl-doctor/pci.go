package main

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// The extended capability ACS of the PCI Express Base Specification (7.7.11): its id, where its control register is, and the bits that
// send traffic between devices up to the root complex.
const (
	acsCapability  = 0x000d
	acsControl     = 6
	acsRedirection = 1<<2 | 1<<3 | 1<<5 // P2P request redirect, P2P completion redirect, egress control
	firstExtended  = 0x100
)

// acsOf is the control register of a bridge; known is false where the configuration space cannot be read that far (only root may).
func acsOf(config []byte) (control uint16, has, known bool) {
	if len(config) < firstExtended+4 {
		return 0, false, false
	}
	for at, hops := firstExtended, 0; at >= firstExtended && at+8 <= len(config) && hops < 64; hops++ {
		head := binary.LittleEndian.Uint32(config[at:])
		if head&0xffff == acsCapability {
			return binary.LittleEndian.Uint16(config[at+acsControl:]), true, true
		}
		at = int(head >> 20)
	}
	return 0, false, true
}

func checkACS(m *machine) []finding {
	gpus, nics := len(m.gpusOnBus()), len(m.rdmaDevices())
	if gpus == 0 || gpus+nics < 2 {
		return one(ok, "not looked at: there are no two devices that could talk to each other")
	}
	bridges := m.pciDevices("0604", "")
	var redirecting []string
	unreadable := 0
	for _, id := range bridges {
		control, has, known := acsOf([]byte(m.raw("sys/bus/pci/devices", id, "config")))
		if !known {
			unreadable++
		}
		if has && control&acsRedirection != 0 {
			redirecting = append(redirecting, fmt.Sprintf("bridge %s: ACS control %#04x", id, control))
		}
	}
	switch {
	case len(bridges) == 0:
		return one(unknown, "PCI shows no bridges: a virtual machine decides about access between devices")
	case len(redirecting) > 0:
		return []finding{{Verdict: warn, Found: fmt.Sprintf("ACS sends traffic between devices through the CPU at %d of %d bridges: access between GPUs is slow, and hangs or "+
			"corrupts data on some machines", len(redirecting), len(bridges)), Details: redirecting,
			Remedy: "switch ACS off in the firmware, or with setpci at each bridge after every start; not on a host of virtual machines, which needs it"}}
	case unreadable > 0:
		return with(one(unknown, "the registers of %d of %d bridges cannot be read", unreadable, len(bridges)), "run gccl-doctor as root")
	}
	return one(ok, "none of %s redirects traffic between devices", plural(len(bridges), "bridge"))
}

func checkIOMMU(m *machine) []finding {
	if len(m.names("sys/class/iommu")) == 0 {
		return one(ok, "off")
	}
	translated := 0
	for _, g := range m.names("sys/kernel/iommu_groups") {
		if strings.HasPrefix(m.text("sys/kernel/iommu_groups", g, "type"), "DMA") {
			translated++
		}
	}
	if translated == 0 {
		return one(ok, "on, without translation for the devices")
	}
	if len(m.gpusOnBus()) == 0 {
		return one(note, "on, with translation for %s", plural(translated, "group"))
	}
	return with(one(warn, "on, with translation for %s of devices: access between GPUs may be slow or fail", plural(translated, "group")),
		"boot with iommu=pt (and amd_iommu=on or intel_iommu=on), or switch it off in the firmware where no virtual machines need it")
}
