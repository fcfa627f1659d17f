package bootstrap

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

const (
	// answerGrace is how much longer than its timeout a member waits for the
	// host's own verdict, which names the missing ranks.
	answerGrace = 2 * time.Second
	// handoverGrace is how long a member goes on towards rank 0 after the
	// process that made the id has gone: that process may only have been faster.
	handoverGrace = 5 * time.Second
	// ownRoomWait is how long a room is waited for in this process before it is
	// looked for over the network, if its address is ours.
	ownRoomWait = 100 * time.Millisecond
)

// JoinConfig says which group a rank joins, and as whom.
type JoinConfig struct {
	// ID invites to the group, unless Room is given (a child of a group, see
	// Group.Derive; Room.Addrs are those of the child's rank 0).
	ID   ID
	Room *Room

	Rank, NRanks int
	// Hello is given to all members (Group.Hellos).
	Hello []byte
	// Timeout bounds the wait for all ranks; zero means the service's.
	Timeout time.Duration
}

// joiner is one rank on its way into a group.
type joiner struct {
	svc      *Service
	cfg      JoinConfig
	me       Member
	label    string
	deadline time.Time
	timeout  time.Duration
}

// Join enters a group and returns when all ranks have come, or with the reason
// why they have not; that reason is the same on all ranks. When ctx is
// cancelled, it returns at once and ends the init of the others.
func (s *Service) Join(ctx context.Context, cfg JoinConfig) (*Group, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	j := &joiner{svc: s, cfg: cfg, timeout: cfg.Timeout}
	if j.timeout <= 0 {
		j.timeout = s.opt.Timeout
	}
	j.deadline = time.Now().Add(j.timeout)
	j.me = Member{Rank: cfg.Rank, Host: s.host, PID: s.pid, Hello: append([]byte(nil), cfg.Hello...)}
	if cfg.NRanks > 1 {
		at, err := s.listening()
		if err != nil {
			s.Decline(ctx, cfg, err)
			return nil, err
		}
		j.me.Addrs = at
	}
	ctx, cancel := context.WithDeadlineCause(ctx, j.deadline.Add(answerGrace), errDeadline)
	defer cancel()
	if cfg.Room != nil {
		j.label = cfg.Room.String()
		return j.star(ctx, *cfg.Room)
	}
	info, err := parseID(cfg.ID)
	if err != nil {
		return nil, err
	}
	j.label = info.label()
	if info.static != "" {
		return j.static(ctx, info)
	}
	return j.byID(ctx, info.room)
}

func (c JoinConfig) check() error {
	bad := func(format string, args ...any) error {
		return xerr.New(xerr.InvalidArgument, opInit, format, args...).WithRank(c.Rank).WithObject("arguments")
	}
	switch {
	case c.NRanks < 1 || c.NRanks > maxRanks:
		return bad("nranks %d is not from 1 to %d", c.NRanks, maxRanks)
	case c.Rank < 0 || c.Rank >= c.NRanks:
		return bad("rank %d is not from 0 to %d (nranks %d)", c.Rank, c.NRanks-1, c.NRanks)
	case len(c.Hello) > maxRegisterBytes/2:
		return bad("the hello has %d bytes, the limit is %d", len(c.Hello), maxRegisterBytes/2)
	}
	return nil
}

var errDeadline = errors.New("the deadline has passed")

// byID enters the room of the id's creator and goes on to rank 0 from there,
// unless the creator's process is rank 0's.
func (j *joiner) byID(ctx context.Context, room Room) (*Group, error) {
	l, t, err := j.meet(ctx, &dialer{svc: j.svc, room: room}, room.Addrs)
	if err != nil {
		return nil, err
	}
	if t.here {
		return newGroup(j, l, room.Secret, t), nil
	}
	return j.handover(ctx, l, room, t)
}

