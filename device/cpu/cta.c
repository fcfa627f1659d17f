/* One CTA: its threads are fibers that take turns. A thread runs until it waits (barrier, warp, memory) or returns; then the next one of
 * the ring of runnable threads does. Nothing here is shared with other operating-system threads but the launch. */
#define _GNU_SOURCE
#include "cta.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, STACK = 256 << 10, BARRIERS = 16, WARP = 32 };
enum state { RUNNABLE, AT_BARRIER, IN_WARP, ENDED };

typedef struct thread {
  struct gccl_cpu_thread pub; /* first: gccl_cpu_current points to it */
  gccl_fiber fiber;
  struct cta *cta;
  struct thread *next, *prev; /* in the ring, when runnable */
  enum state state;
  unsigned barrier;
  uint32_t result; /* of the barrier */
  uint32_t mask;   /* of the warp's */
  _Alignas(16) unsigned char slot[16];
  const char *what; /* the wait that it is in, or was in last */
  uint64_t object, want;
  uint32_t turns;
} thread;

typedef struct {
  unsigned arrived, count, given; /* count 0: all */
} barrier;

typedef struct cta {
  launch *l;
  thread *threads, *running;
  unsigned n, live, polls, idle, runnable;
  barrier bar[BARRIERS];
  gccl_fiber home; /* the worker's own stack */
} cta;

__thread struct gccl_cpu_thread *gccl_cpu_current;

uint64_t cpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
uint64_t gccl_cpu_clock(void) { return cpu_now(); }

static thread *self(void) { return (thread *)gccl_cpu_current; }

/* ---- The ring of runnable threads ---- */

static void ring_add(cta *c, thread *t) { /* behind the running one's predecessors: it comes last */
  t->state = RUNNABLE;
  c->runnable++;
  thread *at = c->running;
  if (!at) {
    t->next = t->prev = t;
    c->running = t;
    return;
  }
  t->next = at;
  t->prev = at->prev;
  at->prev->next = t;
  at->prev = t;
}

/* Takes the running thread out; the next one becomes running, or none. */
static void ring_remove(cta *c, thread *t) {
  c->runnable--;
  t->next->prev = t->prev;
  t->prev->next = t->next;
  c->running = t->next == t ? NULL : t->next;
}

static void go(cta *c, thread *from, int last) {
  thread *to = c->running;
  if (to == from) return;
  gccl_cpu_current = to ? &to->pub : NULL;
  if (to) to->pub.pulse = 0;
  gccl_fiber_release(&c->home); /* whether or not it comes back, cta_run comes later */
  gccl_fiber_switch(&from->fiber, to ? &to->fiber : &c->home, last);
  gccl_cpu_current = &from->pub;
}

/* Ends the CTA: its other threads never run again. */
static _Noreturn void leave(cta *c, thread *t) {
  c->running = NULL;
  c->live = 0;
  go(c, t, 1);
  __builtin_unreachable();
}

/* Whether every lane of mask that has not returned waits with this mask; t is taken to wait. */
static int warp_complete(const cta *c, const thread *t, uint32_t mask) {
  unsigned first = t->pub.rank / WARP * WARP;
  for (unsigned i = 0; i < WARP && first + i < c->n; i++) {
    const thread *o = &c->threads[first + i];
    if (!(mask >> i & 1) || o == t || o->state == ENDED) continue;
    if (o->state != IN_WARP || o->mask != mask) return 0;
  }
  return 1;
}
static void warp_let_go(cta *c, const thread *t, uint32_t mask) {
  unsigned first = t->pub.rank / WARP * WARP;
  for (unsigned i = 0; i < WARP && first + i < c->n; i++) {
    thread *o = &c->threads[first + i];
    if ((mask >> i & 1) && o != t && o->state == IN_WARP && o->mask == mask) ring_add(c, o);
  }
}

