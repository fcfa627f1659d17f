/* The tables that NCCL looks for, the newest that it knows. Only host memory is served, so NCCL stages GPU memory itself and never asks for
 * a flush. */
#include "serve.h"

#include "_cgo_export.h"

enum { P2P = 1 << 30 }; /* bytes of a transfer: sizes are reported as int */

static char no_context; /* of tables before v11 */

static int init_v11(void **ctx, uint64_t comm, np_net_config *config, np_logger log, np_profiler profiler) {
  (void)comm, (void)config, (void)profiler;
  sv_log(log);
  *ctx = &no_context;
  return gcclServeInit();
}
static int init_v10(np_logger log, np_profiler profiler) {
  (void)profiler;
  sv_log(log);
  return gcclServeInit();
}
static int init_v8(np_logger log) {
  sv_log(log);
  return gcclServeInit();
}
static int finalize(void *ctx) {
  (void)ctx;
  return NP_OK;
}

static int devices(int *n) { return gcclServeDevices(n); }

#define PROPERTIES(V, MORE)                                            \
  static int properties_v##V(int dev, np_props_v##V *p) {              \
    char *name, *pci;                                                  \
    np_vdevice_v9 parts;                                               \
    int speed, rc = gcclServeDevice(dev, &name, &pci, &speed, &parts); \
    if (rc) return rc;                                                 \
    *p = (np_props_v##V){.name = name,                                 \
                         .pciPath = pci,                               \
                         .guid = (uint64_t)parts.devs[0],              \
                         .ptrSupport = NP_PTR_HOST,                    \
                         .speed = speed,                               \
                         .maxComms = 65536,                            \
                         .maxRecvs = 1,                                \
                         .netDeviceType = NP_DEVICE_HOST};             \
    MORE return NP_OK;                                                 \
  }
PROPERTIES(8, )
#define SIZES p->vProps = parts, p->maxP2pBytes = P2P, p->maxCollBytes = P2P;
PROPERTIES(9, SIZES)
#define properties_v10 properties_v9
PROPERTIES(11, SIZES p->maxMultiRequestSize = 1;)

static int join(int *dev, np_vdevice_v9 *parts) { return gcclServeJoin(dev, parts); }

static int listen_v8(int dev, void *handle, void **listening) { return gcclServeListen(dev, handle, listening); }
static int listen_v11(void *ctx, int dev, void *handle, void **listening) {
  (void)ctx;
  return gcclServeListen(dev, handle, listening);
}

static int connect_v8(int dev, void *handle, void **comm, np_device_handle **device) {
  (void)device;
  return gcclServeConnect(dev, handle, comm);
}
static int connect_v10(int dev, np_net_config *config, void *handle, void **comm, np_device_handle **device) {
  (void)config, (void)device;
  return gcclServeConnect(dev, handle, comm);
}
static int connect_v11(void *ctx, int dev, void *handle, void **comm, np_device_handle **device) {
  (void)ctx, (void)device;
  return gcclServeConnect(dev, handle, comm);
}
static int accept_v8(void *listening, void **comm, np_device_handle **device) {
  (void)device;
  return gcclServeAccept(listening, comm);
}

static int reg_dmabuf(void *comm, void *data, size_t bytes, int type, uint64_t offset, int fd, void **mhandle) {
  (void)comm, (void)data, (void)bytes, (void)type, (void)offset, (void)fd;
  *mhandle = NULL;
  return NP_INTERNAL;
}

static int isend_v8(void *comm, void *data, int bytes, int tag, void *mhandle, void **request) {
  return sv_isend(comm, data, (size_t)bytes, tag, mhandle, request);
}
static int isend_v10(void *comm, void *data, size_t bytes, int tag, void *mhandle, void *profiled, void **request) {
  (void)profiled;
  return sv_isend(comm, data, bytes, tag, mhandle, request);
}
static int irecv_v8(void *comm, int n, void **data, int *sizes, int *tags, void **mhandles, void **request) {
  size_t room = (size_t)sizes[0];
  return sv_irecv(comm, n, data, &room, tags, mhandles, request);
}
static int irecv_v10(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **profiled, void **request) {
  (void)profiled;
  return sv_irecv(comm, n, data, sizes, tags, mhandles, request);
}

/* Host memory: what test has reported is visible. */
static int iflush(void *comm, int n, void **data, int *sizes, void **mhandles, void **request) {
  (void)comm, (void)n, (void)data, (void)sizes, (void)mhandles;
  *request = NULL;
  return NP_OK;
}

static int close_comm(void *comm) { return gcclServeClose(comm); }
static int close_listen(void *listening) { return gcclServeCloseListen(listening); }

#define TABLE(V, INIT, CONNECT, LISTEN, SEND, MORE)                                                                \
  __attribute__((visibility("default"))) const np_net_v##V ncclNetPlugin_v##V = {.name = "GCCL",                   \
                                                                                 .init = INIT,                     \
                                                                                 .devices = devices,               \
                                                                                 .getProperties = properties_v##V, \
                                                                                 .listen = LISTEN,                 \
                                                                                 .connect = CONNECT,               \
                                                                                 .accept = accept_v8,              \
                                                                                 .regMr = sv_reg,                  \
                                                                                 .regMrDmaBuf = reg_dmabuf,        \
                                                                                 .deregMr = sv_dereg,              \
                                                                                 .isend = isend##SEND,             \
                                                                                 .irecv = irecv##SEND,             \
                                                                                 .iflush = iflush,                 \
                                                                                 .test = sv_test,                  \
                                                                                 .closeSend = close_comm,          \
                                                                                 .closeRecv = close_comm,          \
                                                                                 .closeListen = close_listen MORE}
#define isend_v9 sv_isend
#define irecv_v9 sv_irecv
#define NOTHING
#define JOIN , .makeVDevice = join
#define JOIN_FINALIZE JOIN, .finalize = finalize
TABLE(8, init_v8, connect_v8, listen_v8, _v8, NOTHING);
TABLE(9, init_v8, connect_v8, listen_v8, _v9, JOIN);
TABLE(10, init_v10, connect_v10, listen_v8, _v10, JOIN);
TABLE(11, init_v11, connect_v11, listen_v11, _v10, JOIN_FINALIZE);
