/* sizes.c: C11 count zero, C15 in-place places, C16 sizes past 2^31, C17 unaligned buffers at a page end. */
#include <sys/mman.h>

#include "cases.h"
#include "numfmt.h"

/* C11: every call with nothing to do, NULL and real pointers, every root; what follows matches up. */
void c11(struct team *t) {
  struct pool p;
  if (!pool_make(&p, t, t->comm, 4096)) return;
  for (int kind = 0; kind < K_COUNT; kind++)
    for (int root = 0; root < t->nranks; root++)
      for (int nulls = 0; nulls < 2; nulls++) {
        struct coll_case c = {.kind = kind,
                              .op = coll_reduces(kind) ? (root + nulls) % OP_COUNT : 0,
                              .root = root,
                              .type = (ncclDataType_t)((kind + root) % ncclNumTypes),
                              .nulls = nulls,
                              .inplace = kind == K_BCAST,
                              .seed = 4};
        coll_run_case(t, t->comm, &p, &c);
        c.count = 5;
        if (root == 0) coll_run_case(t, t->comm, &p, &c);
      }
  /* Empty messages among full ones keep their place; a rank with empty parts only, alternating with full ones. */
  int n = t->nranks;
  int32_t(*buf)[2][CONF_MAX_RANKS][3] = malloc(sizeof *buf * (size_t)t->nlocal);
  for (int round = 0; round < 40; round++) {
    OK(t->first, ncclGroupStart());
    for (int i = 0; i < t->nlocal; i++) {
      int me = t->first + i;
      for (int q = 0; q < n; q++) {
        size_t out = round % 2 && me == 0 ? 0 : 2, in = round % 2 && q == 0 ? 0 : 2;
        for (int j = 0; j < 3; j++) {
          buf[i][0][q][j] = me * 100 + q * 10 + j;
          buf[i][1][q][j] = -7;
        }
        OK(me, ncclSend(&buf[i][0][q][0], 1, ncclInt32, q, t->comm[i], NULL));
        OK(me, ncclSend(out ? &buf[i][0][q][1] : NULL, out, ncclInt32, q, t->comm[i], NULL));
        OK(me, ncclRecv(&buf[i][1][q][0], 1, ncclInt32, q, t->comm[i], NULL));
        OK(me, ncclRecv(in ? &buf[i][1][q][1] : NULL, in, ncclInt32, q, t->comm[i], NULL));
      }
    }
    OK(t->first, ncclGroupEnd());
    for (int i = 0; i < t->nlocal; i++)
      for (int q = 0; q < n; q++)
        for (int j = 0; j < 3; j++) {
          int32_t want = j && round % 2 && q == 0 ? -7 : q * 100 + (t->first + i) * 10 + j, got = buf[i][1][q][j];
          if (want != got) conf_fail(t->first + i, "round %d, messages from %d, element %d: want %d, got %d", round, q, j, want, got);
        }
  }
  free(buf);
  pool_free(&p, t, t->comm);
}

/* C15: the documented in-place places for every root, type width and memory; what must not change is looked at. */
void c15(struct team *t) {
  struct pool p;
  if (!pool_make(&p, t, t->comm, 1001u * 8 * (size_t)t->nranks)) return;
  static const int kinds[] = {K_ALLREDUCE, K_REDUCE, K_REDUCESCATTER, K_ALLGATHER, K_BROADCAST, K_GATHER, K_SCATTER};
  static const ncclDataType_t types[] = {ncclInt8, ncclBfloat16, ncclFloat32, ncclInt64};
  static const size_t counts[] = {1, 33, 1001};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (int root = 0; root < t->nranks; root++)
      for (int v = 0; v < 6; v++) {
        struct coll_case c = {.kind = kinds[k],
                              .root = root,
                              .type = types[v % 4],
                              .count = counts[v % 3],
                              .inplace = 1,
                              .buf = (v + root) % BUF_KINDS,
                              .shift_send = v,
                              .seed = (uint64_t)(v * 10 + root)};
        coll_run_case(t, t->comm, &p, &c);
      }
  pool_free(&p, t, t->comm);
}

