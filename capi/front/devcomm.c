/* ncclDevCommCreate and ncclDevCommDestroy. The front reads what the caller asks for, lays out the resource buffer, and has the core make
 * it as a window on all ranks (GCCL_JOB_DEVCOMM); then it writes the caller's structures. */
#include "devcomm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t up(uint64_t n, uint64_t a) { return (n + a - 1) / a * a; }

uint32_t gccl_devcomm_take(gccl_devcomm *d, uint64_t bytes, uint64_t align) {
  d->bytes = up(d->bytes, align > 128 ? align : 128);
  uint32_t handle = (uint32_t)(d->bytes / 128);
  d->bytes += bytes;
  return handle;
}

/* floor((2^32 - 1) / n), one more where n is a power of two (nccl::utility::idivRcp32). */
static uint32_t reciprocal(uint32_t n) { return UINT32_MAX / n + ((n & (n - 1)) == 0); }

static void output(gccl_devcomm *d, uint32_t *at, uint32_t value) {
  d->output[d->noutputs].at = at;
  d->output[d->noutputs++].value = value;
}

static ncclLsaBarrierHandle_t lsa_barriers(gccl_devcomm *d, int n) {
  ncclLsaBarrierHandle_t h;
  ncclDevResourceRequirements_t r;
  ncclTeam_t lsa = {d->comm->lsa_size, d->comm->rank % d->comm->lsa_size, 1};
  memset(&h, 0, sizeof h);
  if (n > 0 && pncclLsaBarrierCreateRequirement(lsa, n, &h, &r) == ncclSuccess)
    h.bufHandle = gccl_devcomm_take(d, r.bufferSize, r.bufferAlign);
  return h;
}

static const char *where(const struct ncclComm *c) { return c->cuda ? "in this version" : "in host mode"; }

/* Reads the lists: what they ask for takes room now, and is written to the caller at the end. */
static ncclResult_t plan_lists(gccl_devcomm *d, const struct ncclDevCommRequirements *r, const char *call) {
  const struct ncclComm *c = d->comm;
  const ncclTeamRequirements_t *t = r->teamRequirementsList;
  for (int n = 0; t; t = t->next, n++) {
    if (t->multimem || n >= GCCL_DEVCOMM_OUTPUTS)
      return gccl_fail(ncclInvalidArgument,
                       "%s: rank %d of %d: teamRequirementsList[%d].multimem: there is no multicast %s: use LSA pointers", call, c->rank,
                       c->nranks, n, where(c));
  }
  const void *at = r->resourceRequirementsList;
  for (int n = 0; at; n++) {
    ncclDevResourceRequirements_t q;
    gccl_devcomm_read_resource(&q, at, d->form);
    if (n >= GCCL_DEVCOMM_OUTPUTS)
      return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: resourceRequirementsList has more than %d elements", call, c->rank,
                       c->nranks, n);
    if (q.bufferAlign & (q.bufferAlign - 1) || q.bufferAlign > 1 << 20)
      return gccl_fail(ncclInvalidArgument,
                       "%s: rank %d of %d: resourceRequirementsList[%d].bufferAlign %zu is not a power of two up to 1 MiB", call, c->rank,
                       c->nranks, n, q.bufferAlign);
    if (q.bufferSize > (uint64_t)1 << 38)
      return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: resourceRequirementsList[%d].bufferSize %zu is too large", call, c->rank,
                       c->nranks, n, q.bufferSize);
    uint32_t handle = gccl_devcomm_take(d, q.bufferSize, q.bufferAlign), signal, counter;
    ncclResult_t rc = gccl_devgin_take(d, &d->signals, q.ginSignalCount, "resourceRequirementsList.ginSignalCount", &signal, call);
    if (rc == ncclSuccess)
      rc = gccl_devgin_take(d, &d->counters, q.ginCounterCount, "resourceRequirementsList.ginCounterCount", &counter, call);
    if (rc != ncclSuccess) return rc;
    if (q.outBufferHandle) output(d, q.outBufferHandle, handle);
    if (q.outGinSignalStart && q.ginSignalCount > 0) output(d, q.outGinSignalStart, signal);
    if (q.outGinCounterStart && q.ginCounterCount > 0) output(d, q.outGinCounterStart, counter);
    at = q.next;
  }
  return ncclSuccess;
}

