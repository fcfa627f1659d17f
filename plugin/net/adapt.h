/* What adapters of net tables have in common, for the version whose table type is TABLE. Included by net_vN.c only. */
#include "np.h"

#define T(m) ((const TABLE *)(m)->table)

/* Limits that tables before v9 do not speak of (NCCL 2.30.7, src/plugin/net/net_v8.cc). */
enum { OLD_P2P_BYTES = 1 << 30, OLD_COLL_BYTES = 1 << 29 };

static int a_devices(np_net *m, int *n) {
  pthread_mutex_lock(&m->lock);
  int rc = T(m)->devices(n);
  pthread_mutex_unlock(&m->lock);
  return rc;
}

static int a_reg(np_net *m, void *comm, void *data, size_t bytes, int type, void **mhandle) {
  if (m->reg_int && bytes > INT32_MAX) return NP_INTERNAL;
  return T(m)->regMr(comm, data, bytes, type, mhandle);
}

static int a_reg_dmabuf(np_net *m, void *comm, void *data, size_t bytes, int type, uint64_t offset, int fd, void **mhandle) {
  return T(m)->regMrDmaBuf ? T(m)->regMrDmaBuf(comm, data, bytes, type, offset, fd, mhandle) : NP_INTERNAL;
}

static int a_dereg(np_net *m, void *comm, void *mhandle) { return T(m)->deregMr(comm, mhandle); }

static int a_flush(np_net *m, void *recv, int n, void **data, int *sizes, void **mhandles, void **request) {
  *request = NULL;
  return T(m)->iflush ? T(m)->iflush(recv, n, data, sizes, mhandles, request) : NP_OK;
}

static int a_test(np_net *m, void *request, int *done, int *sizes) { return T(m)->test(request, done, sizes); }
static int a_close_send(np_net *m, void *comm) { return T(m)->closeSend(comm); }
static int a_close_recv(np_net *m, void *comm) { return T(m)->closeRecv(comm); }
static int a_close_listen(np_net *m, void *comm) { return T(m)->closeListen(comm); }

static void adapt_common(np_net *m) {
  m->name = T(m)->name;
  m->devices = a_devices;
  m->reg = a_reg;
  m->reg_dmabuf = a_reg_dmabuf;
  m->dereg = a_dereg;
  m->flush = a_flush;
  m->test = a_test;
  m->close_send = a_close_send;
  m->close_recv = a_close_recv;
  m->close_listen = a_close_listen;
}

/* Before v11: init without a context, once while any communicator uses the plugin, and nothing at the end. CALL is the plugin's. */
#define ADAPT_INIT_ONCE(CALL)                                                       \
  static int a_init(np_net *m, void **ctx, uint64_t comm) {                         \
    (void)comm;                                                                     \
    pthread_mutex_lock(&m->lock);                                                   \
    int rc = m->users ? NP_OK : T(m)->CALL;                                         \
    if (rc == NP_OK) m->users++;                                                    \
    pthread_mutex_unlock(&m->lock);                                                 \
    *ctx = m;                                                                       \
    return rc;                                                                      \
  }                                                                                 \
  static int a_finalize(np_net *m, void *ctx) {                                     \
    (void)ctx;                                                                      \
    pthread_mutex_lock(&m->lock);                                                   \
    m->users--;                                                                     \
    pthread_mutex_unlock(&m->lock);                                                 \
    return NP_OK;                                                                   \
  }                                                                                 \
  static int a_listen(np_net *m, void *ctx, int dev, void *handle, void **listen) { \
    (void)ctx;                                                                      \
    return T(m)->listen(dev, handle, listen);                                       \
  }

/* From v7 on. The offer of device offload is left alone. */
#define ADAPT_ACCEPT                                          \
  static int a_accept(np_net *m, void *listen, void **recv) { \
    np_device_handle *device = NULL;                          \
    return T(m)->accept(listen, recv, &device);               \
  }

