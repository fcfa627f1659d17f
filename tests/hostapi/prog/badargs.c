/* badargs.c: the table of wrong arguments: each call gives its code and a text, writes nothing, and the communicator
 * goes on working. Checks come in the documented order: communicator, root, type, operator, count. */
#include "numfmt.h"
#include "suites.h"

/* One pair for each process, as a program has. */
static struct buf send, recv;
static void *in, *out;
enum { SENT = 4 * sizeof(int32_t), ROOM = 16 * sizeof(int32_t) };

/* The collectives behind one signature; root is ignored where there is none. */
static ncclResult_t call(int kind, const void *s, void *d, size_t n, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t c) {
  switch (kind) {
  case K_ALLREDUCE: return ncclAllReduce(s, d, n, type, op, c, NULL);
  case K_REDUCE: return ncclReduce(s, d, n, type, op, root, c, NULL);
  case K_REDUCESCATTER: return ncclReduceScatter(s, d, n, type, op, c, NULL);
  case K_ALLGATHER: return ncclAllGather(s, d, n, type, c, NULL);
  case K_BROADCAST: return ncclBroadcast(s, d, n, type, root, c, NULL);
  case K_BCAST: return ncclBcast(d, n, type, root, c, NULL);
  case K_ALLTOALL: return ncclAlltoAll(s, d, n, type, c, NULL);
  case K_GATHER: return ncclGather(s, d, n, type, root, c, NULL);
  case K_SCATTER: return ncclScatter(s, d, n, type, root, c, NULL);
  default: return ncclSend(s, n, type, root, c, NULL);
  }
}
static int has_root(int kind) {
  return kind == K_REDUCE || kind == K_BROADCAST || kind == K_BCAST || kind == K_GATHER || kind == K_SCATTER || kind == K_SENDRECV;
}

static void want(int r, int kind, const char *what, ncclResult_t code, ncclResult_t got, const char *word) {
  char text[160];
  snprintf(text, sizeof text, "%s with %s", coll_names[kind], what);
  if (!conf_rc(r, code, got, text, __FILE__, __LINE__)) return;
  const char *last = ncclGetLastError(NULL);
  const char *name = kind == K_SENDRECV ? "ncclSend" : coll_names[kind];
  if (!strstr(last, name)) conf_fail(r, "%s: the text does not name the call: \"%s\"", text, last);
  if (word && !strstr(last, word)) conf_fail(r, "%s: the text does not show %s: \"%s\"", text, word, last);
}

static void collectives(struct team *t, size_t count) {
  ncclComm_t c = t->comm[0];
  int r = t->first, n = t->nranks;
  char size[16];
  snprintf(size, sizeof size, "%d", n);
  for (int kind = 0; kind < K_COUNT; kind++) {
    conf_at(r, "bad arguments of %s", coll_names[kind]);
    want(r, kind, "comm NULL", ncclInvalidArgument, call(kind, in, out, count, ncclInt32, ncclSum, 0, NULL), NULL);
    want(r, kind, "comm garbage", ncclInvalidArgument, call(kind, in, out, count, ncclInt32, ncclSum, 0, (ncclComm_t)send.copy), NULL);
    want(r, kind, "type 12", ncclInvalidArgument, call(kind, in, out, count, (ncclDataType_t)12, ncclSum, 0, c), "12");
    want(r, kind, "type -1", ncclInvalidArgument, call(kind, in, out, count, (ncclDataType_t)-1, ncclSum, 0, c), "-1");
    if (has_root(kind)) {
      want(r, kind, "root -1", ncclInvalidArgument, call(kind, in, out, count, ncclInt32, ncclSum, -1, c), "-1");
      want(r, kind, "root nranks", ncclInvalidArgument, call(kind, in, out, count, ncclInt32, ncclSum, n, c), size);
    }
    if (coll_reduces(kind)) {
      want(r, kind, "op -1", ncclInvalidArgument, call(kind, in, out, count, ncclInt32, (ncclRedOp_t)-1, 0, c), "-1");
      want(r, kind, "op 5", ncclInvalidArgument, call(kind, in, out, count, ncclInt32, (ncclRedOp_t)5, 0, c), "5");
      want(r, kind, "op 77777", ncclInvalidArgument, call(kind, in, out, count, ncclInt32, (ncclRedOp_t)77777, 0, c), "77777");
    }
  }
  int k = K_SENDRECV;
  want(r, k, "peer nranks", ncclInvalidArgument, ncclSend(in, count, ncclInt32, n, c, NULL), size);
  RC(r, ncclInvalidArgument, ncclRecv(out, count, ncclInt32, n, c, NULL));
  RC(r, ncclInvalidArgument, ncclRecv(out, count, ncclInt32, -1, c, NULL));
  RC(r, ncclInvalidArgument, ncclRecv(out, count, (ncclDataType_t)99, 0, c, NULL));
  RC(r, ncclInvalidArgument, ncclRecv(out, count, ncclInt32, 0, NULL, NULL));
}