/* C15 with checks: the documented places work, and places beside them are refused, whatever the size. */
void c15_near(struct team *t) {
  int me = t->first, n = t->nranks;
  ncclComm_t c = t->comm[0];
  static const size_t counts[] = {2, 33, 3001};
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
    size_t m = counts[k];
    float *b = calloc(m * (size_t)(n + 2), sizeof *b);
    if (!TRUE(me, b != NULL)) return;
    float *own = b + (size_t)me * m, *far = b + m * (size_t)n;
    RC(me, ncclInvalidArgument, ncclAllReduce(b, b + 1, m, ncclFloat, ncclSum, c, NULL));
    RC(me, ncclInvalidArgument, ncclAllReduce(b + 1, b, m, ncclFloat, ncclSum, c, NULL));
    RC(me, ncclInvalidArgument, ncclAllGather(own + 1, b, m, ncclFloat, c, NULL));
    RC(me, ncclInvalidArgument, ncclReduceScatter(b, own + 1, m, ncclFloat, ncclSum, c, NULL));
    RC(me, ncclInvalidArgument, ncclAlltoAll(b, b + 1, m, ncclFloat, c, NULL));
    if (me != 0) { /* MPI's idea of in place */
      RC(me, ncclInvalidArgument, ncclAllGather(b, b, m, ncclFloat, c, NULL));
      RC(me, ncclInvalidArgument, ncclReduceScatter(b, b, m, ncclFloat, ncclSum, c, NULL));
    }
    if (me == 1) {
      RC(me, ncclInvalidArgument, ncclGather(b, b, m, ncclFloat, 1, c, NULL));
      RC(me, ncclInvalidArgument, ncclScatter(b, own - 1, m, ncclFloat, 1, c, NULL));
      RC(me, ncclInvalidArgument, ncclReduce(b, b + m - 1, m, ncclFloat, ncclSum, 1, c, NULL));
      RC(me, ncclInvalidArgument, ncclBroadcast(b + m - 1, b, m, ncclFloat, 1, c, NULL));
      TRUE(me, strstr(ncclGetLastError(NULL), "overlap") != NULL);
    }
    OK(me, ncclAllReduce(b, b, m, ncclFloat, ncclSum, c, NULL));
    OK(me, ncclAllReduce(b, b + m, m, ncclFloat, ncclSum, c, NULL));
    OK(me, ncclAllGather(own, b, m, ncclFloat, c, NULL));
    OK(me, ncclReduceScatter(b, own, m, ncclFloat, ncclSum, c, NULL));
    OK(me, ncclGather(me == 1 ? own : far, b, m, ncclFloat, 1, c, NULL));
    OK(me, ncclScatter(b, me == 1 ? own : far, m, ncclFloat, 1, c, NULL));
    OK(me, ncclReduce(b, me == 1 ? b : far, m, ncclFloat, ncclSum, 1, c, NULL));
    OK(me, ncclBroadcast(b, b, m, ncclFloat, 1, c, NULL));
    free(b);
  }
  coll_alive(t, t->comm);
}

/* Pattern that tells positions apart and needs no table. */
static unsigned char at(size_t j, int rank) { return (unsigned char)((j * 2654435761u >> 13) + (size_t)rank * 31 + (j >> 31) * 7); }

static void fill(unsigned char *p, size_t n, int rank) {
  for (size_t j = 0; j < n; j += 1 << 20) p[j] = at(j, rank); /* sparse: the rest stays zero pages */
  for (size_t c = (size_t)1 << 31; c <= n; c += (size_t)1 << 31)
    for (size_t j = c - 64; j < c + 64 && j < n; j++) p[j] = at(j, rank);
  for (size_t j = n - 64; j < n; j++) p[j] = at(j, rank);
}

