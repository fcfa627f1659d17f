/* core.h: device communicators, their requirements, teams, and pointers into windows.
 *
 * On the host a program registers windows (ncclCommWindowRegister), says what its kernels need (ncclDevCommRequirements), and makes a
 * device communicator, which it passes to kernels by value. Kernels turn a window and a byte offset into an address of any rank of their
 * LSA team (the ranks whose memory they can load and store) and synchronise with barriers (lsa_barrier.h).
 *
 * Host functions return ncclSuccess or an error that ncclGetLastError explains. Unless its comment says otherwise a function may be called
 * by any thread; device functions are called by each thread for itself. */
#ifndef GCCL_DEVICE_CORE_H
#define GCCL_DEVICE_CORE_H

#include "../nccl.h"
#include "coop.h"
#include "impl/core_types.h"

/* ---- What kernels need ------------------------------------------------------------------------------------- */

/* Which peers GIN reaches: none; all ranks; the ranks of the rail (same place in every LSA team). */
typedef enum { NCCL_GIN_CONNECTION_NONE = 0, NCCL_GIN_CONNECTION_FULL = 1, NCCL_GIN_CONNECTION_RAIL = 2 } ncclGinConnectionType_t;

/* Who carries GIN operations. */
typedef enum {
  NCCL_GIN_TYPE_NONE = 0,
  NCCL_GIN_TYPE_PROXY = 2, /* a CPU thread */
  NCCL_GIN_TYPE_GDAKI = 3, /* the GPU drives the network card's queues */
  NCCL_GIN_TYPE_GPI = 4    /* never offered by this library */
} ncclGinType_t;

/* A GIN operation that was started and may be waited for. */
typedef struct {
  uint64_t opaque[2];
} ncclGinRequest_t;

/* A buffer that ncclDevCommCreate allocates on every rank, zero-filled, at the same place of the resource window. Elements of a list; the
 * list and what it points to must be the same on all ranks but for addresses. Make it all zero, then set fields. */
typedef struct ncclDevResourceRequirements {
  struct ncclDevResourceRequirements *next;
  size_t bufferSize, bufferAlign;           /* bytes; an alignment below 128 is 128 */
  ncclDevResourceHandle_t *outBufferHandle; /* NULL or where the handle goes */
  int ginSignalCount;                       /* signals of its own */
  int ginCounterCount;                      /* counters of its own */
  ncclGinSignal_t *outGinSignalStart;       /* NULL or where the first signal's number goes */
  ncclGinCounter_t *outGinCounterStart;     /* NULL or where the first counter's number goes */
} ncclDevResourceRequirements_t;

/* A range of ranks with a constant distance: rank i of the team is rank (this rank) + (i - rank)·stride of the communicator. */
struct ncclTeam {
  int nRanks; /* of the team */
  int rank;   /* this rank's place in the team */
  int stride;
};
typedef struct ncclTeam ncclTeam_t;

#ifdef __cplusplus
/* Stand for the team in constructors. */
struct ncclTeamTagWorld {};
struct ncclTeamTagLsa {};
struct ncclTeamTagRail {};
#endif

/* A team other than the usual ones whose kernels use multicast addresses. */
typedef struct ncclTeamRequirements {
  struct ncclTeamRequirements *next;
  ncclTeam_t team;
  bool multimem;
  ncclMultimemHandle_t *outMultimemHandle; /* NULL or where the handle goes */
} ncclTeamRequirements_t;

