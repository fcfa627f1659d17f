#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "samples.h"
#include "verify.h"

/* The library's own additions may be absent: the program also measures other libraries with
 * this ABI, and then works on the NULL stream and without statistics. */
#pragma weak gcclCommGetStats
#pragma weak gcclStreamCreate
#pragma weak gcclStreamSynchronize
#pragma weak gcclStreamDestroy

struct state {
  struct perf_rank *r;
  ncclComm_t comm;
  cudaStream_t stream;
  struct perf_buffer send, recv;
  struct perf_buffer meet; /* of the barrier by the library, where ranks share no mapping */
};

static int fail(const struct state *s, const char *call, ncclResult_t code) {
  const char *text = ncclGetLastError(s->comm);
  perf_event_error(s->r->rank, call, (int)code, text && *text ? text : ncclGetErrorString(code));
  return -1;
}

static int synchronise(const struct state *s) {
  if (!s->stream) return 0;
  ncclResult_t result = gcclStreamSynchronize(s->stream);
  return result == ncclSuccess ? 0 : fail(s, "gcclStreamSynchronize", result);
}

static int meet_all(struct state *s) {
  struct perf_barrier *b = &s->r->barrier;
  if (b->lines) {
    int missing = perf_barrier_wait(b);
    if (missing < 0) return 0;
    char text[120];
    snprintf(text, sizeof text, "waited in vain for rank %d between two calls", missing);
    perf_event_error(s->r->rank, "barrier", ncclTimeout, text);
    return -1;
  }
  ncclResult_t result = ncclAllReduce(s->meet.payload, s->meet.payload, 1, ncclInt32, ncclSum, s->comm, s->stream);
  if (result != ncclSuccess) return fail(s, "ncclAllReduce (barrier)", result);
  return synchronise(s);
}

static int run_call(struct state *s, const struct perf_case *c, struct perf_call *call) {
  const char *failed = "";
  ncclResult_t result = c->coll->run(call, &failed);
  return result == ncclSuccess ? 0 : fail(s, failed, result);
}

static int check(struct state *s, const struct perf_case *c, enum perf_place place, const struct perf_layout *l, struct perf_call *call,
                 int index, long *wrong) {
  int rank = s->r->rank, nranks = s->r->job->nranks;
  for (int k = 0; k < c->checks; k++) {
    uint32_t seed = (uint32_t)((index * PERF_PLACES + (int)place) * 16 + k + 1);
    perf_verify_prepare(c, place, l, rank, nranks, seed, &s->send, &s->recv);
    if (meet_all(s) || run_call(s, c, call) || synchronise(s)) return -1;
    /* no barrier after this: a rank whose call is over may write its next inputs, whatever its peers do */
    *wrong += perf_verify_count(c, place, l, rank, nranks, seed, &s->send, &s->recv);
  }
  return 0;
}

/* nccl-tests' way: all calls back to back, then one wait. */
static int time_batch(struct state *s, const struct perf_case *c, struct perf_call *call, struct perf_summary *out) {
  if (meet_all(s)) return -1;
  uint64_t t0 = perf_now_ns();
  for (int i = 0; i < c->iterations; i++)
    if (run_call(s, c, call)) return -1;
  if (synchronise(s)) return -1;
  double us = (double)(perf_now_ns() - t0) / 1e3 / c->iterations;
  out->mean_us = out->p50_us = out->p99_us = out->min_us = us;
  return 0;
}

/* OSU's way: fresh inputs and a barrier before each call, only the call timed. */
static int time_calls(struct state *s, const struct perf_case *c, const struct perf_layout *l, struct perf_call *call,
                      struct perf_summary *out) {
  uint64_t *ns = malloc((size_t)c->iterations * sizeof *ns);
  if (!ns) return fail(s, "malloc", ncclSystemError);
  for (int i = 0; i < c->iterations; i++) {
    memset(l->send, 1 + i % 60, l->send_bytes); /* bytes 1…60: small normal floats */
    if (meet_all(s)) goto failed;
    uint64_t t0 = perf_now_ns();
    if (run_call(s, c, call) || synchronise(s)) goto failed;
    ns[i] = perf_now_ns() - t0;
  }
  *out = perf_summarise(ns, (size_t)c->iterations);
  free(ns);
  return 0;
failed:
  free(ns);
  return -1;
}

/* ns from entering a call to its first store that a peer can see, by the library's own sampling; negative: no sample. */
static double front_of(const struct state *s) {
  if (!gcclCommGetStats) return -1;
  gcclCommStats_t stats = GCCL_COMM_STATS_INITIALIZER;
  if (gcclCommGetStats(s->comm, &stats) != ncclSuccess || stats.frontNanoseconds == 0) return -1;
  return (double)stats.frontNanoseconds;
}

