/* Host functions of the device API. They are exported, so that every program links, and refuse by name. */
#include "front.h"

/* Types of the nccl_device headers, which this header set does not have yet, as the calling convention sees them. */
typedef struct {
  int nranks, rank, stride;
} team_t;
typedef struct {
  void *p;
} multimem_t;

static ncclResult_t refuse(const char *call) {
  return gccl_fail(ncclInvalidUsage, "%s: the device API is not available in this version of the library; use the host API", call);
}

#define REFUSED(NAME, ...) \
  GCCL_API(ncclResult_t, NAME, __VA_ARGS__) { return refuse(#NAME); }

#pragma GCC diagnostic ignored "-Wunused-parameter"
REFUSED(ncclDevCommCreate, ncclComm_t comm, const void *reqs, void *outDevComm)
REFUSED(ncclDevCommDestroy, ncclComm_t comm, const void *devComm)
REFUSED(ncclCommQueryProperties, ncclComm_t comm, void *props)
REFUSED(ncclGetLsaDevicePointer, ncclWindow_t window, size_t offset, int lsaRank, void **outPtr)
REFUSED(ncclGetLsaMultimemDevicePointer, ncclWindow_t window, size_t offset, void **outPtr)
REFUSED(ncclGetMultimemDevicePointer, ncclWindow_t window, size_t offset, multimem_t multimem, void **outPtr)
REFUSED(ncclGetPeerDevicePointer, ncclWindow_t window, size_t offset, int peer, void **outPtr)
REFUSED(ncclGinBarrierCreateRequirement, ncclComm_t comm, team_t team, int nBarriers, void *outHandle, void *outReq)
REFUSED(ncclGinInboxA2ACreateRequirement, team_t peers, int nBlocks, int size_log2, void *outHandle, void *outReq)
REFUSED(ncclGinOutboxCreateRequirement, int nBlocks, int size_log2, void *outHandle, void *outReq)
REFUSED(ncclLLA2ACreateRequirement, int nBlocks, int nSlots, void *outHandle, void *outReq)
REFUSED(ncclLsaBarrierCreateRequirement, team_t team, int nBarriers, void *outHandle, void *outReq)

/* slots = maxElts · ceil(maxEltSize / 8): arithmetic, needs no device. */
GCCL_API(int, ncclLLA2ACalcSlots, int maxElts, int maxEltSize) { return maxElts * ((maxEltSize + 7) / 8); }

GCCL_API(team_t, ncclTeamWorld, ncclComm_t comm) {
  team_t none = {0, 0, 0};
  if (gccl_comm_check(comm, "ncclTeamWorld") != ncclSuccess) return none;
  return (team_t){comm->nranks, comm->rank, 1};
}

/* In host mode all ranks of a communicator reach each other by load and store: the LSA team is the world. */
GCCL_API(team_t, ncclTeamLsa, ncclComm_t comm) { return pncclTeamWorld(comm); }

GCCL_API(team_t, ncclTeamRail, ncclComm_t comm) {
  team_t none = {0, 0, 0};
  if (gccl_comm_check(comm, "ncclTeamRail") != ncclSuccess) return none;
  return (team_t){1, 0, comm->nranks};
}

GCCL_API(int, ncclTeamRankToWorld, ncclComm_t comm, team_t team, int rank) {
  if (gccl_comm_check(comm, "ncclTeamRankToWorld") != ncclSuccess) return -1;
  return comm->rank + (rank - team.rank) * team.stride;
}

GCCL_API(int, ncclTeamRankToLsa, ncclComm_t comm, team_t team, int rank) { return pncclTeamRankToWorld(comm, team, rank); }