static int barrier_complete(const cta *c, const barrier *b) { return b->arrived && b->arrived == (b->count ? b->count : c->live); }
static uint32_t barrier_let_go(cta *c, unsigned id, const thread *t) {
  barrier *b = &c->bar[id];
  uint32_t result = b->given | (uint32_t)(b->given == b->arrived) << 31;
  *b = (barrier){0};
  for (unsigned i = 0; i < c->n; i++) {
    thread *o = &c->threads[i];
    if (o == t || o->state != AT_BARRIER || o->barrier != id) continue;
    o->result = result;
    ring_add(c, o);
  }
  return result;
}

/* No thread can run, and some have not returned. */
static _Noreturn void stuck(cta *c, thread *t) {
  const thread *a = NULL, *b = NULL;
  for (unsigned i = 0; i < c->n; i++) {
    const thread *o = &c->threads[i];
    if (o->state == ENDED) continue;
    if (!a)
      a = o;
    else if (!b && (o->state != a->state || o->barrier != a->barrier || o->mask != a->mask))
      b = o;
  }
  char where[2][96];
  const thread *two[2] = {a, b ? b : a};
  for (int i = 0; i < 2; i++) {
    if (two[i]->state == AT_BARRIER)
      snprintf(where[i], sizeof where[i], "thread %u is at barrier %u", two[i]->pub.rank, two[i]->barrier);
    else
      snprintf(where[i], sizeof where[i], "thread %u waits for lanes 0x%x of its warp", two[i]->pub.rank, two[i]->mask);
  }
  launch_fail(c->l, USAGE, 1, "CTA (%u,%u,%u): the threads wait for each other for ever: %s, %s; %u of %u threads have not returned",
              t->pub.block.x, t->pub.block.y, t->pub.block.z, where[0], b ? where[1] : "and no other thread will come", c->live, c->n);
  leave(c, t);
}

/* t cannot run on: the next one does, until somebody puts t back into the ring. */
static void block(cta *c, thread *t) {
  c->polls = c->idle = 0;
  ring_remove(c, t);
  if (!c->running) stuck(c, t);
  go(c, t, 0);
  if (atomic_load_explicit(&c->l->dead, memory_order_relaxed)) leave(c, t);
}

/* ---- What kernels call ---- */

/* The next runnable thread runs. own: the wait is a loop of the kernel's own, which nothing else ends. */
static void yield_from(thread *t, int own) {
  cta *c = t->cta;
  launch *l = c->l;
  t->pub.pulse = 0;
  if (++c->polls >= c->runnable) { /* a whole round of nothing but waiting: the rest of the machine may have something to do */
    c->polls = 0;
    c->idle++;
    if (c->idle < 64)
      sched_yield();
    else
      nanosleep(&(struct timespec){0, c->idle < 256 ? 5000 : 50000}, NULL);
    if (atomic_load_explicit(&l->failed, memory_order_acquire) && cpu_now() - l->failed_ns > 1000000000u)
      atomic_store(&l->dead, 1); /* loops of its own do not give up as waits do */
    else if (own && l->end_ns && cpu_now() > l->end_ns)
      launch_fail(l, TIMED_OUT, 0, "CTA (%u,%u,%u) thread %u: a loop over an atomic did not end before the deadline", t->pub.block.x,
                  t->pub.block.y, t->pub.block.z, t->pub.rank);
  }
  if (atomic_load_explicit(&l->dead, memory_order_relaxed)) leave(c, t);
  c->running = t->next;
  go(c, t, 0);
  if (atomic_load_explicit(&l->dead, memory_order_relaxed)) leave(c, t);
}

void gccl_cpu_yield(void) {
  thread *t = self();
  if (t)
    yield_from(t, 1);
  else
    sched_yield();
}

