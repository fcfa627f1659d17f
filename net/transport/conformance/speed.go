package conformance

/*
#cgo CFLAGS: -std=gnu11 -O2
#include <time.h>
#include "../transport.h"

static uint64_t sp_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Waits for one message, answering nothing. Returns 0, or -1 after a fault or ten seconds.
static int sp_await(gccl_net_ep *e, uint64_t *done) {
  gccl_net_event ev[4];
  uint64_t end = 0;
  for (unsigned long turns = 1;; turns++) {
    int got = 0, n = e->ops->poll(e, ev, 4);
    for (int i = 0; i < n; i++) {
      if (ev[i].kind == GCCL_NET_EV_FAULT) return -1;
      if (ev[i].kind == GCCL_NET_EV_DONE) (*done)++;
      got |= ev[i].kind == GCCL_NET_EV_MSG;
    }
    if (got) return 0;
    if (turns % 65536 == 0) {
      if (!end) end = sp_now() + 10000000000u;
      if (sp_now() > end) return -1;
    }
  }
}

// Round trips of a put of some bytes and a message behind it; the side that begins is timed. Returns nanoseconds, 0 after a failure.
static uint64_t sp_pingpong(gccl_net_ep *e, gccl_net_conn *c, const gccl_net_mr *local, const gccl_net_rmr *remote, uint64_t bytes, int rounds, int begins) {
  gccl_net_wr w[2] = {{.op = GCCL_NET_PUT, .bytes = bytes, .local = local, .remote = remote}, {.op = GCCL_NET_MSGSEND, .bytes = 8}};
  uint64_t start = sp_now(), done = 0;
  for (int i = 0; i < 2 * rounds; i++) {
    if ((i & 1) == begins) {
      if (sp_await(e, &done)) return 0;
      continue;
    }
    for (int k = 0; k < 2;) {
      int n = c->ops->post(c, w + k, 2 - k, NULL);
      if (n < 0) return 0;
      k += n;
      gccl_net_event ev[1];
      if (n == 0 && e->ops->poll(e, ev, 0) < 0) return 0;
    }
  }
  return sp_now() - start;
}

// Posts n puts in batches of 16, one completion a batch, then a message, and waits for the last completion. Returns nanoseconds, 0 after a failure.
static uint64_t sp_stream(gccl_net_ep *e, gccl_net_conn *c, const gccl_net_mr *local, const gccl_net_rmr *remote, uint64_t bytes, long n) {
  enum { BATCH = 16 };
  gccl_net_wr w[BATCH];
  memset(w, 0, sizeof w);
  for (int i = 0; i < BATCH; i++) w[i] = (gccl_net_wr){.op = bytes <= 8 ? GCCL_NET_PUT_INLINE : GCCL_NET_PUT, .bytes = bytes, .local = local, .remote = remote};
  w[BATCH - 1].flags = GCCL_NET_SIGNALED;
  uint64_t start = sp_now();
  long posted = 0, done = 0, batches = n / BATCH;
  int at = 0;
  gccl_net_event ev[16];
  while (done < batches) {
    int idle = 1;
    if (posted < batches) {
      int k = c->ops->post(c, w + at, BATCH - at, NULL);
      if (k < 0) return 0;
      idle = k == 0;
      at = (at + k) % BATCH;
      if (k && !at) posted++;
    }
    if (idle || posted - done > 8) {
      int got = e->ops->poll(e, ev, 16);
      for (int i = 0; i < got; i++) {
        if (ev[i].kind == GCCL_NET_EV_FAULT) return 0;
        done += ev[i].kind == GCCL_NET_EV_DONE;
      }
    }
  }
  return sp_now() - start;
}
*/
import "C"

import (
	"fmt"
	"testing"
	"time"

	"github.com/gccl/gccl/net/transport"
)

func (s *side) pingPong(bytes, rounds int, begins bool) time.Duration {
	first := C.int(0)
	if begins {
		first = 1
	}
	remote, free := s.peer.C()
	defer free()
	return time.Duration(C.sp_pingpong((*C.gccl_net_ep)(s.ep.C()), (*C.gccl_net_conn)(s.conn), (*C.gccl_net_mr)(s.reg.C()), (*C.gccl_net_rmr)(remote), C.uint64_t(bytes), C.int(rounds), first))
}

func (s *side) stream(bytes, n int) time.Duration {
	remote, free := s.peer.C()
	defer free()
	return time.Duration(C.sp_stream((*C.gccl_net_ep)(s.ep.C()), (*C.gccl_net_conn)(s.conn), (*C.gccl_net_mr)(s.reg.C()), (*C.gccl_net_rmr)(remote), C.uint64_t(bytes), C.long(n)))
}

// Speed runs the benchmarks of a transport: round trips of a put and a message, and a flood of puts.
func Speed(b *testing.B, m Maker) {
	for _, bytes := range []int{8, 4096, 65536, 1 << 20} {
		b.Run(fmt.Sprintf("pingpong/%d", bytes), func(b *testing.B) {
			s, p := m.withPeer(b, 1<<20)
			p.ask("pingpong %d %d", bytes, b.N)
			took := s.pingPong(bytes, b.N, true)
			if took == 0 {
				b.Fatal(transport.ConnErr(s.conn))
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/roundtrip")
		})
		b.Run(fmt.Sprintf("put/%d", bytes), func(b *testing.B) {
			s, p := m.withPeer(b, 1<<20)
			p.ask("serve")
			n := (b.N + 15) / 16 * 16
			took := s.stream(bytes, n)
			if took == 0 {
				b.Fatal(transport.ConnErr(s.conn))
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(n), "ns/put")
			b.ReportMetric(float64(bytes)*float64(n)/took.Seconds()/1e9, "GB/s")
		})
	}
}
