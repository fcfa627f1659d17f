/* A stand-in for the library in gccl-perf's own tests: the public calls that the rank program uses, over one shared
 * file, with no care for speed. It misbehaves on demand, which a real library cannot:
 *   FAKE_DIR      folder of the shared file (required)
 *   FAKE_WRONG    1: one element of rank 1's first result is changed
 *   FAKE_SPILL    1: one byte is written after rank 1's results
 *   FAKE_DIE      R: rank R kills itself in its third call
 *   FAKE_HANG     R: rank R sleeps in its third call
 *   FAKE_FAIL     R: rank R's third call returns an error
 * Reductions know the integer types, float and double. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nccl.h"
#include "shbarrier.h"

#define AREA (16u << 20) /* sparse: bytes of each rank's outgoing data */
#define MAX_OPS 64

struct op {
  int send, peer;
  const void *from;
  void *to;
  size_t bytes;
};

struct ncclComm {
  int rank, nranks, calls;
  char *map;
  struct perf_barrier barrier;
  double scale[64]; /* factors of the one user operator, by rank */
  char path[128];
};

static _Thread_local int depth;
static _Thread_local struct op ops[MAX_OPS];
static _Thread_local int nops;
static _Thread_local ncclComm_t group_comm;
static _Thread_local char last_error[100];

static char *area(ncclComm_t c, int rank) { return c->map + 65536 + (size_t)rank * AREA; }

static int knob(const char *name) {
  const char *v = getenv(name);
  return v ? atoi(v) : -1;
}

static ncclResult_t error(ncclResult_t code, const char *text) {
  snprintf(last_error, sizeof last_error, "%s", text);
  return code;
}

const char *ncclGetLastError(ncclComm_t c) {
  (void)c;
  return last_error;
}

const char *ncclGetErrorString(ncclResult_t r) { return r == ncclSuccess ? "no error" : "error"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  memset(id, 0, sizeof *id);
  snprintf(id->internal, sizeof id->internal, "%s/fake-%d", getenv("FAKE_DIR"), (int)getpid());
  int fd = open(id->internal, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, 65536 + 64ll * AREA) != 0) return error(ncclSystemError, "cannot make the shared file");
  close(fd);
  return ncclSuccess;
}

static ncclResult_t meet(ncclComm_t c) {
  return perf_barrier_wait(&c->barrier) < 0 ? ncclSuccess : error(ncclRemoteError, "a peer is missing");
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int nranks, ncclUniqueId id, int rank) {
  struct ncclComm *c = calloc(1, sizeof *c);
  int fd = open(id.internal, O_RDWR | O_CLOEXEC);
  size_t bytes = 65536 + (size_t)nranks * AREA;
  c->map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (fd < 0 || c->map == MAP_FAILED) return error(ncclSystemError, "cannot map the shared file");
  c->rank = rank;
  c->nranks = nranks;
  snprintf(c->path, sizeof c->path, "%s", id.internal);
  perf_barrier_init(&c->barrier, c->map, rank, nranks, 1, 30);
  *out = c;
  return meet(c);
}

ncclResult_t ncclCommDestroy(ncclComm_t c) {
  ncclResult_t r = meet(c);
  if (c->rank == 0) unlink(c->path);
  munmap(c->map, 65536 + (size_t)c->nranks * AREA);
  free(c);
  return r;
}

ncclResult_t ncclMemAlloc(void **p, size_t n) { return posix_memalign(p, 4096, n) ? ncclSystemError : ncclSuccess; }
ncclResult_t ncclMemFree(void *p) {
  free(p);
  return ncclSuccess;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t c, void *b, size_t n, ncclWindow_t *w, int flags) {
  (void)n, (void)flags;
  *w = b;
  return meet(c);
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t c, ncclWindow_t w) {
  (void)w;
  return meet(c);
}
ncclResult_t ncclCommRegister(const ncclComm_t c, void *b, size_t n, void **h) {
  (void)c, (void)n;
  *h = b;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t c, void *h) {
  (void)c, (void)h;
  return ncclSuccess;
}