// handover goes on from the creator's room to one at rank 0, while the link to
// the creator still tells of ranks that fail on the way.
func (j *joiner) handover(ctx context.Context, l link, room Room, t table) (*Group, error) {
	next := roomOf(room.Secret.derive("star", t.nonce[:])).At(t.members[0].Addrs)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		j.watch(ctx, l, cancel)
	}()
	g, err := j.star(ctx, next)
	if err != nil {
		l.send(frame{kindFail, notice{code: xerr.CodeOf(err), rank: j.cfg.Rank, text: j.me.who() + " did not reach rank 0: " + err.Error()}.encode()})
		l.finish(farewellWait)
		return nil, err
	}
	l.send(frame{kindBye, nil})
	go func() { // the creator closes after it has read the goodbye
		t := time.AfterFunc(farewellWait, l.close)
		<-watched
		t.Stop()
		l.close()
	}()
	return g, nil
}

// watch reads the link to the creator until it ends.
func (j *joiner) watch(ctx context.Context, l link, cancel context.CancelCauseFunc) {
	for {
		f, err := l.recv()
		if err != nil {
			gone := xerr.New(xerr.Remote, opInit, "the process that made the id ended before all ranks had reached rank 0").WithObject("%s", j.label).
				WithHint("it must live until init has returned on all ranks")
			t := time.NewTimer(handoverGrace)
			defer t.Stop()
			select {
			case <-t.C:
				cancel(gone)
			case <-ctx.Done():
			}
			return
		}
		switch f.kind {
		case kindReject:
			if n, err := decodeNotice(f.body); err == nil {
				cancel(n.errorFor(opInit, j.label))
			}
		case kindProgress:
			j.progress(f)
		case kindByeAck:
			return
		}
	}
}

// star enters the room at rank 0; rank 0 opens it.
func (j *joiner) star(ctx context.Context, room Room) (*Group, error) {
	if j.cfg.Rank == 0 {
		h := newHub(j.svc, room, j.label)
		if err := j.svc.open(h); err != nil {
			return nil, err
		}
	}
	l, t, err := j.meet(ctx, &dialer{svc: j.svc, room: room, roomMayCome: true}, room.Addrs)
	if err != nil {
		return nil, err
	}
	if !t.here {
		l.close()
		return nil, xerr.New(xerr.Internal, opInit, "the host of the room is not rank 0").WithObject("%s", j.label)
	}
	return newGroup(j, l, room.Secret, t), nil
}

// static joins by a fixed address: rank 0 opens it, the others look for it.
// They may meet the room of an earlier communicator of the same address, which
// asks them to come again.
func (j *joiner) static(ctx context.Context, info idInfo) (*Group, error) {
	addr, err := parseStatic(info.static)
	if err != nil {
		return nil, xerr.New(xerr.InvalidArgument, opInit, "%v", err).WithObject("%s", j.label)
	}
	if j.cfg.Rank == 0 {
		if err := j.openStatic(ctx, addr, info.room); err != nil {
			return nil, err
		}
	}
	var at []netip.AddrPort
	for j.cfg.Rank != 0 {
		if at, err = addr.resolve(ctx, j.svc.opt.Family); err == nil {
			break
		}
		if time.Until(j.deadline) < retryMax || !sleep(ctx, retryMax) {
			return nil, xerr.Wrap(xerr.System, opInit, err, "cannot resolve the address").WithObject("%s", j.label).WithRank(j.cfg.Rank)
		}
	}
	l, t, err := j.meet(ctx, &dialer{svc: j.svc, room: info.room, roomMayCome: true, hostMayCome: true}, at)
	if err != nil {
		return nil, err
	}
	return newGroup(j, l, info.room.Secret, t), nil
}

// openStatic opens the address and the room there.
func (j *joiner) openStatic(ctx context.Context, addr staticAddr, room Room) error {
	ls, err := j.svc.bindStatic(ctx, addr)
	if err != nil {
		return err
	}
	h := newHub(j.svc, room, j.label)
	h.staticLn, h.staticPort = ls, addr.port
	j.svc.holdStatic(addr.port, 1)
	if err := j.svc.open(h); err != nil {
		ls.Close()
		j.svc.holdStatic(addr.port, -1)
		return err
	}
	j.svc.mu.Lock()
	defer j.svc.mu.Unlock()
	if j.svc.closed { // then the hub has closed the address, or will
		return errServiceClosed()
	}
	j.svc.serveListeners(ls)
	return nil
}

