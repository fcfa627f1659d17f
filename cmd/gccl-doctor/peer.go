package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Whether two machines can talk as ranks do: each listens on ports of its own choice, and the other connects. The one that was started with
// --listen answers on a control connection; all that it does for a client is to open ports for some seconds and to send back what it gets.

const (
	portsTried   = 3               // ports that are tried in each direction
	patience     = 4 * time.Second // for one connection: a packet filter that drops answers nothing
	transfer     = 1 << 20         // bytes there and back: more than one window, so that full packets have to pass
	controlTime  = 60 * time.Second
	tokenBytes   = 16
	maxControl   = 1 << 16
	doctorsProto = 1
)

// portsOf is how sockets are made; tests put obstacles there.
type portsOf struct {
	listen func(lo, hi int) (stdnet.Listener, error)
	dial   func(ctx context.Context, address string) (stdnet.Conn, error)
}

var realNetwork = portsOf{
	listen: func(lo, hi int) (stdnet.Listener, error) {
		if lo == 0 {
			return stdnet.Listen("tcp", ":0")
		}
		var last error
		for p := lo; p <= hi; p++ {
			l, err := stdnet.Listen("tcp", ":"+strconv.Itoa(p))
			if err == nil {
				return l, nil
			}
			last = err
		}
		return nil, last
	},
	dial: func(ctx context.Context, address string) (stdnet.Conn, error) {
		d := stdnet.Dialer{Timeout: patience}
		return d.DialContext(ctx, "tcp", address)
	},
}

// prober tries a network. lo and hi are GCCL_PORT_RANGE; 0: any port.
type prober struct {
	ports  portsOf
	lo, hi int
	limit  time.Duration // for one connection; 0: patience
}

func (p prober) patience() time.Duration {
	if p.limit != 0 {
		return p.limit
	}
	return patience
}

// message is one line on the control connection.
type message struct {
	Doctor int       `json:"gccl_doctor,omitempty"`
	Token  string    `json:"token,omitempty"`
	Ports  []int     `json:"ports,omitempty"`
	Found  []outcome `json:"found,omitempty"`
	Error  string    `json:"error,omitempty"`
}

// outcome is one connection.
type outcome struct {
	Port int    `json:"port"`
	What string `json:"what"` // empty: it worked
	Kind string `json:"kind,omitempty"`
}

// Kinds of failures.
const (
	dropped = "dropped"
	refused = "refused"
	stalled = "stalled"
	other   = "other"
)

// door is some listeners that send back what comes, if it begins with the token.
type door struct {
	listeners []stdnet.Listener
	ports     []int
}

func (p prober) open(token string) (*door, error) {
	d := &door{}
	for range portsTried {
		l, err := p.ports.listen(p.lo, p.hi)
		if err != nil {
			if len(d.ports) > 0 {
				break // a small range
			}
			return nil, fmt.Errorf("cannot listen: %w", err)
		}
		d.listeners = append(d.listeners, l)
		d.ports = append(d.ports, l.Addr().(*stdnet.TCPAddr).Port)
		go echo(l, token)
	}
	return d, nil
}

func (d *door) close() {
	for _, l := range d.listeners {
		_ = l.Close()
	}
}

func echo(l stdnet.Listener, token string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(3 * patience))
			got := make([]byte, len(token))
			if _, err := io.ReadFull(c, got); err == nil && string(got) == token {
				_, _ = io.Copy(c, io.LimitReader(c, transfer)) // the client sees what is missing
			}
		}()
	}
}

// reach tries the ports of the other side.
func (p prober) reach(ctx context.Context, host, token string, ports []int) []outcome {
	out := make([]outcome, 0, len(ports))
	for _, port := range ports {
		o := outcome{Port: port}
		if err := p.roundTrip(ctx, stdnet.JoinHostPort(host, strconv.Itoa(port)), token); err != nil {
			o.What, o.Kind = err.Error(), kindOf(err)
		}
		out = append(out, o)
	}
	return out
}

type stall struct{ bytes int64 }

func (s stall) Error() string {
	return fmt.Sprintf("connected, but %d of %d bytes came back", s.bytes, transfer)
}

func kindOf(err error) string {
	var s stall
	switch {
	case errors.As(err, &s):
		return stalled
	case errors.Is(err, unix.ECONNREFUSED):
		return refused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, unix.ETIMEDOUT), errors.Is(err, unix.EHOSTUNREACH):
		return dropped
	}
	var timeout stdnet.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return dropped
	}
	return other
}

func (p prober) roundTrip(ctx context.Context, address, token string) error {
	ctx, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	c, err := p.ports.dial(ctx, address)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(p.patience()))
	go func() { // ends with the deadline
		if _, err := io.WriteString(c, token); err == nil {
			_, _ = c.Write(make([]byte, transfer))
		}
	}()
	if n, _ := io.Copy(io.Discard, io.LimitReader(c, transfer)); n != transfer {
		return stall{n}
	}
	return nil
}

