/* The device's state of a communicator: making it, meeting the other ranks, leaving them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "launch.h"

#define HELLO_MAGIC 0x44434347u /* "GCCD" */

uint64_t gccl_cuda_section_bytes(uint32_t nranks) {
  gccl_cuda_layout l;
  gccl_cuda_layout_init(&l, nranks);
  return l.bytes;
}

gccl_cuda_comm *gccl_cuda_comm_new(struct ncclComm *c, const gccl_cuda_comm *parent, int device, char *text, size_t max) {
  gccl_cuda_context *x = parent ? parent->cx : gccl_cuda_context_get(device, text, max);
  if (!x) return NULL;
  if (parent) gccl_cuda_context_ref(x);
  gccl_cuda_comm *d = calloc(1, sizeof *d);
  if (!d) {
    snprintf(text, max, "out of memory");
    gccl_cuda_context_put(x);
    return NULL;
  }
  d->comm = c;
  d->cx = x;
  d->creator = gccl_cuda_creator_self();
  d->tail.executor = -1;
  d->marks.stride = 1;
  atomic_store(&d->refs, 1);
  pthread_mutex_init(&d->guard, NULL);
  pthread_mutex_init(&d->order, NULL);
  c->device = x->ordinal;
  c->release = gccl_cuda_release;
  c->absent = gccl_cuda_absent;
  return d;
}

void gccl_cuda_comm_unref(gccl_cuda_comm *d) {
  if (!d || atomic_fetch_sub(&d->refs, 1) > 1) return;
  if (d->left) gccl_cuda_tickets_put(d);
  gccl_cuda_context_put(d->cx);
  pthread_mutex_destroy(&d->guard);
  pthread_mutex_destroy(&d->order);
  free(d->lanes);
  free(d->peer);
  free(d->served);
  free(d->launches);
  free(d->unreached);
  free(d);
}

static uint64_t own_process;
static void choose_process(void) {
  if (getrandom(&own_process, sizeof own_process, GRND_NONBLOCK) != sizeof own_process)
    own_process = (uint64_t)getpid() << 32 ^ gccl_now_ns();
}

void gccl_cuda_comm_hello(const gccl_cuda_comm *d, gccl_cuda_hello *h) {
  memset(h, 0, sizeof *h);
  h->magic = HELLO_MAGIC;
  h->bytes = sizeof *h;
  memcpy(h->uuid, d->cx->uuid, sizeof h->uuid);
  h->ordinal = d->cx->ordinal;
  h->spin = d->comm->spin;
  h->sms = d->cx->sms;
  h->queues = (uint32_t)d->cx->queues;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, choose_process);
  h->process = own_process;
  if (!d->creator) return;
  int none = -1; /* a thread's first communicator is as a rule the one of all ranks */
  atomic_compare_exchange_strong(&d->creator->first, &none, d->comm->rank);
  h->first = atomic_load(&d->creator->first);
  h->thread = d->creator->number;
}

static int arrays(gccl_cuda_comm *d, int n) {
  size_t m = (size_t)n;
  d->peer = calloc(m, sizeof *d->peer);
  d->served = calloc(m, sizeof *d->served);
  d->launches = calloc(4 * m, sizeof *d->launches);
  if (!d->peer || !d->served || !d->launches) return 0;
  d->sent = d->launches + m;
  d->received = d->sent + m;
  d->taken = d->received + m;
  return 1;
}

