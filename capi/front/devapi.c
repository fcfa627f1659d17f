/* Host functions of the device API that need no other rank: questions, teams, pointers, requirements. */
#include "devcomm.h"

#include <limits.h>
#include <string.h>

/* ---- Questions ---- */

GCCL_API(ncclResult_t, ncclCommQueryProperties, ncclComm_t comm, ncclCommProperties_t *props) {
  const char *call = "ncclCommQueryProperties";
  ncclResult_t rc = gccl_comm_check_made(comm, call);
  if (rc != ncclSuccess) return rc;
  if (!props) return gccl_fail(ncclInvalidArgument, "%s: rank %d: props is NULL", call, comm->rank);
  if (props->magic != NCCL_API_MAGIC || props->size < offsetof(ncclCommProperties_t, ginType))
    return gccl_fail(ncclInvalidUsage, "%s: rank %d: props must be set to NCCL_COMM_PROPERTIES_INITIALIZER", call, comm->rank);
  props->rank = comm->rank;
  props->nRanks = comm->nranks;
  props->cudaDev = comm->cuda ? comm->device : -1;
  props->nvmlDev = -1; /* nobody here asks NVML */
  props->deviceApiSupport = comm->device_api && !(comm->cuda && gccl_device_unreached(comm));
  props->multimemSupport = false;
  if (props->version <= 22903) { /* there ginType has one byte */
    *(uint8_t *)((char *)props + offsetof(ncclCommProperties_t, multimemSupport) + 1) =
        !comm->gin_type ? NCCL_GIN_TYPE_NONE : NCCL_GIN_TYPE_PROXY; /* no such header is this library's */
    return ncclSuccess;
  }
  if (props->size < sizeof *props)
    return gccl_fail(ncclInvalidUsage, "%s: rank %d: props says that it has %zu bytes, and version %u has %zu", call, comm->rank,
                     props->size, props->version, sizeof *props);
  props->ginType = (ncclGinType_t)comm->gin_type;
  props->nLsaTeams = comm->nranks / comm->lsa_size;
  props->hostRmaSupport = !comm->no_onesided && !(comm->cuda && gccl_device_staged(comm));
  props->railedGinType = props->ginType;
  return ncclSuccess;
}

/* ---- Teams ---- */

GCCL_API(ncclTeam_t, ncclTeamWorld, ncclComm_t comm) {
  if (gccl_comm_check_made(comm, "ncclTeamWorld") != ncclSuccess) return (ncclTeam_t){0, 0, 0};
  return (ncclTeam_t){comm->nranks, comm->rank, 1};
}

GCCL_API(ncclTeam_t, ncclTeamLsa, ncclComm_t comm) {
  if (gccl_comm_check_made(comm, "ncclTeamLsa") != ncclSuccess) return (ncclTeam_t){0, 0, 0};
  return (ncclTeam_t){comm->lsa_size, comm->rank % comm->lsa_size, 1};
}

GCCL_API(ncclTeam_t, ncclTeamRail, ncclComm_t comm) {
  if (gccl_comm_check_made(comm, "ncclTeamRail") != ncclSuccess) return (ncclTeam_t){0, 0, 0};
  return (ncclTeam_t){comm->nranks / comm->lsa_size, comm->rank / comm->lsa_size, comm->lsa_size};
}

GCCL_API(int, ncclTeamRankToWorld, ncclComm_t comm, ncclTeam_t team, int rank) {
  if (gccl_comm_check_made(comm, "ncclTeamRankToWorld") != ncclSuccess) return -1;
  return comm->rank + (rank - team.rank) * team.stride;
}

GCCL_API(int, ncclTeamRankToLsa, ncclComm_t comm, ncclTeam_t team, int rank) {
  if (gccl_comm_check_made(comm, "ncclTeamRankToLsa") != ncclSuccess) return -1;
  return comm->rank % comm->lsa_size + (rank - team.rank) * team.stride;
}

/* ---- Pointers ---- */

/* A window of any live communicator, resource windows included. Windows come and go with their communicators, so the pointer is looked up
 * and never followed before. */
