/* CUDA communicators: which device a communicator gets, what the core asks of the device, and launches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/cuda/cuda.h"
#include "../../device/cuda/image.h"
#include "../../device/cuda/memory.h"
#include "../../device/host/exec/probe.h"
#include "front.h"

static int fetch(struct ncclComm *c, int rank, uint64_t id, uint64_t *size, char *text);

ncclResult_t gccl_device_choose(int32_t *kind, const char *call) {
  char wish[16], library[256];
  const char *why = "", *origin = "gcclSetDeviceKind asks for gcclDeviceCuda";
  if (*kind == gcclDeviceAuto) {
    gccl_setting("GCCL_DEVICE", wish, sizeof wish);
    if (!strcmp(wish, "host")) *kind = gcclDeviceHost;
    if (!strcmp(wish, "cuda")) *kind = gcclDeviceCuda, origin = "GCCL_DEVICE is cuda";
  }
  if (*kind == gcclDeviceHost) return ncclSuccess;
  gccl_setting("GCCL_CUDA_LIBRARY", library, sizeof library);
  gccl_cuda_standin |= library[0] != 0;
  gccl_cuda_fetch = fetch;
  if (!gccl_cuda_image()) why = "this build has no kernels: it was made without nvcc (make cuda-toolchain fetches it)";
  if (gccl_cuda_image() && gccl_cuda_open(library, &why)) {
    *kind = gcclDeviceCuda;
    return ncclSuccess;
  }
  if (*kind == gcclDeviceCuda)
    return gccl_fail(ncclInvalidUsage, "%s: %s, but %s; for ordinary memory set GCCL_DEVICE=host", call, origin, why);
  *kind = gcclDeviceHost;
  return ncclSuccess;
}

ncclResult_t gccl_device_attach(struct ncclComm *c, const struct ncclComm *parent, int device, const char *call) {
  char text[GCCL_TEXT] = "";
  if (device <= GCCL_DEVICE_IN_TURN) device = (GCCL_DEVICE_IN_TURN - device) % gccl_cuda_devices();
  c->cuda = gccl_cuda_comm_new(c, parent ? gccl_cuda_of(parent) : NULL, device, text, sizeof text);
  return c->cuda ? ncclSuccess : gccl_fail(ncclUnhandledCudaError, "%s: %s", call, text);
}

GCCL_OWN_API ncclResult_t gcclCommMeetOnHost(ncclComm_t comm, int on) {
  ncclResult_t rc = gccl_handle_check(comm, "gcclCommMeetOnHost");
  if (rc == ncclSuccess && comm->cuda) atomic_store(&gccl_cuda_of(comm)->meets, on != 0);
  return rc;
}

/* --- for the core --- */

static int32_t hello(struct ncclComm *c, void *out, int32_t max) {
  if ((size_t)max < sizeof(gccl_cuda_hello)) return 0;
  gccl_cuda_comm_hello(c->cuda, out);
  return sizeof(gccl_cuda_hello);
}

static int32_t meet(struct ncclComm *c, const void *all, char *text) { return gccl_cuda_comm_meet(c->cuda, all, text, GCCL_TEXT); }

static int32_t link_ranks(struct ncclComm *c, char *text) { return gccl_cuda_link(c->cuda, text, GCCL_TEXT); }
static void unlink_ranks(struct ncclComm *c) { gccl_cuda_unlink(c->cuda); }

static int32_t leave(struct ncclComm *c) { return c->cuda ? gccl_cuda_comm_leave(c->cuda) : 0; }

static uint64_t progress(struct ncclComm *c, uint64_t *called) { return gccl_cuda_progress(c->cuda, called); }

static int32_t window_offer(struct ncclComm *c, void *ptr, uint64_t size, void *out, int32_t max, int32_t *rc, char *text) {
  if ((size_t)max < sizeof(gccl_cuda_ref)) return -1;
  *rc = gccl_cuda_window_offer(c->cuda, ptr, size, out, text, GCCL_TEXT);
  return *rc ? -1 : (int32_t)sizeof(gccl_cuda_ref);
}

static int32_t window_map(struct ncclComm *c, gccl_window *w, const void *parts, char *text) {
  return gccl_cuda_window_map(c->cuda, w, parts, text, GCCL_TEXT);
}

static int32_t window_show(struct ncclComm *c, gccl_window *w, char *text) { return gccl_cuda_show(c->cuda, w, text, GCCL_TEXT); }
static void window_hide(struct ncclComm *c, const gccl_window *w) { gccl_cuda_hide(c->cuda, w); }
static void window_release(struct ncclComm *c, gccl_window *w, const void *part) { gccl_cuda_window_release(c->cuda, w, part); }