static int run_place(struct state *s, const struct perf_case *c, enum perf_place place, int index, ncclRedOp_t op) {
  const struct perf_job *job = s->r->job;
  struct perf_layout l;
  perf_layout_of(&l, c, place, s->r->rank, job->nranks, &s->send, &s->recv);
  struct perf_call call = {l.send, l.recv, c->count, c->type->bytes, c->type->id, op, c->root, s->r->rank, job->nranks, s->comm, s->stream};
  struct perf_summary times;
  long wrong = c->checks > 0 ? 0 : -1;
  if (check(s, c, place, &l, &call, index, &wrong)) return -1;
  memset(l.send, 1, l.send_bytes);
  if (meet_all(s)) return -1;
  for (int i = 0; i < c->warmup; i++)
    if (run_call(s, c, &call)) return -1;
  if (synchronise(s)) return -1;
  if (job->latency ? time_calls(s, c, &l, &call, &times) : time_batch(s, c, &call, &times)) return -1;
  perf_event_result(s->r->rank, index, (int)place, &times, wrong, front_of(s));
  return 0;
}

static int run_case(struct state *s, const struct perf_case *c, int index) {
  static const ncclRedOp_t builtin[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};
  ncclRedOp_t op = c->coll->reduces && c->op < PERF_MULSUM ? builtin[c->op] : ncclSum;
  int own_op = c->coll->reduces && c->op == PERF_MULSUM;
  if (own_op) {
    double factor = perf_mulsum_factor(s->r->rank);
    uint64_t bits = perf_type_encode(c->type, factor);
    ncclResult_t result = ncclRedOpCreatePreMulSum(&op, &bits, c->type->id, ncclScalarHostImmediate, s->comm);
    if (result != ncclSuccess) return fail(s, "ncclRedOpCreatePreMulSum", result);
  }
  int rc = 0;
  for (int place = 0; place < PERF_PLACES && rc == 0; place++)
    if (c->places & 1 << place) rc = run_place(s, c, (enum perf_place)place, index, op);
  if (own_op && rc == 0) {
    ncclResult_t result = ncclRedOpDestroy(op, s->comm);
    if (result != ncclSuccess) return fail(s, "ncclRedOpDestroy", result);
  }
  return rc;
}

/* Largest buffers of any case; in place, the receive buffer carries the send buffer too. */
static void sizes_of(const struct perf_job *job, size_t *send, size_t *recv) {
  *send = *recv = 1;
  for (int i = 0; i < job->ncases; i++) {
    const struct perf_case *c = &job->cases[i];
    size_t block = c->count * c->type->bytes, all = block * (size_t)job->nranks;
    size_t s = c->coll->sends_all ? all : block, r = c->coll->receives_all ? all : block;
    if (s > r) r = s;
    if (s > *send) *send = s;
    if (r > *recv) *recv = r;
  }
}

static int open_all(struct state *s) {
  const struct perf_job *job = s->r->job;
  const char *failed = "";
  size_t send_bytes, recv_bytes;
  sizes_of(job, &send_bytes, &recv_bytes);
  uint64_t t0 = perf_now_ns();
  ncclResult_t result = ncclCommInitRank(&s->comm, job->nranks, job->id, s->r->rank);
  double init_us = (double)(perf_now_ns() - t0) / 1e3;
  if (result != ncclSuccess) return fail(s, "ncclCommInitRank", result);
  if (job->host_stream) {
    if (!gcclStreamCreate) return fail(s, "gcclStreamCreate (absent from this library)", ncclInvalidUsage);
    if ((result = gcclStreamCreate(&s->stream)) != ncclSuccess) return fail(s, "gcclStreamCreate", result);
  }
  if ((result = perf_buffer_open(&s->send, send_bytes, job->buffers, s->comm, &failed)) != ncclSuccess ||
      (result = perf_buffer_open(&s->recv, recv_bytes, job->buffers, s->comm, &failed)) != ncclSuccess ||
      (result = perf_buffer_open(&s->meet, sizeof(int), PERF_BUFFERS_MALLOC, s->comm, &failed)) != ncclSuccess)
    return fail(s, failed, result);
  perf_event_init(s->r->rank, s->r->core, init_us);
  return 0;
}

/* Only after a run without failures: otherwise the process ends and takes all with it, because a
 * destroy could wait for a peer that is gone. */
static int close_all(struct state *s) {
  const struct perf_job *job = s->r->job;
  const char *failed = "";
  ncclResult_t result;
  if ((result = perf_buffer_close(&s->meet, PERF_BUFFERS_MALLOC, s->comm, &failed)) != ncclSuccess ||
      (result = perf_buffer_close(&s->recv, job->buffers, s->comm, &failed)) != ncclSuccess ||
      (result = perf_buffer_close(&s->send, job->buffers, s->comm, &failed)) != ncclSuccess)
    return fail(s, failed, result);
  if (s->stream && (result = gcclStreamDestroy(s->stream)) != ncclSuccess) return fail(s, "gcclStreamDestroy", result);
  ncclComm_t comm = s->comm;
  s->comm = NULL;
  if ((result = ncclCommDestroy(comm)) != ncclSuccess) return fail(s, "ncclCommDestroy", result);
  return 0;
}

int perf_rank_run(struct perf_rank *r) {
  struct state s = {.r = r};
  if (open_all(&s)) return -1;
  for (int i = 0; i < r->job->ncases; i++)
    if (run_case(&s, &r->job->cases[i], i)) return -1;
  if (meet_all(&s) || close_all(&s)) return -1;
  perf_event_done(r->rank);
  return 0;
}
