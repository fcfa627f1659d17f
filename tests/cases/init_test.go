package cases

import (
	"testing"
)

const shortInit = "GCCL_INIT_TIMEOUT=3s"

// A nonblocking init returns at once though the others are not there; polls and abort do not block; once they came, a
// group of sends and receives runs at once.
func TestC02NonblockingInit(t *testing.T) { each(t, "c02", []string{"procs", "threads"}, []int{2}) }

// Each rank makes an id of its own; an id serves twice, at one time and one after the other; the id's process is gone;
// zeros instead of an id: bounded errors that tell what happened, or separate communicators, never mixed data.
func TestC03UniqueIDMisuse(t *testing.T) {
	for _, s := range []string{"c03_own_id", "c03_twice", "c03_again", "c03_zeros"} {
		each(t, s, []string{"procs"}, []int{2}, shortInit)
	}
	each(t, "c03_again", []string{"threads"}, []int{2}, shortInit)
	each(t, "c03_gone", []string{"procs"}, []int{3}, shortInit)
}

// Ranks and sizes out of range are refused at once; two processes of one rank, and ranks that disagree about the size,
// are reported on every rank with the values.
func TestC04WrongRankOrSize(t *testing.T) {
	each(t, "c04_arguments", []string{"procs"}, []int{2})
	each(t, "c04_duplicate", []string{"procs", "threads"}, []int{3}, shortInit)
	each(t, "c04_sizes", []string{"procs", "threads"}, []int{3}, shortInit)
}

// The forms of NCCL_SOCKET_IFNAME on a host whose only sure interface is lo: what matches works, what does not is
// refused with variable, value and the interfaces that are there.
func TestC06InterfaceFilter(t *testing.T) {
	for _, v := range []string{"NCCL_SOCKET_IFNAME=lo", "NCCL_SOCKET_IFNAME==lo", "NCCL_SOCKET_IFNAME=l", "NCCL_SOCKET_IFNAME=^docker,virbr",
		"NCCL_SOCKET_IFNAME=nosuch,lo", "NCCL_SOCKET_IFNAME=^=docker0", "NCCL_SOCKET_FAMILY=AF_INET"} {
		t.Run(v, func(t *testing.T) { check(t, "alive", "procs", 2, v) })
	}
	for _, v := range []string{"NCCL_SOCKET_IFNAME=nosuch0", "NCCL_SOCKET_IFNAME==l", "NCCL_SOCKET_IFNAME=="} {
		t.Run(v, func(t *testing.T) { check(t, "refused_filter", "procs", 1, v) })
	}
}

// Hosts with nothing but loopback: IPv4 and IPv6, IPv6 only, and link-local addresses with a scope, without settings.
func TestC07OnlyLoopback(t *testing.T) {
	probe(t, "a private network namespace", "unshare", "-rn", "ip", "link", "set", "lo", "up")
	for _, c := range []struct{ name, setup string }{
		{"lo", "ip link set lo up"},
		{"ipv6-only", "ip link set lo up && ip addr del 127.0.0.1/8 dev lo"},
		{"link-local", "ip link set lo up && ip addr flush dev lo && ip addr add fe80::1/64 dev lo"},
		{"misleading", "ip link set lo up && ip addr add 192.0.2.7/24 dev lo && ip addr add 10.255.255.1/32 dev lo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "ipv6-only" || c.name == "link-local" {
				probe(t, "IPv6 on loopback", "unshare", "-rn", "sh", "-c", c.setup+" && ip -6 addr show dev lo | grep -q inet6")
			}
			s := spec("alive", "procs", 4)
			s.Wrap = []string{"unshare", "-rn", "sh", "-c", c.setup + ` && exec "$@"`, "sh"}
			program.Check(t, s)
		})
	}
}

// Interval timers without SA_RESTART interrupt every system call while strangers talk to the listening ports: all init
// cycles succeed and memory stays bounded.
func TestC08NoiseAndInterruptions(t *testing.T) { each(t, "c08", []string{"procs"}, []int{8}) }

// Descriptors, threads and memory return to their level over many create/destroy cycles; subsets made at once by many
// threads do not hang; one rank alone holds under 1 MiB. (Running out of descriptors: tests/fault.)
func TestC09ManyCommunicators(t *testing.T) {
	each(t, "c09_cycles", []string{"procs", "threads"}, []int{2})
	each(t, "c09_subsets", []string{"procs", "threads"}, []int{4})
	each(t, "c09_footprint", []string{"procs"}, []int{1})
}
