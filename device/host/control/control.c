#define _GNU_SOURCE
#include "control.h"

#include "../../layout/names.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GCCL_WINDOW_MAGIC 0x57434347u /* "GCCW" */

ncclComm_s *gccl_ctl_new(void) {
  ncclComm_s *c = calloc(1, sizeof *c);
  if (c) {
    c->magic = GCCL_COMM_MAGIC;
    c->version = GCCL_COMM_VERSION;
    atomic_store(&c->state, GCCL_COMM_INIT);
  }
  return c;
}

/* One block for the counters that the serving caller owns. */
enum { COUNTERS = 5 };

int gccl_ctl_arrays(ncclComm_s *c, int32_t nranks) {
  size_t n = (size_t)nranks;
  uint64_t *w = calloc(n * COUNTERS, sizeof *w);
  gccl_peer *peers = calloc(n, sizeof *peers);
  if (!w || !peers) {
    free(w);
    free(peers);
    return 0;
  }
  c->peers = peers;
  c->p2p_sent = w;
  c->p2p_received = w + n;
  c->signals_sent = w + 2 * n;
  c->signals_waited = w + 3 * n;
  c->puts_tracked = w + 4 * n;
  return 1;
}

void gccl_ctl_identity_set(ncclComm_s *c, const gccl_ctl_identity *id) {
  c->core = id->core;
  c->rank = id->rank;
  c->nranks = id->nranks;
  c->lsa_size = id->lsa_size;
  c->device_api = id->device_api;
  c->copies = id->copies;
  c->spin = id->spin;
  c->blocking = id->blocking;
  c->crowded = id->crowded;
  c->check = id->check;
  c->no_onesided = id->no_onesided;
  c->one_process = id->one_process;
  c->spin_ns = id->spin_ns;
  c->yield_ns = id->yield_ns;
  c->late_ns = id->late_ns;
}

void gccl_ctl_geometry(ncclComm_s *c, uint64_t eager, uint64_t stage, uint64_t device) {
  gccl_geometry_init(&c->geo, (uint32_t)c->nranks, eager, stage, device);
}

uint64_t gccl_ctl_area_size(uint32_t nranks, uint64_t eager, uint64_t stage, uint64_t device) {
  gccl_geometry g;
  gccl_geometry_init(&g, nranks, eager, stage, device);
  return g.size;
}

void gccl_ctl_peer(ncclComm_s *c, int32_t rank, uintptr_t area, uintptr_t arena, int same) {
  gccl_peer *p = &c->peers[rank];
  p->area = (char *)area;
  p->arena = (char *)arena;
  p->same_process = (uint8_t)(same != 0);
  p->remote = 0;
  if (rank == c->rank) c->self = *p;
}

void gccl_ctl_remote(ncclComm_s *c, int32_t rank, uintptr_t mirror) { c->peers[rank] = (gccl_peer){.area = (char *)mirror, .remote = 1}; }

void gccl_ctl_sleepers(ncclComm_s *c, int32_t rank) { c->sleepers = (_Atomic(uint32_t) *)&((gccl_area *)c->peers[rank].area)->sleepers; }

void gccl_ctl_gin_type(ncclComm_s *c, int32_t type) { c->gin_type = type; }

void gccl_ctl_port(ncclComm_s *c, gccl_port *p) { c->port = p; }

void gccl_ctl_self(ncclComm_s *c, uintptr_t area, uintptr_t arena, uint64_t arena_size) {
  c->self.area = (char *)area;
  c->self.arena = (char *)arena;
  c->self.same_process = 1;
  c->arena = (char *)arena;
  c->arena_size = arena_size;
}

void gccl_ctl_area_init(ncclComm_s *c) {
  gccl_area *a = (gccl_area *)c->self.area;
  a->rank = c->rank;
  a->nranks = c->nranks;
  a->asleep_on = -1;
  a->version = GCCL_SHARED_VERSION;
  __atomic_store_n(&a->magic, GCCL_SHARED_MAGIC, __ATOMIC_RELEASE);
}

int gccl_ctl_area_check(ncclComm_s *c, int32_t rank, uint32_t *magic, uint32_t *version, int32_t *has) {
  const gccl_area *a = (const gccl_area *)c->peers[rank].area;
  *magic = __atomic_load_n(&a->magic, __ATOMIC_ACQUIRE);
  *version = a->version;
  *has = a->rank;
  return *magic == GCCL_SHARED_MAGIC && *version == GCCL_SHARED_VERSION && *has == rank && a->nranks == c->nranks;
}

/* The proof uses the one-sided signal words: there is one per pair, and nobody else writes them during init. */
static uint64_t *proof_word(ncclComm_s *c, int32_t owner, int32_t writer) {
  return (uint64_t *)(c->peers[owner].area + c->geo.signals + (uint64_t)writer * GCCL_LINE);
}

