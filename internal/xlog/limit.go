package xlog

import (
	"sync"
	"time"
)

// Limiter lets one line through in each interval and counts the others. The
// zero value lets one line through for ever.
type Limiter struct {
	Every time.Duration // 0: only the first

	mu      sync.Mutex
	last    time.Time // guarded by mu
	any     bool      // guarded by mu
	skipped int       // guarded by mu
}

// Allow says whether a line may pass at this time, and how many were held back
// since the last one.
func (r *Limiter) Allow(now time.Time) (ok bool, skipped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.any && (r.Every <= 0 || now.Sub(r.last) < r.Every) {
		r.skipped++
		return false, 0
	}
	skipped, r.skipped = r.skipped, 0
	r.any, r.last = true, now
	return true, skipped
}

// WarnLimited is Warn for what can repeat; the next line that passes tells how
// many were left out.
func (l *Logger) WarnLimited(r *Limiter, sub Subsys, format string, args ...any) {
	if !l.Enabled(Warn, sub) {
		return
	}
	ok, skipped := r.Allow(l.out.cfg.Now())
	if !ok {
		return
	}
	if skipped > 0 {
		format += " (%d similar lines left out)"
		args = append(args[:len(args):len(args)], skipped)
	}
	l.log(Warn, sub, format, args)
}
