/* A barrier in a shared mapping that belongs to the measurement, not to the
 * library under test. Every peer of a benchmark uses this one, so the skew with
 * which ranks enter the timed call is the same for all of them.
 *
 * Each rank owns one line and writes only that. It spins shortly, then yields,
 * so that ranks sharing a core make progress. A deadline turns a dead peer into
 * an error that names the rank waited for. */
#ifndef GCCL_PERF_SHBARRIER_H
#define GCCL_PERF_SHBARRIER_H

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"

#define PERF_BARRIER_LINE 128 /* two lines: the adjacent-line prefetcher must not couple owners */
#define PERF_BARRIER_SPIN 2000
#define PERF_BARRIER_OVERSUBSCRIBED_SPIN 50

struct perf_barrier_line {
  _Atomic uint64_t epoch;
  char pad[PERF_BARRIER_LINE - sizeof(uint64_t)];
};

struct perf_barrier {
  struct perf_barrier_line *lines; /* NULL: no shared barrier */
  int rank, nranks;
  int spin;
  uint64_t epoch;
  uint64_t timeout_ns;
};

static inline size_t perf_barrier_bytes(int nranks) { return (size_t)nranks * sizeof(struct perf_barrier_line); }

static inline void perf_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

/* lines: nranks zeroed lines that all ranks see. */
static inline void perf_barrier_init(struct perf_barrier *b, void *lines, int rank, int nranks, int ncores, double timeout_s) {
  b->lines = lines;
  b->rank = rank;
  b->nranks = nranks;
  b->spin = nranks > ncores ? PERF_BARRIER_OVERSUBSCRIBED_SPIN : PERF_BARRIER_SPIN;
  b->epoch = 0;
  b->timeout_ns = (uint64_t)(timeout_s * 1e9);
}

/* Maps the file of nranks zeroed lines behind fd. NULL on failure, errno set. */
static inline void *perf_barrier_map(int fd, int nranks) {
  void *p = mmap(NULL, perf_barrier_bytes(nranks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return p == MAP_FAILED ? NULL : p;
}

/* Returns -1 when all ranks came, else the rank that did not come in time. */
static inline int perf_barrier_wait(struct perf_barrier *b) {
  uint64_t want = ++b->epoch;
  uint64_t deadline = 0;
  /* release: what this rank wrote before is seen by whoever reads the epoch below */
  atomic_store_explicit(&b->lines[b->rank].epoch, want, memory_order_release);
  for (int i = 1; i < b->nranks; i++) {
    int peer = (b->rank + i) % b->nranks;
    int spun = 0;
    while (atomic_load_explicit(&b->lines[peer].epoch, memory_order_acquire) < want) {
      if (spun < b->spin) {
        spun++;
        perf_pause();
        continue;
      }
      sched_yield();
      uint64_t now = perf_now_ns();
      if (deadline == 0) deadline = now + b->timeout_ns;
      if (now > deadline) return peer;
    }
  }
  return -1;
}

#endif