void gccl_ctl_proof_write(ncclComm_s *c, int32_t to, uint64_t pattern) {
  __atomic_store_n(proof_word(c, to, c->rank), pattern, __ATOMIC_RELEASE);
}

uint64_t gccl_ctl_proof_take(ncclComm_s *c, int32_t from) {
  uint64_t *w = proof_word(c, c->rank, from);
  uint64_t got = __atomic_load_n(w, __ATOMIC_ACQUIRE);
  __atomic_store_n(w, 0, __ATOMIC_RELAXED);
  return got;
}

/* Beside the signal word of a pair, in the same line and by the same writer: "I read your area no more". */
void gccl_ctl_left_mark(ncclComm_s *c, int32_t to) { __atomic_store_n(proof_word(c, to, c->rank) + 1, 1, __ATOMIC_RELEASE); }

int gccl_ctl_left_read(uintptr_t area, uint64_t signals, int32_t from) {
  const uint64_t *w = (const uint64_t *)(area + signals + (uint64_t)from * GCCL_LINE);
  return __atomic_load_n(w + 1, __ATOMIC_ACQUIRE) != 0;
}

void gccl_ctl_release(ncclComm_s *c) {
  gccl_table *t = atomic_exchange(&c->table, NULL);
  for (uint32_t i = 0; t && i <= t->mask; i++) free((void *)atomic_load(&t->entry[i].plan));
  while (t) { /* older ones share the plans */
    gccl_table *older = t->older;
    free(t);
    t = older;
  }
  free(c->p2p_sent); /* start of the block of counters */
  free(c->peers);
  c->p2p_sent = c->p2p_received = c->signals_sent = c->signals_waited = c->puts_tracked = NULL;
  c->peers = NULL;
  c->port = NULL;
  c->sleepers = NULL;
  memset(&c->self, 0, sizeof c->self);
  c->arena = NULL;
  c->arena_size = 0;
}

uint32_t gccl_ctl_state(const ncclComm_s *c) { return atomic_load_explicit(&c->state, memory_order_acquire); }
void gccl_ctl_state_set(ncclComm_s *c, uint32_t s) { atomic_store_explicit(&c->state, s, memory_order_release); }
int gccl_ctl_state_swap(ncclComm_s *c, uint32_t from, uint32_t to) { return atomic_compare_exchange_strong(&c->state, &from, to); }

/* Same protocol as gccl_comm_latch (device/host/exec/fault.c), which is in the other library: -1 claims the latch. */
int gccl_ctl_latch(ncclComm_s *c, int32_t rc, const char *text, int32_t len) {
  int32_t none = 0;
  int first = atomic_compare_exchange_strong(&c->error, &none, -1);
  if (first) {
    size_t n = (size_t)len < sizeof c->cause - 1 ? (size_t)len : sizeof c->cause - 1;
    memcpy(c->cause, text, n);
    c->cause[n] = 0;
    atomic_store_explicit(&c->async, rc, memory_order_relaxed);
    atomic_store_explicit(&c->error, rc, memory_order_release);
  }
  gccl_abort_raise(c);
  gccl_ctl_wake(c);
  if (c->release) c->release(c);
  return first;
}

int32_t gccl_ctl_error(const ncclComm_s *c) { return atomic_load_explicit(&c->error, memory_order_acquire); }
uint32_t gccl_ctl_abort(const ncclComm_s *c) { return atomic_load(&c->abort); }
void gccl_ctl_abort_set(ncclComm_s *c, uint32_t v) {
  if (v)
    gccl_abort_raise(c);
  else
    atomic_store(&c->abort, 0);
}
int32_t gccl_ctl_async(const ncclComm_s *c) { return atomic_load_explicit(&c->async, memory_order_acquire); }
void gccl_ctl_async_set(ncclComm_s *c, int32_t v) { atomic_store_explicit(&c->async, v, memory_order_release); }

void gccl_ctl_unlatch(ncclComm_s *c) {
  atomic_store(&c->error, 0);
  atomic_store(&c->async, 0);
  c->cause[0] = 0;
}

/* Whether the last collective of this rank was given up half-way. Preconditions: nothing is in flight. */
int gccl_ctl_unfinished(const ncclComm_s *c) {
  const gccl_area *a = (const gccl_area *)c->self.area;
  return a && c->seq && __atomic_load_n(&a->progress, __ATOMIC_ACQUIRE) < (c->seq + 1) << GCCL_STEP_BITS;
}