/* Sizes that are int, up to v8. */
#define ADAPT_INT_SIZES                                                                                                                    \
  static int a_isend(np_net *m, void *send, void *data, size_t bytes, int tag, void *mhandle, void *step, void **request) {                \
    (void)step;                                                                                                                            \
    *request = NULL;                                                                                                                       \
    if (bytes > INT32_MAX) return NP_INTERNAL;                                                                                             \
    return T(m)->isend(send, data, (int)bytes, tag, mhandle, request);                                                                     \
  }                                                                                                                                        \
  static int a_irecv(np_net *m, void *recv, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **steps, void **request) { \
    int small[NP_RECVS];                                                                                                                   \
    (void)steps;                                                                                                                           \
    *request = NULL;                                                                                                                       \
    for (int i = 0; i < n; i++) {                                                                                                          \
      if (sizes[i] > INT32_MAX) return NP_INTERNAL;                                                                                        \
      small[i] = (int)sizes[i];                                                                                                            \
    }                                                                                                                                      \
    return T(m)->irecv(recv, n, data, small, tags, mhandles, request);                                                                     \
  }

/* From v10 on: with the steps of the profilers. */
#define ADAPT_PROFILED                                                                                                                     \
  static int a_isend(np_net *m, void *send, void *data, size_t bytes, int tag, void *mhandle, void *step, void **request) {                \
    *request = NULL;                                                                                                                       \
    return T(m)->isend(send, data, bytes, tag, mhandle, step, request);                                                                    \
  }                                                                                                                                        \
  static int a_irecv(np_net *m, void *recv, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **steps, void **request) { \
    *request = NULL;                                                                                                                       \
    return T(m)->irecv(recv, n, data, sizes, tags, mhandles, steps, request);                                                              \
  }

/* From v11 on: a context for each communicator. */
#define ADAPT_CONTEXT                                                                                                                \
  static int a_init(np_net *m, void **ctx, uint64_t comm) {                                                                          \
    np_net_config config = {.trafficClass = -1};                                                                                     \
    pthread_mutex_lock(&m->lock);                                                                                                    \
    int rc = T(m)->init(ctx, comm, &config, m->log, np_profile);                                                                     \
    if (rc == NP_OK) m->users++;                                                                                                     \
    pthread_mutex_unlock(&m->lock);                                                                                                  \
    return rc;                                                                                                                       \
  }                                                                                                                                  \
  static int a_finalize(np_net *m, void *ctx) {                                                                                      \
    pthread_mutex_lock(&m->lock);                                                                                                    \
    int rc = T(m)->finalize ? T(m)->finalize(ctx) : NP_OK;                                                                           \
    m->users--;                                                                                                                      \
    pthread_mutex_unlock(&m->lock);                                                                                                  \
    return rc;                                                                                                                       \
  }                                                                                                                                  \
  static int a_listen(np_net *m, void *ctx, int dev, void *handle, void **listen) { return T(m)->listen(ctx, dev, handle, listen); } \
  static int a_connect(np_net *m, void *ctx, int dev, void *handle, void **send) {                                                   \
    np_device_handle *device = NULL;                                                                                                 \
    return T(m)->connect(ctx, dev, handle, send, &device);                                                                           \
  }

/* Properties: by field, because fields moved. ALL is what every version has. */
#define PROPS_ALL(o, p)                                                                                                                  \
  (o)->name = (p)->name, (o)->pciPath = (p)->pciPath, (o)->guid = (p)->guid, (o)->ptrSupport = (p)->ptrSupport, (o)->speed = (p)->speed, \
  (o)->port = (p)->port, (o)->latency = (p)->latency, (o)->maxComms = (p)->maxComms, (o)->maxRecvs = (p)->maxRecvs
#define PROPS_DEVICE(o, p) (o)->netDeviceType = (p)->netDeviceType, (o)->netDeviceVersion = (p)->netDeviceVersion
#define PROPS_V9(o, p)                                                                                         \
  (o)->regIsGlobal = (p)->regIsGlobal, (o)->forceFlush = (p)->forceFlush, (o)->maxP2pBytes = (p)->maxP2pBytes, \
  (o)->maxCollBytes = (p)->maxCollBytes

__attribute__((unused)) static void props_old(np_props_v12 *o) {
  o->maxP2pBytes = OLD_P2P_BYTES;
  o->maxCollBytes = OLD_COLL_BYTES;
}

static void props_defaults(np_props_v12 *o) {
  *o = (np_props_v12){.maxMultiRequestSize = 1, .railId = -1, .planeId = -1, .netDeviceType = NP_DEVICE_HOST};
}

#define ADAPT_FILL                                                                                \
  adapt_common(m);                                                                                \
  m->init = a_init, m->finalize = a_finalize, m->properties = a_properties, m->listen = a_listen; \
  m->connect = a_connect, m->accept = a_accept, m->isend = a_isend, m->irecv = a_irecv