/* What a device communicator must offer. Start from NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER; the first three fields are not for users. */
typedef struct ncclDevCommRequirements {
  size_t size;
  unsigned int magic;
  unsigned int version;
  ncclDevResourceRequirements_t *resourceRequirementsList;
  ncclTeamRequirements_t *teamRequirementsList;
  bool lsaMultimem;        /* a multicast address range over the LSA team */
  int barrierCount;        /* hybrid barriers: LSA inside a team, GIN between teams */
  int lsaBarrierCount;     /* barriers of the LSA team: indices 0 … count-1 */
  int railGinBarrierCount; /* barriers over the rail */
  int lsaLLA2ABlockCount;  /* has no effect, as in NCCL: use ncclLLA2ACreateRequirement */
  int lsaLLA2ASlotCount;   /* the same */
  bool ginForceEnable;     /* old form of ginConnectionType FULL */
  int ginContextCount;     /* hint: independent queues */
  int ginSignalCount;      /* signals 0 … count-1 */
  int ginCounterCount;     /* counters 0 … count-1 */
  ncclGinConnectionType_t ginConnectionType;
  bool ginExclusiveContexts;     /* contexts that no other device communicator shares */
  int ginQueueDepth;             /* hint: operations in flight in a queue; 0 is the default */
  int ginTrafficClass;           /* hint: the network's service class */
  int worldGinBarrierCount;      /* barriers over all ranks by GIN */
  bool ginStrongSignalsRequired; /* a signal that proves all earlier puts of its context */
  bool ginVaSignalsRequired;     /* signals on words of a window */
} ncclDevCommRequirements_t;

#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER                                                                                             \
  {                                                                                                                                        \
    sizeof(ncclDevCommRequirements_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NULL, NULL, false, /* lsaMultimem */                             \
        0, 0, 0, 0, 0,                                                                       /* barriers, LL all-to-all */                 \
        false, 4, 0, 0, NCCL_GIN_CONNECTION_NONE,                                            /* ginForceEnable … ginConnectionType */    \
        false, 0, NCCL_CONFIG_UNDEF_INT, 0,                                                  /* exclusive, depth, class, world barriers */ \
        true, true                                                                           /* strong and VA signals */                   \
  }

/* What a communicator can do, to be asked beforehand. */
typedef struct ncclCommProperties {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int rank;
  int nRanks;
  int cudaDev;           /* number of the CUDA device; -1 in host mode */
  int nvmlDev;           /* its number for NVML; -1 where there is none */
  bool deviceApiSupport; /* ncclDevCommCreate works */
  bool multimemSupport;  /* lsaMultimem can be had */
  ncclGinType_t ginType; /* GIN between all ranks */
  int nLsaTeams;
  bool hostRmaSupport;         /* ncclPutSignal and its family work */
  ncclGinType_t railedGinType; /* GIN along rails */
} ncclCommProperties_t;

#define NCCL_COMM_PROPERTIES_INITIALIZER                                                                                     \
  {                                                                                                                          \
    sizeof(ncclCommProperties_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, 0, 0, 0, 0, false, false, NCCL_GIN_TYPE_NONE, 0, false, \
        NCCL_GIN_TYPE_NONE                                                                                                   \
  }

/* ---- Host functions ---------------------------------------------------------------------------------------- */

/* Fills *props with the truth about comm. Local. A structure without the initializer's magic: ncclInvalidUsage. */
GCCL_HOST_API ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props);

/* Makes a device communicator. Collective: all ranks of comm call it, in the same order, with the same requirements, and it returns when
 * all have; inside a group that is at ncclGroupEnd, when *outDevComm and the handles of the lists are written. The lists are read during
 * this call. A requirement that cannot be met is an error, and the last error names the field: ncclInvalidArgument; requirements without
 * the initializer's magic or of a newer version: ncclInvalidUsage. */
GCCL_HOST_API ncclResult_t ncclDevCommCreate(ncclComm_t comm, ncclDevCommRequirements_t const *reqs, ncclDevComm_t *outDevComm);

/* The same for callers with this library's header, whose kernels know more than NCCL's structures say. stamp is GCCL_DEVICE_STAMP, which
 * counts the changes of what kernels and library share; the macro below passes it. Another one is ncclInvalidUsage. */
GCCL_HOST_API ncclResult_t gcclDevCommCreate(ncclComm_t comm, ncclDevCommRequirements_t const *reqs, ncclDevComm_t *outDevComm,
                                             unsigned stamp);
#define GCCL_DEVICE_STAMP 2u
#define ncclDevCommCreate(comm, reqs, outDevComm) gcclDevCommCreate((comm), (reqs), (outDevComm), GCCL_DEVICE_STAMP)

/* Releases what belongs to *devComm. Local: kernels that use it, on any rank, have ended. One that is not of comm: ncclInvalidArgument.
 * ncclCommDestroy releases those that are left. */
GCCL_HOST_API ncclResult_t ncclDevCommDestroy(ncclComm_t comm, ncclDevComm_t const *devComm);

/* Address of a copy of *devComm that kernels of this rank read, for those that take a pointer because the structure does not fit the form of
 * their arguments. Good until ncclDevCommDestroy; local. One that is not of comm: ncclInvalidArgument. */
GCCL_HOST_API ncclResult_t gcclDevCommGetDevicePointer(ncclComm_t comm, ncclDevComm_t const *devComm, void **outPtr);

/* Address of byte offset of a window at a rank of the LSA team, as kernels of this rank use it. A rank outside of the team or an offset at
 * or past the end: ncclInvalidArgument. */
GCCL_HOST_API ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsaRank, void **outPtr);