/* Whether operations are in flight, and the number of the collective reached. From any thread. */
int gccl_ctl_in_flight(const ncclComm_s *c, uint64_t *seq) {
  *seq = __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE);
  return atomic_load(&c->serving) < atomic_load(&c->next);
}

/* Whether a rank has finished collective seq. Preconditions: its area is mapped. */
int gccl_ctl_took_part(const ncclComm_s *c, int32_t rank, uint64_t seq) {
  const gccl_area *a = (const gccl_area *)c->peers[rank].area;
  return __atomic_load_n(&a->progress, __ATOMIC_ACQUIRE) >= (seq + 1) << GCCL_STEP_BITS;
}

/* The last collective that a rank has finished; 0: none. Preconditions: its area is mapped. */
uint64_t gccl_ctl_finished(const ncclComm_s *c, int32_t rank) {
  const gccl_area *a = (const gccl_area *)c->peers[rank].area;
  uint64_t p = __atomic_load_n(&a->progress, __ATOMIC_ACQUIRE) >> GCCL_STEP_BITS;
  return p ? p - 1 : 0;
}

/* Whether a rank has published its record of collective seq; call says what it is. Preconditions: its area is mapped. */
int gccl_ctl_joined(const ncclComm_s *c, int32_t rank, uint64_t seq, char *call, int32_t max) {
  uint64_t slot = seq & (GCCL_RECORDS - 1);
  const gccl_record *r = (const gccl_record *)(c->peers[rank].area + c->geo.records) + slot;
  if (__atomic_load_n(&r->seq, __ATOMIC_ACQUIRE) != seq) return 0;
  gccl_call x = ((const gccl_call *)(c->peers[rank].area + c->geo.calls))[slot];
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (__atomic_load_n(&r->seq, __ATOMIC_RELAXED) != seq) return 0; /* the slot has been used again meanwhile */
  if (x.coll >= GCCL_NUM_COLLS || x.dtype >= sizeof gccl_type_names / sizeof gccl_type_names[0])
    snprintf(call, (size_t)max, "an unknown call");
  else
    snprintf(call, (size_t)max, "%s of %llu %s", gccl_coll_names[x.coll], (unsigned long long)x.count, gccl_type_names[x.dtype]);
  return 1;
}

void gccl_ctl_counted(const ncclComm_s *c, uint64_t *calls, uint64_t *bytes) {
  *calls = atomic_load_explicit(&c->count.calls, memory_order_relaxed);
  *bytes = atomic_load_explicit(&c->count.bytes, memory_order_relaxed);
}

/* Wakes this rank's own sleepers; they look at abort next. */
void gccl_ctl_wake(ncclComm_s *c) {
  gccl_area *a = (gccl_area *)c->self.area;
  if (!a) return;
  __atomic_store_n(&a->asleep, 0, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &a->asleep, FUTEX_WAKE, 0x7fffffff, NULL, NULL, 0);
}

const gccl_lowered *gccl_ctl_plan_find(const ncclComm_s *c, uint32_t coll, uint32_t cls, uint32_t root) {
  return gccl_table_find(c, gccl_table_key(coll, cls, root));
}

/* Entries of the first table; the next ones are twice as large each. */
enum { FIRST_TABLE = 64 };

/* The plan is stored before its key: a reader that sees the key sees the plan. */
static void table_put(gccl_table *t, uint64_t key, const gccl_lowered *plan) {
  uint32_t at = gccl_table_start(key);
  while (atomic_load(&t->entry[at & t->mask].key)) at++;
  gccl_table_entry *e = &t->entry[at & t->mask];
  atomic_store_explicit(&e->plan, plan, memory_order_release);
  atomic_store_explicit(&e->key, key, memory_order_release);
  t->used++;
}

/* Publishes a table with room for one more entry; NULL without memory. */
static gccl_table *table_with_room(ncclComm_s *c, uint64_t *kept) {
  gccl_table *old = atomic_load(&c->table);
  if (old && old->used < (old->mask + 1) / 2) return old;
  uint32_t size = old ? 2 * (old->mask + 1) : FIRST_TABLE;
  size_t bytes = sizeof(gccl_table) + size * sizeof(gccl_table_entry);
  gccl_table *t = size ? calloc(1, bytes) : NULL;
  if (!t) return NULL;
  t->mask = size - 1;
  t->older = old;
  for (uint32_t i = 0; old && i <= old->mask; i++) {
    uint64_t key = atomic_load(&old->entry[i].key);
    if (key) table_put(t, key, atomic_load(&old->entry[i].plan));
  }
  atomic_store_explicit(&c->table, t, memory_order_release);
  *kept += bytes;
  return t;
}

/* Preconditions: the caller holds the communicator's plan lock; the key is not in the table. Returns whether there was
 * memory. */