static gccl_window *find_window(ncclWindow_t win) {
  int end = 0;
  for (int i = 0; i == 0 || i < end; i++) {
    struct ncclComm *c = gccl_handle_at(i, &end);
    for (unsigned k = 0; c && win && k < sizeof c->windows / sizeof *c->windows; k++) {
      if (atomic_load_explicit(&c->handles[k], memory_order_acquire) != (void *)win) continue;
      gccl_window *w = atomic_load_explicit(&c->windows[k], memory_order_acquire);
      if (w) return w;
    }
  }
  return NULL;
}

/* What all pointer functions check; *w is the window. */
static ncclResult_t check_pointer(gccl_window **w, ncclWindow_t win, size_t offset, void **out, const char *call) {
  if (gccl_forked) return gccl_core_open(call);
  if (!out) return gccl_fail(ncclInvalidArgument, "%s: outPtr is NULL", call);
  if (!(*w = find_window(win))) return gccl_fail(ncclInvalidArgument, "%s: %p is not a window", call, (void *)win);
  if (offset >= (*w)->size)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: offset %zu is past the end of window %p, which has %llu bytes", call,
                     (*w)->comm->rank, offset, (void *)win, (unsigned long long)(*w)->size);
  if (!(*w)->flat)
    return gccl_fail(ncclInvalidUsage, "%s: rank %d: windows of GPU memory have no device pointers in this version", call,
                     (*w)->comm->rank);
  return ncclSuccess;
}

GCCL_API(ncclResult_t, ncclGetLsaDevicePointer, ncclWindow_t window, size_t offset, int lsaRank, void **outPtr) {
  gccl_window *w;
  ncclResult_t rc = check_pointer(&w, window, offset, outPtr, "ncclGetLsaDevicePointer");
  if (rc != ncclSuccess) return rc;
  if (lsaRank < 0 || lsaRank >= w->dev.lsaSize)
    return gccl_fail(ncclInvalidArgument, "ncclGetLsaDevicePointer: rank %d: lsaRank %d is not in the LSA team of %d ranks", w->comm->rank,
                     lsaRank, w->dev.lsaSize);
  *outPtr = w->dev.nccl.lsaFlatBase + (uint64_t)lsaRank * w->stride + offset;
  return ncclSuccess;
}

GCCL_API(ncclResult_t, ncclGetPeerDevicePointer, ncclWindow_t window, size_t offset, int peer, void **outPtr) {
  gccl_window *w;
  ncclResult_t rc = check_pointer(&w, window, offset, outPtr, "ncclGetPeerDevicePointer");
  if (rc != ncclSuccess) return rc;
  if (peer < 0 || peer >= w->comm->nranks)
    return gccl_fail(ncclInvalidArgument, "ncclGetPeerDevicePointer: rank %d: peer %d is not one of %d ranks", w->comm->rank, peer,
                     w->comm->nranks);
  int lsa = peer - (w->comm->rank - w->dev.nccl.lsaRank);
  *outPtr = 0 <= lsa && lsa < w->dev.lsaSize ? w->flat + (uint64_t)peer * w->stride + offset : NULL;
  return ncclSuccess;
}

GCCL_API(ncclResult_t, ncclGetLsaMultimemDevicePointer, ncclWindow_t window, size_t offset, void **outPtr) {
  gccl_window *w;
  ncclResult_t rc = check_pointer(&w, window, offset, outPtr, "ncclGetLsaMultimemDevicePointer");
  if (rc == ncclSuccess) *outPtr = NULL;
  return rc;
}

GCCL_API(ncclResult_t, ncclGetMultimemDevicePointer, ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem, void **outPtr) {
  gccl_window *w;
  (void)multimem;
  ncclResult_t rc = check_pointer(&w, window, offset, outPtr, "ncclGetMultimemDevicePointer");
  if (rc == ncclSuccess) *outPtr = NULL;
  return rc;
}

/* ---- Requirements ---- */

/* Sets what all versions of the structure have, and the rest to zero where the caller's has it. */
static void require(ncclDevResourceRequirements_t *r, uint64_t bytes, uint64_t align, uint32_t *handle) {
  memset(r, 0, gccl_devcomm_unversioned() == GCCL_FORM_22803 ? offsetof(ncclDevResourceRequirements_t, ginSignalCount) : sizeof *r);
  r->bufferSize = bytes;
  r->bufferAlign = align;
  r->outBufferHandle = handle;
}

