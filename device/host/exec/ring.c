#define _GNU_SOURCE
#include "ring.h"

#include "tick.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A guess: threads that issue or run operations at the same time. The records of further ones are lost, and counted. */
enum { MAX_RINGS = 256 };

typedef struct ring {
  struct ring *next;        /* in the tracer's list; constant once there */
  _Atomic(uint64_t) thread; /* kernel's id of the owner; the last one's when there is none */
  _Atomic(int) owned;
  uint64_t seen;                        /* the owner's copy of tail */
  _Alignas(128) _Atomic(uint64_t) head; /* records stored: the owner's; release, acquired in gccl_ring_take */
  _Alignas(128) _Atomic(uint64_t) tail; /* records taken: the writer's; release, acquired in gccl_ring_next */
  _Alignas(128) gccl_event event[GCCL_RING_EVENTS];
} ring;

struct gccl_tracer {
  _Atomic(ring *) rings; /* newest first */
  _Atomic(int) nrings;
  _Atomic(uint64_t) dropped;
  gccl_tick_line line; /* the writer's */
};

static __thread ring *mine __attribute__((tls_model("initial-exec")));
static __thread struct gccl_tracer *mine_of __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A thread ends: another may have its ring, behind what is still in it. */
static void forget(void *p) {
  mine = NULL;
  atomic_store_explicit(&((ring *)p)->owned, 0, memory_order_release);
}

static void make_key(void) { pthread_key_create(&key, forget); }

struct gccl_tracer *gccl_tracer_new(void) {
  struct gccl_tracer *t = calloc(1, sizeof *t);
  if (t) gccl_tick_open(&t->line);
  return t;
}

uint64_t gccl_ring_now(struct gccl_tracer *t, int32_t bend) {
  if (bend) gccl_tick_bend(&t->line);
  return gccl_tick_ns(&t->line, gccl_tick());
}

static void count(struct gccl_tracer *t) { atomic_fetch_add_explicit(&t->dropped, 1, memory_order_relaxed); }

/* The id of a ring's last owner stays with the records that are still in it, so it is taken over only when it is empty. */
static ring *adopt(struct gccl_tracer *t) {
  for (ring *r = atomic_load_explicit(&t->rings, memory_order_acquire); r; r = r->next) {
    int no = 0;
    if (atomic_load_explicit(&r->owned, memory_order_relaxed) ||
        atomic_load_explicit(&r->tail, memory_order_acquire) != atomic_load_explicit(&r->head, memory_order_relaxed))
      continue;
    if (atomic_compare_exchange_strong_explicit(&r->owned, &no, 1, memory_order_acquire, memory_order_relaxed)) return r;
  }
  if (atomic_fetch_add(&t->nrings, 1) >= MAX_RINGS) {
    atomic_fetch_sub(&t->nrings, 1);
    return NULL;
  }
  ring *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (r == MAP_FAILED) return NULL;
  atomic_store(&r->owned, 1);
  atomic_store(&r->thread, (uint64_t)syscall(SYS_gettid));
  r->next = atomic_load(&t->rings);
  while (!atomic_compare_exchange_weak_explicit(&t->rings, &r->next, r, memory_order_release, memory_order_relaxed)) {
  }
  return r;
}

static ring *own(struct gccl_tracer *t) {
  pthread_once(&once, make_key);
  ring *r = adopt(t);
  if (!r) return NULL;
  atomic_store_explicit(&r->thread, (uint64_t)syscall(SYS_gettid), memory_order_relaxed);
  r->seen = atomic_load_explicit(&r->tail, memory_order_acquire);
  pthread_setspecific(key, r);
  mine = r;
  mine_of = t;
  return r;
}

gccl_event *gccl_ring_next(struct gccl_tracer *t, int ends, int counted) {
  ring *r = mine;
  if (__builtin_expect(!r || mine_of != t, 0) && !(r = own(t))) {
    if (counted) count(t);
    return NULL;
  }
  uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed), room = ends ? 1 : GCCL_RING_SPARE;
  if (head + room > r->seen + GCCL_RING_EVENTS) {
    r->seen = atomic_load_explicit(&r->tail, memory_order_acquire);
    if (head + room > r->seen + GCCL_RING_EVENTS) {
      if (counted) count(t);
      return NULL;
    }
  }
  return &r->event[head % GCCL_RING_EVENTS];
}

void gccl_ring_publish(void) {
  ring *r = mine;
  uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed) + 1;
  atomic_store_explicit(&r->head, head, memory_order_release);
  __builtin_prefetch(&r->event[(head + 3) % GCCL_RING_EVENTS], 1); /* the lines ahead were last in the cache of whoever took them */
}

int32_t gccl_ring_take(struct gccl_tracer *t, int32_t index, gccl_event *out, int32_t max, uint64_t *thread) {
  ring *r = atomic_load_explicit(&t->rings, memory_order_acquire);
  /* Counted from the oldest, so that an index stays what it is while rings are added. */
  int32_t n = 0;
  for (ring *k = r; k; k = k->next) n++;
  if (index < 0 || index >= n) return -1;
  for (int32_t k = n - 1; k > index; k--) r = r->next;
  uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed), head = atomic_load_explicit(&r->head, memory_order_acquire);
  *thread = atomic_load_explicit(&r->thread, memory_order_relaxed);
  if (head - tail < (uint64_t)max) max = (int32_t)(head - tail);
  for (int32_t k = 0; k < max; k++) {
    out[k] = r->event[(tail + (uint64_t)k) % GCCL_RING_EVENTS];
    out[k].ns = gccl_tick_ns(&t->line, out[k].ns);
  }
  atomic_store_explicit(&r->tail, tail + (uint64_t)max, memory_order_release);
  return max;
}

uint64_t gccl_ring_dropped(struct gccl_tracer *t) { return atomic_load_explicit(&t->dropped, memory_order_relaxed); }
