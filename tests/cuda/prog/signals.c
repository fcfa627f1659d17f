/* signals.c: one-sided operations in graphs: a put is there when its signal is, counts are right however often which graph is
 * replayed, eager signals are others. */
#include "gpu.h"

enum { N = 500 };

/* A window of each local rank: what it sends, then a part for what each peer sends here. */
struct boxes {
  struct buf mem[CONF_MAX_RANKS];
  ncclWindow_t win[CONF_MAX_RANKS];
  size_t part;
};

static int boxes_new(struct boxes *b, struct team *t, ncclComm_t *comm) {
  size_t bytes = 4096 * (size_t)(t->nranks + 1);
  memset(b, 0, sizeof *b);
  b->part = 4096;
  for (int i = 0; i < t->nlocal; i++)
    if (!buf_nccl(&b->mem[i], t->first + i, bytes)) return 0;
  EACH(t, "ncclCommWindowRegister", ncclCommWindowRegister(comm[i], b->mem[i].at, bytes, &b->win[i], NCCL_WIN_COLL_SYMMETRIC));
  for (int i = 0; i < t->nlocal; i++)
    if (!TRUE(t->first + i, b->win[i] != NULL)) return 0;
  return 1;
}

static void boxes_free(struct boxes *b, struct team *t, ncclComm_t *comm) {
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclCommWindowDeregister(comm[i], b->win[i]));
  for (int i = 0; i < t->nlocal; i++) buf_free(&b->mem[i], t->first + i);
  conf_barrier(t);
}

static int value(int rank, int round, int j) { return rank * 100000 + round * 1000 + j; }

static void boxes_put(struct boxes *b, struct team *t, int round) {
  for (int i = 0; i < t->nlocal; i++) {
    for (int j = 0; j < N; j++) ((int32_t *)b->mem[i].copy)[j] = value(t->first + i, round, j);
    buf_put(&b->mem[i], 0, N * sizeof(int32_t));
  }
}

/* What a rank holds of a peer. */
static int boxes_check(struct boxes *b, struct team *t, int i, int peer, int round, const char *what) {
  size_t at = b->part * (size_t)(1 + peer);
  buf_get(&b->mem[i], at, N * sizeof(int32_t));
  const int32_t *got = (const int32_t *)(b->mem[i].copy + at);
  atomic_fetch_add(&W->checks, 1);
  for (int j = 0; j < N; j++)
    if (got[j] != value(peer, round, j))
      return conf_fail(t->first + i, "%s: from rank %d, round %d: index %d: want %d, got %d", what, peer, round, j, value(peer, round, j),
                       got[j]);
  return 1;
}

static void put_all(struct boxes *b, struct team *t, ncclComm_t *comm, void **stream) {
  for (int i = 0; i < t->nlocal; i++)
    for (int p = 0; p < t->nranks; p++)
      OK(t->first + i,
         ncclPutSignal(b->mem[i].at, N, ncclInt32, p, b->win[i], b->part * (size_t)(1 + t->first + i), 0, 0, 0, comm[i], stream[i]));
}

static void wait_all(struct team *t, ncclComm_t *comm, void **stream) {
  ncclWaitSignalDesc_t all[CONF_MAX_RANKS];
  for (int p = 0; p < t->nranks; p++) all[p] = (ncclWaitSignalDesc_t){1, p, 0, 0};
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclWaitSignal(t->nranks, all, comm[i], stream[i]));
}

/* One graph for all ranks of the thread: with several, their streams fork from the first and join it. */
struct one {
  struct graph g[CONF_MAX_RANKS];
  void *stream[CONF_MAX_RANKS], *event;
};

static int one_begin(struct one *o, struct team *t) {
  memset(o, 0, sizeof *o);
  if (t->nlocal == 1) {
    if (!graphs_begin(t, o->g)) return 0;
    o->stream[0] = o->g[0].stream;
    return 1;
  }
  int ok = CU(t->first, cu.EventCreate(&o->event, CU_NO_TIMING));
  for (int i = 0; i < t->nlocal; i++) ok &= CU(t->first, cu.StreamCreate(&o->stream[i], CU_NON_BLOCKING));
  ok = ok && CU(t->first, cu.StreamBeginCapture(o->stream[0], CU_CAPTURE_GLOBAL)) && CU(t->first, cu.EventRecord(o->event, o->stream[0]));
  for (int i = 1; i < t->nlocal && ok; i++) ok = CU(t->first, cu.StreamWaitEvent(o->stream[i], o->event, 0));
  o->g[0].stream = o->stream[0];
  return ok;
}

