/* coll.c: see coll.h. */
#include "coll.h"

#include "numfmt.h"

const char *const coll_names[K_COUNT] = {"ncclAllReduce", "ncclReduce",   "ncclReduceScatter", "ncclAllGather", "ncclBroadcast",
                                         "ncclBcast",     "ncclAlltoAll", "ncclGather",        "ncclScatter",   "ncclSend/ncclRecv"};

size_t coll_send_elements(const struct coll_case *c, int n) {
  int blocks = c->kind == K_REDUCESCATTER || c->kind == K_ALLTOALL || c->kind == K_SCATTER;
  return blocks ? c->count * (size_t)n : c->count;
}

size_t coll_recv_elements(const struct coll_case *c, int n) {
  int blocks = c->kind == K_ALLGATHER || c->kind == K_ALLTOALL || c->kind == K_GATHER;
  return blocks ? c->count * (size_t)n : c->count;
}

const char *coll_text(const struct coll_case *c, char *buf, size_t n) {
  snprintf(buf, n, "%s %s%s%s count %zu root %d %s %s shift %d/%d%s%s %s seed %llu", coll_names[c->kind], num_name(c->type),
           coll_reduces(c->kind) ? " " : "", coll_reduces(c->kind) ? op_name(c->op) : "", c->count, c->root,
           c->inplace ? "in-place" : "out-of-place", buf_names[c->buf], c->shift_send, c->shift_recv, c->nulls ? " nulls" : "",
           c->stream ? " stream" : "", c->flavour == EXACT ? "exact" : "rough", (unsigned long long)c->seed);
  return buf;
}

static struct oracle oracle_of(const struct coll_case *c, int nranks) {
  struct oracle o = {c->type, c->op, nranks, c->flavour, c->seed};
  return o;
}

/* Which rank reads its send buffer, which writes its receive buffer. */
static int sends(const struct coll_case *c, int rank) {
  return (c->kind != K_BROADCAST && c->kind != K_BCAST && c->kind != K_SCATTER) || rank == c->root;
}
static int receives(const struct coll_case *c, int rank) { return (c->kind != K_REDUCE && c->kind != K_GATHER) || rank == c->root; }

/* Elements by which the send buffer lies inside the receive buffer, or the reverse, when in place. */
static void place(const struct coll_case *c, int rank, unsigned char *room, struct coll_run *r) {
  size_t block = c->count * num_size(c->type);
  r->send = r->recv = room;
  if (c->kind == K_ALLGATHER) r->send = room + (size_t)rank * block;
  if (c->kind == K_GATHER && rank == c->root) r->send = room + (size_t)rank * block;
  if (c->kind == K_REDUCESCATTER) r->recv = room + (size_t)rank * block;
  if (c->kind == K_SCATTER && rank == c->root) r->recv = room + (size_t)rank * block;
}

enum { GUARD_PATTERN = 0xA5, FRESH_PATTERN = 0x5C };

static void guard(unsigned char *at, size_t bytes) {
  memset(at - GUARD_BYTES, GUARD_PATTERN, GUARD_BYTES);
  memset(at + bytes, GUARD_PATTERN, GUARD_BYTES);
}

/* What a pointer into the host copy is for the library. */
static void *there(const struct coll_run *r, unsigned char *p) { return r->mem ? r->mem->at + (p - r->mem->copy) : p; }

static void use(struct coll_run *r, int k, const unsigned char *at, size_t bytes) {
  r->used[k].off = (size_t)(at - GUARD_BYTES - r->mem->copy);
  r->used[k].n = bytes + 2 * GUARD_BYTES;
}

static size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

void coll_prepare(const struct coll_case *c, const struct team *t, const struct pool *p, int i, struct coll_run *r) {
  int rank = t->first + i, n = t->nranks;
  size_t es = num_size(c->type), ns = coll_send_elements(c, n), nr = coll_recv_elements(c, n);
  int k = c->buf == BUF_MIXED ? rank % 3 : c->buf;
  unsigned char *base = p->base[i][k].copy;
  unsigned char *a = base + GUARD_BYTES + (size_t)c->shift_send * es;
  unsigned char *b = base + p->half + GUARD_BYTES + (size_t)c->shift_recv * es;
  memset(r, 0, sizeof *r);
  r->mem = &p->base[i][k];
  if (c->inplace) {
    size_t room = max_size(ns, nr) * es;
    guard(a, room);
    memset(a, FRESH_PATTERN, room);
    r->room = a;
    place(c, rank, a, r);
    use(r, 0, a, room);
  } else {
    guard(a, ns * es);
    guard(b, nr * es);
    memset(a, FRESH_PATTERN, ns * es);
    memset(b, FRESH_PATTERN, nr * es);
    r->send = a;
    r->recv = b;
    use(r, 0, a, ns * es);
    use(r, 1, b, nr * es);
  }
  struct oracle o = oracle_of(c, n);
  if (sends(c, rank))
    for (size_t j = 0; j < ns; j++) num_store(c->type, r->send, j, oracle_input(&o, rank, j));
  r->scalar = oracle_scalar(&o, rank);
  for (int u = 0; u < 2; u++) buf_put(r->mem, r->used[u].off, r->used[u].n);
  memcpy(p->scalar[i].copy, &r->scalar, sizeof r->scalar);
  buf_put(&p->scalar[i], 0, sizeof r->scalar);
  r->scalar_at = p->scalar[i].at;
}