static size_t width(ncclDataType_t t) {
  static const size_t w[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return w[t];
}

/* Publishes this rank's bytes and waits until everybody's are there. */
static ncclResult_t publish(ncclComm_t c, const void *from, size_t bytes) {
  int call = ++c->calls;
  if (call == 3 && knob("FAKE_DIE") == c->rank) raise(SIGKILL);
  if (call == 3 && knob("FAKE_FAIL") == c->rank) return error(ncclInternalError, "told to \"fail\"");
  if (call == 3 && knob("FAKE_HANG") == c->rank) sleep(1000);
  if (bytes > AREA) return error(ncclInvalidArgument, "more than the fake library carries");
  if (from) memcpy(area(c, c->rank), from, bytes);
  return meet(c);
}

static ncclResult_t finish(ncclComm_t c, void *to, size_t bytes) {
  if (bytes && c->rank == 1 && c->calls == 1 && knob("FAKE_WRONG") == 1) ((char *)to)[0] ^= 1;
  if (bytes && c->rank == 1 && knob("FAKE_SPILL") == 1) ((char *)to)[bytes] ^= 1;
  return meet(c);
}

#define COMBINE(T)                                                                                  \
  for (size_t i = 0; i < n; i++) {                                                                  \
    T acc = 0;                                                                                      \
    for (int r = 0; r < c->nranks; r++) {                                                           \
      T v = ((T *)(area(c, r) + at))[i];                                                            \
      if (op >= ncclNumOps) v = (T)(v * (T)c->scale[r]);                                            \
      if (r == 0) acc = v;                                                                          \
      else if (op == ncclProd) acc = (T)(acc * v);                                                  \
      else if (op == ncclMax) acc = v > acc ? v : acc;                                              \
      else if (op == ncclMin) acc = v < acc ? v : acc;                                              \
      else acc = (T)(acc + v);                                                                      \
    }                                                                                               \
    ((T *)to)[i] = op == ncclAvg ? (T)(acc / (T)c->nranks) : acc;                                   \
  }

static ncclResult_t combine(ncclComm_t c, void *to, size_t at, size_t n, ncclDataType_t type, ncclRedOp_t op) {
  switch (type) {
    case ncclInt8: COMBINE(int8_t) break;
    case ncclUint8: COMBINE(uint8_t) break;
    case ncclInt32: COMBINE(int32_t) break;
    case ncclUint32: COMBINE(uint32_t) break;
    case ncclInt64: COMBINE(int64_t) break;
    case ncclUint64: COMBINE(uint64_t) break;
    case ncclFloat32: COMBINE(float) break;
    case ncclFloat64: COMBINE(double) break;
    default: return error(ncclInvalidArgument, "type unknown to the fake library");
  }
  return ncclSuccess;
}

#define TRY(call)                    \
  do {                               \
    ncclResult_t r_ = (call);        \
    if (r_ != ncclSuccess) return r_; \
  } while (0)

ncclResult_t ncclAllReduce(const void *s, void *d, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t st) {
  (void)st;
  TRY(publish(c, s, n * width(t)));
  TRY(combine(c, d, 0, n, t, op));
  return finish(c, d, n * width(t));
}

ncclResult_t ncclReduce(const void *s, void *d, size_t n, ncclDataType_t t, ncclRedOp_t op, int root, ncclComm_t c, cudaStream_t st) {
  (void)st;
  TRY(publish(c, s, n * width(t)));
  if (c->rank == root) TRY(combine(c, d, 0, n, t, op));
  return finish(c, d, c->rank == root ? n * width(t) : 0);
}

ncclResult_t ncclReduceScatter(const void *s, void *d, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, cudaStream_t st) {
  (void)st;
  TRY(publish(c, s, n * width(t) * (size_t)c->nranks));
  TRY(combine(c, d, (size_t)c->rank * n * width(t), n, t, op));
  return finish(c, d, n * width(t));
}

/* The copies: to receives a block from each rank in from…to, taken at offset of that rank's data. */
static ncclResult_t copies(ncclComm_t c, const void *s, size_t send, void *d, size_t block, int first, int last, size_t offset, int receives) {
  TRY(publish(c, s, send));
  for (int r = first; receives && r <= last; r++) memcpy((char *)d + (size_t)(r - first) * block, area(c, r) + offset, block);
  return finish(c, d, receives ? block : 0);
}

ncclResult_t ncclAllGather(const void *s, void *d, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t st) {
  (void)st;
  return copies(c, s, n * width(t), d, n * width(t), 0, c->nranks - 1, 0, 1);
}
ncclResult_t ncclBroadcast(const void *s, void *d, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t st) {
  (void)st;
  return copies(c, s, n * width(t), d, n * width(t), root, root, 0, 1);
}
ncclResult_t ncclGather(const void *s, void *d, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t st) {
  (void)st;
  return copies(c, s, n * width(t), d, n * width(t), 0, c->nranks - 1, 0, c->rank == root);
}
ncclResult_t ncclScatter(const void *s, void *d, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t st) {
  (void)st;
  size_t block = n * width(t);
  return copies(c, s, c->rank == root ? block * (size_t)c->nranks : 0, d, block, root, root, (size_t)c->rank * block, 1);
}
ncclResult_t ncclAlltoAll(const void *s, void *d, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t st) {
  (void)st;
  size_t block = n * width(t);
  return copies(c, s, block * (size_t)c->nranks, d, block, 0, c->nranks - 1, (size_t)c->rank * block, 1);
}

ncclResult_t ncclGroupStart(void) {
  if (depth++ == 0) nops = 0;
  return ncclSuccess;
}
static ncclResult_t queue(struct op o, ncclComm_t c) {
  if (depth == 0 || nops == MAX_OPS) return error(ncclInvalidUsage, "send and receive only in a group here");
  ops[nops++] = o;
  group_comm = c;
  return ncclSuccess;
}
ncclResult_t ncclSend(const void *s, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t st) {
  (void)st;
  struct op o = {1, peer, s, NULL, n * width(t)};
  return queue(o, c);
}
ncclResult_t ncclRecv(void *d, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t st) {
  (void)st;
  struct op o = {0, peer, NULL, d, n * width(t)};
  return queue(o, c);
}
/* One send and one receive a group: what the rank program does. */
ncclResult_t ncclGroupEnd(void) {
  if (--depth > 0 || nops == 0) return ncclSuccess;
  if (nops != 2 || !ops[0].send || ops[1].send) return error(ncclInvalidUsage, "one send, then one receive");
  TRY(publish(group_comm, ops[0].from, ops[0].bytes));
  memcpy(ops[1].to, area(group_comm, ops[1].peer), ops[1].bytes);
  return finish(group_comm, ops[1].to, ops[1].bytes);
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t t, ncclScalarResidence_t res, ncclComm_t c) {
  (void)res;
  double v = t == ncclFloat32 ? *(float *)scalar : t == ncclFloat64 ? *(double *)scalar : (double)*(int8_t *)scalar;
  double *shared = (double *)(c->map + 32768);
  shared[c->rank] = v;
  TRY(meet(c));
  memcpy(c->scale, shared, (size_t)c->nranks * sizeof v);
  *op = ncclNumOps;
  return meet(c);
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t c) {
  (void)op, (void)c;
  return ncclSuccess;
}
