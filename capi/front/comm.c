/* Making, deriving, ending and asking communicators. */
#include <stdlib.h>
#include <string.h>

#include "front.h"
#include "nvtx.h"

/* A fresh handle for a job that makes a communicator. */
static ncclResult_t fresh(gccl_job *j, const ncclConfig_t *config, struct ncclComm *parent, int device, const char *call) {
  ncclResult_t rc = gccl_config_read(&j->config, config, call);
  if (rc != ncclSuccess) return rc;
  if (parent) j->config.device_kind = parent->cuda ? gcclDeviceCuda : gcclDeviceHost;
  if ((rc = gccl_device_choose(&j->config.device_kind, call)) != ncclSuccess) return rc;
  char text[GCCL_TEXT] = "";
  rc = (ncclResult_t)gccl_core.config_resolve(&j->config, parent, text);
  if (rc != ncclSuccess) return gccl_fail(rc, "%s: %s", call, text);
  j->comm = gccl_handle_new();
  if (!j->comm) return gccl_fail(ncclSystemError, "%s: no room for another communicator in this process", call);
  j->comm->blocking = j->config.blocking != 0;
  const void *simd = gccl_reduce_named(j->config.simd);
  if (simd) j->comm->simd = simd; /* a set that is not there: the core refuses it on all ranks */
  if (j->config.device_kind == gcclDeviceCuda && (rc = gccl_device_attach(j->comm, parent, device, call)) != ncclSuccess) {
    gccl_handle_retire(j->comm);
    j->comm = NULL;
    return rc;
  }
  j->parent = parent;
  return ncclSuccess;
}

/* device: -1 for that of the calling thread. */
static ncclResult_t init(ncclComm_t *out, int nranks, const ncclUniqueId *ids, int nids, int rank, const ncclConfig_t *config, int device,
                         const char *call) {
  ncclResult_t rc = gccl_core_open(call);
  if (rc != ncclSuccess) return rc;
  if (nids < 1 || nids > nranks) return gccl_fail(ncclInvalidArgument, "%s: rank %d: nId %d is outside 1..%d", call, rank, nids, nranks);
  if (!out) return gccl_fail(ncclInvalidArgument, "%s: rank %d: comm is NULL", call, rank);
  *out = NULL;
  if (nranks < 1 || rank < 0 || rank >= nranks)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d is outside 0..%d (nranks %d)", call, rank, nranks - 1, nranks);
  if (!ids) return gccl_fail(ncclInvalidArgument, "%s: rank %d: commIds is NULL", call, rank);
  gccl_job j;
  memset(&j, 0, sizeof j);
  j.kind = GCCL_JOB_INIT;
  j.nranks = nranks;
  j.rank = rank;
  j.nids = nids;
  unsigned char *copy = malloc((size_t)nids * sizeof *ids);
  if (!copy) return gccl_fail(ncclSystemError, "%s: rank %d: out of memory", call, rank);
  memcpy(copy, ids, (size_t)nids * sizeof *ids);
  j.ids = copy;
  if ((rc = fresh(&j, config, NULL, device, call)) != ncclSuccess) {
    free(copy);
    return rc;
  }
  j.comm->rank = rank;
  j.comm->nranks = nranks;
  j.out = (void **)out;
  *out = j.comm;
  return gccl_submit_job(&j, call);
}

GCCL_API(ncclResult_t, ncclGetUniqueId, ncclUniqueId *uniqueId) {
  ncclResult_t rc = gccl_core_open("ncclGetUniqueId");
  if (rc != ncclSuccess) return rc;
  if (!uniqueId) return gccl_fail(ncclInvalidArgument, "ncclGetUniqueId: uniqueId is NULL");
  char text[GCCL_TEXT] = "";
  rc = (ncclResult_t)gccl_core.get_unique_id((unsigned char *)uniqueId, text);
  return rc == ncclSuccess ? rc : gccl_fail(rc, "ncclGetUniqueId: %s", text);
}