static ncclResult_t plan(gccl_devcomm *d, const struct ncclDevCommRequirements *r, const char *call) {
  struct ncclComm *c = d->comm;
  const struct {
    const char *name;
    int value;
  } count[] = {{"barrierCount", r->barrierCount},
               {"lsaBarrierCount", r->lsaBarrierCount},
               {"railGinBarrierCount", r->railGinBarrierCount},
               {"worldGinBarrierCount", r->worldGinBarrierCount},
               {"ginSignalCount", r->ginSignalCount},
               {"ginCounterCount", r->ginCounterCount}};
  for (size_t i = 0; i < sizeof count / sizeof *count; i++)
    if (count[i].value < 0 || count[i].value > 1 << 20)
      return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: %s is %d, and must be 0 to %d", call, c->rank, c->nranks, count[i].name,
                       count[i].value, 1 << 20);
  if (r->lsaMultimem)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: lsaMultimem: there is no multicast %s: use LSA pointers", call, c->rank,
                     c->nranks, where(c));
  d->dev.magic = NCCL_API_MAGIC;
  d->dev.version = r->version;
  d->dev.rank = c->rank;
  d->dev.nRanks = c->nranks;
  d->dev.nRanks_rcp32 = reciprocal((uint32_t)c->nranks);
  d->dev.lsaRank = c->rank % c->lsa_size;
  d->dev.lsaSize = c->lsa_size;
  d->dev.lsaSize_rcp32 = reciprocal((uint32_t)c->lsa_size);
  d->dev.windowTable = c->window_table;
  d->dev.abortFlag = (uint32_t *)&c->kernel_abort;
  if (c->cuda) {
    ncclResult_t got = gccl_device_kernels(c, &d->dev.windowTable, &d->dev.abortFlag, call);
    if (got != ncclSuccess) return got;
  }
  gccl_devcomm_take(d, GCCL_DEVCOMM_COPY, 128); /* the first: gcclDevCommGetDevicePointer finds it at the start */
  d->dev.lsaBarrier = lsa_barriers(d, r->lsaBarrierCount);
  d->dev.hybridLsaBarrier = lsa_barriers(d, r->barrierCount);
  ncclResult_t rc = gccl_devgin_plan(d, r, call);
  if (rc == ncclSuccess) rc = plan_lists(d, r, call);
  if (rc == ncclSuccess) gccl_devgin_room(d);
  d->own_at = (uint64_t)gccl_devcomm_take(d, sizeof(struct gcclDevComm_own), 128) * 128;
  if (rc == ncclSuccess && d->bytes > (uint64_t)UINT32_MAX * 128)
    rc = gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: the resources need %llu bytes, more than handles can name", call, c->rank,
                   c->nranks, (unsigned long long)d->bytes);
  return rc;
}

/* FNV-1a, of what must be the same on all ranks. */
static uint64_t digest(uint64_t h, const void *p, size_t n) {
  for (size_t i = 0; i < n; i++) h = (h ^ ((const unsigned char *)p)[i]) * 0x100000001b3ull;
  return h;
}
static uint64_t digest_of(const gccl_devcomm *d) {
  uint64_t h = digest(0xcbf29ce484222325ull, &d->bytes, sizeof d->bytes);
  h = digest(h, &d->dev.lsaBarrier, sizeof d->dev.lsaBarrier);
  h = digest(h, &d->dev.hybridLsaBarrier, sizeof d->dev.hybridLsaBarrier);
  h = digest(h, &d->gin, sizeof d->gin);
  for (int i = 0; i < d->noutputs; i++) h = digest(h, &d->output[i].value, sizeof d->output[i].value);
  return h;
}