static int make_op(const struct coll_case *c, ncclComm_t comm, int rank, struct coll_run *r) {
  r->op = (ncclRedOp_t)c->op;
  if (!coll_reduces(c->kind) || c->op < OP_PREMUL_HOST) return 1;
  ncclScalarResidence_t where = c->op == OP_PREMUL_HOST ? ncclScalarHostImmediate : ncclScalarDevice;
  uint64_t now = r->scalar; /* a host scalar may change once the call returned */
  void *at = c->op == OP_PREMUL_HOST ? (void *)&now : r->scalar_at ? r->scalar_at : &r->scalar;
  r->made_op = OK(rank, ncclRedOpCreatePreMulSum(&r->op, at, c->type, where, comm));
  now = 0;
  return r->made_op;
}

ncclResult_t coll_call(const struct coll_case *c, ncclComm_t comm, int n, int rank, struct coll_run *r, cudaStream_t s) {
  const void *in = there(r, r->send);
  void *out = there(r, r->recv);
  if (c->nulls) {
    if (!receives(c, rank)) out = NULL;
    if (!sends(c, rank)) in = NULL;
    if (c->count == 0) in = out = NULL;
  }
  if (!make_op(c, comm, rank, r)) return ncclInternalError;
  ncclResult_t rc = ncclSuccess, rc2 = ncclSuccess;
  switch (c->kind) {
  case K_ALLREDUCE: rc = ncclAllReduce(in, out, c->count, c->type, r->op, comm, s); break;
  case K_REDUCE: rc = ncclReduce(in, out, c->count, c->type, r->op, c->root, comm, s); break;
  case K_REDUCESCATTER: rc = ncclReduceScatter(in, out, c->count, c->type, r->op, comm, s); break;
  case K_ALLGATHER: rc = ncclAllGather(in, out, c->count, c->type, comm, s); break;
  case K_BROADCAST: rc = ncclBroadcast(in, out, c->count, c->type, c->root, comm, s); break;
  case K_BCAST: rc = ncclBcast(out, c->count, c->type, c->root, comm, s); break;
  case K_ALLTOALL: rc = ncclAlltoAll(in, out, c->count, c->type, comm, s); break;
  case K_GATHER: rc = ncclGather(in, out, c->count, c->type, c->root, comm, s); break;
  case K_SCATTER: rc = ncclScatter(in, out, c->count, c->type, c->root, comm, s); break;
  default:
    rc = ncclSend(in, c->count, c->type, (rank + c->root) % n, comm, s);
    rc2 = ncclRecv(out, c->count, c->type, (rank - c->root % n + n) % n, comm, s);
    if (rc == ncclSuccess) rc = rc2;
  }
  /* The operator may go as soon as the call returned, even inside the group. */
  if (r->made_op) OK(rank, ncclRedOpDestroy(r->op, comm));
  return rc;
}

static int check_guard(const struct coll_case *c, int rank, const unsigned char *at, size_t bytes, const char *what) {
  const unsigned char *side[2] = {at - GUARD_BYTES, at + bytes};
  for (int s = 0; s < 2; s++)
    for (size_t j = 0; j < GUARD_BYTES; j++)
      if (side[s][j] != GUARD_PATTERN) {
        char b[256];
        return conf_fail(rank, "%s: guard %s the %s buffer is overwritten at byte %zu: want %#x, got %#x", coll_text(c, b, sizeof b),
                         s ? "behind" : "before", what, j, GUARD_PATTERN, side[s][j]);
      }
  return 1;
}