static int same(const unsigned char *p, size_t n, int who, int rank, const char *what) {
  for (size_t c = (size_t)1 << 31; c <= n; c += (size_t)1 << 31)
    for (size_t j = c - 64; j < c + 64 && j < n; j++)
      if (p[j] != at(j, who)) return conf_fail(rank, "%s: index %zu: want %#x, got %#x", what, j, at(j, who), p[j]);
  for (size_t j = 0; j < n; j += 1 << 20)
    if (p[j] != at(j, who)) return conf_fail(rank, "%s: index %zu: want %#x, got %#x", what, j, at(j, who), p[j]);
  for (size_t j = n - 64; j < n; j++)
    if (p[j] != at(j, who)) return conf_fail(rank, "%s: index %zu: want %#x, got %#x", what, j, at(j, who), p[j]);
  return 1;
}

static unsigned char *big(size_t n) {
  void *p = mmap(NULL, n + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

/* C16: 2^31+7 bytes, two ranks as threads: buffers are four times that. */
void c16(struct team *t) {
  int me = t->first;
  size_t n = ((size_t)1 << 31) + 7;
  unsigned char *a = big(n), *b = big(2 * n);
  if (!TRUE(me, a && b)) return;
  fill(a, n, me);
  conf_at(me, "ncclBroadcast of 2^31+7");
  if (OK(me, ncclBroadcast(a, b, n, ncclInt8, 0, t->comm[0], NULL))) same(b, n, 0, me, "ncclBroadcast of 2^31+7 int8");
  conf_at(me, "send and receive of 2^31+7");
  OK(me, me == 0 ? ncclSend(a, n, ncclUint8, 1, t->comm[0], NULL) : ncclRecv(b + 3, n, ncclUint8, 0, t->comm[0], NULL));
  if (me == 1) same(b + 3, n, 0, me, "ncclRecv of 2^31+7 uint8");
  conf_at(me, "ncclAllGather of 2^31+7 each");
  if (OK(me, ncclAllGather(a, b, n, ncclInt8, t->comm[0], NULL))) {
    same(b, n, 0, me, "ncclAllGather, first block");
    same(b + n, n, 1, me, "ncclAllGather, second block");
  }
  munmap(a, n + 4096);
  munmap(b, 2 * n + 4096);
}

/* A size that overflows is refused before any access. */
void c16_overflow(struct team *t) {
  int me = t->first, x = 1;
  ncclComm_t c = t->comm[0];
  size_t n = (size_t)t->nranks;
  RC(me, ncclInvalidArgument, ncclAllReduce(&x, &x, SIZE_MAX / 8 + 1, ncclFloat64, ncclSum, c, NULL));
  RC(me, ncclInvalidArgument, ncclBroadcast(&x, &x, SIZE_MAX / 4 + 1, ncclInt32, 0, c, NULL));
  RC(me, ncclInvalidArgument, ncclSend(&x, SIZE_MAX / 2 + 1, ncclFloat16, 0, c, NULL));
  RC(me, ncclInvalidArgument, ncclRecv(&x, SIZE_MAX / 2 + 1, ncclFloat16, 0, c, NULL));
  if (n > 1) {
    RC(me, ncclInvalidArgument, ncclAllGather(&x, &x, SIZE_MAX / n + 1, ncclInt8, c, NULL));
    RC(me, ncclInvalidArgument, ncclReduceScatter(&x, &x, SIZE_MAX / n + 1, ncclInt8, ncclSum, c, NULL));
    RC(me, ncclInvalidArgument, ncclAlltoAll(&x, &x, SIZE_MAX / n + 1, ncclInt8, c, NULL));
    RC(me, ncclInvalidArgument, ncclGather(&x, &x, SIZE_MAX / n + 1, ncclInt8, 0, c, NULL));
    RC(me, ncclInvalidArgument, ncclScatter(&x, &x, SIZE_MAX / n + 1, ncclInt8, 0, c, NULL));
  }
  coll_alive(t, t->comm);
}

/* C17: both buffers end at a page that may not be touched, and begin anywhere. */
struct edge {
  unsigned char *base;
  size_t bytes;
};

static int edge_make(struct edge *e, size_t bytes) {
  e->bytes = (bytes + 4095) & ~(size_t)4095;
  e->base = mmap(NULL, e->bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return e->base != MAP_FAILED && mprotect(e->base + e->bytes, 4096, PROT_NONE) == 0;
}

static void edge_case(struct team *t, const struct coll_case *c, struct edge *in, struct edge *out) {
  int me = t->first, n = t->nranks;
  size_t es = num_size(c->type), ns = coll_send_elements(c, n), nr = coll_recv_elements(c, n);
  struct coll_run run = {0};
  struct oracle o = {c->type, c->op, n, EXACT, c->seed};
  run.send = in->base + in->bytes - ns * es;
  run.recv = out->base + out->bytes - nr * es;
  run.scalar = oracle_scalar(&o, me);
  memset(run.recv - GUARD_BYTES, 0xA5, GUARD_BYTES);
  for (size_t j = 0; j < ns; j++) num_store(c->type, run.send, j, oracle_input(&o, me, j));
  char text[256];
  conf_at(me, "at a page end: %s", coll_text(c, text, sizeof text));
  atomic_fetch_add(&W->checks, 1);
  ncclResult_t rc = coll_call(c, t->comm[0], n, me, &run, NULL);
  if (rc != ncclSuccess) {
    conf_fail(me, "%s: got %d; last error \"%s\"", text, rc, ncclGetLastError(NULL));
    return;
  }
  for (size_t j = 0; j < nr; j++) {
    uint64_t lo, hi, got = num_load(c->type, run.recv, j);
    if (c->kind == K_ALLREDUCE)
      oracle_reduce(&o, j, &lo, &hi);
    else
      lo = hi = oracle_input(&o, (int)(j / c->count), j % c->count);
    if (oracle_match(c->type, got, lo, hi)) continue;
    conf_fail(me, "at a page end: %s: index %zu: want %#llx, got %#llx", text, j, (unsigned long long)lo, (unsigned long long)got);
    return;
  }
  for (int j = 0; j < GUARD_BYTES; j++)
    if (run.recv[j - GUARD_BYTES] != 0xA5) {
      conf_fail(me, "at a page end: %s: a byte before the receive buffer is overwritten", text);
      return;
    }
}

void c17(struct team *t) {
  struct edge in, out;
  if (!TRUE(t->first, edge_make(&in, 1025 * 8 + GUARD_BYTES)) ||
      !TRUE(t->first, edge_make(&out, 1025 * 8 * (size_t)t->nranks + GUARD_BYTES)))
    return;
  for (int type = 0; type < ncclNumTypes; type++)
    for (size_t k = 1; k <= 70; k++) {
      size_t count = k <= 67 ? k : 1022 + (k - 67);
      /* The end stands still, so a count that grows by one moves the beginning by one element. */
      struct coll_case c = {
          .kind = k % 4 == 3 ? K_ALLGATHER : K_ALLREDUCE, .type = (ncclDataType_t)type, .count = count, .flavour = EXACT, .seed = k};
      c.op = c.kind == K_ALLREDUCE ? (int)(k % OP_COUNT) : 0;
      edge_case(t, &c, &in, &out);
    }
  /* The send buffer a few elements off the page end, the receive buffer at it. */
  size_t full = in.bytes;
  for (size_t shift = 1; shift <= 15; shift++) {
    in.bytes = full - shift * 4;
    struct coll_case c = {.kind = K_ALLREDUCE, .type = ncclFloat32, .count = 61 + shift, .seed = shift};
    edge_case(t, &c, &in, &out);
  }
}
