/* Lanes: device memory in which the kernels of all ranks of a communicator meet, each rank's mapped by all.
 *
 * What such kernels count is in that memory and goes on by itself, so a replayed graph needs nobody on the host. But two kernels of a
 * rank that ran at the same time would count in each other's place, and an eager call may run beside a replay, which is not seen
 * from here. So eager launches, which run one after another, have a lane, and each graph has another one. Graphs get theirs in the order in
 * which they are captured, which is the same on all ranks; when all are taken it begins anew, because nobody knows when the
 * other ranks' graphs end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "launch.h"
#include "memory.h"

enum { ROOM = 6 << 20, MOST_LANES = 16 }; /* bytes of a rank, but for the least of two lanes */

static gccl_cuda_ref *ref_of(const gccl_cuda_comm *d, int q) { return (gccl_cuda_ref *)(d->peer[q].shared + d->layout.lanes); }

/* Ranks that run on the same GPU as rank q; in its process alone, if asked. */
static unsigned beside(const gccl_cuda_hello *all, int n, int q, int process) {
  unsigned k = 0;
  for (int r = 0; r < n; r++) k += !memcmp(all[r].uuid, all[q].uuid, sizeof all[q].uuid) && (!process || all[r].process == all[q].process);
  return k;
}

static unsigned in_process(const gccl_cuda_hello *all, int n, int q) {
  unsigned k = 0;
  for (int r = 0; r < n; r++) k += all[r].process == all[q].process;
  return k;
}

/* What all ranks find alike. Returns the blocks that a rank may have, or 0 and why; *direct: large sizes are asked for too. */
static unsigned blocks_for(const gccl_cuda_comm *d, const gccl_cuda_hello *all, int *direct, char *why, size_t max) {
  unsigned blocks = GCCL_SPIN_BLOCKS;
  *direct = 1;
  if (d->stage) {
    snprintf(why, max, "ranks are on several hosts");
    return 0;
  }
  for (int q = 0; q < d->nranks; q++) {
    unsigned shared = beside(all, d->nranks, q, 0), streams = beside(all, d->nranks, q, 1);
    if (all[q].spin == GCCL_SPIN_NEVER) {
      snprintf(why, max, "the settings of rank %d do not ask for it", q);
      return 0;
    }
    *direct &= all[q].spin == GCCL_SPIN_ALWAYS;
    if (all[q].spin != GCCL_SPIN_ALWAYS && shared > 1) {
      snprintf(why, max, "%u ranks share the GPU of rank %d, whose GCCL_CUDA_EXECUTOR is not spin", shared, q);
      return 0;
    }
    /* cuMemHostUnregister at the end of a communicator waits for the other ranks' kernels, which may wait for what this thread calls next. */
    if (all[q].spin != GCCL_SPIN_ALWAYS && in_process(all, d->nranks, q) > 1) {
      snprintf(why, max, "%u ranks share the process of rank %d, whose GCCL_CUDA_EXECUTOR is not spin", in_process(all, d->nranks, q), q);
      return 0;
    }
    if (streams > 1 && streams > all[q].queues) {
      snprintf(why, max,
               "%u ranks of the process of rank %d are on one GPU, and streams share %u hardware queues there: set "
               "CUDA_DEVICE_MAX_CONNECTIONS to at least %u before the start",
               streams, q, all[q].queues, streams);
      return 0;
    }
    /* Together they must be resident, a block on a multiprocessor. */
    if (all[q].sms / shared < blocks) blocks = all[q].sms / shared;
    if (blocks == 0) {
      snprintf(why, max, "%u ranks share the %u multiprocessors of the GPU of rank %d", shared, all[q].sms, q);
      return 0;
    }
  }
  return blocks;
}

int gccl_cuda_lanes_offer(gccl_cuda_comm *d, const gccl_cuda_hello *all) {
  gccl_cuda_lanes *l = d->lanes = calloc(1, sizeof *l);
  gccl_cuda_span s;
  if (!l) return GCCL_RC_SYSTEM;
  int direct;
  unsigned blocks = blocks_for(d, all, &direct, l->why, sizeof l->why);
  l->blocks = blocks < GCCL_LL_BLOCKS ? blocks : GCCL_LL_BLOCKS;
  l->direct = direct ? blocks : 0;
  if (!blocks) return 0;
  l->bytes = gccl_align(gccl_spin_area_bytes((unsigned)d->nranks), 256);
  l->n = ROOM / l->bytes < 2 ? 2 : ROOM / l->bytes > MOST_LANES ? MOST_LANES : (unsigned)(ROOM / l->bytes);
  memset(ref_of(d, d->rank), 0, sizeof(gccl_cuda_ref));
  if (gccl_cuda_memory_new(d, l->n * l->bytes, &l->own, l->why, sizeof l->why)) return 0; /* link says so */
  if (!gccl_cuda_mem_pin(l->own, 1, &s)) return 0;
  *ref_of(d, d->rank) =
      (gccl_cuda_ref){.addr = s.base, .base = s.base, .size = s.size, .id = s.id, .kind = GCCL_CUDA_HANDLE, .device = s.ordinal};
  gccl_cuda_mem_unpin(s.base);
  return 0;
}

