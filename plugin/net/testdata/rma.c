/* A one-sided plugin over TCP for the tests: what is put is sent, and whoever makes progress at the other end stores it. Tables: rma v14, and
 * gin v13 with devices of type TYPE (2 proxy, 3 GDAKI); -DONLY_GIN leaves the first out. */
#define _GNU_SOURCE
#include "../abi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef TYPE
#define TYPE 2
#endif
enum { RANKS = 8, REGIONS = 16, PATIENCE_MS = 10000 };

typedef struct {
  uint32_t kind, region, signal, op; /* kind 1: put; 2: a region was registered */
  uint64_t off, bytes, signal_off, value;
} head;

typedef struct piece {
  struct piece *next;
  int *done;
  size_t at, bytes;
  char data[];
} piece;

typedef struct {
  int fd;
  piece *first, **last;
  head in;
  size_t got; /* of head, then of what follows */
  uint32_t registered;
} peer;

typedef struct {
  int n, rank, broken;
  peer peer[RANKS];
  uint32_t nregions;
  struct {
    char *base;
    size_t bytes;
  } region[REGIONS];
} coll;

static int init(void **ctx, uint64_t comm, np_logger log) {
  static int any;
  (void)comm, (void)log;
  *ctx = &any;
  return NP_OK;
}
static int finalize(void *ctx) { return ctx ? NP_OK : NP_INTERNAL; }
static int devices(int *n) {
  *n = 1;
  return NP_OK;
}
static int properties(int dev, np_props_v12 *p) {
  (void)dev;
  *p = (np_props_v12){.name = "tcp", .ptrSupport = NP_PTR_HOST, .netDeviceType = TYPE};
  return NP_OK;
}

static int listens(void *ctx, int dev, void *handle, void **out) {
  (void)ctx, (void)dev;
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof a;
  int *fd = malloc(sizeof *fd);
  *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(*fd, (struct sockaddr *)&a, len) || listen(*fd, RANKS) || getsockname(*fd, (struct sockaddr *)&a, &len)) return NP_SYSTEM;
  memcpy(handle, &a, sizeof a);
  *out = fd;
  return NP_OK;
}
static int close_listen(void *l) {
  close(*(int *)l);
  free(l);
  return NP_OK;
}

static int connects(void *ctx, void *handles[], int n, int rank, void *l, void **out) {
  (void)ctx;
  coll *c = calloc(1, sizeof *c);
  c->n = n;
  c->rank = rank;
  for (int r = 0; r < n; r++) c->peer[r].last = &c->peer[r].first, c->peer[r].fd = -1;
  for (int r = 0; r < rank; r++) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, handles[r], sizeof(struct sockaddr_in)) || send(fd, &rank, sizeof rank, MSG_NOSIGNAL) != sizeof rank) return NP_SYSTEM;
    c->peer[r].fd = fd;
  }
  for (int r = rank + 1; r < n; r++) {
    struct pollfd p = {.fd = *(int *)l, .events = POLLIN};
    if (poll(&p, 1, PATIENCE_MS) != 1) return NP_SYSTEM;
    int who, fd = accept4(*(int *)l, NULL, NULL, SOCK_CLOEXEC);
    if (recv(fd, &who, sizeof who, MSG_WAITALL) != sizeof who || who <= rank || who >= n) return NP_SYSTEM;
    c->peer[who].fd = fd;
  }
  for (int r = 0; r < n; r++)
    if (r != rank) fcntl(c->peer[r].fd, F_SETFL, O_NONBLOCK);
  *out = c;
  return NP_OK;
}

static void arrived(coll *c, peer *p, const head *h) {
  if (h->kind == 2) {
    p->registered++;
    return;
  }
  __atomic_fetch_add((uint64_t *)(c->region[h->signal].base + h->signal_off), h->op == 1 ? 1 : h->value, __ATOMIC_RELEASE);
}

static void broken(coll *c, ssize_t n) {
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) c->broken = 1;
}

static int progress(void *context) {
  coll *c = context;
  for (int r = 0; r < c->n; r++) {
    peer *p = &c->peer[r];
    if (r == c->rank || p->fd < 0) continue;
    for (piece *o; (o = p->first);) {
      ssize_t n = send(p->fd, o->data + o->at, o->bytes - o->at, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) {
        broken(c, n ? n : -1);
        break;
      }
      if ((o->at += (size_t)n) < o->bytes) break;
      if (o->done) *o->done = 1;
      if (!(p->first = o->next)) p->last = &p->first;
      free(o);
    }
    for (;;) {
      char *to = (char *)&p->in + p->got;
      size_t want = sizeof p->in - p->got;
      if (p->got >= sizeof p->in) {
        size_t at = p->got - sizeof p->in;
        if (p->in.region >= c->nregions || p->in.signal >= c->nregions || p->in.off + p->in.bytes > c->region[p->in.region].bytes)
          return NP_INTERNAL;
        to = c->region[p->in.region].base + p->in.off + at;
        want = p->in.bytes - at;
      }
      ssize_t n = want ? recv(p->fd, to, want, MSG_DONTWAIT) : 0;
      if (want && n <= 0) {
        broken(c, n);
        break;
      }
      p->got += (size_t)n;
      if (p->got < sizeof p->in || p->got < sizeof p->in + p->in.bytes) continue;
      arrived(c, p, &p->in);
      p->got = 0;
    }
  }
  return NP_OK;
}

