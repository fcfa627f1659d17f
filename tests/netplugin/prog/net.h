/* What programs need that use a net plugin as NCCL does. V is the version of the table. */
#ifndef NETPLUGIN_NET_H
#define NETPLUGIN_NET_H
#include "../../../plugin/net/abi.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define STR_(a) #a
#define STR(a) STR_(a)
typedef CAT(np_net_v, V) table;
typedef CAT(np_props_v, V) props;

static const char *who;
static table *net;
#if V >= 11
static void *ctx;
#endif
static props p;
static int device; /* that is used */

static void wrong(const char *what, int line) {
  fprintf(stderr, "%s, line %d: not so: %s\n", who, line, what);
  _exit(1);
}
#define CHECK(x) ((x) ? (void)0 : wrong(#x, __LINE__))

static void say(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
  (void)flags, (void)file, (void)line;
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fprintf(stderr, "%s: level %d: %s\n", who, level, text);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static double end; /* of patience */
#define AWAIT(cond)     \
  while (!(cond)) {     \
    CHECK(now() < end); \
    usleep(20);         \
  }

static void load(const char *file) {
  void *h = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!h) fprintf(stderr, "%s\n", dlerror());
  CHECK(h);
  net = dlsym(h, "ncclNetPlugin_v" STR(V));
  CHECK(net);
#if V >= 11
  np_net_config config = {-1};
  CHECK(net->init(&ctx, 77, &config, say, NULL) == NP_OK);
#elif V == 10
  CHECK(net->init(say, NULL) == NP_OK);
#else
  CHECK(net->init(say) == NP_OK);
#endif
  int n = 0;
  CHECK(net->devices(&n) == NP_OK && n >= 1);
  for (int d = n - 1; d >= 0; d--) CHECK(net->getProperties(d, &p) == NP_OK && p.name && p.ptrSupport & NP_PTR_HOST && p.maxRecvs >= 1);
  CHECK(p.netDeviceType == NP_DEVICE_HOST);
  end = now() + 60;
}

static void *try_connect(void *handle) {
  void *comm = NULL;
  np_device_handle *handle_ = NULL;
#if V >= 11
  CHECK(net->connect(ctx, device, handle, &comm, &handle_) == NP_OK);
#elif V == 10
  np_net_config config = {-1};
  CHECK(net->connect(device, &config, handle, &comm, &handle_) == NP_OK);
#else
  CHECK(net->connect(device, handle, &comm, &handle_) == NP_OK);
#endif
  return comm;
}

static void *listen_at(void *handle) {
  void *listening = NULL;
#if V >= 11
  CHECK(net->listen(ctx, device, handle, &listening) == NP_OK && listening);
#else
  CHECK(net->listen(device, handle, &listening) == NP_OK && listening);
#endif
  return listening;
}

static void *try_accept(void *listening) {
  void *comm = NULL;
  np_device_handle *handle_ = NULL;
  CHECK(net->accept(listening, &comm, &handle_) == NP_OK);
  return comm;
}

static void *send_one(void *comm, void *data, size_t bytes, int tag, void *mhandle) {
  void *request = NULL;
#if V >= 10
  CHECK(net->isend(comm, data, bytes, tag, mhandle, NULL, &request) == NP_OK);
#else
  CHECK(net->isend(comm, data, (int)bytes, tag, mhandle, &request) == NP_OK);
#endif
  return request;
}

static void *receive(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles) {
  void *request = NULL;
#if V >= 10
  void *none[NP_RECVS] = {0};
  request = (void *)1; /* as NCCL does where completion of receives is optional */
  CHECK(net->irecv(comm, n, data, sizes, tags, mhandles, none, &request) == NP_OK);
#elif V == 9
  CHECK(net->irecv(comm, n, data, sizes, tags, mhandles, &request) == NP_OK);
#else
  int small[NP_RECVS];
  for (int i = 0; i < n; i++) small[i] = (int)sizes[i];
  CHECK(net->irecv(comm, n, data, small, tags, mhandles, &request) == NP_OK);
#endif
  return request;
}

#endif
