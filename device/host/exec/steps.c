#include "steps.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "profile.h"

/* Handles are index and generation, together of 24 bits, so that they fit beside a put's number into what the network keeps for it. */
enum { INDEX_BITS = 14, GENERATION_BITS = 10, BLOCK = 256, BLOCKS = (1 << INDEX_BITS) / BLOCK };

/* A step, or an event of a net plugin below one. Its memory is never given back, whoever still has its handle. */
typedef struct entry entry;
struct entry {
  uint32_t handle; /* 0: free */
  uint32_t index, generation;
  entry *next;       /* of the free ones, of the children of a step */
  entry *parent;     /* NULL: a step */
  gccl_proxy *proxy; /* of a step, as all below */
  entry *children;
  int refs; /* the executor, the put, requests */
  const char *at;
  uint64_t bytes;
  entry *waits; /* the next step that waits for bytes */
  void *event[GCCL_PROFILERS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below, and the steps of proxies */
static entry *block[BLOCKS];
static int nblocks;
static entry *first_free, *last_free; /* the longest free one is taken first */
static entry *waiting;
static _Atomic(int32_t) waits;

static entry *take(void) {
  if (!first_free && nblocks < BLOCKS && (block[nblocks] = calloc(BLOCK, sizeof(entry)))) {
    entry *b = block[nblocks];
    for (int i = 0; i < BLOCK; i++) {
      b[i].index = (uint32_t)(nblocks * BLOCK + i);
      b[i].next = i + 1 < BLOCK ? &b[i + 1] : NULL;
    }
    nblocks++;
    first_free = b;
    last_free = &b[BLOCK - 1];
  }
  entry *e = first_free;
  if (!e) return NULL;
  first_free = e->next;
  e->generation = e->generation % ((1 << GENERATION_BITS) - 1) + 1;
  e->handle = e->generation << INDEX_BITS | e->index;
  e->next = e->parent = e->children = e->waits = NULL;
  return e;
}

static void give(entry *e) {
  e->handle = 0;
  e->next = NULL;
  if (first_free)
    last_free->next = e;
  else
    first_free = e;
  last_free = e;
}

static entry *find(uint64_t handle) {
  uint32_t i = handle & ((1 << INDEX_BITS) - 1);
  entry *e = handle && (int)(i / BLOCK) < nblocks ? &block[i / BLOCK][i % BLOCK] : NULL;
  return e && e->handle == handle ? e : NULL;
}

static void close_proxy(gccl_proxy *p) {
  gccl_profile_stop(p->probe, p->op);
  free(p);
}

static void close_child(entry *e) {
  entry **at = &e->parent->children;
  while (*at != e) at = &(*at)->next;
  *at = e->next;
  gccl_profile_stop(e->parent->proxy->probe, e->event);
  give(e);
}

static void forget_wait(entry *s) {
  entry **at = &waiting;
  while (*at && *at != s) at = &(*at)->waits;
  if (!*at) return;
  *at = s->waits;
  atomic_fetch_sub_explicit(&waits, 1, memory_order_relaxed);
}

static void close_step(entry *s) {
  gccl_proxy *p = s->proxy;
  while (s->children) close_child(s->children);
  forget_wait(s);
  gccl_profile_stop(p->probe, s->event);
  give(s);
  if (--p->open == 0 && p->ended) close_proxy(p);
}

/* --- the executor --- */

gccl_proxy *gccl_proxy_open(gccl_probe *probe, void *const *parents, int32_t peer, int send, int nsteps, uint64_t chunk) {
  gccl_proxy *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->probe = probe;
  p->peer = peer;
  p->send = (uint8_t)send;
  gccl_profile_event d = {.type = GCCL_PROFILE_PROXY_OP};
  d.u.proxy_op.pid = (int32_t)getpid();
  d.u.proxy_op.peer = peer;
  d.u.proxy_op.nsteps = nsteps;
  d.u.proxy_op.chunk_size = (int)(chunk > INT32_MAX ? INT32_MAX : chunk);
  d.u.proxy_op.is_send = send;
  gccl_profile_start(probe, &d, parents, p->op);
  gccl_profile_state(probe, p->op, GCCL_PROFILE_OP_IN_PROGRESS, NULL);
  return p;
}

void gccl_proxy_end(gccl_proxy *p) {
  pthread_mutex_lock(&lock);
  p->ended = 1;
  if (!p->open) close_proxy(p);
  pthread_mutex_unlock(&lock);
}

void gccl_step_begin(gccl_proxy *p, const void *at, uint64_t bytes) {
  pthread_mutex_lock(&lock);
  entry *s = take();
  if (s) {
    s->proxy = p;
    s->refs = 1;
    s->at = at;
    s->bytes = bytes;
    p->open++;
    p->step = s->handle;
    gccl_profile_event d = {.type = GCCL_PROFILE_PROXY_STEP, .u.proxy_step.step = p->steps++};
    gccl_profile_start(p->probe, &d, p->op, s->event);
    gccl_profile_state(p->probe, s->event, p->send ? GCCL_PROFILE_STEP_SEND_GPU_WAIT : GCCL_PROFILE_STEP_RECV_WAIT, NULL);
    if (p->send) {
      p->probe->sending = s->handle;
    } else {
      s->waits = waiting;
      waiting = s;
      atomic_fetch_add_explicit(&waits, 1, memory_order_relaxed);
    }
  }
  pthread_mutex_unlock(&lock);
}

static void drop(uint32_t step) {
  pthread_mutex_lock(&lock);
  entry *s = find(step);
  if (s && --s->refs == 0) close_step(s);
  pthread_mutex_unlock(&lock);
}

static void hold(uint32_t step) {
  pthread_mutex_lock(&lock);
  entry *s = find(step);
  if (s) s->refs++;
  pthread_mutex_unlock(&lock);
}

void gccl_step_end(gccl_proxy *p) {
  pthread_mutex_lock(&lock);
  entry *s = find(p->step);
  p->step = p->probe->sending = 0;
  if (s) {
    gccl_profile_args size = {.trans_size = s->bytes};
    gccl_profile_state(p->probe, s->event, p->send ? GCCL_PROFILE_STEP_SEND_WAIT : GCCL_PROFILE_STEP_RECV_GPU_WAIT, &size);
    if (--s->refs == 0) close_step(s);
  }
  pthread_mutex_unlock(&lock);
}

uint32_t gccl_step_put(gccl_probe *p) {
  uint32_t step = p->sending;
  p->sending = 0;
  if (step) hold(step);
  return step;
}

void gccl_steps_settle(gccl_probe *p) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < nblocks * BLOCK; i++) {
    entry *e = &block[i / BLOCK][i % BLOCK];
    if (e->handle && !e->parent && e->proxy->probe == p) close_step(e);
  }
  pthread_mutex_unlock(&lock);
}