GCCL_API(ncclResult_t, ncclCommGetUniqueId, ncclComm_t comm, ncclUniqueId *uniqueId) {
  ncclResult_t rc = gccl_comm_check(comm, "ncclCommGetUniqueId");
  if (rc != ncclSuccess) return rc;
  if (!uniqueId) return gccl_fail(ncclInvalidArgument, "ncclCommGetUniqueId: rank %d: uniqueId is NULL", comm->rank);
  char text[GCCL_TEXT] = "";
  rc = (ncclResult_t)gccl_core.comm_get_unique_id(comm, (unsigned char *)uniqueId, text);
  return rc == ncclSuccess ? rc : gccl_fail(rc, "ncclCommGetUniqueId: %s", text);
}

GCCL_API(ncclResult_t, ncclCommInitRank, ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank) {
  GCCL_RANGE_OF("ncclCommInitRank");
  return gccl_group_note(init(comm, nranks, &commId, 1, rank, NULL, -1, "ncclCommInitRank"));
}

GCCL_API(ncclResult_t, ncclCommInitRankConfig, ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config) {
  GCCL_RANGE_OF("ncclCommInitRankConfig");
  return gccl_group_note(init(comm, nranks, &commId, 1, rank, config, -1, "ncclCommInitRankConfig"));
}

GCCL_API(ncclResult_t, ncclCommInitRankScalable, ncclComm_t *newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds,
         ncclConfig_t *config) {
  GCCL_RANGE_OF("ncclCommInitRankScalable");
  return gccl_group_note(init(newcomm, nranks, commIds, nId, myrank, config, -1, "ncclCommInitRankScalable"));
}

static ncclResult_t init_all(ncclComm_t *comm, int ndev, const int *devlist) {
  const char *call = "ncclCommInitAll";
  if (!comm) return gccl_fail(ncclInvalidArgument, "%s: comm is NULL", call);
  if (ndev < 1) return gccl_fail(ncclInvalidArgument, "%s: ndev %d is less than 1", call, ndev);
  for (int i = 0; devlist && i < ndev; i++)
    if (devlist[i] < 0) return gccl_fail(ncclInvalidArgument, "%s: devlist[%d] is %d", call, i, devlist[i]);
  ncclUniqueId id;
  ncclResult_t rc = pncclGetUniqueId(&id);
  if (rc != ncclSuccess) return rc;
  if ((rc = pncclGroupStart()) != ncclSuccess) return rc;
  for (int i = 0; i < ndev && rc == ncclSuccess; i++) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    rc = gccl_group_note(init(&comm[i], ndev, &id, 1, i, &config, devlist ? devlist[i] : GCCL_DEVICE_IN_TURN - i, call));
    if (rc == ncclSuccess && !comm[i]->cuda) comm[i]->device = devlist ? devlist[i] : 0;
  }
  ncclResult_t ended = pncclGroupEnd();
  return rc != ncclSuccess ? rc : ended;
}

GCCL_API(ncclResult_t, ncclCommInitAll, ncclComm_t *comm, int ndev, const int *devlist) {
  GCCL_RANGE_OF("ncclCommInitAll");
  return gccl_group_note(init_all(comm, ndev, devlist));
}

/* --- derived communicators --- */

static ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config) {
  const char *call = "ncclCommSplit";
  ncclResult_t rc = gccl_comm_check_made(comm, call);
  if (rc != ncclSuccess) return rc;
  if (!newcomm) return gccl_fail(ncclInvalidArgument, "%s: rank %d: newcomm is NULL", call, comm->rank);
  *newcomm = NULL;
  gccl_job j;
  memset(&j, 0, sizeof j);
  j.kind = GCCL_JOB_SPLIT;
  j.color = color;
  j.key = key;
  j.parent = comm;
  if (color != NCCL_SPLIT_NOCOLOR && (rc = fresh(&j, config, comm, -1, call)) != ncclSuccess) return rc;
  j.out = (void **)newcomm;
  return gccl_submit_job(&j, call);
}

GCCL_API(ncclResult_t, ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config) {
  GCCL_RANGE_OF("ncclCommSplit");
  return gccl_group_note(split(comm, color, key, newcomm, config));
}

static int ascending(const void *a, const void *b) { return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }

