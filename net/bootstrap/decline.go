package bootstrap

import (
	"context"
	"time"

	"github.com/gccl/gccl/internal/xerr"
)

// declineLimit bounds the attempt to tell the others (a guess: one lost packet
// of a connect, repeated after a second, still fits).
const declineLimit = 2 * time.Second

// Decline tells the members of a room that this rank will not come, so that
// they need not wait for it: for ranks that fail before they can join. It tries
// for a bounded time and reports whether the host was told. Rank 0 of a child
// or of a fixed address cannot decline: the room would be its own.
func (s *Service) Decline(ctx context.Context, cfg JoinConfig, cause error) bool {
	if cfg.check() != nil {
		return false
	}
	j := &joiner{svc: s, cfg: cfg, timeout: declineLimit, deadline: time.Now().Add(declineLimit)}
	j.me = Member{Rank: cfg.Rank, Host: s.host, PID: s.pid}
	d := &dialer{svc: s}
	if cfg.Room != nil {
		d.room, j.label, d.roomMayCome = *cfg.Room, cfg.Room.String(), true
	} else {
		info, err := parseID(cfg.ID)
		if err != nil {
			return false
		}
		d.room, j.label = info.room, info.label()
		if info.static != "" {
			addr, err := parseStatic(info.static)
			if err != nil {
				return false
			}
			if d.room.Addrs, err = addr.resolve(ctx, s.opt.Family); err != nil {
				return false
			}
		}
	}
	ctx, cancel := context.WithDeadlineCause(ctx, j.deadline, errDeadline)
	defer cancel()
	l, err := j.enter(ctx, d, d.room.Addrs)
	if err != nil {
		return false
	}
	n := notice{code: xerr.CodeOf(cause), rank: cfg.Rank, text: j.me.who() + " cannot join: " + cause.Error()}
	if n.code == xerr.Success || n.code > xerr.Timeout {
		n.code = xerr.Internal
	}
	l.send(frame{kindDecline, n.encode()})
	// The host answers with its verdict, which tells that it has read ours.
	stop := context.AfterFunc(ctx, l.close)
	defer stop()
	_, err = l.recv()
	l.close()
	return err == nil
}

// decline ends the init because a rank will not come.
func (h *hub) decline(n notice) notice {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.state {
	case collecting:
		h.failLocked(n)
	case failed:
	default:
		return h.usedLocked()
	}
	return h.cause
}
