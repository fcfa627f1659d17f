/* The example plugin with the table of version V alone. */
#include "../../../examples/06_plugins/net/net.h"

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define PROPS CAT(np_props_v, V)
#define TABLE CAT(np_net_v, V)

#if V >= 11
static int inits;
static int init(void **ctx, uint64_t comm, np_net_config *config, np_logger log, np_profiler profiler) {
  (void)profiler;
  if (!comm || config->trafficClass != -1) return NP_INVALID_USAGE;
  *ctx = &inits;
  inits++;
  return example_init(log);
}
static int finalize(void *ctx) {
  inits--;
  return ctx == &inits ? NP_OK : NP_INTERNAL;
}
#elif V == 10
static int init(np_logger log, np_profiler profiler) {
  (void)profiler;
  return example_init(log);
}
#else
static int init(np_logger log) { return example_init(log); }
#endif

static int properties(int dev, PROPS *p) {
  np_props_v12 q;
  int rc = example_properties(dev, &q);
  if (rc) return rc;
  *p = (PROPS){.name = q.name,
               .guid = V,
               .ptrSupport = q.ptrSupport,
               .speed = q.speed,
               .port = 3,
               .latency = 2,
               .maxComms = q.maxComms,
               .maxRecvs = q.maxRecvs};
#if V >= 7
  p->netDeviceType = q.netDeviceType;
#endif
#if V >= 8
  p->regIsGlobal = 1;
#endif
#if V >= 9
  p->maxP2pBytes = q.maxP2pBytes;
  p->maxCollBytes = q.maxCollBytes;
#endif
#if V >= 11
  p->maxMultiRequestSize = 1;
#endif
  return NP_OK;
}

#if V >= 11
#define CTX void *ctx,
#define CTX_CHECK \
  if (ctx != &inits) return NP_INTERNAL;
#else
#define CTX
#define CTX_CHECK
#endif
static int listens(CTX int dev, void *handle, void **listening) {
  CTX_CHECK
  return example_listen(dev, handle, listening);
}

#if V == 6
static int connects(int dev, void *handle, void **send) { return example_connect(dev, handle, send); }
static int accepts(void *listening, void **recv) { return example_accept(listening, recv); }
#else
#if V == 10
static int connects(int dev, np_net_config *config, void *handle, void **send, np_device_handle **device) {
  if (config->trafficClass != -1) return NP_INVALID_USAGE;
#else
static int connects(CTX int dev, void *handle, void **send, np_device_handle **device) {
  CTX_CHECK
#endif
  if (*device) return NP_INTERNAL;
  return example_connect(dev, handle, send);
}
static int accepts(void *listening, void **recv, np_device_handle **device) {
  if (*device) return NP_INTERNAL;
  return example_accept(listening, recv);
}
#endif

#if V <= 7
static int reg(void *comm, void *data, int size, int type, void **mhandle) { return example_reg(comm, data, (size_t)size, type, mhandle); }
#else
#define reg example_reg
#endif

#if V <= 8
static int isends(void *comm, void *data, int bytes, int tag, void *mhandle, void **request) {
  return example_isend(comm, data, (size_t)bytes, tag, mhandle, request);
}
static int irecvs(void *comm, int n, void **data, int *sizes, int *tags, void **mhandles, void **request) {
  size_t room[EXAMPLE_RECVS];
  if (n < 1 || n > EXAMPLE_RECVS) return NP_INTERNAL;
  for (int i = 0; i < n; i++) room[i] = (size_t)sizes[i];
  return example_irecv(comm, n, data, room, tags, mhandles, request);
}
#elif V == 9
#define isends example_isend
#define irecvs example_irecv
#else
static int isends(void *comm, void *data, size_t bytes, int tag, void *mhandle, void *profiled, void **request) {
  if (profiled) return NP_INTERNAL;
  return example_isend(comm, data, bytes, tag, mhandle, request);
}
static int irecvs(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **profiled, void **request) {
  for (int i = 0; i < n; i++)
    if (profiled[i]) return NP_INTERNAL;
  return example_irecv(comm, n, data, sizes, tags, mhandles, request);
}
#endif

__attribute__((visibility("default"))) const TABLE CAT(ncclNetPlugin_v, V) = {
  .name = "Version",
  .init = init,
  .devices = example_devices,
  .getProperties = properties,
  .listen = listens,
  .connect = connects,
  .accept = accepts,
  .regMr = reg,
  .deregMr = example_dereg,
  .isend = isends,
  .irecv = irecvs,
  .iflush = example_flush,
  .test = example_test,
  .closeSend = example_close,
  .closeRecv = example_close,
  .closeListen = example_close_listen,
#if V >= 11
  .finalize = finalize,
#endif
};
