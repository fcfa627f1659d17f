/* graphs.c: collectives in CUDA graphs: a graph for each rank's stream, as nccl-tests and PyTorch make them, and one graph for
 * streams that fork and join. */
#include "gpu.h"

enum { SMALL = 1000, LARGE = 50000 };

/* Threads of one process capture at the same time: a global mode would forbid the others' ordinary calls. */
static int mode(void) { return W->launch == LAUNCH_THREADS ? CU_CAPTURE_THREAD_LOCAL : CU_CAPTURE_GLOBAL; }

int graphs_begin(struct team *t, struct graph *g) {
  int ok = 1;
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    if (!g[i].stream) ok &= CU(t->first + i, cu.StreamCreate(&g[i].stream, CU_NON_BLOCKING));
    ok &= CU(t->first + i, cu.StreamBeginCapture(g[i].stream, mode()));
  }
  return ok;
}

/* All captures end first: instantiating is forbidden while one in the global mode goes on. */
int graphs_end(struct team *t, struct graph *g) {
  void *graph[CONF_MAX_RANKS] = {0};
  int ok = 1;
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    ok &= CU(t->first + i, cu.StreamEndCapture(g[i].stream, &graph[i]));
  }
  for (int i = 0; i < t->nlocal && ok; i++) {
    mem_rank(t->first + i);
    ok &= CU(t->first + i, cu.GraphInstantiate(&g[i].exec, graph[i], 0)) && CU(t->first + i, cu.GraphDestroy(graph[i]));
  }
  return ok;
}

void graphs_replay(struct team *t, struct graph *g) {
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    CU(t->first + i, cu.GraphLaunch(g[i].exec, g[i].stream));
  }
}

void graphs_settle(struct team *t, struct graph *g) {
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    CU(t->first + i, cu.StreamSynchronize(g[i].stream));
  }
}

void graphs_drop(struct team *t, struct graph *g) {
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    if (g[i].exec) CU(t->first + i, cu.GraphExecDestroy(g[i].exec));
    if (g[i].stream) CU(t->first + i, cu.StreamDestroy(g[i].stream));
    memset(&g[i], 0, sizeof g[i]);
  }
}

void graphs_give_up(struct team *t, struct graph *g, const ncclComm_t *comm) {
  for (int i = 0; i < t->nlocal; i++) {
    void *graph = NULL;
    mem_rank(t->first + i);
    CU(t->first + i, cu.StreamEndCapture(g[i].stream, &graph));
    CU(t->first + i, cu.GraphDestroy(graph));
    OK(t->first + i, ncclCommAbort(comm[i]));
  }
  conf_barrier(t);
  graphs_drop(t, g);
}

/* Out of place, so that every replay of the same input gives the same sum. */
static ncclResult_t into(const struct sums *in, const struct sums *out, int i, ncclComm_t c, void *stream) {
  return ncclAllReduce(in->buf[i].at, out->buf[i].at, (size_t)in->n, ncclInt32, ncclSum, c, stream);
}

enum eager { ALONE, BEHIND, BESIDE }; /* no eager call between replays, one behind each on its stream, some on another stream */

static void captured_in(struct team *t, ncclComm_t *comm, enum eager eager, int rounds, int pool, int n) {
  struct graph g[CONF_MAX_RANKS] = {0};
  struct sums in, out, mid, other;
  if (!sums_new(&in, t, n) || !sums_new(&out, t, n) || !sums_new(&mid, t, n) || !sums_new(&other, t, n == SMALL ? 77 : n - 1)) return;
  if (pool && (!sums_pool(&in, t) || !sums_pool(&out, t) || !sums_pool(&mid, t) || !sums_pool(&other, t))) return;
  if (!graphs_begin(t, g)) return;
  EACH(t, "captured ncclAllReduce", into(&in, &mid, i, comm[i], g[i].stream));
  EACH(t, "captured ncclBroadcast", ncclBroadcast(mid.buf[i].at, out.buf[i].at, n, ncclInt32, 0, comm[i], g[i].stream));
  if (!graphs_end(t, g)) return;
  for (int round = 0; round < rounds; round++) {
    conf_at(t->first, "replay %d", round);
    sums_put(&in, t, round);
    conf_barrier(t);
    graphs_replay(t, g);
    if (eager == BEHIND || (eager == BESIDE && round % 2)) {
      sums_put(&other, t, round);
      EACH(t, "eager with replays", sums_call(&other, i, comm[i], eager == BEHIND ? g[i].stream : NULL));
    }
    graphs_settle(t, g);
    for (int i = 0; i < t->nlocal && eager == BESIDE; i++) {
      mem_rank(t->first + i);
      CU(t->first + i, cu.StreamSynchronize(NULL));
    }
    if (!sums_check(&out, t, round, "replayed ncclAllReduce and ncclBroadcast")) break;
    if ((eager == BEHIND || (eager == BESIDE && round % 2)) && !sums_check(&other, t, round, "eager with replays")) break;
  }
  conf_barrier(t);
  graphs_drop(t, g);
  sums_free(&in, t);
  sums_free(&out, t);
  sums_free(&mid, t);
  sums_free(&other, t);
}