static ncclResult_t shrink(ncclComm_t comm, int *exclude, int n, ncclComm_t *newcomm, ncclConfig_t *config, int flags) {
  const char *call = "ncclCommShrink";
  ncclResult_t rc = gccl_handle_check(comm, call);
  if (rc != ncclSuccess) return rc;
  /* A failed communicator may be shrunk: that is what shrinking is for. */
  if (atomic_load_explicit(&comm->error, memory_order_acquire) <= 0 && (rc = gccl_comm_check_made(comm, call)) != ncclSuccess) return rc;
  if (!newcomm) return gccl_fail(ncclInvalidArgument, "%s: rank %d: newcomm is NULL", call, comm->rank);
  *newcomm = NULL;
  if (!exclude || n <= 0)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: the list of excluded ranks is empty (count %d)", call, comm->rank, n);
  if (flags & ~NCCL_SHRINK_ABORT) return gccl_fail(ncclInvalidArgument, "%s: rank %d: unknown flags 0x%x", call, comm->rank, flags);
  qsort(exclude, (size_t)n, sizeof *exclude, ascending); /* callers see their list sorted, as with NCCL */
  for (int i = 0; i < n; i++) {
    if (exclude[i] < 0 || exclude[i] >= comm->nranks)
      return gccl_fail(ncclInvalidArgument, "%s: rank %d: excluded rank %d is outside 0..%d", call, comm->rank, exclude[i],
                       comm->nranks - 1);
    if (exclude[i] == comm->rank)
      return gccl_fail(ncclInvalidArgument, "%s: rank %d is in its own list of excluded ranks", call, comm->rank);
  }
  gccl_job j;
  memset(&j, 0, sizeof j);
  j.kind = GCCL_JOB_SHRINK;
  j.flags = flags;
  int *copy = malloc((size_t)n * sizeof *copy), m = 0;
  if (!copy) return gccl_fail(ncclSystemError, "%s: rank %d: out of memory", call, comm->rank);
  for (int i = 0; i < n; i++)
    if (i == 0 || exclude[i] != exclude[i - 1]) copy[m++] = exclude[i];
  j.exclude = copy;
  j.nexclude = m;
  if ((rc = fresh(&j, config, comm, -1, call)) != ncclSuccess) {
    free(copy);
    return rc;
  }
  j.out = (void **)newcomm;
  return gccl_submit_job(&j, call);
}

GCCL_API(ncclResult_t, ncclCommShrink, ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm,
         ncclConfig_t *config, int shrinkFlags) {
  GCCL_RANGE_OF("ncclCommShrink");
  return gccl_group_note(shrink(comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags));
}

static ncclResult_t grow(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank, ncclComm_t *newcomm, ncclConfig_t *config) {
  const char *call = "ncclCommGrow";
  ncclResult_t rc = gccl_core_open(call);
  if (rc != ncclSuccess) return rc;
  if (comm && (rc = gccl_comm_check(comm, call)) != ncclSuccess) return rc;
  if (!newcomm) return gccl_fail(ncclInvalidArgument, "%s: rank %d: newcomm is NULL", call, rank);
  *newcomm = NULL;
  if (nranks <= (comm ? comm->nranks : 0))
    return gccl_fail(ncclInvalidArgument, "%s: nRanks %d is not more than the %d ranks there are", call, nranks, comm ? comm->nranks : 0);
  if (comm && rank != -1)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d of the communicator passes rank %d: existing ranks keep theirs and pass -1", call,
                     comm->rank, rank);
  if (!comm && (rank < 0 || rank >= nranks)) return gccl_fail(ncclInvalidArgument, "%s: rank %d is outside 0..%d", call, rank, nranks - 1);
  if (!comm && !id) return gccl_fail(ncclInvalidArgument, "%s: rank %d is new and has no unique id", call, rank);
  gccl_job j;
  memset(&j, 0, sizeof j);
  j.kind = GCCL_JOB_GROW;
  j.nranks = nranks;
  j.rank = rank;
  if (id) {
    unsigned char *copy = malloc(sizeof *id);
    if (!copy) return gccl_fail(ncclSystemError, "%s: rank %d: out of memory", call, rank);
    memcpy(copy, id, sizeof *id);
    j.ids = copy;
    j.nids = 1;
  }
  if ((rc = fresh(&j, config, comm, -1, call)) != ncclSuccess) {
    free((void *)j.ids);
    return rc;
  }
  j.out = (void **)newcomm;
  return gccl_submit_job(&j, call);
}