static int one_end(struct one *o, struct team *t) {
  if (t->nlocal == 1) return graphs_end(t, o->g);
  void *graph = NULL;
  int ok = 1;
  for (int i = 1; i < t->nlocal && ok; i++)
    ok = CU(t->first, cu.EventRecord(o->event, o->stream[i])) && CU(t->first, cu.StreamWaitEvent(o->stream[0], o->event, 0));
  return ok && CU(t->first, cu.StreamEndCapture(o->stream[0], &graph)) && CU(t->first, cu.GraphInstantiate(&o->g[0].exec, graph, 0)) &&
         CU(t->first, cu.GraphDestroy(graph));
}

static void one_replay(struct one *o, struct team *t) {
  mem_rank(t->first);
  CU(t->first, cu.GraphLaunch(o->g[0].exec, o->stream[0]));
}

static void one_settle(struct one *o, struct team *t) {
  for (int i = 0; i < t->nlocal; i++) CU(t->first + i, cu.StreamSynchronize(o->stream[i]));
}

static void one_drop(struct one *o, struct team *t) {
  CU(t->first, cu.GraphExecDestroy(o->g[0].exec));
  for (int i = 0; i < t->nlocal; i++) CU(t->first + i, cu.StreamDestroy(o->stream[i]));
  if (o->event) CU(t->first, cu.EventDestroy(o->event));
}

/* Everybody puts to everybody, itself too, in a graph; between the replays the same eagerly, to the same peers. */
static void everybody(struct team *t, ncclComm_t *comm, struct boxes *b) {
  struct one o;
  if (!one_begin(&o, t)) return;
  put_all(b, t, comm, o.stream);
  wait_all(t, comm, o.stream);
  if (!one_end(&o, t)) return;
  for (int round = 0; round < gpu_rounds(200) + 10; round++) {
    int eager = round % 3 == 2;
    conf_at(t->first, "round %d, %s", round, eager ? "eager" : "a replay");
    boxes_put(b, t, round);
    conf_barrier(t);
    if (eager) {
      put_all(b, t, comm, o.stream);
      wait_all(t, comm, o.stream);
    } else {
      one_replay(&o, t);
    }
    one_settle(&o, t);
    for (int i = 0; i < t->nlocal; i++)
      for (int p = 0; p < t->nranks; p++)
        if (!boxes_check(b, t, i, p, round, eager ? "eager puts between replays" : "puts in a replay")) return;
    conf_barrier(t);
  }
  one_drop(&o, t);
}

/* A graph of one signal, replayed as often as another one waits; the waiter's goes first, the sender's last. */
static void counting(struct team *t, ncclComm_t *comm) {
  enum { TIMES = 5 };
  struct one send, wait;
  int n = t->nranks;
  if (t->nlocal > 1) return; /* both would have to be in one graph */
  int me = t->first, to = (me + 1) % n, from = (me + n - 1) % n;
  if (n == 1) return;
  ncclWaitSignalDesc_t d = {TIMES, from, 0, 0};
  if (!one_begin(&send, t)) return;
  OK(me, ncclSignal(to, 0, 0, 0, comm[0], send.stream[0]));
  if (!one_end(&send, t) || !one_begin(&wait, t)) return;
  OK(me, ncclWaitSignal(1, &d, comm[0], wait.stream[0]));
  if (!one_end(&wait, t)) return;
  for (int round = 0; round < 5; round++) {
    conf_barrier(t);
    one_replay(&wait, t);
    for (int k = 0; k < TIMES - 1; k++) one_replay(&send, t);
    conf_barrier(t);
    if (round == 0) {
      conf_sleep(0.1);
      if (cu.StreamQuery(wait.stream[0]) == CU_SUCCESS) conf_fail(me, "a captured wait for %d signals ended after %d", TIMES, TIMES - 1);
    }
    conf_barrier(t);
    one_replay(&send, t);
    one_settle(&wait, t);
    one_settle(&send, t);
  }
  conf_barrier(t);
  one_drop(&wait, t);
  one_drop(&send, t);
}