/* --- net plugins --- */

static uint32_t step_waiting(const void *at) {
  uint32_t step = 0;
  pthread_mutex_lock(&lock);
  for (entry *s = waiting; s && !step; s = s->waits)
    if ((const char *)at >= s->at && (uint64_t)((const char *)at - s->at) < s->bytes) step = s->handle;
  pthread_mutex_unlock(&lock);
  return step;
}

/* NULL if no profiler follows it. */
static entry *open_child(entry *s, int64_t plugin, void *data) {
  const gccl_probe *p = s->proxy->probe;
  gccl_profile_event d = {.type = GCCL_PROFILE_NET_PLUGIN, .u.net_plugin = {.id = plugin, .data = data}};
  entry *e = take();
  if (!e) return NULL;
  e->parent = s;
  e->next = s->children;
  s->children = e;
  int followed = 0;
  d.rank = p->rank;
  for (int i = 0; i < p->nprofilers; i++) { /* by those who follow the step */
    const gccl_profiler *f = &p->profiler[i];
    e->event[i] = NULL;
    if (!s->event[i] || !gccl_profile_wanted(f, GCCL_PROFILE_NET_PLUGIN)) continue;
    d.parent = s->event[i];
    f->start(f, &e->event[i], &d);
    followed |= e->event[i] != NULL;
  }
  if (followed) return e;
  close_child(e);
  return NULL;
}

/* Values of type: NCCL 2.30.7, src/include/plugin/nccl_net.h, ncclProfilerNetEvent*. */
static const char *event_of_plugin(void **event, int type, void *step, int64_t plugin, void *data) {
  enum { START, STOP, UPDATE, UPDATE_AND_STOP };
  if (!event) return "without a place for the event";
  if (type == START) *event = NULL;
  if (type < START || type > UPDATE_AND_STOP) return "with an unknown type";
  if (!(type == START ? step : *event)) return NULL; /* nobody follows it */
  const char *wrong = NULL;
  pthread_mutex_lock(&lock);
  entry *e = find((uint64_t)(uintptr_t)(type == START ? step : *event));
  if (!e || !e->parent != (type == START)) {
    wrong = type == START ? "for a step that is over, or never was" : "for an event that is over, or never was";
  } else if (type == START) {
    e = open_child(e, plugin, data);
    *event = e ? (void *)(uintptr_t)e->handle : NULL;
  } else {
    gccl_profile_args args = {.data = data};
    if (type != STOP) gccl_profile_state(e->parent->proxy->probe, e->event, GCCL_PROFILE_NET_UPDATE, &args);
    if (type != UPDATE) close_child(e);
  }
  pthread_mutex_unlock(&lock);
  return wrong;
}

const gccl_step_api gccl_steps = {event_of_plugin, hold, drop, step_waiting, &waits};