GCCL_API(ncclResult_t, ncclCommGrow, ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank, ncclComm_t *newcomm,
         ncclConfig_t *config) {
  GCCL_RANGE_OF("ncclCommGrow");
  return gccl_group_note(grow(comm, nRanks, uniqueId, rank, newcomm, config));
}

/* --- ending --- */

static ncclResult_t simple_job(ncclComm_t comm, int kind, int flags, const char *call) {
  gccl_job j;
  memset(&j, 0, sizeof j);
  j.kind = kind;
  j.comm = comm;
  j.flags = flags;
  return gccl_submit_job(&j, call);
}

static ncclResult_t finalize(ncclComm_t comm) {
  const char *call = "ncclCommFinalize";
  if (!comm) return ncclSuccess;
  ncclResult_t rc = gccl_handle_check(comm, call);
  if (rc != ncclSuccess) return rc;
  uint32_t s = atomic_load_explicit(&comm->state, memory_order_acquire);
  if (s == GCCL_COMM_FINALIZED || s == GCCL_COMM_REVOKED)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: comm has already been %s", call, comm->rank,
                     s == GCCL_COMM_REVOKED ? "revoked" : "finalized");
  if ((rc = gccl_comm_check(comm, call)) != ncclSuccess) return rc;
  return simple_job(comm, GCCL_JOB_FINALIZE, 0, call);
}

GCCL_API(ncclResult_t, ncclCommFinalize, ncclComm_t comm) {
  GCCL_RANGE_OF("ncclCommFinalize");
  return gccl_group_note(finalize(comm));
}

static ncclResult_t destroy(ncclComm_t comm) {
  const char *call = "ncclCommDestroy";
  if (!comm) return ncclSuccess;
  ncclResult_t rc = gccl_handle_check(comm, call);
  if (rc != ncclSuccess) return rc;
  int32_t e = atomic_load_explicit(&comm->error, memory_order_acquire);
  if (e > 0)
    return gccl_fail((ncclResult_t)e, "%s: rank %d of %d: the communicator has failed and is kept for ncclCommAbort: %s", call, comm->rank,
                     comm->nranks, comm->cause);
  if (atomic_load_explicit(&comm->state, memory_order_acquire) == GCCL_COMM_INIT)
    return gccl_fail(ncclInvalidArgument, "%s: comm is still being initialised: wait for it or call ncclCommAbort", call);
  return simple_job(comm, GCCL_JOB_DESTROY, 0, call);
}

GCCL_API(ncclResult_t, ncclCommDestroy, ncclComm_t comm) {
  GCCL_RANGE_OF("ncclCommDestroy");
  return gccl_group_note(destroy(comm));
}

static ncclResult_t abort_comm(ncclComm_t comm) {
  if (!comm) return ncclSuccess;
  if (gccl_forked) return ncclSuccess; /* nothing of the parent's communicator runs here */
  ncclResult_t rc = gccl_handle_check(comm, "ncclCommAbort");
  if (rc != ncclSuccess) return rc;
  if (comm->release && atomic_load(&comm->state) != GCCL_COMM_INIT) comm->release(comm);
  gccl_abort_raise(comm); /* the core wakes who sleeps: it knows whether the area is there */
  return simple_job(comm, GCCL_JOB_ABORT, 0, "ncclCommAbort");
}

GCCL_API(ncclResult_t, ncclCommAbort, ncclComm_t comm) {
  GCCL_RANGE_OF("ncclCommAbort");
  return gccl_group_note(abort_comm(comm));
}

static ncclResult_t revoke(ncclComm_t comm, int flags) {
  const char *call = "ncclCommRevoke";
  if (!comm) return ncclSuccess;
  ncclResult_t rc = gccl_handle_check(comm, call);
  if (rc != ncclSuccess) return rc;
  if (flags != NCCL_REVOKE_DEFAULT) return gccl_fail(ncclInvalidArgument, "%s: rank %d: unknown flags 0x%x", call, comm->rank, flags);
  uint32_t s = atomic_load_explicit(&comm->state, memory_order_acquire);
  if (s != GCCL_COMM_READY)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: comm is not in use (still initialising, finalized or revoked)", call, comm->rank);
  return simple_job(comm, GCCL_JOB_REVOKE, flags, call);
}