// meet enters a room and waits there until all members have come.
func (j *joiner) meet(ctx context.Context, d *dialer, addrs []netip.AddrPort) (link, table, error) {
	for {
		l, err := j.enter(ctx, d, addrs)
		if err != nil {
			return nil, table{}, err
		}
		t, err := j.introduce(ctx, l)
		if err == nil {
			return l, t, nil
		}
		var again *tryAgain
		if !errors.As(err, &again) {
			return nil, table{}, err
		}
		if time.Until(j.deadline) < retryLater || !sleep(ctx, retryLater) {
			return nil, table{}, again.error
		}
	}
}

// tryAgain marks an end that a later attempt may not meet: the room of an
// earlier communicator at a fixed address, or a host that was too busy to take
// us in.
type tryAgain struct{ error }

func (t *tryAgain) Unwrap() error { return t.error }

// enter gets a link to the host of a room: directly if that is this process,
// else over TCP.
func (j *joiner) enter(ctx context.Context, d *dialer, addrs []netip.AddrPort) (link, error) {
	if l, err := j.enterHere(d.room); l != nil || err != nil {
		return l, err
	}
	dctx, cancel := context.WithDeadlineCause(ctx, j.deadline, errDeadline)
	defer cancel()
	// A room that opens here meanwhile wins over the network.
	hctx, here := context.WithCancel(dctx)
	defer here()
	go j.svc.awaitRoom(hctx, d.room.ID, here)
	if j.ownAddrs(addrs) {
		sleep(hctx, ownRoomWait)
	}
	targets := targetsOf(addrs, j.svc.interfaces())
	stop := j.reportSearch(d, targets)
	defer stop()
	conn, err := d.connect(hctx, targets)
	if err == nil {
		return j.svc.newMemberLink(conn, d.room, addrs)
	}
	if l, lerr := j.enterHere(d.room); l != nil || lerr != nil {
		return l, lerr
	}
	var told *xerr.Error
	switch {
	case errors.Is(err, errHostGone):
		what := "the process that made the id is gone, or the id is of another network"
		if d.roomMayCome {
			what = "the process of rank 0 is gone"
		}
		return nil, xerr.New(xerr.Remote, opInit, "%s: 0 of %d ranks came to it as far as this rank can see: %s", what, j.cfg.NRanks, d.reasons(targets)).
			WithObject("%s", j.label).WithRank(j.cfg.Rank).WithHint("the process that makes the id must live until init has returned on all ranks; an id serves one communicator")
	case errors.As(err, &told):
		return nil, told
	case ctx.Err() == nil && dctx.Err() != nil:
		return nil, xerr.New(xerr.Timeout, opInit, "cannot reach the host of this group within %v: %s", j.timeout, d.reasons(targets)).
			WithObject("%s", j.label).WithRank(j.cfg.Rank).WithHint("open the port in the firewall, or choose the interface (NCCL_SOCKET_IFNAME) on the rank that makes the id")
	}
	return nil, j.stopped(ctx)
}

// enterHere gives a link if the room is hosted by this process.
func (j *joiner) enterHere(room Room) (link, error) {
	h, _ := j.svc.find(room.ID)
	if h == nil {
		return nil, nil
	}
	if subtle.ConstantTimeCompare(h.room.Secret[:], room.Secret[:]) != 1 {
		return nil, xerr.New(xerr.InvalidArgument, opInit, "the secret is not that of the room").WithObject("%s", j.label)
	}
	return h.enter()
}