/* The same for rank peer of the communicator; NULL and ncclSuccess where peer is not in the LSA team. */
GCCL_HOST_API ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **outPtr);

/* Multicast addresses of the LSA team and of another team; NULL and ncclSuccess where there is no multicast. */
GCCL_HOST_API ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **outPtr);
GCCL_HOST_API ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem, void **outPtr);

/* ---- Teams ------------------------------------------------------------------------------------------------- */

/* All ranks; the ranks of this rank's LSA team; the ranks with this rank's place in all LSA teams (its rail). From a host communicator
 * these need a live communicator, and give an empty team otherwise. */
GCCL_HOST_API ncclTeam_t ncclTeamWorld(ncclComm_t comm);
GCCL_HOST_API ncclTeam_t ncclTeamLsa(ncclComm_t comm);
GCCL_HOST_API ncclTeam_t ncclTeamRail(ncclComm_t comm);
#ifdef __cplusplus
NCCL_HOST_DEVICE_INLINE ncclTeam ncclTeamWorld(ncclDevComm const &comm);
NCCL_HOST_DEVICE_INLINE ncclTeam ncclTeamLsa(ncclDevComm const &comm);
NCCL_HOST_DEVICE_INLINE ncclTeam ncclTeamRail(ncclDevComm const &comm);
#endif

/* Rank of the communicator, or of the LSA team, that rank of team is. Not checked: an LSA rank may be outside of its team. */
GCCL_HOST_API int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
GCCL_HOST_API int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);
#ifdef __cplusplus
NCCL_HOST_DEVICE_INLINE int ncclTeamRankToWorld(ncclDevComm const &comm, ncclTeam team, int rank);
NCCL_HOST_DEVICE_INLINE int ncclTeamRankToLsa(ncclDevComm const &comm, ncclTeam team, int rank);
#endif

/* Both teams belong to the same rank. Whether rank bRank of b is a member of a, and which rank of a it is then. */
NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE bool ncclTeamRankIsMember(ncclTeam_t a, ncclTeam_t b, int bRank);
NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE int ncclTeamRankToTeam(ncclTeam_t a, ncclTeam_t b, int bRank);

/* Splits parent into runs of innerSize consecutive ranks: this rank's run, and the ranks with its place in all runs. */
NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE ncclTeam_t ncclTeamInnerFactor(ncclTeam_t parent, int innerSize);
NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE ncclTeam_t ncclTeamOuterFactor(ncclTeam_t parent, int innerSize);

/* The index-th rank of parent (counted in parent) that is not in subset; subset's ranks are all in parent. */
NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE int ncclTeamRankInDifference(ncclTeam_t parent, ncclTeam_t subset, int index);