GCCL_API(ncclResult_t, ncclCommRevoke, ncclComm_t comm, int revokeFlags) {
  GCCL_RANGE_OF("ncclCommRevoke");
  return gccl_group_note(revoke(comm, revokeFlags));
}

static ncclResult_t suspend(ncclComm_t comm, int kind, int flags, const char *call) {
  ncclResult_t rc = gccl_comm_check(comm, call);
  if (rc != ncclSuccess) return rc;
  if (kind == GCCL_JOB_SUSPEND && !(flags & NCCL_SUSPEND_MEM)) return ncclSuccess;
  return simple_job(comm, kind, flags, call);
}

GCCL_API(ncclResult_t, ncclCommSuspend, ncclComm_t comm, int flags) {
  return gccl_group_note(suspend(comm, GCCL_JOB_SUSPEND, flags, "ncclCommSuspend"));
}

GCCL_API(ncclResult_t, ncclCommResume, ncclComm_t comm) { return gccl_group_note(suspend(comm, GCCL_JOB_RESUME, 0, "ncclCommResume")); }

/* --- questions --- */

static ncclResult_t ask(const struct ncclComm *comm, int *out, int value, const char *call) {
  if (!out) return gccl_fail(ncclInvalidArgument, "%s: the result pointer is NULL", call);
  *out = value;
  (void)comm;
  return ncclSuccess;
}

GCCL_API(ncclResult_t, ncclCommCount, const ncclComm_t comm, int *count) {
  ncclResult_t rc = gccl_comm_check_made(comm, "ncclCommCount");
  return rc == ncclSuccess ? ask(comm, count, comm->nranks, "ncclCommCount") : rc;
}

GCCL_API(ncclResult_t, ncclCommCuDevice, const ncclComm_t comm, int *device) {
  ncclResult_t rc = gccl_comm_check_made(comm, "ncclCommCuDevice");
  return rc == ncclSuccess ? ask(comm, device, comm->device, "ncclCommCuDevice") : rc;
}

GCCL_API(ncclResult_t, ncclCommUserRank, const ncclComm_t comm, int *rank) {
  ncclResult_t rc = gccl_comm_check_made(comm, "ncclCommUserRank");
  return rc == ncclSuccess ? ask(comm, rank, comm->rank, "ncclCommUserRank") : rc;
}

GCCL_API(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t *asyncError) {
  ncclResult_t rc = gccl_handle_check(comm, "ncclCommGetAsyncError");
  if (rc != ncclSuccess) return rc;
  if (!asyncError) return gccl_fail(ncclInvalidArgument, "ncclCommGetAsyncError: rank %d: asyncError is NULL", comm->rank);
  int32_t e = atomic_load_explicit(&comm->error, memory_order_acquire);
  if (e > 0) {
    *asyncError = (ncclResult_t)e;
  } else if (!comm->blocking && atomic_load_explicit(&comm->serving, memory_order_acquire) < atomic_load(&comm->next)) {
    *asyncError = ncclInProgress;
  } else {
    *asyncError = (ncclResult_t)atomic_load_explicit(&comm->async, memory_order_acquire);
  }
  return ncclSuccess;
}

GCCL_API(ncclResult_t, ncclCommMemStats, ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value) {
  ncclResult_t rc = gccl_comm_check_made(comm, "ncclCommMemStats");
  if (rc != ncclSuccess) return rc;
  if (!value || (unsigned)stat > ncclStatGpuMemTotal)
    return gccl_fail(ncclInvalidArgument, "ncclCommMemStats: rank %d: stat %d is unknown or value is NULL", comm->rank, (int)stat);
  char text[GCCL_TEXT] = "";
  rc = (ncclResult_t)gccl_core.mem_stats(comm, (int32_t)stat, value, text);
  return rc == ncclSuccess ? rc : gccl_fail(rc, "ncclCommMemStats: rank %d: %s", comm->rank, text);
}
