#define _GNU_SOURCE
#include "world.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MAX_OPS = 64, MAX_LOOSE = 4096 };

struct gccl_world {
  int n;
  struct ncclComm *comm; /* n */
  gccl_peer *peers;      /* n × n: as each rank sees them */
  char *areas, *arena;
  uint64_t areas_bytes, arena_bytes, used;
  uint64_t *words;
  gccl_op *ops; /* n × MAX_OPS */
  int *nops;
  void *loose[MAX_LOOSE];
  int nloose;
  _Atomic(uint64_t) *made; /* by rank; UINT64_MAX: it is in no flow */
  _Atomic(int) stuck;
};

/* A send buffer that is filled while the operation runs. */
typedef struct {
  gccl_flow base;
  gccl_world *w;
  int rank;
  char *to, *from;
  uint64_t part, bytes, esize, ahead, there;
} gate;

static char *map(uint64_t bytes) {
  char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

gccl_world *gccl_world_new(int n, uint64_t eager, uint64_t stage, uint64_t arena_bytes, const char *simd) {
  gccl_world *w = calloc(1, sizeof *w);
  gccl_geometry g;
  gccl_wait_init();
  gccl_geometry_init(&g, (uint32_t)n, eager, stage, 0);
  size_t m = (size_t)n;
  w->n = n;
  w->comm = calloc(m, sizeof *w->comm);
  w->peers = calloc(m * m, sizeof *w->peers);
  w->words = calloc(m * m * 5, sizeof *w->words);
  w->ops = calloc(m * MAX_OPS, sizeof *w->ops);
  w->nops = calloc(m, sizeof *w->nops);
  w->made = calloc(m, sizeof *w->made);
  w->areas_bytes = g.size * m;
  w->areas = map(w->areas_bytes);
  w->arena_bytes = arena_bytes;
  w->arena = map(arena_bytes);
  const gccl_reduce_isa *isa = simd ? gccl_reduce_named(simd) : gccl_reduce_best();
  for (size_t q = 0; q < m; q++) w->made[q] = UINT64_MAX;
  if (!w->areas || !w->arena || !isa) {
    gccl_world_free(w);
    return NULL;
  }
  for (int q = 0; q < n * n; q++) w->peers[q] = (gccl_peer){.area = w->areas + g.size * (uint64_t)(q % n), .arena = w->arena};
  for (int q = 0; q < n; q++) {
    struct ncclComm *c = &w->comm[q];
    gccl_area *a = (gccl_area *)w->peers[q].area;
    a->magic = GCCL_SHARED_MAGIC;
    a->rank = q;
    a->nranks = n;
    a->asleep_on = -1;
    c->magic = GCCL_COMM_MAGIC;
    atomic_store(&c->state, GCCL_COMM_READY);
    c->rank = q;
    c->nranks = n;
    c->blocking = c->check = 1;
    c->geo = g;
    c->peers = w->peers + m * (size_t)q;
    c->self = w->peers[q];
    c->sleepers = (_Atomic(uint32_t) *)&((gccl_area *)w->peers[0].area)->sleepers;
    c->arena = w->arena;
    c->arena_size = arena_bytes;
    c->yield_ns = 1000000;
    c->simd = isa;
    uint64_t *words = w->words + m * 5 * (size_t)q;
    c->p2p_sent = words;
    c->p2p_received = words + m;
    c->signals_sent = words + 2 * m;
    c->signals_waited = words + 3 * m;
    c->puts_tracked = words + 4 * m;
  }
  return w;
}

void gccl_world_reset(gccl_world *w) {
  for (int i = 0; i < w->nloose; i++) free(w->loose[i]);
  w->nloose = 0;
  w->used = 0;
}

void gccl_world_free(gccl_world *w) {
  if (!w) return;
  gccl_world_reset(w);
  for (int q = 0; w->comm && q < w->n; q++) free(w->comm[q].exec);
  if (w->areas) munmap(w->areas, w->areas_bytes);
  if (w->arena) munmap(w->arena, w->arena_bytes);
  free(w->comm);
  free(w->peers);
  free(w->words);
  free(w->ops);
  free(w->nops);
  free(w->made);
  free(w);
}

void *gccl_world_alloc(gccl_world *w, uint64_t bytes, int reachable) {
  if (reachable) {
    uint64_t at = gccl_align(w->used, 64);
    if (bytes > w->arena_bytes || at > w->arena_bytes - bytes) return NULL;
    w->used = at + bytes;
    return w->arena + at;
  }
  if (w->nloose == MAX_LOOSE) return NULL;
  return w->loose[w->nloose++] = malloc(bytes ? bytes : 1);
}

int gccl_world_add(gccl_world *w, int rank, const gccl_op *op) {
  if (w->nops[rank] == MAX_OPS) return -1;
  gccl_op *o = &w->ops[(size_t)rank * MAX_OPS + (size_t)w->nops[rank]++];
  *o = *op;
  o->comm = &w->comm[rank];
  return 0;
}

static void gate_await(gccl_flow *f, struct ncclComm *c, uint64_t elements) {
  gate *g = (gate *)f;
  uint64_t deadline = gccl_now_ns() + 10000000000u;
  if (elements > g->part) elements = g->part;
  if (elements <= g->there) return;
  for (int q = 0; q < c->nranks; q++)
    while (atomic_load(&g->w->made[q]) < g->part && atomic_load(&g->w->made[q]) + g->ahead < elements && !atomic_load(&g->w->stuck)) {
      if (gccl_now_ns() > deadline) atomic_store(&g->w->stuck, 1);
      sched_yield();
    }
  for (uint64_t at = 0; at * g->esize < g->bytes; at += g->part) {
    uint64_t a = (at + g->there) * g->esize, b = (at + elements) * g->esize;
    if (b > g->bytes) b = g->bytes;
    if (a < b) memcpy(g->to + a, g->from + a, b - a);
  }
  g->there = elements;
}

static void gate_made(gccl_flow *f, struct ncclComm *c, uint64_t elements) { atomic_store(&((gate *)f)->w->made[c->rank], elements); }

int gccl_world_add_flow(gccl_world *w, int rank, const gccl_op *op, uint64_t send_bytes, uint64_t ahead) {
  gate *g = gccl_world_alloc(w, sizeof *g, 0);
  gccl_op o = *op;
  *g = (gate){.base = {gate_await, gate_made},
              .w = w,
              .rank = rank,
              .to = (char *)(uintptr_t)op->send,
              .from = gccl_world_alloc(w, send_bytes, 0),
              .part = gccl_part_of(op),
              .bytes = send_bytes,
              .esize = gccl_dtype_size(op->dtype),
              .ahead = ahead};
  memcpy(g->from, g->to, send_bytes);
  memset(g->to, 0xee, send_bytes);
  atomic_store(&w->made[rank], op->recv ? 0 : UINT64_MAX);
  o.flow = &g->base;
  return gccl_world_add(w, rank, &o);
}

int gccl_world_stuck(const gccl_world *w) { return atomic_load((_Atomic(int) *)&w->stuck); }

typedef struct {
  gccl_batch batch;
  int rc;
} job;

static void *run_rank(void *arg) {
  job *j = arg;
  if (j->batch.nops == 1)
    j->rc = gccl_drive_one(j->batch.ops, j->batch.ticket);
  else
    j->rc = gccl_drive(&j->batch, 1);
  return NULL;
}

int gccl_world_run(gccl_world *w, int threads) {
  int rc = 0;
  size_t n = (size_t)w->n;
  job *jobs = calloc(n, sizeof *jobs);
  gccl_batch *batches = calloc(n, sizeof *batches);
  pthread_t *t = calloc(n, sizeof *t);
  for (int q = 0; q < w->n; q++)
    batches[q] = jobs[q].batch =
        (gccl_batch){.comm = &w->comm[q], .ops = &w->ops[(size_t)q * MAX_OPS], .nops = w->nops[q], .ticket = gccl_order_take(&w->comm[q])};
  if (!threads) {
    rc = gccl_drive(batches, w->n);
  } else {
    for (size_t q = 0; q < n; q++) pthread_create(&t[q], NULL, run_rank, &jobs[q]);
    for (size_t q = 0; q < n; q++) pthread_join(t[q], NULL);
    for (size_t q = 0; q < n; q++)
      if (jobs[q].rc) rc = jobs[q].rc;
  }
  for (size_t q = 0; q < n; q++) w->nops[q] = 0, w->made[q] = UINT64_MAX;
  free(t);
  free(batches);
  free(jobs);
  return rc;
}

struct ncclComm *gccl_world_comm(gccl_world *w, int rank) {
  return &w->comm[rank];
}
const char *gccl_world_cause(gccl_world *w, int rank) { return w->comm[rank].cause; }
