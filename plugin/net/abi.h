/* The tables of NCCL's net, gin and rma plugins, as far as this library uses them, and what they have in common. Layouts by NCCL 2.30.7,
 * src/include/plugin; plugin_layout_test.go asserts them against testdata/layouts.tsv. All calls return an ncclResult_t. */
#ifndef GCCL_PLUGIN_NET_ABI_H
#define GCCL_PLUGIN_NET_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  NP_HANDLE = 128,    /* bytes of a listener's handle */
  NP_REQUESTS = 32,   /* unfinished requests of a connection */
  NP_REQUESTS_V6 = 8, /* in headers of the time of v6 */
  NP_RECVS = 64,      /* most receives of a group, and integers that test may write */
  NP_PTR_HOST = 1,
  NP_PTR_CUDA = 2,
  NP_PTR_DMABUF = 4,
  NP_DEVICE_HOST = 0,
  NP_DEVICE_UNPACK = 1,
  NP_DEVICE_PROXY = 2,
  NP_DEVICE_GDAKI = 3,
  NP_DEVICE_GPI = 4,
};

/* Of ncclResult_t. */
enum { NP_OK = 0, NP_SYSTEM = 2, NP_INTERNAL = 3, NP_INVALID_ARGUMENT = 4, NP_INVALID_USAGE = 5, NP_REMOTE = 6 };

typedef void (*np_logger)(int level, unsigned long flags, const char *file, int line, const char *format, ...);
typedef int (*np_profiler)(void **event, int type, void *parent, int64_t plugin, void *data);

typedef struct {
  int netDeviceType, netDeviceVersion;
  void *handle;
  size_t size;
  int needsProxyProgress;
} np_device_handle;

typedef struct {
  int ndevs, devs[4];
} np_vdevice_v9;

typedef struct {
  int ndevs, devs[8];
} np_vdevice_v12;

typedef struct {
  int trafficClass;
} np_net_config;

typedef struct {
  int32_t maxConcurrentPeers, minConcurrentPeers, maxFlowsPerPeer, minFlowsPerPeer;
} np_comm_attr;

typedef struct {
  np_comm_attr sendCommAttr, recvCommAttr;
  uint32_t op, algo, proto;
} np_net_attr;

/* ---- Properties ---- */

typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, speed, port;
  float latency;
  int maxComms, maxRecvs;
} np_props_v6;

typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, speed, port;
  float latency;
  int maxComms, maxRecvs, netDeviceType, netDeviceVersion;
} np_props_v7;

typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, regIsGlobal, speed, port;
  float latency;
  int maxComms, maxRecvs, netDeviceType, netDeviceVersion;
} np_props_v8;

typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, regIsGlobal, forceFlush, speed, port;
  float latency;
  int maxComms, maxRecvs, netDeviceType, netDeviceVersion;
  np_vdevice_v9 vProps;
  size_t maxP2pBytes, maxCollBytes;
} np_props_v9;
typedef np_props_v9 np_props_v10;

typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, regIsGlobal, forceFlush, speed, port;
  float latency;
  int maxComms, maxRecvs, netDeviceType, netDeviceVersion;
  np_vdevice_v9 vProps;
  size_t maxP2pBytes, maxCollBytes;
  int maxMultiRequestSize;
} np_props_v11;

typedef struct {
  char *name, *pciPath;
  uint64_t guid;
  int ptrSupport, regIsGlobal, forceFlush, speed, port;
  float latency;
  int maxComms, maxRecvs, netDeviceType, netDeviceVersion;
  np_vdevice_v12 vProps;
  size_t maxP2pBytes, maxCollBytes;
  int maxMultiRequestSize;
  int16_t railId, planeId;
} np_props_v12;

/* ---- Net tables. What several versions have alike is written once. ---- */

#define NP_NET_TAIL                                                                               \
  int (*iflush)(void *recvComm, int n, void **data, int *sizes, void **mhandles, void **request); \
  int (*test)(void *request, int *done, int *sizes);                                              \
  int (*closeSend)(void *sendComm);                                                               \
  int (*closeRecv)(void *recvComm);                                                               \
  int (*closeListen)(void *listenComm);
#define NP_NET_REGISTER(SIZE)                                                                                 \
  int (*regMr)(void *comm, void *data, SIZE size, int type, void **mhandle);                                  \
  int (*regMrDmaBuf)(void *comm, void *data, size_t size, int type, uint64_t offset, int fd, void **mhandle); \
  int (*deregMr)(void *comm, void *mhandle);
#define NP_NET_DEVICE_MR                                              \
  int (*getDeviceMr)(void *comm, void *mhandle, void **dptr_mhandle); \
  int (*irecvConsumed)(void *recvComm, int n, void *request);

