/* NCCL's profiler tables v1..v6 and their event descriptors. Layouts: NCCL 2.30.7, src/include/plugin/profiler/profiler_v*.h; the test of this
 * package compares each member with a table of offsets. The newest descriptor is device/layout/profiler.h. */
#ifndef GCCL_PLUGIN_PROFILER_ABI_H
#define GCCL_PLUGIN_PROFILER_ABI_H

#include "../../device/layout/profiler.h"

/* --- descriptors --- */

#define PROXY_MEMBERS                    \
  struct {                               \
    int32_t pid;                         \
    uint8_t channelId;                   \
    int peer, nSteps, chunkSize, isSend; \
  } proxyOp;                             \
  struct {                               \
    int step;                            \
  } proxyStep

typedef struct {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name;
      uint64_t commHash, seqNumber;
      uint8_t func;
      const void *sendBuff;
      void *recvBuff;
      size_t count;
      int root;
      uint8_t datatype;
      uint32_t op;
      size_t trafficBytes;
      uint8_t nMaxChannels, nWarps, algo, proto;
      int isCollnet, isNvls;
    } coll;
    struct {
      const char *name;
      uint64_t commHash;
      uint8_t func;
      void *buff;
      uint8_t datatype;
      size_t count;
      int peer;
    } p2p;
    PROXY_MEMBERS;
  };
} profiler_descr_v1;

typedef struct {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name;
      uint64_t commHash, seqNumber;
      const char *func;
      const void *sendBuff;
      void *recvBuff;
      size_t count;
      int root;
      const char *datatype;
      size_t trafficBytes;
      uint8_t nMaxChannels, nWarps;
      const char *algo, *proto;
    } coll;
    struct {
      const char *name;
      uint64_t commHash;
      const char *func;
      void *buff;
      const char *datatype;
      size_t count;
      int peer;
    } p2p;
    PROXY_MEMBERS;
  };
} profiler_descr_v2;

typedef struct {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name;
      uint64_t commHash, seqNumber;
      const char *func;
      const void *sendBuff;
      void *recvBuff;
      size_t count;
      int root;
      const char *datatype;
      uint8_t nMaxChannels, nWarps;
      const char *algo, *proto;
    } coll;
    struct {
      const char *name;
      uint64_t commHash;
      const char *func;
      void *buff;
      const char *datatype;
      size_t count;
      int peer;
    } p2p;
    PROXY_MEMBERS;
    struct {
      uint8_t channelId;
    } kernelCh;
    struct {
      int64_t id;
      void *data;
    } netPlugin;
  };
} profiler_descr_v3;

typedef struct {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      uint64_t seqNumber;
      const char *func;
      const void *sendBuff;
      void *recvBuff;
      size_t count;
      int root;
      const char *datatype;
      uint8_t nChannels, nWarps;
      const char *algo, *proto;
    } coll;
    struct {
      const char *func;
      void *buff;
      const char *datatype;
      size_t count;
      int peer;
      uint8_t nChannels;
    } p2p;
    PROXY_MEMBERS;
    struct {
      uint8_t channelId;
      uint64_t pTimer;
    } kernelCh;
    struct {
      int64_t id;
      void *data;
    } netPlugin;
  };
} profiler_descr_v4;

/* v5 is v6 without the events of copy engines, which this library has none of. */
typedef gccl_profile_event profiler_descr_v5;
typedef gccl_profile_event profiler_descr_v6;

/* --- arguments of states --- */

typedef union {
  struct {
    size_t transSize;
    int steps;
  } proxyOp;
  struct {
    int appendedProxyOps;
  } proxyCtrl;
} profiler_args_v1; /* v2, v3 too */

typedef gccl_profile_args profiler_args_v4; /* v5, v6 too */

/* --- tables --- */

typedef int (*profiler_init_v1)(void **context, int *mask);
typedef int (*profiler_init_v4)(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks, int rank, void *log);
typedef int (*profiler_init_v5)(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks, int rank, void *log);

#define PROFILER_TABLE(version, init_type, descr, args)                   \
  typedef struct {                                                        \
    const char *name;                                                     \
    init_type init;                                                       \
    int (*startEvent)(void *context, void **eHandle, descr *eDescr);      \
    int (*stopEvent)(void *eHandle);                                      \
    int (*recordEventState)(void *eHandle, int eState, args *eStateArgs); \
    int (*finalize)(void *context);                                       \
  } profiler_table_v##version

PROFILER_TABLE(1, profiler_init_v1, profiler_descr_v1, profiler_args_v1);
PROFILER_TABLE(2, profiler_init_v1, profiler_descr_v2, profiler_args_v1);
PROFILER_TABLE(3, profiler_init_v1, profiler_descr_v3, profiler_args_v1);
PROFILER_TABLE(4, profiler_init_v4, profiler_descr_v4, profiler_args_v4);
PROFILER_TABLE(5, profiler_init_v5, profiler_descr_v5, profiler_args_v4);
PROFILER_TABLE(6, profiler_init_v5, profiler_descr_v6, profiler_args_v4);

#endif
