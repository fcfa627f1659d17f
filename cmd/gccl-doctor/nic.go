package main

import (
	"fmt"
	"strconv"
	"strings"
)

const noGID = "0000:0000:0000:0000:0000:0000:0000:0000"

// gid is one entry of a port's table.
type gid struct {
	index  int
	value  string
	kind   string // "IB/RoCE v1", "RoCE v2"
	device string // network interface of a RoCE port
}

// gids lists the entries of a port that are filled.
func (m *machine) gids(dir string) []gid {
	var out []gid
	for _, name := range m.names(dir, "gids") {
		i, err := strconv.Atoi(name)
		v := m.text(dir, "gids", name)
		if err != nil || v == "" || v == noGID {
			continue
		}
		out = append(out, gid{i, v, m.text(dir, "gid_attrs/types", name), m.text(dir, "gid_attrs/ndevs", name)})
	}
	return out
}

func checkRDMA(m *machine) []finding {
	devices := m.rdmaDevices()
	if len(devices) == 0 {
		return one(ok, "no RDMA devices: ranks on other machines are reached over TCP")
	}
	var out []finding
	for _, d := range devices {
		if !m.exists("dev/infiniband") {
			out = append(out, with(one(fail, "%s is in the kernel, but /dev/infiniband is not here", d), "give the container the devices: docker run --device=/dev/infiniband")...)
			break
		}
	}
	for _, d := range devices {
		for _, p := range m.names("sys/class/infiniband", d, "ports") {
			out = append(out, m.port(d, p))
		}
	}
	return out
}

// port looks at one port of an RDMA device.
func (m *machine) port(device, port string) finding {
	dir := "sys/class/infiniband/" + device + "/ports/" + port
	name := device + ":" + port
	layer, rate := m.text(dir, "link_layer"), m.text(dir, "rate")
	state := afterColon(m.text(dir, "state"))
	physical := afterColon(m.text(dir, "phys_state"))
	f := finding{Verdict: ok, Found: fmt.Sprintf("%s: %s, %s, %s", name, layer, state, rate)}
	if state != "ACTIVE" {
		f.Verdict = warn
		f.Found = fmt.Sprintf("%s: %s, %s (%s): it is not used", name, layer, state, physical)
		f.Remedy = "connect the cable and set the interface up (ip link set … up)"
		if layer == "InfiniBand" {
			f.Remedy = "check the cable; a port that stays in INIT waits for a subnet manager (opensm)"
		}
		return f
	}
	list := m.gids(dir)
	var v2 []gid
	for _, g := range list {
		if g.kind == "RoCE v2" {
			v2 = append(v2, g)
			f.Details = append(f.Details, fmt.Sprintf("GID %d: %s, RoCE v2, %s, MTU %s", g.index, g.value, g.device, m.text("sys/class/net", g.device, "mtu")))
		}
	}
	if want, set := m.env["NCCL_IB_GID_INDEX"]; set {
		i, err := strconv.Atoi(want)
		there := false
		for _, g := range list {
			there = there || g.index == i
		}
		if err == nil && i >= 0 && !there {
			f.Verdict, f.Remedy = fail, "unset NCCL_IB_GID_INDEX: a RoCE v2 entry is found without it"
			f.Found += fmt.Sprintf("; NCCL_IB_GID_INDEX is %d, where there is no GID", i)
			return f
		}
	}
	if layer != "Ethernet" {
		return f
	}
	if len(v2) == 0 {
		f.Verdict, f.Remedy = fail, "give the interface of the port an IP address; in a container use the host's network (--network=host)"
		f.Found += "; no RoCE v2 GID"
		return f
	}
	for _, g := range v2 {
		// The payload of RoCE is 4096 or 2048 or 1024 …; with its heads 4096 need an MTU of about 4200.
		if n, known := m.number("sys/class/net", g.device, "mtu"); known && n < 4200 {
			f.Verdict, f.Remedy = warn, fmt.Sprintf("ip link set %s mtu 9000, on all hosts and switches alike", g.device)
			f.Found += fmt.Sprintf("; %s has an MTU of %d: packets of RoCE are 1024 bytes instead of 4096", g.device, n)
			return f
		}
	}
	return f
}

// afterColon is the word in "4: ACTIVE".
func afterColon(s string) string {
	_, word, found := strings.Cut(s, ": ")
	if !found {
		return s
	}
	return word
}

// ifaceUp are flags IFF_UP of linux/if.h, and the type ARPHRD_LOOPBACK of linux/if_arp.h.
const (
	ifaceUp      = 1
	typeLoopback = 772
)

func checkInterfaces(m *machine) []finding {
	f := finding{Verdict: ok}
	mtus := map[int64][]string{}
	up := 0
	for _, name := range m.names("sys/class/net") {
		flags, _ := m.number("sys/class/net", name, "flags")
		kind, known := m.number("sys/class/net", name, "type")
		if !known || kind == typeLoopback {
			continue
		}
		mtu, _ := m.number("sys/class/net", name, "mtu")
		state, speed := m.text("sys/class/net", name, "operstate"), m.text("sys/class/net", name, "speed")
		if n, err := strconv.Atoi(speed); err == nil && n > 0 {
			speed = fmt.Sprintf("%d Mb/s", n)
		} else {
			speed = "speed unknown"
		}
		f.Details = append(f.Details, fmt.Sprintf("%s: %s, MTU %d, %s", name, state, mtu, speed))
		if flags&ifaceUp != 0 && state != "down" {
			up++
			if m.exists("sys/class/net", name, "device") { // a piece of hardware
				mtus[mtu] = append(mtus[mtu], name)
			}
		}
	}
	f.Found = fmt.Sprintf("%s up", plural(up, "interface"))
	if up == 0 {
		f.Verdict, f.Found = note, "no interface but loopback is up: ranks must all be on this machine"
	}
	if len(mtus) > 1 {
		f.Verdict = warn
		f.Found += ", with different MTUs"
		f.Remedy = "set one MTU on all interfaces of a network, and on its switches: large messages stall where it is smaller on the way (gccl-doctor --peer tries)"
	}
	return []finding{f}
}

func checkFirewall(m *machine) []finding {
	var tables []string
	for _, p := range []string{"proc/net/ip_tables_names", "proc/net/ip6_tables_names"} {
		tables = append(tables, strings.Fields(m.text(p))...)
	}
	active := len(tables) > 0 || m.exists("sys/module/nf_tables") && m.exists("sys/module/nft_reject") || m.exists("run/firewalld") || m.exists("run/ufw.lock")
	if !active {
		return one(ok, "no signs of a packet filter here")
	}
	return with(one(note, "a packet filter may be active here"), "gccl-doctor --listen on one host and --peer HOST on the other try it; GCCL_PORT_RANGE=lo-hi keeps to ports that are open")
}