/* ---- Pointers into windows --------------------------------------------------------------------------------- */

/* Byte offset of a resource buffer in the resource window. */
NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE size_t ncclGetResourceBufferOffset(ncclDevResourceHandle_t handle);

#if GCCL_DEVICE_KERNELS
/* With GCCL_DEVICE_DEBUG the functions below check their arguments and stop the kernel with a text that names the caller's file and line,
 * the window, the offset and the rank. Otherwise a wrong argument gives a wrong address. */
#if defined(GCCL_DEVICE_DEBUG) && defined(__CUDACC_RTC__) /* which has no __builtin_FILE */
#define GCCL_DEVICE_CALLER_ONLY char const *gcclFile = "a kernel compiled by NVRTC", int gcclLine = 0
#define GCCL_DEVICE_CALLER , GCCL_DEVICE_CALLER_ONLY
#elif defined(GCCL_DEVICE_DEBUG)
#define GCCL_DEVICE_CALLER_ONLY char const *gcclFile = __builtin_FILE(), int gcclLine = __builtin_LINE()
#define GCCL_DEVICE_CALLER , GCCL_DEVICE_CALLER_ONLY
#else
#define GCCL_DEVICE_CALLER_ONLY
#define GCCL_DEVICE_CALLER
#endif

/* Address of byte offset of a window: at this rank; at rank peer of the LSA team; at rank peer of the communicator or of a team, which is
 * in the LSA team. The address is good for loads, stores and atomics. */
NCCL_DEVICE_INLINE void *ncclGetLocalPointer(ncclWindow_t w, size_t offset GCCL_DEVICE_CALLER);
NCCL_DEVICE_INLINE void *ncclGetLsaPointer(ncclWindow_t w, size_t offset, int peer GCCL_DEVICE_CALLER);
NCCL_DEVICE_INLINE void *ncclGetPeerPointer(ncclWindow_t w, size_t offset, int peer GCCL_DEVICE_CALLER);
NCCL_DEVICE_INLINE void *ncclGetPeerPointer(ncclWindow_t w, size_t offset, ncclTeam team, int peer GCCL_DEVICE_CALLER);

/* Multicast address of byte offset, for multimem instructions only: of a team, of the LSA team. Needs a handle that
 * ncclDevCommCreate gave for lsaMultimem or ncclTeamRequirements.multimem. */
NCCL_DEVICE_INLINE void *ncclGetMultimemPointer(ncclWindow_t w, size_t offset, ncclMultimemHandle multimem GCCL_DEVICE_CALLER);
NCCL_DEVICE_INLINE void *ncclGetLsaMultimemPointer(ncclWindow_t w, size_t offset, ncclDevComm const &comm GCCL_DEVICE_CALLER);

/* The window of comm that holds the address ptr of this rank; NULL if none does. All threads of coop call it. */
template <typename Coop> NCCL_DEVICE_INLINE ncclWindow_t ncclFindWindow(Coop coop, ncclDevComm const &comm, void const *ptr);

/* The same for resource buffers. */
NCCL_DEVICE_INLINE void *ncclGetResourceBufferLocalPointer(ncclDevComm const &comm, ncclDevResourceHandle handle);
NCCL_DEVICE_INLINE void *ncclGetResourceBufferLsaPointer(ncclDevComm const &comm, ncclDevResourceHandle handle, int peer);
NCCL_DEVICE_INLINE void *ncclGetResourceBufferPeerPointer(ncclDevComm const &comm, ncclDevResourceHandle handle, ncclTeam team, int peer);
NCCL_DEVICE_INLINE void *ncclGetResourceBufferMultimemPointer(ncclDevComm const &comm, ncclDevResourceHandle handle,
                                                              ncclMultimemHandle multimem);
NCCL_DEVICE_INLINE void *ncclGetResourceBufferLsaMultimemPointer(ncclDevComm const &comm, ncclDevResourceHandle handle);
#endif

#endif