static void captured(struct team *t, ncclComm_t *comm, enum eager eager, int rounds) { captured_in(t, comm, eager, rounds, 0, SMALL); }

/* Memory that other processes cannot open, in graphs beside eager calls. */
void suite_poolcapture(struct team *t) {
  captured_in(t, t->comm, BEHIND, 20, 1, SMALL);
  captured_in(t, t->comm, BESIDE, 20, 1, SMALL);
}

void suite_capture(struct team *t) {
  captured(t, t->comm, ALONE, 50);
  captured(t, t->comm, BEHIND, gpu_rounds(300) + 20);
  /* Several replays without a look back. */
  struct graph g[CONF_MAX_RANKS] = {0};
  struct sums v;
  if (!sums_new(&v, t, SMALL)) return;
  sums_put(&v, t, 1);
  for (int i = 0; i < t->nlocal; i++) { /* all ranks start with 1, so that each replay multiplies by the number of ranks */
    for (int j = 0; j < SMALL; j++) ((int32_t *)v.buf[i].copy)[j] = 1;
    buf_put(&v.buf[i], 0, v.buf[i].bytes);
  }
  if (!graphs_begin(t, g)) return;
  EACH(t, "captured ncclAllReduce", sums_call(&v, i, t->comm[i], g[i].stream));
  if (!graphs_end(t, g)) return;
  conf_barrier(t);
  uint32_t want = 1;
  for (int round = 0; round < 9; round++) {
    want *= (uint32_t)t->nranks;
    graphs_replay(t, g);
  }
  graphs_settle(t, g);
  for (int i = 0; i < t->nlocal; i++) {
    buf_get(&v.buf[i], 0, v.buf[i].bytes);
    uint32_t got = ((uint32_t *)v.buf[i].copy)[SMALL - 1];
    if (got != want) conf_fail(t->first + i, "nine replays in a row: want %u, got %u", want, got);
  }
  conf_barrier(t);
  graphs_drop(t, g);
  sums_free(&v, t);
}

/* More graphs of one process than hardware queues would wait for each other for ever: refused while they are captured. */
void suite_fewqueues(struct team *t) {
  struct graph g[CONF_MAX_RANKS] = {0};
  ncclComm_t comm[CONF_MAX_RANKS];
  struct sums v;
  if (!team_init(t, comm, NULL) || !sums_new(&v, t, SMALL) || !graphs_begin(t, g)) return;
  /* The first rank that finds it tells the others, whose calls may come after that. */
  if (t->nlocal > 1) OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++) {
    ncclResult_t rc = sums_call(&v, i, comm[i], g[i].stream);
    if (t->nlocal == 1) conf_rc_any(t->first + i, rc, "captured with too few queues", 2, ncclInvalidUsage, ncclRemoteError);
  }
  if (t->nlocal > 1) conf_rc_any(t->first, ncclGroupEnd(), "captured with too few queues", 2, ncclInvalidUsage, ncclRemoteError);
  for (int i = 0; i < t->nlocal; i++) {
    const char *text = ncclGetLastError(comm[i]);
    if (!strstr(text, "hardware queues")) conf_fail(t->first + i, "the text does not say what is missing: \"%s\"", text);
  }
  graphs_give_up(t, g, comm);
  sums_free(&v, t);
}

/* Eager calls of the communicator on another stream while it is replayed: they run one after the other. */
void suite_mixing(struct team *t) {
  captured(t, t->comm, BESIDE, gpu_rounds(300) + 20);
  captured_in(t, t->comm, BESIDE, gpu_rounds(300) + 20, 0, LARGE); /* kernels of several blocks */
}

/* The first collective ever is inside a capture. */
void suite_firstcapture(struct team *t) {
  ncclComm_t comm[CONF_MAX_RANKS];
  if (!team_init(t, comm, NULL)) return;
  captured(t, comm, ALONE, 5);
  team_destroy(t, comm);
}

/* Two communicators in one graph, in the same order and each on its own. */
void suite_twocomms(struct team *t) {
  ncclComm_t twin[CONF_MAX_RANKS];
  struct graph g[CONF_MAX_RANKS] = {0};
  struct sums in, a, b;
  EACH(t, "ncclCommSplit", ncclCommSplit(t->comm[i], 0, r, &twin[i], NULL));
  if (!sums_new(&in, t, SMALL) || !sums_new(&a, t, SMALL) || !sums_new(&b, t, SMALL) || !graphs_begin(t, g)) return;
  EACH(t, "first communicator", into(&in, &a, i, t->comm[i], g[i].stream));
  EACH(t, "second communicator", into(&in, &b, i, twin[i], g[i].stream));
  if (!graphs_end(t, g)) return;
  for (int round = 0; round < 20; round++) {
    sums_put(&in, t, round);
    conf_barrier(t);
    graphs_replay(t, g);
    graphs_settle(t, g);
    if (!sums_check(&a, t, round, "first communicator of a graph") || !sums_check(&b, t, round, "second communicator of a graph")) break;
  }
  conf_barrier(t);
  graphs_drop(t, g);
  team_destroy(t, twin);
  sums_free(&in, t);
  sums_free(&a, t);
  sums_free(&b, t);
}