int gccl_cpu_wait(const uint32_t *abort, const char *what, uint64_t object, int peer, uint64_t want, uint64_t seen) {
  thread *t = self();
  int aborted = abort && __atomic_load_n(abort, __ATOMIC_ACQUIRE) != 0;
  if (!t) {
    sched_yield();
    return aborted;
  }
  cta *c = t->cta;
  launch *l = c->l;
  if (t->what != what || t->object != object || t->want != want) { /* a new wait: there was progress */
    c->polls = c->idle = 0;
    t->what = what;
    t->object = object;
    t->want = want;
  }
  int late = l->end_ns && (++t->turns & 15) == 0 && cpu_now() > l->end_ns;
  if (aborted || late) {
    char of[32] = "";
    if (peer >= 0) snprintf(of, sizeof of, " of rank %d", peer);
    launch_fail(l, aborted ? REMOTE : TIMED_OUT, 0, "CTA (%u,%u,%u) thread %u: %s %llu%s: waited for %llu, has seen %llu%s", t->pub.block.x,
                t->pub.block.y, t->pub.block.z, t->pub.rank, what, (unsigned long long)object, of, (unsigned long long)want,
                (unsigned long long)seen, aborted ? "; the communicator has failed" : " when the deadline of the launch was over");
  }
  if (atomic_load_explicit(&l->failed, memory_order_acquire)) return 1;
  yield_from(t, 0);
  return atomic_load_explicit(&l->failed, memory_order_acquire) != 0;
}

uint32_t gccl_cpu_barrier(unsigned id, unsigned count, int value) {
  thread *t = self();
  cta *c = t->cta;
  if (id >= BARRIERS) gccl_cpu_trap("a barrier's number is above 15");
  barrier *b = &c->bar[id];
  gccl_fiber_release(b);
  b->arrived++;
  b->given += value != 0;
  b->count = count;
  uint32_t result;
  if (barrier_complete(c, b)) {
    result = barrier_let_go(c, id, t);
  } else {
    t->state = AT_BARRIER;
    t->barrier = id;
    block(c, t);
    result = t->result;
  }
  gccl_fiber_acquire(b);
  return result;
}

void gccl_cpu_warp_sync(uint32_t mask) {
  thread *t = self();
  cta *c = t->cta;
  void *object = c->threads[t->pub.rank / WARP * WARP].slot; /* one for a warp */
  if (!(mask >> (t->pub.rank % WARP) & 1)) gccl_cpu_trap("a thread is not in the mask of the warp function that it calls");
  gccl_fiber_release(object);
  if (warp_complete(c, t, mask)) {
    warp_let_go(c, t, mask);
  } else {
    t->state = IN_WARP;
    t->mask = mask;
    block(c, t);
  }
  gccl_fiber_acquire(object);
}

void gccl_cpu_exchange(uint32_t mask, const void *mine, void *theirs, unsigned size, unsigned source) {
  thread *t = self();
  const cta *c = t->cta;
  unsigned from = t->pub.rank / WARP * WARP + source % WARP;
  memcpy(t->slot, mine, size);
  gccl_cpu_warp_sync(mask);
  int there = (mask >> (source % WARP) & 1) && from < c->n && c->threads[from].state != ENDED;
  memcpy(theirs, there ? c->threads[from].slot : t->slot, size);
  gccl_cpu_warp_sync(mask); /* before the slots are used again */
}

uint32_t gccl_cpu_ballot(uint32_t mask, int value) {
  thread *t = self();
  const cta *c = t->cta;
  unsigned first = t->pub.rank / WARP * WARP;
  t->slot[0] = value != 0;
  gccl_cpu_warp_sync(mask);
  uint32_t votes = 0;
  for (unsigned i = 0; i < WARP && first + i < c->n; i++)
    if ((mask >> i & 1) && c->threads[first + i].state != ENDED) votes |= (uint32_t)c->threads[first + i].slot[0] << i;
  gccl_cpu_warp_sync(mask);
  return votes;
}

