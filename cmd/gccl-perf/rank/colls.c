#include "colls.h"

#include <string.h>

/* Calls, remembers the name for the error report, and returns on failure. */
#define CALL(call)                      \
  do {                                  \
    ncclResult_t result_ = (call);      \
    if (result_ != ncclSuccess) {       \
      *failed_call = first_word(#call); \
      return result_;                   \
    }                                   \
  } while (0)

/* "ncclSend(a, b)" gives "ncclSend". One buffer a thread is enough: a rank reports one failure and ends. */
static const char *first_word(const char *text) {
  static _Thread_local char name[40];
  size_t n = strcspn(text, "(");
  if (n >= sizeof name) n = sizeof name - 1;
  memcpy(name, text, n);
  name[n] = 0;
  return name;
}

static ncclResult_t all_reduce(const struct perf_call *c, const char **failed_call) {
  CALL(ncclAllReduce(c->send, c->recv, c->count, c->type, c->op, c->comm, c->stream));
  return ncclSuccess;
}

static ncclResult_t all_gather(const struct perf_call *c, const char **failed_call) {
  CALL(ncclAllGather(c->send, c->recv, c->count, c->type, c->comm, c->stream));
  return ncclSuccess;
}

static ncclResult_t reduce_scatter(const struct perf_call *c, const char **failed_call) {
  CALL(ncclReduceScatter(c->send, c->recv, c->count, c->type, c->op, c->comm, c->stream));
  return ncclSuccess;
}

static ncclResult_t broadcast(const struct perf_call *c, const char **failed_call) {
  CALL(ncclBroadcast(c->send, c->recv, c->count, c->type, c->root, c->comm, c->stream));
  return ncclSuccess;
}

static ncclResult_t reduce(const struct perf_call *c, const char **failed_call) {
  CALL(ncclReduce(c->send, c->recv, c->count, c->type, c->op, c->root, c->comm, c->stream));
  return ncclSuccess;
}

static ncclResult_t alltoall(const struct perf_call *c, const char **failed_call) {
  CALL(ncclAlltoAll(c->send, c->recv, c->count, c->type, c->comm, c->stream));
  return ncclSuccess;
}

static ncclResult_t gather(const struct perf_call *c, const char **failed_call) {
  CALL(ncclGather(c->send, c->recv, c->count, c->type, c->root, c->comm, c->stream));
  return ncclSuccess;
}

static ncclResult_t scatter(const struct perf_call *c, const char **failed_call) {
  CALL(ncclScatter(c->send, c->recv, c->count, c->type, c->root, c->comm, c->stream));
  return ncclSuccess;
}

/* One grouped exchange: count elements to one peer, as many from another. */
static ncclResult_t exchange(const struct perf_call *c, const void *send, int to, void *recv, int from, size_t count,
                             const char **failed_call) {
  CALL(ncclGroupStart());
  CALL(ncclSend(send, count, c->type, to, c->comm, c->stream));
  CALL(ncclRecv(recv, count, c->type, from, c->comm, c->stream));
  CALL(ncclGroupEnd());
  return ncclSuccess;
}

/* A ring shift: to the next rank, from the one before. */
static ncclResult_t sendrecv(const struct perf_call *c, const char **failed_call) {
  int next = (c->rank + 1) % c->nranks, previous = (c->rank + c->nranks - 1) % c->nranks;
  return exchange(c, c->send, next, c->recv, previous, c->count, failed_call);
}

/* An all-gather by log2(nranks) pairwise exchanges of doubling size; nranks is a power of two. */
static ncclResult_t hypercube(const struct perf_call *c, const char **failed_call) {
  size_t block = c->count * c->type_bytes;
  char *out = c->recv;
  if ((const char *)c->send != out + (size_t)c->rank * block) {
    ncclResult_t r = exchange(c, c->send, c->rank, out + (size_t)c->rank * block, c->rank, c->count, failed_call);
    if (r != ncclSuccess) return r;
  }
  for (int width = 1; width < c->nranks; width *= 2) {
    int mine = c->rank & ~(width - 1), theirs = mine ^ width, peer = c->rank ^ width;
    ncclResult_t r =
        exchange(c, out + (size_t)mine * block, peer, out + (size_t)theirs * block, peer, c->count * (size_t)width, failed_call);
    if (r != ncclSuccess) return r;
  }
  return ncclSuccess;
}

static const struct perf_coll colls[] = {
    /* name, sends all, receives all, reduces, to root, from root */
    {"all_reduce", 0, 0, 1, 0, 0, all_reduce}, {"all_gather", 0, 1, 0, 0, 0, all_gather}, {"reduce_scatter", 1, 0, 1, 0, 0, reduce_scatter},
    {"broadcast", 0, 0, 0, 0, 1, broadcast},   {"reduce", 0, 0, 1, 1, 0, reduce},         {"alltoall", 1, 1, 0, 0, 0, alltoall},
    {"gather", 0, 1, 0, 1, 0, gather},         {"scatter", 1, 0, 0, 0, 1, scatter},       {"sendrecv", 0, 0, 0, 0, 0, sendrecv},
    {"hypercube", 0, 1, 0, 0, 0, hypercube},
};

const struct perf_coll *perf_coll_find(const char *name) {
  for (size_t i = 0; i < sizeof colls / sizeof *colls; i++)
    if (strcmp(colls[i].name, name) == 0) return &colls[i];
  return NULL;
}
