/* core_types.h: the structures that host and device share. Sizes and offsets are NCCL 2.30.7's, because kernels that were compiled against
 * NVIDIA's header read them; tests/abi compares them. Plain C; only gccl... names are this library's own. */
#ifndef GCCL_DEVICE_IMPL_CORE_TYPES_H
#define GCCL_DEVICE_IMPL_CORE_TYPES_H

#ifdef __CUDACC_RTC__
#include "rtc.h"
#else
#include <stddef.h>
#include <stdint.h>
#endif
#ifndef __cplusplus
#include <stdbool.h>
#endif

#define NCCL_GIN_MAX_CONNECTIONS 4

/* A registration of memory with a network, as a GIN backend knows it. */
typedef void *ncclGinWindow_t;

/* Place of a resource buffer in a device communicator's resource window, in units of 128 bytes. */
typedef uint32_t ncclDevResourceHandle;
typedef ncclDevResourceHandle ncclDevResourceHandle_t;
/* Numbers of a GIN signal and of a GIN counter. */
typedef uint32_t ncclGinSignal_t;
typedef uint32_t ncclGinCounter_t;

/* One physical part of a window's memory; windows of this library have one. */
struct ncclSegmentWindow {
  ncclGinWindow_t ginWins[NCCL_GIN_MAX_CONNECTIONS];
  size_t segmentSize;
  int memType; /* CUmemLocationType */
};

/* A window as kernels see it: ncclWindow_t points to this. Older headers know a prefix of it. */
struct ncclWindow_vidmem {
  void *winHost;
  char *lsaFlatBase; /* the window at rank 0 of the LSA team; rank i is i·stride4G·2^32 bytes further */
  int lsaRank;
  int worldRank;
  uint32_t stride4G;
  uint32_t mcOffset4K;
  uint32_t ginOffset4K;
  ncclGinWindow_t ginWins[NCCL_GIN_MAX_CONNECTIONS];
  struct ncclSegmentWindow *ginMultiSegmentWins;
  int numSegments;
};
typedef struct ncclWindow_vidmem ncclWindow_vidmem_t;

/* What this library keeps behind every ncclWindow_vidmem, for the checks of GCCL_DEVICE_DEBUG. */
#define GCCL_DEVICE_WINDOW_MAGIC 0x574e494c43434721ull
struct gcclWindow_device {
  struct ncclWindow_vidmem nccl;
  uint64_t magic;
  uint64_t size;     /* bytes of the part of this rank */
  void const *owner; /* the communicator: the same as gcclDevComm_own.owner */
  int32_t lsaSize;
  int32_t number;   /* of the registration, the same at all ranks */
  void const *keys; /* gccl_gdaki_mem (impl/mlx5.h): for send queues */
};

/* The resource window inside ncclDevComm: what of ncclWindow_vidmem the pointer functions need, at the same offsets. */
typedef struct ncclResourceWindow_vidmem {
  struct gcclDevComm_own *gcclOwn; /* reserved in NCCL; NULL for callers that do not use this library's header */
  char *lsaFlatBase;
  char reserved2[8];
  uint32_t stride4G;
  uint32_t mcOffset4K;
  char reserved3[32];
} ncclResourceWindow_vidmem_t;

/* What only this library's kernels look at; reachable from the device. */
#define GCCL_DEVICE_OWN_MAGIC 0x4e574f4cu
struct gcclDevComm_own {
  uint32_t magic, version;
  void const *owner;
  uint64_t resourceBytes;
  struct gccl_gin_direct const *direct; /* impl/gfd.h; NULL: the backend `direct` is not used */
};

/* Where a multicast address range begins. */
struct ncclMultimemHandle {
  void *mcBasePtr;
};
typedef struct ncclMultimemHandle ncclMultimemHandle_t;

/* nBarriers LSA barriers: words {epoch of multicast, epoch, multicast inbox}, nBarriers of each, then inboxes [barrier][rank of team]. */
struct ncclLsaBarrierHandle {
  ncclDevResourceHandle_t bufHandle;
  int nBarriers;
};
typedef struct ncclLsaBarrierHandle ncclLsaBarrierHandle_t;

/* GIN barriers: the signals from signal0 on, one for each barrier and rank of the team. */
struct ncclGinBarrierHandle {
  ncclGinSignal_t signal0;
  ncclDevResourceHandle_t unused;
};
typedef struct ncclGinBarrierHandle ncclGinBarrierHandle_t;

/* LL all-to-all: for each block one line with its epoch, then two times nSlots lines. */
struct ncclLLA2AHandle {
  ncclDevResourceHandle_t bufHandle;
  uint32_t nSlots;
};
typedef struct ncclLLA2AHandle ncclLLA2AHandle_t;

/* All windows of a communicator by address, for ncclFindWindow: blocks of 32; a free entry is zero. */
struct ncclDevCommWindowTable {
  struct ncclDevCommWindowTable_Entry {
    uintptr_t base, size;
    struct ncclWindow_vidmem *window;
  } entries[32];
  struct ncclDevCommWindowTable *next;
};
typedef struct ncclDevCommWindowTable *ncclDevCommWindowTable_t;

/* A device communicator, passed to kernels by value. Filled by ncclDevCommCreate; programs read rank, nRanks, lsaRank, lsaSize and the
 * handles, and write nothing. */
struct ncclDevComm {
  unsigned int magic;   /* NCCL_API_MAGIC */
  unsigned int version; /* of the header that the creator was compiled with */

  int rank, nRanks;
  uint32_t nRanks_rcp32; /* reciprocals for fast division: floor((2^32-1)/n), one more where n is a power of two */
  int lsaRank, lsaSize;
  uint32_t lsaSize_rcp32;

  ncclDevCommWindowTable_t windowTable;
  struct ncclWindow_vidmem *resourceWindow;
  ncclResourceWindow_vidmem_t resourceWindow_inlined;

  ncclGinBarrierHandle_t hybridWorldGinBarrier;
  ncclMultimemHandle_t lsaMultimem;
  ncclLsaBarrierHandle_t lsaBarrier;
  ncclGinBarrierHandle_t railGinBarrier;

  uint8_t ginConnectionCount;
  uint8_t ginNetDeviceTypes[NCCL_GIN_MAX_CONNECTIONS];
  void *ginHandles[NCCL_GIN_MAX_CONNECTIONS];
  int ginSignalCount;
  int ginCounterCount;
  uint64_t *ginSignalShadows;
  uint32_t ginContextCount;
  bool ginConnectionsRailed;
  bool ginStrongLegacySignals;
  bool ginContextsRailed;

  uint32_t *abortFlag; /* not 0: the communicator has failed; waits give up */

  ncclLsaBarrierHandle_t hybridLsaBarrier;
  ncclGinBarrierHandle_t hybridRailGinBarrier;
  ncclGinBarrierHandle_t worldGinBarrier;
};
typedef struct ncclDevComm ncclDevComm_t;

#endif