typedef struct {
  const char *name;
  int (*init)(np_logger);
  int (*devices)(int *ndev);
  int (*getProperties)(int dev, np_props_v6 *);
  int (*listen)(int dev, void *handle, void **listenComm);
  int (*connect)(int dev, void *handle, void **sendComm);
  int (*accept)(void *listenComm, void **recvComm);
  NP_NET_REGISTER(int)
  int (*isend)(void *sendComm, void *data, int size, int tag, void *mhandle, void **request);
  int (*irecv)(void *recvComm, int n, void **data, int *sizes, int *tags, void **mhandles, void **request);
  NP_NET_TAIL
} np_net_v6;

typedef struct {
  const char *name;
  int (*init)(np_logger);
  int (*devices)(int *ndev);
  int (*getProperties)(int dev, np_props_v7 *);
  int (*listen)(int dev, void *handle, void **listenComm);
  int (*connect)(int dev, void *handle, void **sendComm, np_device_handle **);
  int (*accept)(void *listenComm, void **recvComm, np_device_handle **);
  NP_NET_REGISTER(int)
  int (*isend)(void *sendComm, void *data, int size, int tag, void *mhandle, void **request);
  int (*irecv)(void *recvComm, int n, void **data, int *sizes, int *tags, void **mhandles, void **request);
  NP_NET_TAIL
  NP_NET_DEVICE_MR
} np_net_v7;

typedef struct {
  const char *name;
  int (*init)(np_logger);
  int (*devices)(int *ndev);
  int (*getProperties)(int dev, np_props_v8 *);
  int (*listen)(int dev, void *handle, void **listenComm);
  int (*connect)(int dev, void *handle, void **sendComm, np_device_handle **);
  int (*accept)(void *listenComm, void **recvComm, np_device_handle **);
  NP_NET_REGISTER(size_t)
  int (*isend)(void *sendComm, void *data, int size, int tag, void *mhandle, void **request);
  int (*irecv)(void *recvComm, int n, void **data, int *sizes, int *tags, void **mhandles, void **request);
  NP_NET_TAIL
  NP_NET_DEVICE_MR
} np_net_v8;

typedef struct {
  const char *name;
  int (*init)(np_logger);
  int (*devices)(int *ndev);
  int (*getProperties)(int dev, np_props_v9 *);
  int (*listen)(int dev, void *handle, void **listenComm);
  int (*connect)(int dev, void *handle, void **sendComm, np_device_handle **);
  int (*accept)(void *listenComm, void **recvComm, np_device_handle **);
  NP_NET_REGISTER(size_t)
  int (*isend)(void *sendComm, void *data, size_t size, int tag, void *mhandle, void **request);
  int (*irecv)(void *recvComm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **request);
  NP_NET_TAIL
  NP_NET_DEVICE_MR
  int (*makeVDevice)(int *dev, np_vdevice_v9 *);
} np_net_v9;

typedef struct {
  const char *name;
  int (*init)(np_logger, np_profiler);
  int (*devices)(int *ndev);
  int (*getProperties)(int dev, np_props_v10 *);
  int (*listen)(int dev, void *handle, void **listenComm);
  int (*connect)(int dev, np_net_config *, void *handle, void **sendComm, np_device_handle **);
  int (*accept)(void *listenComm, void **recvComm, np_device_handle **);
  NP_NET_REGISTER(size_t)
  int (*isend)(void *sendComm, void *data, size_t size, int tag, void *mhandle, void *phandle, void **request);
  int (*irecv)(void *recvComm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **phandles, void **request);
  NP_NET_TAIL
  NP_NET_DEVICE_MR
  int (*makeVDevice)(int *dev, np_vdevice_v9 *);
} np_net_v10;

