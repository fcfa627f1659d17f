package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc64"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gccl/gccl/net/transport"
)

// childArg marks a test binary that was started as the other end of a connection.
const childArg = "-gccl-transport-peer"

// Child runs the other end of a connection if this process was started for that, and says so. TestMain calls it first.
func Child(m Maker) bool {
	if len(os.Args) < 2 || os.Args[1] != childArg {
		return false
	}
	if err := m.serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
	}
	return true
}

// peer is the other end: a process, or a goroutine for transports inside one process.
type peer struct {
	t   testing.TB
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd // nil: a goroutine
}

// ask gives an order to the other end.
func (p *peer) ask(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) hear() []byte {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatal("the peer ended: ", err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(line))
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// signal sends a signal to the process.
func (p *peer) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
	for end := time.Now().Add(limit); s == syscall.SIGSTOP && !p.stopped(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatal("the peer does not stop")
		}
	}
}

// stopped says whether every thread has: a signal is on its way for a while (proc(5), state in /proc/PID/task/TID/stat).
func (p *peer) stopped() bool {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		return false
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if after := bytes.LastIndexByte(text, ')'); err != nil || after < 0 || !bytes.HasPrefix(text[after:], []byte(") T")) {
			return false
		}
	}
	return true
}

// withPeer makes an endpoint that is connected to one of another process (rank 1), with memory of n bytes at each end.
func (m Maker) withPeer(t testing.TB, n int) (*side, *peer) {
	t.Helper()
	p := &peer{t: t}
	ended := make(chan struct{})
	if m.OneProcess {
		fromUs, in := io.Pipe()
		out, toUs := io.Pipe()
		p.in, p.out = in, bufio.NewReader(out)
		go func() {
			defer close(ended)
			if err := m.serve(fromUs, toUs); err != nil {
				t.Error(err)
			}
			_ = toUs.Close()
		}()
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), 2*limit)
		p.cmd = exec.CommandContext(ctx, os.Args[0], childArg)
		p.cmd.Stderr = os.Stderr
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if m.Spawn != nil {
			m.Spawn(p.cmd)
		}
		var err error
		if p.in, err = p.cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := p.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p.out = bufio.NewReader(out)
		go func() {
			defer close(ended)
			_ = p.cmd.Wait()
			cancel()
		}()
		if m.Started != nil {
			m.Started(p.cmd.Process.Pid)
		}
	}
	s := m.side(t, 0, n)
	t.Cleanup(func() { // before that of side
		_ = p.in.Close()
		<-ended
	})
	p.ask("%d", n)
	c, err := s.ep.NewConn(1)
	if err != nil {
		t.Fatal(err)
	}
	remote := p.hear()
	p.ask("%x", c.Blob())
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := c.Connect(ctx, remote); err != nil {
		t.Fatal(err)
	}
	s.conn = c.C()
	p.ask("%x", s.reg.Blob())
	if s.peer, err = transport.Import(s.conn, p.hear()); err != nil {
		t.Fatal(err)
	}
	return s, p
}

// serve is the other end. It obeys until its input ends:
//
//	serve               polls and forgets
//	echo                polls, and sends each message back with what its memory begins with and a sum of all of it
//	pingpong bytes n    is the second of a round trip
func (m Maker) serve(in io.Reader, out io.Writer) (err error) {
	lines := bufio.NewScanner(in)
	var n int
	if !lines.Scan() {
		return io.ErrUnexpectedEOF
	}
	if _, err := fmt.Sscan(lines.Text(), &n); err != nil {
		return err
	}
	s := &side{t: failing{}}
	s.ep = m.Open(s.t, 1, secret)
	defer s.ep.Close()
	var addr uintptr
	s.mem, addr = Alloc(n)
	if s.reg, err = transport.Register(s.ep.C(), addr, uint64(n)); err != nil {
		return err
	}
	c, err := s.ep.NewConn(0)
	if err != nil {
		return err
	}
	hex := func() (b []byte) {
		if lines.Scan() {
			_, err = fmt.Sscanf(lines.Text(), "%x", &b)
		}
		return b
	}
	fmt.Fprintf(out, "%x\n", c.Blob())
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := c.Connect(ctx, hex()); err != nil {
		return err
	}
	s.conn = c.C()
	theirs := hex()
	fmt.Fprintf(out, "%x\n", s.reg.Blob())
	if s.peer, err = transport.Import(s.conn, theirs); err != nil {
		return err
	}
	var ended atomic.Bool
	orders := make(chan string, 1)
	go func() {
		for lines.Scan() {
			orders <- lines.Text()
		}
		ended.Store(true)
		close(orders)
	}()
	for order := range orders {
		var bytes, rounds int
		switch {
		case order == "serve":
			for !ended.Load() && transport.ConnErr(s.conn) == nil {
				if len(transport.Poll(s.ep.C(), 16)) == 0 {
					s.nap()
				}
			}
		case order == "echo":
			s.echo(&ended)
		default:
			if _, err := fmt.Sscanf(order, "pingpong %d %d", &bytes, &rounds); err != nil {
				return err
			}
			s.pingPong(bytes, rounds, false)
			for !ended.Load() && transport.ConnErr(s.conn) == nil { // the last message has to go out
				transport.Poll(s.ep.C(), 16)
			}
		}
	}
	return nil
}

// nap leaves the processor to the other end.
func (s *side) nap() {
	if transport.CanWait(s.ep.C()) {
		transport.Wait(s.ep.C(), time.Millisecond)
	} else {
		time.Sleep(200 * time.Microsecond)
	}
}

func (s *side) echo(ended *atomic.Bool) {
	var back []transport.Work
	for !ended.Load() && transport.ConnErr(s.conn) == nil {
		events := transport.Poll(s.ep.C(), 16)
		for _, e := range events {
			if e.Kind == transport.Message {
				answer := binary.LittleEndian.AppendUint64(append(e.Data, s.mem[:8]...), sum(s.mem))
				back = append(back, msg(answer...))
			}
		}
		n, _ := transport.Post(s.conn, back...)
		back = back[n:]
		if len(events) == 0 && len(back) == 0 {
			s.nap()
		}
	}
}

var table = crc64.MakeTable(crc64.ECMA)

func sum(b []byte) uint64 { return crc64.Checksum(b, table) }

// failing is a testing.TB of a process that is no test.
type failing struct{ testing.TB }

func (failing) Helper()          {}
func (failing) Fatal(a ...any)   { panic(fmt.Sprint(a...)) }
func (failing) Cleanup(f func()) {}