static int wrong(const struct coll_case *c, int rank, const char *what, size_t j, uint64_t lo, uint64_t hi, uint64_t got) {
  char b[256], range[64] = "";
  if (lo != hi) snprintf(range, sizeof range, " to %#llx", (unsigned long long)hi);
  if (num_is_float(c->type))
    return conf_fail(rank, "%s: %s, first wrong index %zu: want %#llx%s (%Lg), got %#llx (%Lg)", coll_text(c, b, sizeof b), what, j,
                     (unsigned long long)lo, range, num_decode(c->type, lo), (unsigned long long)got, num_decode(c->type, got));
  return conf_fail(rank, "%s: %s, first wrong index %zu: want %#llx, got %#llx", coll_text(c, b, sizeof b), what, j, (unsigned long long)lo,
                   (unsigned long long)got);
}

/* The source of element j of a rank's receive buffer, for collectives that copy. */
static uint64_t copied(const struct coll_case *c, const struct oracle *o, int n, int rank, size_t j) {
  size_t block = c->count ? j / c->count : 0, in = c->count ? j % c->count : 0;
  switch (c->kind) {
  case K_ALLGATHER:
  case K_GATHER: return oracle_input(o, (int)block, in);
  case K_ALLTOALL: return oracle_input(o, (int)block, (size_t)rank * c->count + in);
  case K_SCATTER: return oracle_input(o, c->root, (size_t)rank * c->count + j);
  case K_SENDRECV: return oracle_input(o, (rank - c->root % n + n) % n, j);
  default: return oracle_input(o, c->root, j);
  }
}

/* Folding a million elements of eight ranks in long double takes seconds. Long results are looked at densely at both
 * ends and around multiples of 4096, and in steps of a prime elsewhere; equal bits on all ranks are checked in full. */
static int looks_at(size_t j, size_t n) { return n <= 20000 || j < 2048 || j + 2048 >= n || j % 61 == 0 || (j + 8) % 4096 < 16; }

static int check_result(const struct coll_case *c, int n, int rank, const struct coll_run *r) {
  struct oracle o = oracle_of(c, n);
  size_t nr = coll_recv_elements(c, n);
  for (size_t j = 0; j < nr; j++) {
    uint64_t got = num_load(c->type, r->recv, j), lo, hi;
    if (coll_reduces(c->kind) && !looks_at(j, nr)) continue;
    if (coll_reduces(c->kind))
      oracle_reduce(&o, c->kind == K_REDUCESCATTER ? (size_t)rank * c->count + j : j, &lo, &hi);
    else
      lo = hi = copied(c, &o, n, rank, j);
    if (coll_reduces(c->kind) ? !oracle_match(c->type, got, lo, hi) : got != lo) return wrong(c, rank, "result", j, lo, hi, got);
  }
  return 1;
}

/* The send buffer stays as it was, outside the part that the result takes when in place. */
static int check_source(const struct coll_case *c, int n, int rank, const struct coll_run *r) {
  struct oracle o = oracle_of(c, n);
  size_t es = num_size(c->type), ns = coll_send_elements(c, n), nr = receives(c, rank) ? coll_recv_elements(c, n) : 0;
  if (!sends(c, rank)) return 1;
  for (size_t j = 0; j < ns; j++) {
    const unsigned char *at = r->send + j * es;
    if (at >= r->recv && at < r->recv + nr * es) continue;
    uint64_t want = oracle_input(&o, rank, j), got = num_load(c->type, r->send, j);
    if (want != got) return wrong(c, rank, "the input was changed", j, want, want, got);
  }
  return 1;
}

static int check_untouched(const struct coll_case *c, int n, int rank, const struct coll_run *r) {
  size_t bytes = coll_recv_elements(c, n) * num_size(c->type);
  if (receives(c, rank) || c->inplace) return 1;
  for (size_t j = 0; j < bytes; j++)
    if (r->recv[j] != FRESH_PATTERN) {
      char b[256];
      return conf_fail(rank, "%s: receive buffer off root is written at byte %zu: want %#x, got %#x", coll_text(c, b, sizeof b), j,
                       FRESH_PATTERN, r->recv[j]);
    }
  return 1;
}

int coll_check(const struct coll_case *c, const struct team *t, int i, const struct coll_run *r) {
  int rank = t->first + i, n = t->nranks;
  size_t es = num_size(c->type), ns = coll_send_elements(c, n), nr = coll_recv_elements(c, n);
  atomic_fetch_add(&W->checks, 1);
  int ok = 1;
  for (int u = 0; u < 2 && r->mem; u++) buf_get(r->mem, r->used[u].off, r->used[u].n);
  if (c->inplace) {
    ok &= check_guard(c, rank, r->room, max_size(ns, nr) * es, "in-place");
  } else {
    ok &= check_guard(c, rank, r->send, ns * es, "send") & check_guard(c, rank, r->recv, nr * es, "receive");
  }
  if (receives(c, rank)) ok &= check_result(c, n, rank, r);
  return ok & check_source(c, n, rank, r) & check_untouched(c, n, rank, r);
}