ncclResult_t gccl_devcomm_put(const gccl_devcomm *d, uint64_t at, const void *from, size_t n) {
  char *to = d->window->flat + d->window->stride * (uint64_t)d->comm->rank + at;
  if (d->comm->cuda) return gccl_device_write(d->comm, to, from, n, "ncclDevCommCreate");
  memcpy(to, from, n);
  return ncclSuccess;
}

/* A device communicator that cannot be finished leaves nothing behind. */
static ncclResult_t drop(const gccl_devcomm *d, ncclResult_t rc) {
  char text[GCCL_TEXT], why[GCCL_TEXT];
  snprintf(why, sizeof why, "%s", gccl_last_error());
  gccl_core.window_deregister(d->comm, d->window, text);
  return gccl_fail(rc, "%s", why);
}

ncclResult_t gccl_devcomm_complete(void *devcomm) {
  gccl_devcomm *d = devcomm;
  ncclResult_t rc = ncclSuccess;
  const struct gcclWindow_device *w = &d->window->dev;
  char *resources = d->window->flat + d->window->stride * (uint64_t)d->comm->rank;
  d->dev.resourceWindow = d->window->handle;
  d->dev.resourceWindow_inlined.lsaFlatBase = w->nccl.lsaFlatBase;
  d->dev.resourceWindow_inlined.stride4G = w->nccl.stride4G;
  d->dev.resourceWindow_inlined.mcOffset4K = w->nccl.mcOffset4K;
  if (d->stamp) {
    struct gcclDevComm_own own = {.magic = GCCL_DEVICE_OWN_MAGIC, .version = d->stamp, .owner = w->owner, .resourceBytes = d->own_at};
    rc = gccl_devgin_complete(d, resources, &own);
    if (rc == ncclSuccess) rc = gccl_devcomm_put(d, d->own_at, &own, sizeof own);
    d->dev.resourceWindow_inlined.gcclOwn = (struct gcclDevComm_own *)(resources + d->own_at);
  } else {
    rc = gccl_devgin_complete(d, resources, NULL);
  }
  char copy[GCCL_DEVCOMM_COPY] = {0};
  gccl_devcomm_write(copy, d->form, &d->dev, &w->nccl);
  if (rc == ncclSuccess) rc = gccl_devcomm_put(d, 0, copy, sizeof copy);
  if (rc != ncclSuccess) return drop(d, rc);
  for (int i = 0; i < d->noutputs; i++) *d->output[i].at = d->output[i].value;
  gccl_devcomm_write(d->out, d->form, &d->dev, &w->nccl);
  return ncclSuccess;
}

static ncclResult_t create(ncclComm_t comm, const void *reqs, void *out, unsigned stamp) {
  const char *call = "ncclDevCommCreate";
  ncclResult_t rc = gccl_comm_check(comm, call);
  if (rc != ncclSuccess) return rc;
  if (!reqs || !out) return gccl_fail(ncclInvalidArgument, "%s: rank %d: %s is NULL", call, comm->rank, reqs ? "outDevComm" : "reqs");
  struct ncclDevCommRequirements r;
  gccl_devcomm *d = calloc(1, sizeof *d);
  if (!d) return gccl_fail(ncclSystemError, "%s: rank %d: out of memory", call, comm->rank);
  d->comm = comm;
  d->out = out;
  d->stamp = stamp;
  rc = gccl_devcomm_read(&r, &d->form, reqs, call);
  if (rc == ncclSuccess && stamp && d->form != GCCL_FORM_23007)
    rc = gccl_fail(ncclInvalidUsage, "%s: rank %d: reqs is of version %u, not of the header that stamped the call", call, comm->rank,
                   r.version);
  if (rc == ncclSuccess) rc = plan(d, &r, call);
  if (rc != ncclSuccess) {
    char text[GCCL_TEXT];
    gccl_core.devcomm_refuse(comm, rc, gccl_last_error(), text);
    free(d);
    return rc;
  }
  gccl_job j;
  memset(&j, 0, sizeof j);
  j.kind = GCCL_JOB_DEVCOMM;
  j.comm = comm;
  j.size = d->bytes;
  j.digest = digest_of(d);
  j.devcomm = d;
  j.gin = &d->gin;
  j.out = (void **)&d->window;
  return gccl_submit_job(&j, call);
}

