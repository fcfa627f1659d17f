/* A lane over an rma plugin: each end has a ring of slots in memory that the other writes. A frame is a put into the next slot and a
 * signal; slots come back by a signal in the other direction. Words that signals add to are written by the plugin alone. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "np.h"
#include "rma.h"

enum { SLOT = NP_FRAME + 64, RING = NP_FRAMES * SLOT, PAGE = 4096 };

/* Memory of an end, registered alike at both: first what the other writes, then what is sent. */
typedef struct {
  _Alignas(PAGE) char in[RING], out[RING];
  _Alignas(PAGE) char zero[PAGE]; /* the bytes that go with a signal that brings slots back, and where they land */
} region;

typedef struct { /* registered for signals */
  _Alignas(PAGE) _Atomic uint64_t frames, slots;
} words;

typedef struct {
  np_lane base;
  np_rma *m;
  void *coll, *context, *region_handle, *words_handle;
  region *r;
  words *w;
  uint32_t peer;                      /* rank of the other end in the pair */
  void *tx[NP_FRAMES], *back;         /* requests */
  uint32_t tx_bytes[NP_FRAMES], owed; /* slots that the other end has not got back */
  uint32_t filled, started, finished, taken;
} rma_lane;

static void failed(rma_lane *l, const char *call, int rc) {
  gccl_net_fail(&l->base.fault, GCCL_NET_EREMOTE, "%s: %s", call, np_result(rc));
}

static char *room(np_lane *lane) {
  rma_lane *l = (rma_lane *)lane;
  uint32_t back = (uint32_t)atomic_load_explicit(&l->w->slots, memory_order_acquire);
  if (l->filled - l->finished == NP_FRAMES || l->filled - back == NP_FRAMES) return NULL;
  return l->r->out + (l->filled % NP_FRAMES) * SLOT + 64;
}

static void start(rma_lane *l) {
  for (; l->started != l->filled; l->started++) {
    uint32_t i = l->started % NP_FRAMES;
    uint64_t at = offsetof(region, in) + i * SLOT;
    memcpy(l->r->out + i * SLOT, &l->tx_bytes[i], sizeof l->tx_bytes[i]);
    int rc = l->m->put_signal(l->m, l->context, offsetof(region, out) + i * SLOT, l->region_handle, 64 + l->tx_bytes[i], at,
                              l->region_handle, l->peer, offsetof(words, frames), l->words_handle, 1, &l->tx[i]);
    if (rc) return failed(l, "iputSignal", rc);
    if (!l->tx[i]) return; /* again later */
  }
}

static void give_back(rma_lane *l) {
  int done = 0, rc = l->back ? l->m->test(l->m, l->coll, l->back, &done) : NP_OK;
  if (rc) return failed(l, "test", rc);
  if (done) l->back = NULL;
  if (l->back || !l->owed) return;
  uint64_t at = offsetof(region, zero);
  rc = l->m->put_signal(l->m, l->context, at, l->region_handle, 8, at + 64, l->region_handle, l->peer, offsetof(words, slots),
                        l->words_handle, l->owed, &l->back);
  if (rc) return failed(l, "iputSignal", rc);
  if (l->back) l->owed = 0;
}

static void progress(np_lane *lane) {
  rma_lane *l = (rma_lane *)lane;
  if (gccl_net_faulted(&lane->fault)) return;
  bool bad = false;
  int rc = l->m->progress(l->m, l->context);
  if (rc) return failed(l, "progress", rc);
  if ((rc = l->m->error(l->m, l->context, &bad)) || bad) return failed(l, "queryLastError", rc ? rc : NP_REMOTE);
  start(l);
  for (; l->finished != l->started; l->finished++) {
    int done = 0;
    if ((rc = l->m->test(l->m, l->coll, l->tx[l->finished % NP_FRAMES], &done))) return failed(l, "test", rc);
    if (!done) break;
  }
  give_back(l);
}

static void send_frame(np_lane *lane, uint32_t bytes, uint32_t step) {
  (void)step; /* these tables have no events */
  rma_lane *l = (rma_lane *)lane;
  l->tx_bytes[l->filled++ % NP_FRAMES] = bytes;
  if (!gccl_net_faulted(&lane->fault)) start(l);
}

static const char *next(np_lane *lane, uint32_t *bytes) {
  rma_lane *l = (rma_lane *)lane;
  if ((uint32_t)atomic_load_explicit(&l->w->frames, memory_order_acquire) == l->taken) return NULL;
  const char *slot = l->r->in + (l->taken % NP_FRAMES) * SLOT;
  memcpy(bytes, slot, sizeof *bytes);
  if (*bytes > NP_FRAME) *bytes = 0; /* makes no sense to whoever reads it */
  return slot + 64;
}

static void release(np_lane *lane) {
  rma_lane *l = (rma_lane *)lane;
  l->taken++;
  l->owed++;
}

static int idle(np_lane *lane) {
  rma_lane *l = (rma_lane *)lane;
  return l->finished == l->filled;
}

static void close_lane(np_lane *lane) {
  rma_lane *l = (rma_lane *)lane;
  if (l->context) l->m->destroy(l->m, l->context);
  if (l->words_handle) l->m->dereg(l->m, l->coll, l->words_handle);
  if (l->region_handle) l->m->dereg(l->m, l->coll, l->region_handle);
  if (l->coll) l->m->close_coll(l->m, l->coll);
  if (l->r) munmap(l->r, sizeof *l->r + sizeof *l->w);
  free(l);
}

static const np_lane_ops lane_ops = {room, send_frame, progress, next, release, idle, close_lane};

np_lane *np_rma_lane(np_rma_pair *p, int rank, char *why) {
  np_rma *m = p->m;
  void *handles[2] = {p->handle[0], p->handle[1]};
  rma_lane *l = calloc(1, sizeof *l);
  const char *call = "memory";
  int rc = NP_SYSTEM;
  if (!l) goto out;
  l->base.ops = &lane_ops;
  l->m = m;
  l->peer = (uint32_t)!rank;
  l->r = mmap(NULL, sizeof *l->r + sizeof *l->w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (l->r == MAP_FAILED) {
    l->r = NULL;
    goto out;
  }
  l->w = (words *)(l->r + 1);
  call = "connect";
  if ((rc = m->connect(m, p->ctx, handles, 2, rank, p->listen, &l->coll)) || !l->coll) goto out;
  call = "createContext";
  if ((rc = m->create(m, l->coll, &l->context)) || !l->context) goto out;
  call = "regMrSym";
  if ((rc = m->reg(m, l->coll, l->r, sizeof *l->r, 0, &l->region_handle))) goto out;
  if ((rc = m->reg(m, l->coll, l->w, sizeof *l->w, NP_RMA_FORCE_SO, &l->words_handle))) goto out;
  np_rma_pair_close(p);
  return &l->base;
out:
  gccl_net_why(why, -1, "%s: %s", call, np_result(rc ? rc : NP_INTERNAL));
  if (l) close_lane(&l->base);
  np_rma_pair_close(p);
  return NULL;
}