/* The resources of a device communicator. */
static int32_t memory_new(struct ncclComm *c, uint64_t bytes, void **out, char *text) {
  const gccl_cuda_comm *d = c->cuda;
  if (d->unreached) {
    snprintf(text, GCCL_TEXT, "kernels cannot load and store the memory of all ranks of this host: %s", d->unreached);
    return GCCL_RC_CUDA;
  }
  return gccl_cuda_memory_new(c->cuda, bytes, out, text, GCCL_TEXT);
}
static void memory_free(void *p) { gccl_cuda_mem_free(p); }

const gccl_device_api gccl_cuda_device_api = {.hello = hello,
                                              .meet = meet,
                                              .link = link_ranks,
                                              .unlink = unlink_ranks,
                                              .leave = leave,
                                              .section = gccl_cuda_section_bytes,
                                              .progress = progress,
                                              .window_offer = window_offer,
                                              .window_map = window_map,
                                              .window_show = window_show,
                                              .window_hide = window_hide,
                                              .window_release = window_release,
                                              .memory_new = memory_new,
                                              .memory_free = memory_free,
                                              .look = gccl_cuda_look,
                                              .export_memory = gccl_cuda_mem_export,
                                              .mover = &gccl_cuda_mover};

static int fetch(struct ncclComm *c, int rank, uint64_t id, uint64_t *size, char *text) {
  int32_t fd = -1;
  return gccl_core.fetch_memory(c, rank, id, &fd, size, text) == ncclSuccess ? fd : -1;
}

/* --- memory --- */

ncclResult_t gccl_device_mem_alloc(void **ptr, size_t size, int *done) {
  const char *call = "ncclMemAlloc";
  gccl_thread *t = gccl_thread_get();
  int32_t kind = t ? t->device_kind : gcclDeviceAuto;
  ncclResult_t rc = gccl_device_choose(&kind, call);
  *done = rc != ncclSuccess || kind == gcclDeviceCuda;
  if (rc != ncclSuccess || kind != gcclDeviceCuda) return rc;
  char text[GCCL_TEXT] = "";
  rc = (ncclResult_t)gccl_cuda_mem_alloc(ptr, size, text, sizeof text);
  return rc == ncclSuccess ? rc : gccl_fail(rc, "%s: %zu bytes: %s", call, size, text);
}

int gccl_device_mem_free(void *ptr) { return gccl_cuda_mem_free(ptr); }

int32_t gccl_quiesce(struct ncclComm *c, uint64_t timeout_ns) {
  return c->cuda ? gccl_cuda_quiesce(c, timeout_ns) : gccl_order_quiesce(c, timeout_ns);
}

/* --- launches --- */

static ncclResult_t result(gccl_cuda_batch *b, int n, int r, const char *call) {
  const struct ncclComm *c = b[0].comm;
  if (r == 0) return ncclSuccess;
  for (int i = 0; i < n; i++)
    if (b[i].rc) c = b[i].comm;
  return gccl_operation_failed(c, r, call);
}

ncclResult_t gccl_device_check(gccl_op *op, const char *call) {
  char text[GCCL_TEXT];
  int rc = gccl_cuda_check(op, text, sizeof text);
  return rc ? gccl_fail((ncclResult_t)rc, "%s: rank %d of %d: %s", call, op->comm->rank, op->comm->nranks, text) : ncclSuccess;
}

ncclResult_t gccl_device_write(struct ncclComm *c, void *to, const void *from, size_t n, const char *call) {
  char text[GCCL_TEXT] = "";
  int rc = gccl_cuda_write(gccl_cuda_of(c)->cx, (CUdeviceptr)(uintptr_t)to, from, n, text, sizeof text);
  return rc ? gccl_fail((ncclResult_t)rc, "%s: rank %d of %d: %s", call, c->rank, c->nranks, text) : ncclSuccess;
}

ncclResult_t gccl_device_kernels(struct ncclComm *c, struct ncclDevCommWindowTable **table, uint32_t **abort_flag, const char *call) {
  char text[GCCL_TEXT] = "";
  int rc = gccl_cuda_kernel_view(gccl_cuda_of(c), table, abort_flag, text, sizeof text);
  return rc ? gccl_fail((ncclResult_t)rc, "%s: rank %d of %d: %s", call, c->rank, c->nranks, text) : ncclSuccess;
}

const char *gccl_device_unreached(const struct ncclComm *c) { return gccl_cuda_of(c)->unreached; }

int gccl_device_staged(const struct ncclComm *c) { return gccl_cuda_of(c)->stage != NULL; }