GCCL_API(ncclResult_t, ncclDevCommCreate, ncclComm_t comm, struct ncclDevCommRequirements const *reqs, struct ncclDevComm *outDevComm) {
  return gccl_group_note(create(comm, reqs, outDevComm, 0));
}

GCCL_OWN_API ncclResult_t gcclDevCommCreate(ncclComm_t comm, struct ncclDevCommRequirements const *reqs, struct ncclDevComm *outDevComm,
                                            unsigned stamp) {
  if (stamp != GCCL_DEVICE_STAMP) {
    ncclResult_t rc = gccl_fail(ncclInvalidUsage,
                                "gcclDevCommCreate: the kernels' header has stamp %u, and this library's has %u: compile them with the "
                                "gccl_device.h of this library",
                                stamp, GCCL_DEVICE_STAMP);
    return gccl_group_note(rc);
  }
  return gccl_group_note(create(comm, reqs, outDevComm, stamp));
}

/* The resource window of a device communicator of comm, whose handle the caller has checked. */
static ncclResult_t find(ncclComm_t comm, struct ncclDevComm const *devComm, gccl_window **window, const char *call) {
  if (!devComm) return gccl_fail(ncclInvalidArgument, "%s: rank %d: devComm is NULL", call, comm->rank);
  const void *at = gccl_devcomm_window(devComm);
  for (unsigned i = 0; i < sizeof comm->windows / sizeof *comm->windows; i++) {
    if (!at || atomic_load_explicit(&comm->handles[i], memory_order_acquire) != at) continue;
    gccl_window *w = atomic_load_explicit(&comm->windows[i], memory_order_acquire);
    if (!w || !w->resource) continue;
    *window = w;
    return ncclSuccess;
  }
  return gccl_fail(ncclInvalidArgument, "%s: rank %d: devComm %p is not of this communicator, or has been destroyed", call, comm->rank,
                   (const void *)devComm);
}

GCCL_OWN_API ncclResult_t gcclDevCommGetDevicePointer(ncclComm_t comm, struct ncclDevComm const *devComm, void **outPtr) {
  const char *call = "gcclDevCommGetDevicePointer";
  gccl_window *w = NULL;
  ncclResult_t rc = gccl_comm_check(comm, call);
  if (rc != ncclSuccess) return rc;
  if (!outPtr) return gccl_fail(ncclInvalidArgument, "%s: rank %d: outPtr is NULL", call, comm->rank);
  rc = find(comm, devComm, &w, call);
  if (rc == ncclSuccess) *outPtr = w->flat + w->stride * (uint64_t)comm->rank;
  return rc;
}

GCCL_API(ncclResult_t, ncclDevCommDestroy, ncclComm_t comm, struct ncclDevComm const *devComm) {
  const char *call = "ncclDevCommDestroy";
  gccl_window *w = NULL;
  ncclResult_t rc = gccl_handle_check(comm, call);
  if (rc == ncclSuccess) rc = find(comm, devComm, &w, call);
  if (rc != ncclSuccess) return rc;
  char text[GCCL_TEXT] = "";
  rc = (ncclResult_t)gccl_core.window_deregister(comm, w, text);
  return rc == ncclSuccess ? rc : gccl_fail(rc, "%s: rank %d: %s", call, comm->rank, text);
}