// control is the connection over which both sides agree.
type control struct {
	c stdnet.Conn
	r *bufio.Reader
}

func newControl(c stdnet.Conn) control {
	_ = c.SetDeadline(time.Now().Add(controlTime))
	return control{c, bufio.NewReader(io.LimitReader(c, maxControl))}
}

func (k control) send(m message) error { return json.NewEncoder(k.c).Encode(m) }

func (k control) receive() (message, error) {
	var m message
	line, err := k.r.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &m)
	}
	if err == nil && m.Error != "" {
		err = errors.New(m.Error)
	}
	if err == nil && len(m.Ports) > portsTried {
		err = fmt.Errorf("%d ports are more than %d", len(m.Ports), portsTried)
	}
	return m, err
}

// host is the other side's address as this side sees it.
func (k control) host() string {
	host, _, _ := stdnet.SplitHostPort(k.c.RemoteAddr().String()) // an address of the net package has that form
	return host
}

// listen serves clients until ctx ends.
func (p prober) listen(ctx context.Context, address string, out io.Writer) error {
	l, err := stdnet.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	fmt.Fprintf(out, "waiting on %s: run gccl-doctor --peer ADDRESS:%d on the other machine\n", l.Addr(), l.Addr().(*stdnet.TCPAddr).Port)
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if err := p.serve(ctx, newControl(c)); err != nil {
			fmt.Fprintf(out, "%s: %v\n", c.RemoteAddr(), err)
		} else {
			fmt.Fprintf(out, "%s: done\n", c.RemoteAddr())
		}
		_ = c.Close()
	}
}

func (p prober) serve(ctx context.Context, k control) error {
	hello, err := k.receive()
	if err != nil {
		return err
	}
	if hello.Doctor != doctorsProto || len(hello.Token) != 2*tokenBytes {
		return k.send(message{Error: "the other side speaks another version of gccl-doctor"})
	}
	d, err := p.open(hello.Token)
	if err != nil {
		return errors.Join(err, k.send(message{Error: err.Error()}))
	}
	defer d.close()
	if err := k.send(message{Doctor: doctorsProto, Ports: d.ports}); err != nil {
		return err
	}
	theirs, err := k.receive()
	if err != nil {
		return err
	}
	return k.send(message{Found: p.reach(ctx, k.host(), hello.Token, theirs.Ports)})
}

// try asks the other side, and says what works.
func (p prober) try(ctx context.Context, address string) ([]finding, error) {
	c, err := p.ports.dial(ctx, address)
	if err != nil {
		return with([]finding{{Check: "peer", Verdict: fail, Found: fmt.Sprintf("%s cannot be reached: %v", address, err)}},
			"start gccl-doctor --listen there, with a port that is open; check name, address and route"), nil
	}
	defer c.Close()
	k := newControl(c)
	secret := make([]byte, tokenBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	token := hex.EncodeToString(secret)
	if err := k.send(message{Doctor: doctorsProto, Token: token}); err != nil {
		return nil, err
	}
	theirs, err := k.receive()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	there := p.reach(ctx, k.host(), token, theirs.Ports)
	d, err := p.open(token)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if err := k.send(message{Ports: d.ports}); err != nil {
		return nil, err
	}
	answer, err := k.receive()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return []finding{direction("from here to "+k.host(), there), direction("from "+k.host()+" to here", answer.Found)}, nil
}

// direction is the verdict about one direction.
func direction(name string, list []outcome) finding {
	f := finding{Check: "peer", Verdict: ok}
	works, kind := 0, ""
	for _, o := range list {
		if o.What == "" {
			works++
			f.Details = append(f.Details, fmt.Sprintf("port %d: %d KiB there and back", o.Port, transfer>>10))
			continue
		}
		kind = o.Kind
		f.Details = append(f.Details, fmt.Sprintf("port %d: %s (%s)", o.Port, o.What, o.Kind))
	}
	f.Found = fmt.Sprintf("%s: %d of %d ports work", name, works, len(list))
	if works == len(list) && works > 0 {
		return f
	}
	f.Verdict = fail
	f.Remedy = map[string]string{
		dropped: "a packet filter drops connections to these ports: open a range in both machines' filters, and set GCCL_PORT_RANGE=lo-hi to it",
		refused: "something on the way refuses these ports, as a packet filter that rejects does: open a range, and set GCCL_PORT_RANGE=lo-hi to it",
		stalled: "small packets pass and large ones do not: the MTU is smaller on the way than at both ends, or a tunnel loses the notices of that; set one MTU everywhere",
		other:   "see the error",
		"":      "no ports were tried: the other side could open none",
	}[kind]
	return f
}
