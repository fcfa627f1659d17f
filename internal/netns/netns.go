// Package netns makes hosts for tests out of network namespaces with links between them (network_namespaces(7), veth(4)). It
// needs no privileges where the kernel lets users make namespaces of their own, and the ip program of iproute2.
package netns

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const inside = "GCCL_TEST_INSIDE_NAMESPACE"

func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		Pdeathsig:   syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// Enter runs the test that calls it anew as the first host: as root of a user namespace with an empty network. It returns true
// there; false in the outer process, when all is over. needs is a script that probes what this kernel must have, beside
// namespaces and links; the test is skipped with its output where that fails.
func Enter(t *testing.T, needs string) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		Run(t, "ip link set lo up")
		return true
	}
	probe := exec.Command("sh", "-ec", "ip link set lo up; ip link add q0 type veth peer name q1; "+needs)
	own(probe)
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("missing capability: namespaces with links, %s: %v %s", needs, err, out)
	}
	var parts []string
	for _, part := range strings.Split(t.Name(), "/") {
		parts = append(parts, "^"+part+"$")
	}
	cmd := exec.Command(os.Args[0], "-test.run", strings.Join(parts, "/"), "-test.v", "-test.timeout", "120s")
	own(cmd)
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// Other makes a command, not yet started, the first process of another host, which ends with the test.
func Other(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
}

// Link joins this host and that of a process by links that have the same names on both sides, and are up.
func Link(t testing.TB, pid int, links ...string) {
	t.Helper()
	RunIn(t, pid, "ip link set lo up")
	for i, l := range links {
		Run(t, fmt.Sprintf("ip link add %s type veth peer name far%d; ip link set far%d netns %d; ip link set %s up", l, i, i, pid, l))
		RunIn(t, pid, fmt.Sprintf("ip link set far%d name %s; ip link set %s up", i, l, l))
	}
}

// In is the command line that runs another in the host of a process.
func In(pid int) []string { return []string{"nsenter", "-t", fmt.Sprint(pid), "-n"} }

// Run runs a script of sh here, RunIn in the host of a process; the first command that fails ends the test.
func Run(t testing.TB, script string) {
	t.Helper()
	run(t, nil, script)
}

// RunIn is Run in the host of a process.
func RunIn(t testing.TB, pid int, script string) {
	t.Helper()
	run(t, In(pid), script)
}

func run(t testing.TB, before []string, script string) {
	t.Helper()
	line := append(before, "sh", "-ec", script)
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v %s", script, err, out)
	}
}

// TwoHosts makes a second host, joined by links eth0 (10.1.0.1 and .2) and eth1 (10.2.0.1 and .2), and returns a process that is in it
// until the test ends.
func TwoHosts(t testing.TB) int {
	t.Helper()
	keeper := exec.Command("sleep", "600")
	Other(keeper)
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = keeper.Process.Kill()
		_ = keeper.Wait()
	})
	pid := keeper.Process.Pid
	Link(t, pid, "eth0", "eth1")
	Run(t, "ip addr add 10.1.0.1/24 dev eth0; ip addr add 10.2.0.1/24 dev eth1")
	RunIn(t, pid, "ip addr add 10.1.0.2/24 dev eth0; ip addr add 10.2.0.2/24 dev eth1")
	return pid
}