/* A NULL buffer is found before anything starts. */
static void buffers(struct team *t) {
  ncclComm_t c = t->comm[0];
  int r = t->first;
  want(r, K_ALLREDUCE, "sendbuff NULL", ncclInvalidArgument, ncclAllReduce(NULL, out, 4, ncclInt32, ncclSum, c, NULL), "sendbuff");
  want(r, K_ALLREDUCE, "recvbuff NULL", ncclInvalidArgument, ncclAllReduce(in, NULL, 4, ncclInt32, ncclSum, c, NULL), "recvbuff");
  want(r, K_ALLGATHER, "recvbuff NULL", ncclInvalidArgument, ncclAllGather(in, NULL, 4, ncclInt32, c, NULL), "recvbuff");
  want(r, K_SENDRECV, "sendbuff NULL", ncclInvalidArgument, ncclSend(NULL, 4, ncclInt32, 0, c, NULL), "sendbuff");
  want(r, K_ALLREDUCE, "a size past size_t", ncclInvalidArgument, ncclAllReduce(in, out, SIZE_MAX / 4 + 2, ncclInt32, ncclSum, c, NULL),
       "count");
  if (t->nranks > 1)
    want(r, K_ALLGATHER, "a total size past size_t", ncclInvalidArgument,
         ncclAllGather(in, out, SIZE_MAX / 8 / (size_t)t->nranks + 2, ncclInt64, c, NULL), "count");
}

static void operators(struct team *t) {
  ncclComm_t c = t->comm[0];
  int r = t->first;
  float f = 2;
  ncclRedOp_t op = ncclSum, other = ncclSum;
  OK(r, ncclRedOpCreatePreMulSum(&op, &f, ncclFloat32, ncclScalarHostImmediate, c));
  TRUE(r, (int)op >= ncclNumOps);
  want(r, K_ALLREDUCE, "an operator of another type", ncclInvalidArgument, ncclAllReduce(in, out, 4, ncclInt32, op, c, NULL), NULL);
  OK(r, ncclRedOpDestroy(op, c));
  want(r, K_ALLREDUCE, "a destroyed operator", ncclInvalidArgument, ncclAllReduce(in, out, 4, ncclFloat32, op, c, NULL), NULL);
  RC(r, ncclInvalidArgument, ncclRedOpDestroy(op, c));
  RC(r, ncclInvalidArgument, ncclRedOpDestroy(ncclSum, c));
  RC(r, ncclInvalidArgument, ncclRedOpDestroy((ncclRedOp_t)-1, c));
  RC(r, ncclInvalidArgument, ncclRedOpDestroy(op, NULL));
  TRUE(r, ncclRedOpCreatePreMulSum(NULL, &f, ncclFloat32, ncclScalarHostImmediate, c) == ncclInvalidArgument);
  TRUE(r, ncclRedOpCreatePreMulSum(&other, NULL, ncclFloat32, ncclScalarHostImmediate, c) == ncclInvalidArgument);
  TRUE(r, ncclRedOpCreatePreMulSum(&other, &f, (ncclDataType_t)12, ncclScalarHostImmediate, c) != ncclSuccess);
  TRUE(r, ncclRedOpCreatePreMulSum(&other, &f, ncclFloat32, (ncclScalarResidence_t)2, c) == ncclInvalidArgument);
  TRUE(r, ncclRedOpCreatePreMulSum(&other, &f, ncclFloat32, ncclScalarHostImmediate, NULL) == ncclInvalidArgument);
  TRUE(r, other == ncclSum);
  /* Many live operators at one time. */
  ncclRedOp_t many[100];
  for (int k = 0; k < 100; k++) OK(r, ncclRedOpCreatePreMulSum(&many[k], &f, ncclFloat32, ncclScalarHostImmediate, c));
  for (int k = 0; k < 100; k++) OK(r, ncclRedOpDestroy(many[(k * 37) % 100], c));
}