/* The lanes of a rank as this one reaches them: 0 or a result code and a text. */
static int reach(gccl_cuda_comm *d, int q, char *text, size_t max) {
  gccl_cuda_lanes *l = d->lanes;
  const gccl_cuda_ref *r = ref_of(d, q);
  gccl_cuda_span s;
  if (r->kind != GCCL_CUDA_HANDLE) {
    snprintf(text, max, "rank %d has no memory for it", q);
    return GCCL_RC_CUDA;
  }
  if (!d->peer[q].same_process) return (l->area[q] = gccl_cuda_import_ref(d, q, r, text, max)) ? 0 : GCCL_RC_CUDA;
  if (!gccl_cuda_mem_pin((void *)(uintptr_t)r->addr, 1, &s)) { /* stays while this rank's kernels may write there */
    snprintf(text, max, "the memory of rank %d has gone", q);
    return GCCL_RC_REMOTE;
  }
  l->pinned |= 1ull << q;
  l->area[q] = r->addr;
  return 0;
}

static int link_all(gccl_cuda_comm *d, char *text, size_t max) {
  gccl_cuda_lanes *l = d->lanes;
  CUresult e;
  int rc = 0;
  if (!l->own) {
    snprintf(text, max, "%s", l->why);
    return GCCL_RC_CUDA;
  }
  if (gccl_cuda_spin_load(d->cx, GCCL_SPIN_LL_METHOD, text, max)) return GCCL_RC_CUDA;
  if (l->direct && gccl_cuda_spin_load(d->cx, GCCL_SPIN_DIRECT, text, max)) return GCCL_RC_CUDA;
  uint32_t *abort = gccl_cuda_abort_word(d, &e);
  if (!abort) {
    snprintf(text, max, "a word of pinned memory that ends the waits of kernels: error %d (%s)", e, gccl_cuda_text(e));
    return GCCL_RC_CUDA;
  }
  if (!d->tickets && (rc = gccl_cuda_tickets_get(d, text, max))) return rc;
  for (int q = 0; q < d->nranks && !rc; q++) rc = reach(d, q, text, max);
  l->work.op.version = GCCL_WORK_VERSION;
  l->work.op.nranks = (uint16_t)d->nranks;
  l->work.op.ticket = d->tickets;
  l->work.abort = (uint64_t)(uintptr_t)abort;
  l->work.rank = (uint32_t)d->rank;
  memcpy(l->work.area, l->area, sizeof l->area);
  return rc;
}

int gccl_cuda_link(gccl_cuda_comm *d, char *text, size_t max) {
  gccl_cuda_lanes *l = d->lanes;
  CUcontext before;
  if (!l->blocks) {
    snprintf(text, max, "%s", l->why);
    return 0;
  }
  CUresult e = gccl_cuda_enter(d->cx, &before);
  if (e) {
    snprintf(text, max, "the context of the communicator cannot be made current: error %d (%s)", e, gccl_cuda_text(e));
    return -GCCL_RC_CUDA;
  }
  int rc = link_all(d, text, max);
  gccl_cuda_leave(d->cx, before);
  if (rc) return -rc;
  d->ll_bytes = (uint64_t)l->blocks * GCCL_LL_ITEMS * 8;
  snprintf(text, max, "up to %llu bytes of a rank for another one%s, in %.1f MiB of device memory a rank for eager calls and %u graphs",
           (unsigned long long)d->ll_bytes, l->direct ? " and any size in symmetric windows" : "", (double)(l->n * l->bytes) / (1 << 20),
           l->n - 1);
  return 1;
}

void gccl_cuda_unlink(gccl_cuda_comm *d) {
  gccl_cuda_lanes *l = d->lanes;
  d->ll_bytes = 0;
  if (!l) return;
  for (int q = 0; q < d->nranks; q++)
    if (l->pinned >> q & 1) gccl_cuda_mem_unpin(l->area[q]);
  l->pinned = 0;
  if (l->own) gccl_cuda_mem_free(l->own);
  l->own = NULL;
}

/* Graphs in the order of their captures have the lanes from 1 on in turn. */
static unsigned lane_of(gccl_cuda_comm *d, uint64_t capture) {
  gccl_cuda_lanes *l = d->lanes;
  enum { KNOWN = sizeof l->capture / sizeof *l->capture };
  for (unsigned k = 0; k < KNOWN; k++)
    if (l->capture[k].id == capture) return l->capture[k].lane;
  if (l->captures == l->n - 1 && d->comm->report)
    d->comm->report(d->comm, "more graphs with small collectives of the communicator have been captured than there are lanes for their "
                             "kernels: those that are captured from now on must not be replayed at the same time as an earlier one");
  unsigned lane = 1 + (unsigned)(l->captures % (l->n - 1));
  l->capture[l->captures++ % KNOWN].id = capture;
  l->capture[(l->captures - 1) % KNOWN].lane = lane;
  return lane;
}

gccl_spin_work *gccl_cuda_lane_work(gccl_cuda_comm *d, uint64_t capture) {
  gccl_cuda_lanes *l = d->lanes;
  unsigned lane = capture ? lane_of(d, capture) : 0;
  for (int q = 0; q < d->nranks && lane != l->lane; q++) l->work.area[q] = l->area[q] + lane * l->bytes;
  l->lane = lane;
  return &l->work;
}