void suite_signals(struct team *t) {
  struct boxes b;
  if (t->nlocal == 1 && t->nranks > 1 && W->launch != LAUNCH_PROCS) {
    conf_note("ranks of several threads capture apart: suite signalsapart");
    OK(t->first, ncclCommCount(t->comm[0], &(int){0}));
    return;
  }
  if (!boxes_new(&b, t, t->comm)) return;
  everybody(t, t->comm, &b);
  counting(t, t->comm);
  everybody(t, t->comm, &b); /* nothing is left behind */
  boxes_free(&b, t, t->comm);
  /* Graph and communicator end in any order. */
  for (int order = 0; order < 2; order++) {
    ncclComm_t comm[CONF_MAX_RANKS];
    struct one o;
    if (!team_init(t, comm, NULL) || !boxes_new(&b, t, comm) || !one_begin(&o, t)) return;
    put_all(&b, t, comm, o.stream);
    wait_all(t, comm, o.stream);
    if (!one_end(&o, t)) return;
    boxes_put(&b, t, order);
    conf_barrier(t);
    one_replay(&o, t);
    one_settle(&o, t);
    for (int i = 0; i < t->nlocal; i++)
      for (int p = 0; p < t->nranks; p++) boxes_check(&b, t, i, p, order, "a replay before the end");
    if (order == 0) one_drop(&o, t);
    boxes_free(&b, t, comm);
    team_destroy(t, comm);
    if (order == 1) one_drop(&o, t);
  }
}

/* Ranks of one process whose graphs would wait for each other by words: refused, with the remedy, and nothing hangs. */
void suite_signalsapart(struct team *t) {
  ncclComm_t comm[CONF_MAX_RANKS];
  struct graph g[CONF_MAX_RANKS] = {0};
  int n = t->nranks;
  if (n == 1 || W->launch == LAUNCH_PROCS) {
    conf_note("graphs of one process need several ranks in it");
    return;
  }
  if (!team_init(t, comm, NULL) || !graphs_begin(t, g)) return;
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclSignal((t->first + i + 1) % n, 0, 0, 0, comm[i], g[i].stream));
  for (int i = 0; i < t->nlocal; i++) {
    ncclWaitSignalDesc_t d = {1, (t->first + i + n - 1) % n, 0, 0};
    conf_rc_any(t->first + i, ncclWaitSignal(1, &d, comm[i], g[i].stream), "a signal of another capture", 2, ncclInvalidUsage,
                ncclRemoteError);
    const char *text = ncclGetLastError(comm[i]);
    if (!strstr(text, "another capture") || !strstr(text, "one graph")) conf_fail(t->first + i, "the text does not say why: \"%s\"", text);
  }
  conf_barrier(t);
  graphs_give_up(t, g, comm);
}

/* Replays that are stuck at either end, at a signal that is not sent and at one that is not taken, are ended by an abort. */
void suite_signalabort(struct team *t) {
  ncclComm_t comm[CONF_MAX_RANKS];
  struct one o;
  int n = t->nranks, me = t->first;
  if (n == 1 || W->launch != LAUNCH_PROCS) {
    conf_note("ranks of one process meet on the host");
    return;
  }
  if (!team_init(t, comm, NULL)) return;
  for (int taking = 0; taking < 2; taking++) {
    ncclWaitSignalDesc_t d = {1, (me + n - 1) % n, 0, 0};
    if (!one_begin(&o, t)) return;
    if (taking) OK(me, ncclWaitSignal(1, &d, comm[0], o.stream[0]));
    for (int k = 0; k < 2 && !taking; k++) OK(me, ncclSignal((me + 1) % n, 0, 0, 0, comm[0], o.stream[0]));
    if (!one_end(&o, t)) return;
    conf_barrier(t);
    one_replay(&o, t);
    conf_sleep(0.1);
    if (cu.StreamQuery(o.stream[0]) == CU_SUCCESS) conf_fail(me, "%s did not wait", taking ? "a captured wait" : "a second signal");
    conf_barrier(t);
    double start = conf_now();
    OK(me, ncclCommAbort(comm[0]));
    conf_at(me, "the stream of a replay after ncclCommAbort");
    cu.StreamSynchronize(o.stream[0]);
    if (conf_now() - start > 6) conf_fail(me, "an abort in a replay took %.1f s", conf_now() - start);
    conf_barrier(t);
    one_drop(&o, t);
    if (!taking && !team_init(t, comm, NULL)) return;
  }
}