/* Graph and communicator end in any order. */
void suite_endings(struct team *t) {
  for (int order = 0; order < 3; order++) {
    ncclComm_t comm[CONF_MAX_RANKS];
    struct graph g[CONF_MAX_RANKS] = {0};
    struct sums v;
    if (!team_init(t, comm, NULL) || !sums_new(&v, t, SMALL) || !graphs_begin(t, g)) return;
    EACH(t, "captured", sums_call(&v, i, comm[i], g[i].stream));
    if (!graphs_end(t, g)) return;
    if (order < 2) {
      sums_put(&v, t, order);
      conf_barrier(t);
      graphs_replay(t, g);
      graphs_settle(t, g);
      sums_check(&v, t, order, "replay");
    } /* else it never ran */
    conf_barrier(t);
    conf_at(t->first, "endings in order %d", order);
    if (order == 0) graphs_drop(t, g);
    team_destroy(t, comm);
    if (order != 0) graphs_drop(t, g);
    sums_free(&v, t);
  }
}

/* One capture over the streams of all ranks of a thread: they fork from the first and join it. */
void suite_forkjoin(struct team *t) {
  struct graph g[CONF_MAX_RANKS] = {0};
  void *fork = NULL, *join = NULL, *graph = NULL;
  struct sums in, out;
  int r = t->first;
  if (t->nlocal < 2) {
    captured(t, t->comm, ALONE, 5); /* one rank a thread has nothing to fork to */
    return;
  }
  if (!sums_new(&in, t, SMALL) || !sums_new(&out, t, SMALL)) return;
  for (int i = 0; i < t->nlocal; i++) CU(r, cu.StreamCreate(&g[i].stream, CU_NON_BLOCKING));
  CU(r, cu.EventCreate(&fork, CU_NO_TIMING));
  CU(r, cu.EventCreate(&join, CU_NO_TIMING));
  CU(r, cu.StreamBeginCapture(g[0].stream, CU_CAPTURE_GLOBAL));
  CU(r, cu.EventRecord(fork, g[0].stream));
  for (int i = 1; i < t->nlocal; i++) CU(r, cu.StreamWaitEvent(g[i].stream, fork, 0));
  EACH(t, "captured over forked streams", into(&in, &out, i, t->comm[i], g[i].stream));
  for (int i = 1; i < t->nlocal; i++) {
    CU(r, cu.EventRecord(join, g[i].stream));
    CU(r, cu.StreamWaitEvent(g[0].stream, join, 0));
  }
  if (!CU(r, cu.StreamEndCapture(g[0].stream, &graph)) || !CU(r, cu.GraphInstantiate(&g[0].exec, graph, 0))) return;
  CU(r, cu.GraphDestroy(graph));
  for (int round = 0; round < 20; round++) {
    sums_put(&in, t, round);
    CU(r, cu.GraphLaunch(g[0].exec, g[0].stream));
    CU(r, cu.StreamSynchronize(g[0].stream));
    if (!sums_check(&out, t, round, "forked and joined streams")) break;
  }
  graphs_drop(t, g);
  CU(r, cu.EventDestroy(fork));
  CU(r, cu.EventDestroy(join));
  sums_free(&in, t);
  sums_free(&out, t);
}

/* A replay that waits for a rank which never comes is ended by an abort, within seconds, and the driver stays usable. Rank 0 does
 * not replay. */
void suite_replayabort(struct team *t) {
  ncclComm_t comm[CONF_MAX_RANKS];
  struct graph g[CONF_MAX_RANKS] = {0};
  struct sums v;
  if (t->nranks == 1 || W->launch != LAUNCH_PROCS) {
    captured(t, t->comm, ALONE, 2); /* nobody else to wait for, or ranks that meet on the host */
    return;
  }
  if (!team_init(t, comm, NULL) || !sums_new(&v, t, SMALL) || !graphs_begin(t, g)) return;
  EACH(t, "captured", sums_call(&v, i, comm[i], g[i].stream));
  if (!graphs_end(t, g)) return;
  conf_barrier(t);
  if (t->first != 0) {
    graphs_replay(t, g);
    conf_sleep(0.2);
    double start = conf_now();
    OK(t->first, ncclCommAbort(comm[0]));
    conf_at(t->first, "the stream of a replay after ncclCommAbort");
    int rc = cu.StreamSynchronize(g[0].stream);
    if (rc != CU_SUCCESS) conf_note("rank %d: the aborted replay left driver error %d", t->first, rc);
    if (conf_now() - start > 6) conf_fail(t->first, "an abort in a replay took %.1f s", conf_now() - start);
  } else {
    conf_sleep(0.5);
    OK(0, ncclCommAbort(comm[0]));
  }
  conf_barrier(t);
  graphs_drop(t, g);
  sums_free(&v, t);
}