void gccl_cpu_trap(const char *text) {
  thread *t = self();
  if (!t) {
    fprintf(stderr, "gccl: outside of a kernel: %s\n", text);
    abort();
  }
  launch_fail(t->cta->l, USAGE, 1, "CTA (%u,%u,%u) thread %u: %s", t->pub.block.x, t->pub.block.y, t->pub.block.z, t->pub.rank, text);
  leave(t->cta, t);
}

/* ---- A CTA's life ---- */

/* A thread has returned: barriers and warps may be complete without it. */
static void ended(cta *c, thread *t) {
  c->live--;
  t->state = ENDED;
  for (unsigned id = 0; id < BARRIERS; id++)
    if (!c->bar[id].count && barrier_complete(c, &c->bar[id])) barrier_let_go(c, id, t);
  unsigned first = t->pub.rank / WARP * WARP;
  for (unsigned i = 0; i < WARP && first + i < c->n; i++) {
    thread *o = &c->threads[first + i];
    if (o->state != IN_WARP || !warp_complete(c, o, o->mask)) continue;
    warp_let_go(c, o, o->mask);
    ring_add(c, o);
  }
}

static void thread_main(void *arg) {
  thread *t = arg;
  cta *c = t->cta;
  gccl_fiber_begin(&t->fiber);
  gccl_fiber_acquire(c);
  c->l->in.body(c->l->in.arg);
  c->polls = c->idle = 0;
  ended(c, t);
  ring_remove(c, t);
  if (!c->running && c->live) stuck(c, t);
  go(c, t, 1);
  __builtin_unreachable();
}

int cta_memory_make(cta_memory *m, const launch *l) {
  *m = (cta_memory){0};
  size_t stack = l->in.stack_bytes ? l->in.stack_bytes : STACK;
  m->stack = (stack + PAGE - 1) / PAGE * PAGE + PAGE;
  m->shared = (l->in.shared_bytes + PAGE - 1) / PAGE * PAGE;
  m->bytes = m->stack * l->nthreads + m->shared;
  m->thread = calloc(l->nthreads, sizeof(thread));
  m->base = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  int ok = m->thread && m->base != MAP_FAILED;
  for (unsigned i = 0; ok && i < l->nthreads; i++) ok = mprotect(m->base + m->stack * i, PAGE, PROT_NONE) == 0;
  if (!ok) cta_memory_free(m);
  return ok;
}

void cta_memory_free(cta_memory *m) {
  free(m->thread);
  if (m->base && m->base != MAP_FAILED) munmap(m->base, m->bytes);
  *m = (cta_memory){0};
}

void cta_run(launch *l, unsigned index, cta_memory *m) {
  struct gccl_cpu_vec g = l->in.grid, b = l->in.block;
  cta c = {.l = l, .threads = m->thread, .n = l->nthreads, .live = l->nthreads};
  gccl_fiber_adopt(&c.home);
  for (unsigned i = 0; i < c.n; i++) {
    thread *t = &c.threads[i];
    *t = (thread){.cta = &c};
    t->pub.thread = (struct gccl_cpu_vec){i % b.x, i / b.x % b.y, i / b.x / b.y};
    t->pub.block = (struct gccl_cpu_vec){index % g.x, index / g.x % g.y, index / g.x / g.y};
    t->pub.block_size = b;
    t->pub.grid_size = g;
    t->pub.rank = i;
    t->pub.shared = m->base + m->stack * c.n;
    gccl_fiber_make(&t->fiber, m->base + m->stack * i + PAGE, m->stack - PAGE, thread_main, t);
    ring_add(&c, t);
  }
  gccl_fiber_release(&c);
  gccl_cpu_current = &c.running->pub;
  gccl_fiber_switch(&c.home, &c.running->fiber, 0);
  gccl_cpu_current = NULL;
  gccl_fiber_acquire(&c.home);
  for (unsigned i = 0; i < c.n; i++) gccl_fiber_drop(&c.threads[i].fiber);
}
