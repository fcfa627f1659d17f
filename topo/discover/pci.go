package discover

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var busIDForm = regexp.MustCompile(`^([0-9a-f]{1,8}):([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-7])$`)

// NormalBusID writes a bus id as sysfs does: lower case, four digits of domain unless more are needed. Empty if it is none.
func NormalBusID(s string) string {
	m := busIDForm.FindStringSubmatch(strings.ToLower(strings.TrimSpace(s)))
	if m == nil {
		return ""
	}
	var v [3]uint64
	for i := range v {
		v[i], _ = strconv.ParseUint(m[i+1], 16, 32)
	}
	return fmt.Sprintf("%04x:%02x:%02x.%s", v[0], v[1], v[2], m[4])
}

// addPCI adds a device and what is above it to the tree. It says whether sysfs knows the device.
func (f *Facts) addPCI(r root, busID string) bool {
	if f.PCI[busID] != nil {
		return true
	}
	dir := r.real("sys/bus/pci/devices", busID)
	if dir == "" {
		return false
	}
	for dir != "" {
		p := readPCI(r, dir)
		if f.PCI[p.BusID] != nil {
			break
		}
		f.PCI[p.BusID] = p
		// A device hangs on a port. A root port belongs to the CPU; above the port of a switch is the switch's own upstream
		// end, which stands for the switch. NCCL's files show the same levels.
		port := filepath.Dir(dir)
		up := filepath.Dir(port)
		if NormalBusID(filepath.Base(port)) == "" || NormalBusID(filepath.Base(up)) == "" {
			break
		}
		p.Up, dir = NormalBusID(filepath.Base(up)), up
	}
	return true
}

func readPCI(r root, dir string) *PCI {
	p := &PCI{BusID: NormalBusID(filepath.Base(dir)), Node: Unknown}
	if c, ok := r.number(dir, "class"); ok {
		p.Class = uint32(c)
	}
	for name, at := range map[string]*uint16{"vendor": &p.Vendor, "device": &p.Device, "subsystem_vendor": &p.SubVendor, "subsystem_device": &p.SubDevice} {
		if v, ok := r.number(dir, name); ok {
			*at = uint16(v)
		}
	}
	if n, ok := r.number(dir, "numa_node"); ok && n >= 0 {
		p.Node = n
	}
	p.Speed, p.Width = readLink(r, dir)
	return p
}

// readLink is the link above a device: what the device and the port at its other end can both do.
func readLink(r root, dir string) (speed string, width int) {
	ends := []string{dir}
	if port := filepath.Dir(dir); NormalBusID(filepath.Base(port)) != "" {
		ends = append(ends, port)
	}
	for _, end := range ends {
		if s := r.text(end, "max_link_speed"); gigaTransfers(s) > 0 && (speed == "" || gigaTransfers(s) < gigaTransfers(speed)) {
			speed = s
		}
		if w, ok := r.number(end, "max_link_width"); ok && w > 0 && w < 255 && (width == 0 || w < width) {
			width = w
		}
	}
	return speed, width
}

// gigaTransfers reads "16.0 GT/s PCIe"; 0 if it says nothing ("Unknown").
func gigaTransfers(s string) float64 {
	number, _, _ := strings.Cut(s, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return v
}
