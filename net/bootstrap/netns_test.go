package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests of this file run in network namespaces of their own, so that the
// machine's interfaces do not matter.

// namespaceScripts set up what a namespace test needs.
var namespaceScripts = map[string]string{
	"lo":      "ip link set lo up",
	"lo6":     "ip link set lo up; ip addr del 127.0.0.1/8 dev lo",
	"nothing": "true",
	// The first candidate is an address that nobody answers: the other
	// namespace has it in its table, behind an interface where nobody is.
	"two": `ip link set lo up
ip link add name a0 type veth peer name a1
ip link set a0 up; ip link set a1 up
ip addr add 198.51.100.1/24 dev a0 nodad`,
	"linklocal": "ip link set lo up",
	"cut":       "ip link set lo up",
}

// inNamespace makes a command run in a new network namespace, as its root.
func inNamespace(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// needNamespaces skips unless namespaces with the links of script can be made.
func needNamespaces(t *testing.T, script string) {
	t.Helper()
	probe := exec.Command("sh", "-ec", script)
	inNamespace(probe)
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("missing capability: network namespaces (%s): %v %s", strings.ReplaceAll(script, "\n", "; "), err, out)
	}
}

func runNamespace(t *testing.T, name string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-child", "namespace "+name)
	inNamespace(cmd)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
}

func TestNamespaces(t *testing.T) {
	for _, name := range []string{"lo", "lo6", "nothing"} {
		t.Run(name, func(t *testing.T) {
			needNamespaces(t, namespaceScripts[name])
			runNamespace(t, name)
		})
	}
	for _, name := range []string{"two", "linklocal", "cut"} {
		t.Run(name, func(t *testing.T) {
			needNamespaces(t, "ip link set lo up; ip link add name a0 type veth peer name a1")
			runNamespace(t, name)
		})
	}
}

// childNamespace is a process in its own network namespace.
func childNamespace(name string) int {
	fail := func(format string, args ...any) int {
		fmt.Printf(format+"\n", args...)
		return 1
	}
	if name == "peer" {
		return namespacePeer()
	}
	if out, err := exec.Command("sh", "-ec", namespaceScripts[name]).CombinedOutput(); err != nil {
		return fail("%v %s", err, out)
	}
	s, err := NewService(Options{Timeout: testDeadline / 2})
	if err != nil {
		return fail("%v", err)
	}
	if name == "nothing" {
		_, err := s.NewID()
		if err == nil || !strings.Contains(err.Error(), "no interface that is up") {
			return fail("no address at all: %v", err)
		}
		return 0
	}
	if name == "two" || name == "linklocal" || name == "cut" {
		return namespacePair(name, s)
	}
	id, err := s.NewID()
	if err != nil {
		return fail("%v", err)
	}
	fmt.Println(id)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for r := range errs {
		own, err := NewService(Options{Timeout: testDeadline / 2})
		if err != nil {
			return fail("%v", err)
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[r] = joinOnce(own, id, r, len(errs))
		}()
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fail("%v", err)
	}
	return 0
}

// joinOnce joins, meets the others at a barrier, and leaves.
func joinOnce(s *Service, id ID, rank, nranks int) error {
	g, err := s.Join(context.Background(), JoinConfig{ID: id, Rank: rank, NRanks: nranks})
	if err != nil {
		return err
	}
	if err := g.Barrier(context.Background()); err != nil {
		return err
	}
	return g.Close()
}

// namespacePair makes a second namespace, joined to this one by a wire, and
// has one rank on either side.
func namespacePair(name string, s *Service) int {
	fail := func(format string, args ...any) int {
		fmt.Printf(format+"\n", args...)
		return 1
	}
	self, err := os.Executable()
	if err != nil {
		return fail("%v", err)
	}
	peer := exec.Command(self, "-child", "namespace peer")
	peer.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	peer.Stderr = os.Stderr
	in, err := peer.StdinPipe()
	if err != nil {
		return fail("%v", err)
	}
	out, err := peer.StdoutPipe()
	if err != nil {
		return fail("%v", err)
	}
	if err := peer.Start(); err != nil {
		return fail("%v", err)
	}
	defer func() {
		in.Close()
		_ = peer.Process.Kill()
		_ = peer.Wait()
	}()
	// The wire's ends have different names, so a scope taken over by name fails.
	here := fmt.Sprintf("ip link add name w0 type veth peer name x9 netns %d; ip link set w0 addrgenmode none; ip link set w0 up; ", peer.Process.Pid)
	there := "ip link set lo up; ip link set x9 addrgenmode none; ip link set x9 up; "
	if name == "two" {
		here += "ip addr add 203.0.113.1/24 dev w0"
		there += "ip addr add 203.0.113.2/24 dev x9; ip link add name b0 type veth peer name b1; ip link set b0 up; ip link set b1 up; ip addr add 198.51.100.9/24 dev b0"
	} else {
		here += "ip addr add fe80::1:1/64 dev w0 nodad"
		there += "ip addr add fe80::1:2/64 dev x9 nodad"
	}
	if o, err := exec.Command("sh", "-ec", here).CombinedOutput(); err != nil {
		return fail("%s: %v %s", here, err, o)
	}
	if name == "linklocal" {
		// Only the link-local address is offered beside loopback.
		s, err = NewService(Options{Timeout: testDeadline / 2, Family: FamilyIPv6})
		if err != nil {
			return fail("%v", err)
		}
	}
	id, err := s.NewID()
	if err != nil {
		return fail("%v", err)
	}
	info, err := parseID(id)
	if err != nil {
		return fail("%v", err)
	}
	fmt.Println("candidates", info.room.Addrs)
	if _, err := fmt.Fprintf(in, "%s\n%x\n", there, id[:]); err != nil {
		return fail("%v", err)
	}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		said <- strings.TrimSpace(line)
	}()
	if name == "cut" {
		return cutWire(s, id)
	}
	begin := time.Now()
	// The peer is rank 0: the star goes from here to its side.
	err = joinOnce(s, id, 1, 2)
	line := <-said
	if err != nil || line != "done" {
		return fail("here: %v; there: %s", err, line)
	}
	fmt.Println("joined over the wire in", time.Since(begin).Round(time.Millisecond))
	return 0
}

// cutWire joins with the peer and then takes the wire away: no packet says
// that the peer has gone.
func cutWire(s *Service, id ID) int {
	g, err := s.Join(context.Background(), JoinConfig{ID: id, Rank: 1, NRanks: 2})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	told := make(chan error, 1)
	g.OnFailure(func(_ int, err error) { told <- err })
	begin := time.Now()
	if out, err := exec.Command("ip", "link", "set", "w0", "down").CombinedOutput(); err != nil {
		fmt.Printf("%v %s\n", err, out)
		return 1
	}
	select {
	case err := <-told:
		fmt.Println("noticed after", time.Since(begin).Round(time.Second), err)
		return 0
	case <-time.After(testDeadline / 2):
		fmt.Println("the silence was not noticed")
		return 1
	}
}

// namespacePeer is the process at the other end of the wire.
func namespacePeer() int {
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	if out, err := exec.Command("sh", "-ec", in.Text()).CombinedOutput(); err != nil {
		fmt.Printf("%v %s\n", err, out)
		return 1
	}
	in.Scan()
	var id ID
	var b []byte
	if _, err := fmt.Sscanf(in.Text(), "%x", &b); err != nil {
		fmt.Println(err)
		return 1
	}
	copy(id[:], b)
	s, err := NewService(Options{Timeout: testDeadline / 2})
	if err == nil {
		err = joinOnce(s, id, 0, 2)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("done")
	return 0
}