/* The executor's kernels read and write the memory of all ranks: those of other GPUs through the link between them. */
static CUresult reach_gpu(gccl_cuda_comm *d, const gccl_cuda_hello *h, char *text, size_t max) {
  int n = gccl_cuda_devices();
  for (int i = 0; i < n; i++) {
    CUuuid u;
    CUdevice dev;
    int can = 0;
    if (gccl_cu.DeviceGet(&dev, i) || gccl_cu.DeviceGetUuid(&u, dev) || memcmp(&u, h->uuid, sizeof u)) continue;
    CUresult e = gccl_cu.DeviceCanAccessPeer(&can, d->cx->device, dev);
    if (!e && !can) {
      snprintf(text, max, "device %d cannot access the memory of device %d (cuDeviceCanAccessPeer)", d->cx->ordinal, i);
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    CUcontext peer;
    unsigned flags;
    int active = 0;
    /* Only a context of this process that is in use has to be opened; memory of another process opens its own on import. */
    if (!e) e = gccl_cu.DevicePrimaryCtxGetState(dev, &flags, &active);
    if (!e && active && !(e = gccl_cu.DevicePrimaryCtxRetain(&peer, dev))) {
      e = gccl_cu.CtxEnablePeerAccess(peer, 0);
      if (e == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) e = CUDA_SUCCESS;
      gccl_cu.DevicePrimaryCtxRelease(dev);
    }
    if (e) snprintf(text, max, "access from device %d to device %d: error %d (%s)", d->cx->ordinal, i, e, gccl_cuda_text(e));
    return e;
  }
  snprintf(text, max,
           "the GPU of a peer is not visible in this process: make all GPUs of the communicator visible to all its ranks "
           "(CUDA_VISIBLE_DEVICES)");
  return CUDA_ERROR_INVALID_DEVICE;
}

/* Some ranks are on other hosts: as all ranks find, each of another one. */
static int several_hosts(const struct ncclComm *c) {
  for (int q = 0; q < c->nranks; q++)
    if (!c->peers[q].area) return 1;
  return 0;
}

/* What is the same for one host and several. */
static void describe_peer(gccl_cuda_comm *d, const gccl_cuda_hello *all, int q) {
  gccl_cuda_peer *p = &d->peer[q];
  p->near = d->comm->peers[q].area != NULL;
  p->same_process = d->comm->peers[q].same_process;
  p->same_gpu = p->near && !memcmp(all[q].uuid, d->cx->uuid, sizeof all[q].uuid);
  p->owner = all[q].process;
}

static int meet_hosts(gccl_cuda_comm *d, const gccl_cuda_hello *all, char *text, size_t max) {
  for (int q = 0; q < d->nranks; q++) {
    char why[256];
    describe_peer(d, all, q);
    /* Collectives do without it. */
    if (d->peer[q].near && !d->peer[q].same_gpu && !d->unreached && reach_gpu(d, &all[q], why, sizeof why)) d->unreached = strdup(why);
    if (q == d->rank || !d->peer[q].same_process || !d->peer[q].same_gpu) continue;
    snprintf(text, max,
             "rank %d is in this rank's process, on its GPU: their streams would wait for two words at once, which can hang the GPU: "
             "where ranks are on several hosts, give each rank of a GPU a process of its own",
             q);
    return GCCL_RC_USAGE;
  }
  return gccl_cuda_stage_new(d, text, max);
}

static int meet(gccl_cuda_comm *d, const gccl_cuda_hello *all, char *text, size_t max) {
  struct ncclComm *c = d->comm;
  for (int q = 0; q < d->nranks; q++)
    if (all[q].magic != HELLO_MAGIC || all[q].bytes != sizeof *all) {
      snprintf(text, max, "rank %d sent no description of its GPU", q);
      return GCCL_RC_REMOTE;
    }
  if (several_hosts(c)) return meet_hosts(d, all, text, max);
  for (int q = 0; q < d->nranks; q++) {
    gccl_cuda_peer *p = &d->peer[q];
    describe_peer(d, all, q);
    p->shared = c->peers[q].area + c->geo.device;
    CUresult e;
    p->words = gccl_cuda_pin(p->shared + d->layout.words, d->layout.words_bytes, &e);
    if (!p->words) {
      snprintf(text, max, "cuMemHostRegister of the sync words of rank %d: error %d (%s): is locked memory limited (ulimit -l)?", q, e,
               gccl_cuda_text(e));
      return GCCL_RC_CUDA;
    }
    if (!p->same_gpu && reach_gpu(d, &all[q], text, max)) return GCCL_RC_CUDA;
  }
  for (int q = 0; q < d->nranks; q++) /* a sender that comes before waits for it */
    __atomic_store_n(&gccl_cuda_signal_at(d, q, d->rank)->graph, GCCL_CUDA_SIGNAL_EMPTY, __ATOMIC_RELEASE);
  int words = 0;
  for (int q = 0; q < d->nranks; q++) words |= !d->peer[q].same_process;
  return words && d->rank == d->leader ? gccl_cuda_tickets_get(d, text, max) : 0;
}

int gccl_cuda_comm_meet(gccl_cuda_comm *d, const gccl_cuda_hello *all, char *text, size_t max) {
  struct ncclComm *c = d->comm;
  CUcontext before;
  d->nranks = c->nranks;
  d->rank = c->rank;
  if (d->nranks > GCCL_LEADER_RANKS) {
    snprintf(text, max, "%d ranks: this version runs at most %d ranks in a communicator of GPUs", d->nranks, GCCL_LEADER_RANKS);
    return GCCL_RC_USAGE;
  }
  if (!arrays(d, d->nranks)) {
    snprintf(text, max, "out of memory");
    return GCCL_RC_SYSTEM;
  }
  gccl_cuda_layout_init(&d->layout, (uint32_t)d->nranks);
  d->leader = gccl_cuda_leader(all, d->nranks);
  if (d->nranks == 1) {
    d->peer[0] = (gccl_cuda_peer){.same_process = 1, .same_gpu = 1, .near = 1};
    return 0;
  }
  CUresult e = gccl_cuda_enter(d->cx, &before);
  if (e) {
    snprintf(text, max, "the context of the communicator cannot be made current: error %d (%s)", e, gccl_cuda_text(e));
    return GCCL_RC_CUDA;
  }
  int rc = meet(d, all, text, max);
  if (rc == 0 && (rc = gccl_cuda_lanes_offer(d, all))) snprintf(text, max, "out of memory");
  gccl_cuda_leave(d->cx, before);
  if (rc == 0) gccl_cuda_driven(d, d->creator ? d->creator->name : 0);
  atomic_store(&d->met, rc == 0);
  return rc;
}

int gccl_cuda_comm_leave(gccl_cuda_comm *d) {
  CUcontext before;
  atomic_store(&d->met, 0);
  if (gccl_cuda_release_end(d)) return 1;
  int entered = gccl_cuda_enter(d->cx, &before) == CUDA_SUCCESS;
  gccl_cuda_marks_drop(d);
  gccl_cuda_event_unref(d->tail.event);
  d->tail.event = NULL;
  gccl_cuda_unlink(d);
  gccl_cuda_imports_drop(d);
  if (entered) gccl_cuda_stage_free(d);
  if (entered) gccl_cuda_lent_free(d);
  if (entered) gccl_cuda_view_drop(d);
  for (int q = 0; d->peer && q < d->nranks; q++) {
    /* A meeting that failed may not have come to this rank's own area. */
    if (d->peer[q].words && d->peer[d->rank].shared) gccl_cuda_signals_drop(d, q);
    if (d->peer[q].words) gccl_cuda_unpin(d->peer[q].shared + d->layout.words);
    d->peer[q].words = 0;
  }
  if (entered) gccl_cuda_leave(d->cx, before);
  d->left = 1;
  return 0;
}
