/* The device's state of a communicator: making it, meeting the other ranks, the end of its work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
  atomic_store(&d->refs, 1);
  pthread_mutex_init(&d->guard, NULL);
  c->device = x->ordinal;
  return d;
}

void gccl_cuda_comm_unref(gccl_cuda_comm *d) {
  if (!d || atomic_fetch_sub(&d->refs, 1) > 1) return;
  gccl_cuda_context_put(d->cx);
  pthread_mutex_destroy(&d->guard);
  free(d->peer);
  free(d->served);
  free(d->launches);
  free(d);
}

void gccl_cuda_comm_hello(const gccl_cuda_comm *d, gccl_cuda_hello *h) {
  memset(h, 0, sizeof *h);
  h->magic = HELLO_MAGIC;
  h->bytes = sizeof *h;
  memcpy(h->uuid, d->cx->uuid, sizeof h->uuid);
  h->ordinal = d->cx->ordinal;
}

static int arrays(gccl_cuda_comm *d, int n) {
  size_t m = (size_t)n;
  d->peer = calloc(m, sizeof *d->peer);
  d->served = calloc(m, sizeof *d->served);
  d->launches = calloc(3 * m, sizeof *d->launches);
  if (!d->peer || !d->served || !d->launches) return 0;
  d->sent = d->launches + m;
  d->received = d->sent + m;
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

static int meet(gccl_cuda_comm *d, const gccl_cuda_hello *all, char *text, size_t max) {
  struct ncclComm *c = d->comm;
  for (int q = 0; q < d->nranks; q++) {
    gccl_cuda_peer *p = &d->peer[q];
    if (all[q].magic != HELLO_MAGIC || all[q].bytes != sizeof *all) {
      snprintf(text, max, "rank %d sent no description of its GPU", q);
      return GCCL_RC_REMOTE;
    }
    p->same_process = c->peers[q].same_process;
    p->same_gpu = !memcmp(all[q].uuid, d->cx->uuid, sizeof all[q].uuid);
    p->process = q;
    for (int k = 0; k < q; k++)
      if (c->peers[k].arena == c->peers[q].arena) {
        p->process = d->peer[k].process;
        break;
      }
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
  return 0;
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
  if (d->nranks == 1) {
    d->peer[0] = (gccl_cuda_peer){.same_process = 1, .same_gpu = 1};
    return 0;
  }
  CUresult e = gccl_cuda_enter(d->cx, &before);
  if (e) {
    snprintf(text, max, "the context of the communicator cannot be made current: error %d (%s)", e, gccl_cuda_text(e));
    return GCCL_RC_CUDA;
  }
  int rc = meet(d, all, text, max);
  gccl_cuda_leave(d->cx, before);
  return rc;
}

void gccl_cuda_comm_leave(gccl_cuda_comm *d) {
  CUcontext before;
  int entered = gccl_cuda_enter(d->cx, &before) == CUDA_SUCCESS;
  gccl_cuda_event_unref(d->tail);
  d->tail = NULL;
  gccl_cuda_imports_drop(d);
  for (int q = 0; d->peer && q < d->nranks; q++) {
    if (d->peer[q].words) gccl_cuda_signals_drop(d, q);
    if (d->peer[q].words) gccl_cuda_unpin(d->peer[q].shared + d->layout.words);
    d->peer[q].words = 0;
  }
  if (entered) gccl_cuda_leave(d->cx, before);
}

/* --- the end of work --- */

/* Lets every stream of this process go on that waits for a word: a wait is for a 1, and only a store by a CPU frees it now. */
static void free_waits(gccl_cuda_comm *d) {
  for (int q = 0; q < d->nranks && d->peer; q++) {
    if (!d->peer[q].words) continue;
    gccl_cuda_words *theirs = (gccl_cuda_words *)(d->peer[q].shared + d->layout.words);
    gccl_cuda_words *mine = (gccl_cuda_words *)(d->peer[d->rank].shared + d->layout.words);
    __atomic_store_n(&theirs[d->rank].ready, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&mine[q].done, 1, __ATOMIC_RELEASE);
    gccl_cuda_signal *s = gccl_cuda_signal_at(d, q, d->rank);
    __atomic_store_n(&s->count, __atomic_load_n(&s->count, __ATOMIC_RELAXED) + 0x10000000u, __ATOMIC_RELEASE);
  }
}

/* Whether the last operation has ended in its stream. What is captured has not been issued. */
static int idle(gccl_cuda_comm *d) {
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED, done = 1;
  CUcontext before;
  pthread_mutex_lock(&d->guard);
  if (d->tail && !d->tail_capture && gccl_cuda_enter(d->cx, &before) == CUDA_SUCCESS) {
    gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
    done = gccl_cu.EventQuery(d->tail->event) != CUDA_ERROR_NOT_READY; /* after an error nothing runs any more */
    gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
    gccl_cuda_leave(d->cx, before);
  }
  pthread_mutex_unlock(&d->guard);
  return done;
}

int gccl_cuda_quiesce(struct ncclComm *c, uint64_t timeout_ns) {
  gccl_cuda_comm *d = gccl_cuda_of(c);
  uint64_t start = gccl_now_ns();
  int r = gccl_order_quiesce(c, timeout_ns);
  if (r != GCCL_DONE) return r;
  for (unsigned naps = 0; !idle(d); naps++) {
    if (atomic_load(&c->abort)) free_waits(d);
    if (timeout_ns && gccl_now_ns() - start > timeout_ns) return GCCL_RC_TIMEOUT;
    struct timespec t = {0, naps < 100 ? 20000 : 1000000};
    nanosleep(&t, NULL);
  }
  return GCCL_DONE;
}