static void queries(struct team *t) {
  ncclComm_t c = t->comm[0];
  int r = t->first, n = 77;
  ncclComm_t made = c;
  ncclUniqueId id;
  memset(&id, 0, sizeof id);
  RC(r, ncclInvalidArgument, ncclCommCount(NULL, &n));
  RC(r, ncclInvalidArgument, ncclCommCount(c, NULL));
  RC(r, ncclInvalidArgument, ncclCommUserRank(NULL, &n));
  RC(r, ncclInvalidArgument, ncclCommUserRank(c, NULL));
  RC(r, ncclInvalidArgument, ncclCommCuDevice(NULL, &n));
  RC(r, ncclInvalidArgument, ncclCommCuDevice(c, NULL));
  TRUE(r, n == 77);
  RC(r, ncclInvalidArgument, ncclGetUniqueId(NULL));
  RC(r, ncclInvalidArgument, ncclCommGetUniqueId(NULL, &id));
  RC(r, ncclInvalidArgument, ncclCommGetUniqueId(c, NULL));
  RC(r, ncclInvalidArgument, ncclCommInitRank(NULL, 1, id, 0));
  RC(r, ncclInvalidArgument, ncclCommInitRank(&made, 0, id, 0));
  RC(r, ncclInvalidArgument, ncclCommInitRank(&made, 2, id, 2));
  RC(r, ncclInvalidArgument, ncclCommInitRank(&made, 2, id, -1));
  RC(r, ncclInvalidArgument, ncclCommSplit(NULL, 0, 0, &made, NULL));
  RC(r, ncclInvalidArgument, ncclCommSplit(c, 0, 0, NULL, NULL));
  RC(r, ncclInvalidArgument, ncclCommFinalize((ncclComm_t)send.copy));
  RC(r, ncclInvalidArgument, ncclCommDestroy((ncclComm_t)send.copy));
  RC(r, ncclInvalidArgument, ncclCommAbort((ncclComm_t)send.copy));
}

void suite_badargs(struct team *t) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  if (!in) {
    if (!buf_new(&send, t->first, SENT) || !buf_new(&recv, t->first, ROOM)) exit(1);
    memset(recv.copy, 0x33, ROOM);
    buf_put(&send, 0, SENT);
    buf_put(&recv, 0, ROOM);
    in = send.at;
    out = recv.at;
  }
  pthread_mutex_unlock(&lock);
  conf_barrier(t);
  collectives(t, 4);
  collectives(t, 0); /* the checks come before the count */
  buffers(t);
  operators(t);
  queries(t);
  conf_barrier(t);
  if (t->first == 0 || W->launch == LAUNCH_PROCS) {
    OK(t->first, mem_stream_sync(mem_null));
    buf_get(&recv, 0, ROOM);
    for (size_t k = 0; k < ROOM; k++)
      if (!TRUE(t->first, recv.copy[k] == 0x33)) break;
  }
  conf_barrier(t);
  coll_alive(t, t->comm);
}
