#define _GNU_SOURCE
#include "tick.h"

#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

int gccl_tick_counter;

/* Bit 8 of EDX of leaf 8000_0007h: the counter runs at one rate in all states of the processor (AMD64 Architecture Programmer's Manual vol. 3,
 * appendix E; Intel SDM vol. 3, "Invariant TSC"). Linux takes it for its own clock then, after it has seen that processors agree. */
static int counter_works(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1 << 8);
#else
  return 0;
#endif
}

/* Both clocks at one moment: the closest of some tries. */
static void both(uint64_t *tick, uint64_t *ns) {
  *tick = *ns = 0;
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 8; i++) {
    uint64_t a = gccl_tick(), t = gccl_now_ns(), b = gccl_tick();
    if (b - a >= best) continue;
    best = b - a;
    *tick = a + (b - a) / 2;
    *ns = t;
  }
}

void gccl_tick_open(gccl_tick_line *l) {
  struct timespec nap = {0, 2000000};
  uint64_t tick, ns;
  gccl_tick_counter = counter_works();
  both(&l->first_tick, &l->first_ns);
  nanosleep(&nap, NULL);
  both(&tick, &ns);
  l->now = (gccl_tick_piece){
      .tick = l->first_tick, .ns = (double)l->first_ns, .rate = (double)(ns - l->first_ns) / (double)(tick - l->first_tick)};
  l->before = l->now;
}

static double at(const gccl_tick_piece *p, uint64_t tick) { return p->ns + (double)(int64_t)(tick - p->tick) * p->rate; }

/* The new piece begins where the old one ends, and makes up for what it was wrong by within the next second. */
void gccl_tick_bend(gccl_tick_line *l) {
  uint64_t tick, ns;
  both(&tick, &ns);
  if (tick - l->now.tick < 1000 || ns - l->first_ns < 5000000) return;
  double rate = (double)(ns - l->first_ns) / (double)(tick - l->first_tick);
  double here = at(&l->now, tick), wrong = (double)ns - here, bend = wrong / 1e9;
  if (bend > 1e-3) bend = 1e-3;
  if (bend < -1e-3) bend = -1e-3;
  l->before = l->now;
  l->now = (gccl_tick_piece){.tick = tick, .ns = here, .rate = rate * (1 + bend)};
}

uint64_t gccl_tick_ns(const gccl_tick_line *l, uint64_t tick) {
  double ns = at((int64_t)(tick - l->now.tick) >= 0 ? &l->now : &l->before, tick);
  return ns > 0 ? (uint64_t)ns : 0;
}