// awaitRoom calls opened when the room opens in this process.
func (s *Service) awaitRoom(ctx context.Context, id RoomID, opened func()) {
	for {
		h, next := s.find(id)
		if h != nil {
			opened()
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// ownAddrs is true if addrs are those of this process's service. Two
// containers may have the same address, so it is a hint and no proof.
func (j *joiner) ownAddrs(addrs []netip.AddrPort) bool {
	return len(addrs) > 0 && len(j.me.Addrs) > 0 && addrs[0] == j.me.Addrs[0]
}

// reportSearch logs now and then how the search for the host goes.
func (j *joiner) reportSearch(d *dialer, targets []target) (stop func()) {
	var ts []*time.Timer
	for _, after := range j.svc.opt.ReportAfter {
		ts = append(ts, time.AfterFunc(after, func() {
			j.svc.opt.Log(Warn, fmt.Sprintf("bootstrap: %s: rank %d of %d has not reached it after %v: %s", j.label, j.cfg.Rank, j.cfg.NRanks, after, d.reasons(targets)))
		}))
	}
	return func() {
		for _, t := range ts {
			t.Stop()
		}
	}
}

// introduce registers at the host and waits for the table of all members. On
// an error the link is closed.
func (j *joiner) introduce(ctx context.Context, l link) (table, error) {
	left := max(time.Until(j.deadline), time.Millisecond)
	l.send(frame{kindRegister, registration{nranks: j.cfg.NRanks, timeout: left, member: j.me}.encode()})
	stop := context.AfterFunc(ctx, func() {
		l.send(frame{kindFail, notice{code: xerr.Remote, rank: j.cfg.Rank, text: fmt.Sprintf("%s gave up its init: %v", j.me.who(), context.Cause(ctx))}.encode()})
		l.finish(farewellWait)
	})
	t, err := j.awaitTable(l)
	if !stop() {
		return table{}, j.stopped(ctx)
	}
	if err != nil {
		l.close()
		return table{}, err
	}
	return t, nil
}

func (j *joiner) awaitTable(l link) (table, error) {
	fault := func(code xerr.Code, format string, args ...any) *xerr.Error {
		return xerr.New(code, opInit, format, args...).WithObject("%s", j.label).WithRank(j.cfg.Rank)
	}
	welcome := false
	for {
		f, err := l.recv()
		if err != nil {
			gone := fault(xerr.Remote, "the host of this group at %s is gone: %s", l.where(), ending(err)).
				WithHint("the process that makes the id, usually that of rank 0, must live until init has returned on all ranks; look at its output")
			if !welcome {
				return table{}, &tryAgain{gone}
			}
			return table{}, gone
		}
		switch f.kind {
		case kindWelcome:
			hosts, err := decodeAddrs(f.body)
			if err != nil {
				return table{}, fault(xerr.Remote, "the host at %s sent nonsense: %v", l.where(), err)
			}
			l.elsewhere(hosts)
			welcome = true
		case kindProgress:
			j.progress(f)
		case kindReject:
			n, err := decodeNotice(f.body)
			if err != nil {
				return table{}, fault(xerr.Remote, "the host at %s sent nonsense: %v", l.where(), err)
			}
			if n.retry {
				return table{}, &tryAgain{n.errorFor(opInit, j.label)}
			}
			return table{}, n.errorFor(opInit, j.label)
		case kindTable:
			t, err := decodeTable(f.body)
			if err == nil && len(t.members) != j.cfg.NRanks {
				err = errMalformed
			}
			if err != nil {
				return table{}, fault(xerr.Remote, "the host at %s sent nonsense: %v", l.where(), err)
			}
			return t, nil
		default:
			return table{}, fault(xerr.Remote, "the host at %s sent a frame of kind %d instead of the table", l.where(), f.kind)
		}
	}
}

// progress logs what the host says about the wait.
func (j *joiner) progress(f frame) {
	j.svc.opt.Log(Warn, fmt.Sprintf("bootstrap: %s: rank %d of %d: %s", j.label, j.cfg.Rank, j.cfg.NRanks, clip(string(f.body))))
}

// stopped says why ctx ended the join.
func (j *joiner) stopped(ctx context.Context) error {
	cause := context.Cause(ctx)
	var told *xerr.Error
	switch {
	case errors.As(cause, &told):
		return told
	case errors.Is(cause, errDeadline), errors.Is(cause, context.DeadlineExceeded):
		return xerr.Wrap(xerr.Timeout, opInit, cause, "the group was not complete within %v", j.timeout).WithObject("%s", j.label).WithRank(j.cfg.Rank)
	}
	return xerr.Wrap(xerr.InvalidUsage, opInit, cause, "init was given up by its caller").WithObject("%s", j.label).WithRank(j.cfg.Rank)
}
