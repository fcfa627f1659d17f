package gin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gccl/gccl/net/gin"
	"github.com/gccl/gccl/net/loop"
	"github.com/gccl/gccl/net/shm"
)

// asInUse has the thread behave as a communicator's does by default, where ranks have cores of their own.
func asInUse(t *gin.Thread, _ *int) {
	*t = gin.Thread{Spin: time.Millisecond, Nap: 200 * time.Microsecond, CPU: -1}
}

// BenchmarkQueue: how long a CPU takes to leave a descriptor, how many go through to the loop transport while they are left, and how
// fast a core drains a ring that is full.
func BenchmarkQueue(b *testing.B) {
	for _, format := range []gin.Format{gin.Format64, gin.Format128} {
		b.Run(fmt.Sprintf("enqueue/%d", 64<<format), func(b *testing.B) {
			r := newRig(b, loop.Transport{}, format, 2, 1<<16, asInUse)
			d := gin.Descriptor{Op: gin.Put | gin.Inline, Bytes: 8, DstWindow: window}
			var spent time.Duration
			for n := 0; n < b.N; n += 1 << 14 { // fits the ring: never waits for room
				spent += r.ctx[0].PostMany(1, d, 1<<14)
				mark := r.post(b, 0, 1, d)
				until(b, "a completion", func() bool { return r.ctx[0].Done(1, mark) })
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64((b.N+1<<14-1)>>14<<14), "ns/descriptor")
		})
		b.Run(fmt.Sprintf("stream/%d", 64<<format), func(b *testing.B) {
			r := newRig(b, loop.Transport{}, format, 2, 1<<12, asInUse)
			d := gin.Descriptor{Op: gin.Put | gin.Inline, Bytes: 8, DstWindow: window}
			b.ResetTimer()
			r.ctx[0].PostMany(1, d, b.N)
			mark := r.post(b, 0, 1, d)
			until(b, "a completion", func() bool { return r.ctx[0].Done(1, mark) })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M/s")
		})
		b.Run(fmt.Sprintf("drain/%d", 64<<format), func(b *testing.B) {
			const full = 1 << 15
			r := newRig(b, loop.Transport{}, format, 2, full, func(t *gin.Thread, _ *int) { // naps while the ring is filled
				*t = gin.Thread{Spin: 0, Nap: 30 * time.Millisecond, CPU: -1}
			})
			d := gin.Descriptor{Op: gin.Put | gin.Inline, Bytes: 8, DstWindow: window}
			var spent time.Duration
			drained, missed := 0, 0
			for drained < b.N || drained == 0 {
				first := r.post(b, 0, 1, d)
				r.ctx[0].PostMany(1, d, full-2)
				last := r.post(b, 0, 1, d)
				var start time.Time
				for end := time.Now().Add(20 * time.Second); !r.ctx[0].Done(1, last); {
					if start.IsZero() && r.ctx[0].Done(1, first) {
						start = time.Now()
					}
					if time.Now().After(end) {
						b.Fatal("the ring is not drained")
					}
				}
				if start.IsZero() { // this thread did not run while the ring was drained
					if missed++; missed == 100 {
						b.Fatal("the clock was never started: is the machine busy?")
					}
					continue
				}
				spent += time.Since(start)
				drained += full - 64 // the first batch was before the clock
			}
			b.ReportMetric(float64(drained)/spent.Seconds()/1e6, "M/s")
		})
	}
}

// BenchmarkRoundTrip: 8 bytes and a signal there, the same back, over descriptor rings. Each side serves its own queue while
// it waits, as an executor does.
func BenchmarkRoundTrip(b *testing.B) {
	r := newRig(b, shm.Transport{}, gin.Format128, 2, 1<<8)
	d := gin.Descriptor{Op: gin.Put | gin.Inline | gin.SignalInc, Bytes: 8, DstWindow: window, SignalValue: 1}
	side := func(me int, begins bool) bool {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for i := range uint64(b.N) {
			if begins {
				r.ctx[me].Post(1-me, d)
			}
			for turns := 0; r.ctx[me].Signal(0) <= i; turns++ {
				if r.gins[me].Help(); turns > 1<<28 {
					return false
				}
			}
			if !begins {
				r.ctx[me].Post(1-me, d)
			}
		}
		for mark, _ := r.ctx[me].Post(1-me, d); !r.ctx[me].Done(1-me, mark); {
			r.gins[me].Help()
		}
		return true
	}
	other := make(chan bool)
	b.ResetTimer()
	go func() { other <- side(1, false) }()
	if !side(0, true) || !<-other {
		b.Fatal("a signal did not come")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/round-trip")
}

// BenchmarkIdle: the processor time of an idle thread of this package over ten seconds, with the settings that communicators have
// by default, and how long the first message after the silence takes.
func BenchmarkIdle(b *testing.B) {
	r := newRig(b, shm.Transport{}, gin.Format128, 2, 1<<8, asInUse)
	d := gin.Descriptor{Op: gin.Put | gin.Inline | gin.SignalInc, Bytes: 8, DstWindow: window, SignalValue: 1}
	b.ResetTimer()
	for i := range uint64(b.N) {
		before, threads := busy(b)
		const silence = 10 * time.Second
		time.Sleep(silence)
		after, _ := busy(b)
		start := time.Now()
		r.post(b, 0, 1, d)
		for r.ctx[1].Signal(0) <= i {
			if time.Since(start) > silence {
				b.Fatal("a signal did not come")
			}
		}
		b.ReportMetric(float64(time.Since(start).Microseconds()), "us/first")
		b.ReportMetric(100*(after-before)/silence.Seconds()/float64(threads), "%cpu/thread")
	}
}

// busy is the processor time of all GIN threads of this process, in seconds, and how many there are (proc(5), fields 14 and 15 of stat).
func busy(b *testing.B) (seconds float64, threads int) {
	b.Helper()
	files, _ := filepath.Glob("/proc/self/task/*/stat")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(text), "(gccl-gin)") {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		for _, i := range []int{11, 12} {
			ticks, err := strconv.Atoi(fields[i])
			if err != nil {
				b.Fatal(err)
			}
			seconds += float64(ticks) / 100 // sysconf(_SC_CLK_TCK) is 100 on Linux
		}
		threads++
	}
	if threads == 0 {
		b.Fatal("no GIN thread runs")
	}
	return seconds, threads
}