int gccl_ctl_plan_add(ncclComm_s *c, uint32_t coll, uint32_t cls, uint32_t root, const void *block, uint64_t size, uint64_t *kept) {
  void *copy = malloc(size);
  gccl_table *t = copy ? table_with_room(c, kept) : NULL;
  if (!t) {
    free(copy);
    return 0;
  }
  memcpy(copy, block, size);
  table_put(t, gccl_table_key(coll, cls, root), copy);
  *kept += size;
  return 1;
}

void gccl_ctl_limit(ncclComm_s *c, uint32_t coll, uint32_t cls, uint64_t limit) {
  if (coll < GCCL_NUM_COLLS && cls < GCCL_CLASSES) c->limit[coll][cls] = limit;
}

gccl_window *gccl_ctl_window_new(ncclComm_s *c, uint32_t number, uintptr_t user, uint64_t size, uint64_t offset, int32_t flags) {
  gccl_window *w = calloc(1, sizeof *w + 2 * (size_t)c->nranks * sizeof(uint64_t));
  if (!w) return NULL;
  w->magic = GCCL_WINDOW_MAGIC;
  w->handle = w;
  w->comm = c;
  w->number = number;
  w->user = (char *)user;
  w->size = size;
  w->arena_offset = offset;
  w->flags = flags;
  w->peer_offset = (uint64_t *)(w + 1);
  w->peer_size = w->peer_offset + c->nranks;
  return w;
}

void gccl_ctl_window_peer(gccl_window *w, int32_t rank, uint64_t offset, uint64_t size) {
  w->peer_offset[rank] = offset;
  w->peer_size[rank] = size;
}

void gccl_ctl_window_flat(gccl_window *w, uintptr_t flat, uint64_t stride) {
  const ncclComm_s *c = w->comm;
  int32_t place = c->rank % c->lsa_size;
  w->flat = (char *)flat;
  w->stride = stride;
  w->dev = (struct gcclWindow_device){
      .nccl = {.winHost = w,
               .lsaFlatBase = w->flat + stride * (uint64_t)(c->rank - place),
               .lsaRank = place,
               .worldRank = c->rank,
               .stride4G = (uint32_t)(stride >> 32),
               .numSegments = 1},
      .magic = GCCL_DEVICE_WINDOW_MAGIC,
      .size = w->size,
      .owner = c,
      .lsaSize = c->lsa_size,
      .number = (int32_t)w->number,
  };
}

/* The table of a GPU's kernels is in its memory, and its device's business. */
static void table_set(ncclComm_s *c, int slot, const gccl_window *w) {
  struct ncclDevCommWindowTable_Entry *e = &c->window_table[slot / 32].entries[slot % 32];
  __atomic_store_n(&e->base, 0, __ATOMIC_RELEASE);
  int shown = w && w->flat && !w->resource && !c->cuda;
  e->size = shown ? w->size : 0;
  e->window = shown ? (struct ncclWindow_vidmem *)w->handle : NULL;
  c->window_table[0].next = &c->window_table[1];
  if (shown) __atomic_store_n(&e->base, (uintptr_t)w->user, __ATOMIC_RELEASE); /* acquired in ncclFindWindow */
}

void gccl_ctl_window_keys(gccl_window *w, void *keys) {
  for (int i = 0; i < NCCL_GIN_MAX_CONNECTIONS; i++) /* in descriptors: one for each connection, before 2.29.5 for each context */
    w->dev.nccl.ginWins[i] = (ncclGinWindow_t)(uintptr_t)w->number;
  w->dev.keys = keys;
}

void gccl_ctl_window_resource(gccl_window *w) { w->resource = 1; }

int gccl_ctl_window_publish(ncclComm_s *c, gccl_window *w) {
  for (int i = 0; i < 64; i++) {
    gccl_window *none = NULL;
    w->id = i;
    if (!atomic_compare_exchange_strong(&c->windows[i], &none, w)) continue;
    atomic_store(&c->handles[i], w->handle);
    table_set(c, i, w);
    return 1;
  }
  return 0;
}

int gccl_ctl_window_drop(ncclComm_s *c, gccl_window *w) {
  for (int i = 0; i < 64; i++) {
    gccl_window *is = w;
    if (atomic_load(&c->windows[i]) != is) continue;
    table_set(c, i, NULL); /* before another window may take the slot */
    atomic_store(&c->handles[i], NULL);
    atomic_store(&c->windows[i], NULL);
    return 1;
  }
  return 0;
}

gccl_window *gccl_ctl_window_at(ncclComm_s *c, int32_t slot) { return atomic_load(&c->windows[slot]); }

void gccl_ctl_window_free(gccl_window *w) {
  w->magic = 0;
  free(w);
}
