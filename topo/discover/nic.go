package discover

import (
	"path/filepath"
	"strconv"
	"strings"
)

// readNICs lists the ports of RDMA devices, then the network interfaces.
func readNICs(r root) []NIC {
	return append(readRDMA(r), readInterfaces(r)...)
}

// readRDMA: Documentation/ABI/stable/sysfs-class-infiniband of Linux.
func readRDMA(r root) []NIC {
	var out []NIC
	for _, dev := range r.names("sys/class/infiniband") {
		dir := filepath.Join("sys/class/infiniband", dev)
		for _, port := range r.names(dir, "ports") {
			n, err := strconv.Atoi(port)
			if err != nil {
				continue
			}
			at := filepath.Join(dir, "ports", port)
			out = append(out, NIC{Name: dev, RDMA: true, Port: n, BusID: busIDAbove(r, dir, "device"), Mbps: rateMbps(r.text(at, "rate")),
				Up: strings.HasSuffix(r.text(at, "state"), "ACTIVE"), GUID: r.text(dir, "sys_image_guid"), Layer: r.text(at, "link_layer")})
		}
	}
	return out
}

// readInterfaces: Documentation/ABI/testing/sysfs-class-net of Linux.
func readInterfaces(r root) []NIC {
	const loopback = 772 // ARPHRD_LOOPBACK of linux/if_arp.h
	var out []NIC
	for _, name := range r.names("sys/class/net") {
		dir := filepath.Join("sys/class/net", name)
		if kind, ok := r.number(dir, "type"); !ok || kind == loopback {
			continue // also files like bonding_masters
		}
		mbps, ok := r.number(dir, "speed")
		if !ok || mbps < 0 || mbps > 1<<30 { // -1, or 2^32-1 from old drivers: unknown
			mbps = 0
		}
		state := r.text(dir, "operstate")
		carrier := r.text(dir, "carrier") == "1"
		out = append(out, NIC{Name: name, BusID: busIDAbove(r, dir, "device"), Mbps: mbps, Up: state == "up" || state == "unknown" && carrier,
			Address: r.text(dir, "address")})
	}
	return out
}

// busIDAbove is the nearest PCI device at or above a link: a virtio device, for one, lies below its PCI device.
func busIDAbove(r root, elem ...string) string {
	for p := r.real(elem...); p != "" && p != "."; p = filepath.Dir(p) {
		if id := NormalBusID(filepath.Base(p)); id != "" {
			return id
		}
	}
	return ""
}

// rateMbps reads "200 Gb/sec (4X HDR)", "2.5 Gb/sec (1X SDR)".
func rateMbps(s string) int {
	number, rest, _ := strings.Cut(s, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v <= 0 || v > 1e6 || !strings.HasPrefix(rest, "Gb/sec") {
		return 0
	}
	return int(v * 1000)
}