GCCL_API(ncclResult_t, ncclLsaBarrierCreateRequirement, ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t *outHandle,
         ncclDevResourceRequirements_t *outReq) {
  if (!outHandle || !outReq || nBarriers < 1 || team.nRanks < 1 || team.rank < 0 || team.rank >= team.nRanks)
    return gccl_fail(ncclInvalidArgument,
                     "ncclLsaBarrierCreateRequirement: %d barriers of rank %d of a team of %d, handle %p, requirement %p", nBarriers,
                     team.rank, team.nRanks, (void *)outHandle, (void *)outReq);
  require(outReq, 4 * (3 * (uint64_t)nBarriers + (uint64_t)nBarriers * (uint64_t)team.nRanks), 4, &outHandle->bufHandle);
  outHandle->nBarriers = nBarriers;
  return ncclSuccess;
}

GCCL_API(int, ncclLLA2ACalcSlots, int maxElts, int maxEltSize) { return maxElts * ((maxEltSize + 7) / 8); }

GCCL_API(ncclResult_t, ncclLLA2ACreateRequirement, int nBlocks, int nSlots, ncclLLA2AHandle_t *outHandle,
         ncclDevResourceRequirements_t *outReq) {
  if (!outHandle || !outReq || nBlocks < 1 || nSlots < 1)
    return gccl_fail(ncclInvalidArgument, "ncclLLA2ACreateRequirement: %d blocks of %d slots, handle %p, requirement %p", nBlocks, nSlots,
                     (void *)outHandle, (void *)outReq);
  require(outReq, 16 * (uint64_t)nBlocks * (1 + 2 * (uint64_t)nSlots), 16, &outHandle->bufHandle);
  outHandle->nSlots = (uint32_t)nSlots;
  return ncclSuccess;
}

/* ---- GIN ---- */

GCCL_API(ncclResult_t, ncclGinBarrierCreateRequirement, ncclComm_t comm, ncclTeam_t team, int nBarriers, ncclGinBarrierHandle_t *outHandle,
         ncclDevResourceRequirements_t *outReq) {
  const char *call = "ncclGinBarrierCreateRequirement";
  ncclResult_t rc = gccl_comm_check_made(comm, call);
  if (rc != ncclSuccess) return rc;
  if (!outHandle || !outReq || nBarriers < 1 || team.nRanks < 1 || nBarriers > INT_MAX / team.nRanks)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: %d barriers of a team of %d ranks, handle %p, requirement %p", call, comm->rank,
                     nBarriers, team.nRanks, (void *)outHandle, (void *)outReq);
  memset(outHandle, 0, sizeof *outHandle);
  /* The buffer is for kernels of 2.28.7 to 2.29.3, which count rounds there; nothing says here whose header the caller has. */
  require(outReq, (uint64_t)nBarriers * GCCL_GIN_OLD_EPOCHS, 4, &outHandle->unused);
  outReq->ginSignalCount = nBarriers * team.nRanks;
  outReq->outGinSignalStart = &outHandle->signal0;
  return ncclSuccess;
}

/* Structures of a header that NCCL does not install; their kernels are NCCL's own. */
static ncclResult_t not_public(const char *call) {
  return gccl_fail(ncclInvalidUsage, "%s: this library does not offer NCCL's internal mailboxes: use ncclGin", call);
}

GCCL_API(ncclResult_t, ncclGinInboxA2ACreateRequirement, ncclTeam_t peers, int nBlocks, int size_log2, void *outHandle, void *outReq) {
  (void)peers, (void)nBlocks, (void)size_log2, (void)outHandle, (void)outReq;
  return not_public("ncclGinInboxA2ACreateRequirement");
}
GCCL_API(ncclResult_t, ncclGinOutboxCreateRequirement, int nBlocks, int size_log2, void *outHandle, void *outReq) {
  (void)nBlocks, (void)size_log2, (void)outHandle, (void)outReq;
  return not_public("ncclGinOutboxCreateRequirement");
}