static void say(coll *c, int to, const head *h, const void *data, int *done) {
  piece *o = malloc(sizeof *o + sizeof *h + h->bytes);
  *o = (piece){.done = done, .bytes = sizeof *h + h->bytes};
  memcpy(o->data, h, sizeof *h);
  if (h->bytes) memcpy(o->data + sizeof *h, data, h->bytes);
  *c->peer[to].last = o;
  c->peer[to].last = &o->next;
}

static int reg(void *comm, void *data, size_t bytes, int type, uint64_t flags, void **mhandle) {
  coll *c = comm;
  (void)flags;
  if (type != NP_PTR_HOST || c->nregions == REGIONS) return NP_INTERNAL;
  uint32_t i = c->nregions++;
  c->region[i].base = data;
  c->region[i].bytes = bytes;
  head h = {.kind = 2};
  for (int r = 0; r < c->n; r++)
    if (r != c->rank) say(c, r, &h, NULL, NULL);
  for (int r = 0, ms = 0; r < c->n; r++)
    while (r != c->rank && c->peer[r].registered <= i) {
      progress(c);
      usleep(1000);
      if (c->broken || ms++ > PATIENCE_MS) return NP_REMOTE;
    }
  *mhandle = (void *)(uintptr_t)(i + 1);
  return NP_OK;
}
static int dereg(void *comm, void *mhandle) {
  ((coll *)comm)->region[(uintptr_t)mhandle - 1].bytes = 0;
  return NP_OK;
}

static int put(void *context, int ctx, uint64_t src, void *src_handle, size_t bytes, uint64_t dst, void *dst_handle, uint32_t rank,
               uint64_t signal_off, void *signal_handle, uint64_t value, uint32_t op, void **request) {
  coll *c = context;
  int *done = calloc(1, sizeof *done);
  (void)ctx;
  head h = {1, (uint32_t)(uintptr_t)dst_handle - 1, (uint32_t)(uintptr_t)signal_handle - 1, op, dst, bytes, signal_off, value};
  say(c, (int)rank, &h, c->region[(uintptr_t)src_handle - 1].base + src, done);
  *request = done;
  return progress(c);
}
static int test(void *comm, void *request, int *done) {
  int rc = progress(comm);
  if ((*done = *(int *)request)) free(request);
  return rc;
}
static int error(void *context, bool *has) {
  *has = ((coll *)context)->broken;
  return NP_OK;
}
static int destroy(void *context) { return context ? NP_OK : NP_INTERNAL; }
static int close_coll(void *comm) {
  coll *c = comm;
  for (int r = 0; r < c->n; r++) {
    for (piece *o; (o = c->peer[r].first);) {
      c->peer[r].first = o->next;
      free(o);
    }
    if (c->peer[r].fd >= 0) close(c->peer[r].fd);
  }
  free(c);
  return NP_OK;
}
static int no_get(void *ctx, int context, uint64_t a, void *b, size_t n, uint64_t d, void *e, uint32_t rank, void **request) {
  (void)ctx, (void)context, (void)a, (void)b, (void)n, (void)d, (void)e, (void)rank, (void)request;
  return NP_INTERNAL;
}

#define COMMON                                                                                                                   \
  .name = "OneSided", .init = init, .devices = devices, .getProperties = properties, .listen = listens, .connect = connects,     \
  .deregMrSym = dereg, .destroyContext = destroy, .closeColl = close_coll, .closeListen = close_listen, .queryLastError = error, \
  .finalize = finalize

#ifndef ONLY_GIN
static int create_v14(void *comm, np_rma_config_v14 *config, void **context) {
  if (config->nContexts != 1 || config->rankStride != 1) return NP_INTERNAL;
  *context = comm;
  return NP_OK;
}
static int put_v14(void *context, int ctx, uint64_t src, void *src_handle, size_t bytes, uint64_t dst, void *dst_handle, uint32_t rank,
                   uint64_t signal_off, void *signal_handle, uint64_t value, uint32_t op, bool strong, void **request) {
  if (!strong) return NP_INTERNAL;
  return put(context, ctx, src, src_handle, bytes, dst, dst_handle, rank, signal_off, signal_handle, value, op, request);
}
__attribute__((visibility("default"))) const np_rma_v14 ncclRmaPlugin_v14 = {
    COMMON, .createContext = create_v14, .regMrSym = reg, .iput = no_get, .iputSignal = put_v14, .test = test, .rmaProgress = progress};
#endif

static int create_v13(void *comm, np_gin_config_v13 *config, void **context, np_device_handle **device) {
  static np_device_handle any;
  if (config->nContexts != 1 || config->nSignals || config->nCounters) return NP_INTERNAL;
  *context = comm;
  *device = &any;
  return NP_OK;
}
static int reg_v13(void *comm, void *data, size_t bytes, int type, uint64_t flags, void **mhandle, void **device) {
  *device = NULL;
  return reg(comm, data, bytes, type, flags, mhandle);
}
__attribute__((visibility("default"))) const np_gin_v13 ncclGinPlugin_v13 = {
    COMMON, .createContext = create_v13, .regMrSym = reg_v13, .iput = no_get, .iputSignal = put, .test = test, .ginProgress = progress};