#define NP_NET_V11(V)                                                                                                           \
  const char *name;                                                                                                             \
  int (*init)(void **ctx, uint64_t commId, np_net_config *, np_logger, np_profiler);                                            \
  int (*devices)(int *ndev);                                                                                                    \
  int (*getProperties)(int dev, np_props_v##V *);                                                                               \
  int (*listen)(void *ctx, int dev, void *handle, void **listenComm);                                                           \
  int (*connect)(void *ctx, int dev, void *handle, void **sendComm, np_device_handle **);                                       \
  int (*accept)(void *listenComm, void **recvComm, np_device_handle **);                                                        \
  NP_NET_REGISTER(size_t)                                                                                                       \
  int (*isend)(void *sendComm, void *data, size_t size, int tag, void *mhandle, void *phandle, void **request);                 \
  int (*irecv)(void *recvComm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **phandles, void **request); \
  NP_NET_TAIL                                                                                                                   \
  NP_NET_DEVICE_MR

typedef struct {
  NP_NET_V11(11)
  int (*makeVDevice)(int *dev, np_vdevice_v9 *);
  int (*finalize)(void *ctx);
  int (*setNetAttr)(void *ctx, np_net_attr *);
} np_net_v11;

typedef struct {
  NP_NET_V11(12)
  int (*makeVDevice)(int *dev, np_vdevice_v12 *);
  int (*finalize)(void *ctx);
  int (*setNetAttr)(void *ctx, np_net_attr *);
} np_net_v12;

/* ---- Gin and rma ---- */

typedef struct {
  int nSignals, nCounters, nContexts, queueDepth, trafficClass;
} np_gin_config_v13;

typedef struct {
  int nSignals, nCounters, nContexts, queueDepth, trafficClass, backendVersion, rankStride;
} np_gin_config_v14;

typedef struct {
  bool supportsStrongSignals, supportsVASignals;
} np_gin_props_v14;

typedef struct {
  int nContexts, trafficClass, rankStride;
} np_rma_config_v14;

#define NP_GIN_HEAD                                    \
  const char *name;                                    \
  int (*init)(void **ctx, uint64_t commId, np_logger); \
  int (*devices)(int *ndev);
#define NP_GIN_CONNECT                                                \
  int (*getProperties)(int dev, np_props_v12 *);                      \
  int (*listen)(void *ctx, int dev, void *handle, void **listenComm); \
  int (*connect)(void *ctx, void *handles[], int nranks, int rank, void *listenComm, void **collComm);
#define NP_GIN_REGISTER                                                                                                               \
  int (*regMrSym)(void *collComm, void *data, size_t size, int type, uint64_t mrFlags, void **mhandle, void **ginHandle);             \
  int (*regMrSymDmaBuf)(void *collComm, void *data, size_t size, int type, uint64_t offset, int fd, uint64_t mrFlags, void **mhandle, \
                        void **ginHandle);
#define NP_GIN_END                                  \
  int (*deregMrSym)(void *collComm, void *mhandle); \
  int (*destroyContext)(void *context);             \
  int (*closeColl)(void *collComm);                 \
  int (*closeListen)(void *listenComm);
#define NP_GIN_PUT                                                                                                                      \
  int (*iput)(void *ctx, int context, uint64_t srcOff, void *srcMhandle, size_t size, uint64_t dstOff, void *dstMhandle, uint32_t rank, \
              void **request);
#define NP_GIN_GET                                                                                                                 \
  int (*iget)(void *ctx, int context, uint64_t remoteOff, void *remoteMhandle, size_t size, uint64_t localOff, void *localMhandle, \
              uint32_t rank, void **request);                                                                                      \
  int (*iflush)(void *ctx, int context, void *mhandle, uint32_t rank, void **request);                                             \
  int (*test)(void *collComm, void *request, int *done);

typedef struct { /* also the rma table of v13 */
  NP_GIN_HEAD
  NP_GIN_CONNECT
  int (*createContext)(void *collComm, np_gin_config_v13 *, void **ginCtx, np_device_handle **);
  NP_GIN_REGISTER
  NP_GIN_END
  NP_GIN_PUT
  int (*iputSignal)(void *ctx, int context, uint64_t srcOff, void *srcMhandle, size_t size, uint64_t dstOff, void *dstMhandle,
                    uint32_t rank, uint64_t signalOff, void *signalMhandle, uint64_t signalValue, uint32_t signalOp, void **request);
  NP_GIN_GET
  int (*ginProgress)(void *ginCtx);
  int (*queryLastError)(void *ginCtx, bool *hasError);
  int (*finalize)(void *ctx);
} np_gin_v13;

typedef struct {
  NP_GIN_HEAD
  int (*getGinProperties)(np_gin_props_v14 *);
  NP_GIN_CONNECT
  int (*createContext)(void *collComm, np_gin_config_v14 *, void **ginCtx, np_device_handle **);
  NP_GIN_REGISTER
  NP_GIN_END
  int (*ginProgress)(void *ginCtx);
  int (*queryLastError)(void *ginCtx, bool *hasError);
  int (*finalize)(void *ctx);
} np_gin_v14;

typedef struct {
  NP_GIN_HEAD
  NP_GIN_CONNECT
  int (*createContext)(void *collComm, np_rma_config_v14 *, void **rmaCtx);
  int (*regMrSym)(void *collComm, void *data, size_t size, int type, uint64_t mrFlags, void **mhandle);
  int (*regMrSymDmaBuf)(void *collComm, void *data, size_t size, int type, uint64_t offset, int fd, uint64_t mrFlags, void **mhandle);
  NP_GIN_END
  NP_GIN_PUT
  int (*iputSignal)(void *ctx, int context, uint64_t srcOff, void *srcMhandle, size_t size, uint64_t dstOff, void *dstMhandle,
                    uint32_t rank, uint64_t signalOff, void *signalMhandle, uint64_t signalValue, uint32_t signalOp, bool isStrongSignal,
                    void **request);
  NP_GIN_GET
  int (*rmaProgress)(void *rmaCtx);
  int (*queryLastError)(void *rmaCtx, bool *hasError);
  int (*finalize)(void *ctx);
} np_rma_v14;

#endif
