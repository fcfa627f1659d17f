/* The exported tables: a host uses the newest one that it knows, so one is enough, and two make the plugin work with more hosts. */
#include "net.h"

/* ---- v11: a context for each communicator, which this plugin does not need ---- */

static int init_v11(void **ctx, uint64_t comm, np_net_config *config, np_logger log, np_profiler profiler) {
  static int any;
  (void)comm, (void)config;
  *ctx = &any;
  example_profile(profiler);
  return example_init(log);
}

static int properties_v11(int dev, np_props_v11 *p) {
  np_props_v12 q;
  int rc = example_properties(dev, &q);
  if (rc) return rc;
  *p = (np_props_v11){.name = q.name,
                      .ptrSupport = q.ptrSupport,
                      .regIsGlobal = q.regIsGlobal,
                      .speed = q.speed,
                      .maxComms = q.maxComms,
                      .maxRecvs = q.maxRecvs,
                      .netDeviceType = q.netDeviceType,
                      .vProps = {.ndevs = 1},
                      .maxP2pBytes = q.maxP2pBytes,
                      .maxCollBytes = q.maxCollBytes,
                      .maxMultiRequestSize = 1};
  return NP_OK;
}

static int listen_v11(void *ctx, int dev, void *handle, void **listening) {
  (void)ctx;
  return example_listen(dev, handle, listening);
}

static int connect_v11(void *ctx, int dev, void *handle, void **send_comm, np_device_handle **device) {
  (void)ctx, (void)device;
  return example_connect(dev, handle, send_comm);
}

static int accept_v7(void *listening, void **recv_comm, np_device_handle **device) {
  (void)device;
  return example_accept(listening, recv_comm);
}

static int isend_v10(void *comm, void *data, size_t bytes, int tag, void *mhandle, void *step, void **request) {
  int rc = example_isend(comm, data, bytes, tag, mhandle, request);
  if (!rc) example_follow(*request, &step);
  return rc;
}

static int irecv_v10(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **steps, void **request) {
  int rc = example_irecv(comm, n, data, sizes, tags, mhandles, request);
  if (!rc) example_follow(*request, steps);
  return rc;
}

static int finalize_v11(void *ctx) {
  (void)ctx;
  return NP_OK;
}

#define COMMON                                                                                                                     \
  .name = "Example", .devices = example_devices, .accept = accept_v7, .regMr = example_reg, .regMrDmaBuf = example_reg_dmabuf,     \
  .deregMr = example_dereg, .iflush = example_flush, .test = example_test, .closeSend = example_close, .closeRecv = example_close, \
  .closeListen = example_close_listen

__attribute__((visibility("default"))) const np_net_v11 ncclNetPlugin_v11 = {COMMON,
                                                                             .init = init_v11,
                                                                             .getProperties = properties_v11,
                                                                             .listen = listen_v11,
                                                                             .connect = connect_v11,
                                                                             .isend = isend_v10,
                                                                             .irecv = irecv_v10,
                                                                             .finalize = finalize_v11};

/* ---- v8: sizes are int ---- */

static int properties_v8(int dev, np_props_v8 *p) {
  np_props_v12 q;
  int rc = example_properties(dev, &q);
  if (rc) return rc;
  *p = (np_props_v8){.name = q.name,
                     .ptrSupport = q.ptrSupport,
                     .regIsGlobal = q.regIsGlobal,
                     .speed = q.speed,
                     .maxComms = q.maxComms,
                     .maxRecvs = q.maxRecvs};
  return NP_OK;
}

static int connect_v8(int dev, void *handle, void **send_comm, np_device_handle **device) {
  (void)device;
  return example_connect(dev, handle, send_comm);
}

static int isend_v8(void *comm, void *data, int bytes, int tag, void *mhandle, void **request) {
  return example_isend(comm, data, (size_t)bytes, tag, mhandle, request);
}

static int irecv_v8(void *comm, int n, void **data, int *sizes, int *tags, void **mhandles, void **request) {
  size_t room[EXAMPLE_RECVS];
  if (n < 1 || n > EXAMPLE_RECVS) return NP_INTERNAL;
  for (int i = 0; i < n; i++) room[i] = (size_t)sizes[i];
  return example_irecv(comm, n, data, room, tags, mhandles, request);
}

__attribute__((visibility("default"))) const np_net_v8 ncclNetPlugin_v8 = {COMMON,
                                                                           .init = example_init,
                                                                           .getProperties = properties_v8,
                                                                           .listen = example_listen,
                                                                           .connect = connect_v8,
                                                                           .isend = isend_v8,
                                                                           .irecv = irecv_v8};