/* A batch of a communicator on several hosts: the streams copy, the worker's thread does the operations in host memory. */
static ncclResult_t launch_staged(gccl_cuda_batch *b, const char *call) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  gccl_stream *worker;
  char text[GCCL_TEXT] = "";
  ncclResult_t rc = gccl_worker(c, &worker, call);
  if (rc != ncclSuccess) return rc;
  gccl_task *t = gccl_task_new(1, b->nops);
  if (!t) return gccl_fail(ncclSystemError, "%s: out of memory", call);
  pthread_mutex_lock(&d->order);
  int r = gccl_cuda_stage(b, t->ops, &t->staged, text, sizeof text);
  if (r == 0) {
    t->batches[0] = (gccl_batch){.comm = c, .ops = t->ops, .nops = b->nops, .ticket = gccl_order_take(c)};
    for (int i = 0; i < b->nops; i++) b->ops[i].seen = NULL; /* it is the task's */
    gccl_stream_push(worker, t);
  }
  pthread_mutex_unlock(&d->order);
  if (r == 0) return c->blocking ? ncclSuccess : ncclInProgress;
  free(t);
  return text[0] ? gccl_fail((ncclResult_t)r, "%s: %s", call, text) : gccl_operation_failed(c, r, call);
}

ncclResult_t gccl_device_launch_one(gccl_op *op, cudaStream_t stream, const char *call) {
  struct ncclComm *c = op->comm;
  CUstream s = (CUstream)stream;
  if ((op->kind == GCCL_DO_SEND || op->kind == GCCL_DO_RECV) && op->root == c->rank) return gccl_lonely_message(c, call);
  if (gccl_probed(c)) gccl_probe_issue(op);
  gccl_cuda_batch b = {.comm = c, .ops = op, .streams = &s, .nops = 1};
  if (gccl_device_staged(c)) return launch_staged(&b, call);
  b.ticket = gccl_order_take(c);
  int r = gccl_cuda_drive(&b, 1);
  if (gccl_probed(c)) gccl_probe_end(op, r);
  return result(&b, 1, r, call);
}

/* Those of communicators on several hosts first: launching them waits for nobody. Returns the first failure; all are launched. */
static ncclResult_t launch_batches(gccl_cuda_batch *b, int n, const char *call) {
  ncclResult_t rc = ncclSuccess;
  int led = 0;
  for (int k = 0; k < n; k++) {
    if (!gccl_device_staged(b[k].comm)) {
      b[led++] = b[k];
      continue;
    }
    ncclResult_t r = launch_staged(&b[k], call);
    if (rc == ncclSuccess || rc == ncclInProgress) rc = r;
  }
  if (led == 0) return rc;
  for (int k = 0; k < led; k++) b[k].ticket = gccl_order_take(b[k].comm);
  int r = gccl_cuda_drive(b, led);
  for (int k = 0; k < led; k++)
    for (int i = 0; i < b[k].nops; i++)
      if (gccl_probed(b[k].comm)) gccl_probe_end(&b[k].ops[i], r);
  ncclResult_t ended = result(b, led, r, call);
  return rc == ncclSuccess || rc == ncclInProgress ? (ended == ncclSuccess ? rc : ended) : rc;
}

ncclResult_t gccl_device_launch_group(gccl_op *ops, cudaStream_t *streams, int n, const char *call) {
  gccl_cuda_forget(); /* memory may have been freed and given out again since the calls */
  /* Sorted by communicator, in order of first use; the operations of each in the order of the calls. */
  gccl_cuda_batch *b = calloc((size_t)n, sizeof *b);
  gccl_op *sorted = malloc((size_t)n * sizeof *sorted);
  CUstream *at = malloc((size_t)n * sizeof *at);
  ncclResult_t rc = ncclSuccess;
  int nb = 0, placed = 0;
  if (!b || !sorted || !at) {
    rc = gccl_fail(ncclSystemError, "%s: out of memory for a group of %d operations", call, n);
  } else {
    for (int i = 0; i < n; i++) {
      int k = 0;
      while (k < nb && b[k].comm != ops[i].comm) k++;
      if (k < nb) continue;
      b[nb++] = (gccl_cuda_batch){.comm = ops[i].comm, .ops = sorted + placed, .streams = at + placed};
      for (int j = i; j < n; j++)
        if (ops[j].comm == ops[i].comm) {
          if (gccl_probed(ops[j].comm)) gccl_probe_issue(&ops[j]);
          sorted[placed] = ops[j];
          ops[j].seen = NULL; /* it is the launch's */
          at[placed++] = (CUstream)streams[j];
          b[k].nops++;
        }
    }
    rc = launch_batches(b, nb, call);
  }
  free(b);
  free(sorted);
  free(at);
  return rc;
}
