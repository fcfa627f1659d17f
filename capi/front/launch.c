/* Launches: from operations to batches that run, on the calling thread or on a stream.
 *
 * Everything that shares a stream (or the calling thread) is one launch and is driven together, so n ranks in one thread
 * progress at once. All tickets of a group are taken before anything runs.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../device/cuda/cuda.h"
#include "../../device/host/exec/probe.h"
#include "front.h"

/* Tickets and places in streams are taken together: two threads that issue to the same streams agree on one order, and no launch
 * waits for one that is queued behind it. */
static pthread_mutex_t issue = PTHREAD_MUTEX_INITIALIZER;

/* One communicator used on several streams in one group: its operations run on the first stream, after the work already on
 * all of them, and all of them wait for its end. */
struct gccl_rendezvous {
  pthread_mutex_t lock;
  pthread_cond_t cond;
  int waiting_for, refs, open;
};

static struct gccl_rendezvous *rendezvous_new(void) {
  struct gccl_rendezvous *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  pthread_mutex_init(&r->lock, NULL);
  pthread_cond_init(&r->cond, NULL);
  r->refs = 1;
  return r;
}

static void rendezvous_unref(struct gccl_rendezvous *r) {
  pthread_mutex_lock(&r->lock);
  int last = --r->refs == 0;
  pthread_mutex_unlock(&r->lock);
  if (!last) return;
  pthread_mutex_destroy(&r->lock);
  pthread_cond_destroy(&r->cond);
  free(r);
}

/* Nothing of a launch is of use any more. */
static int all_aborted(const gccl_task *t) {
  for (int b = 0; b < t->nbatches; b++)
    if (!atomic_load(&t->batches[b].comm->abort)) return 0;
  return 1;
}

/* Waits for the work that was on other streams before this launch. Aborts of all its communicators end the wait. */
static void await_others(gccl_task *t) {
  struct gccl_rendezvous *r = t->before;
  if (!r) return;
  pthread_mutex_lock(&r->lock);
  while (r->waiting_for > 0 && !all_aborted(t)) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&r->cond, &r->lock, &until);
  }
  pthread_mutex_unlock(&r->lock);
}

/* Lets the other streams go on, and frees the launch. */
static void release_others(gccl_task *t) {
  struct gccl_rendezvous *r = t->before;
  if (r) {
    pthread_mutex_lock(&r->lock);
    r->open = 1;
    pthread_cond_broadcast(&r->cond);
    pthread_mutex_unlock(&r->lock);
    rendezvous_unref(r);
  }
  free(t);
}

void gccl_task_run(gccl_task *t) {
  struct gccl_rendezvous *after = t->after;
  await_others(t);
  if (after) { /* a stream that only takes part in the rendezvous: arrive, then wait for the end */
    pthread_mutex_lock(&after->lock);
    after->waiting_for--;
    pthread_cond_broadcast(&after->cond);
    while (!after->open) pthread_cond_wait(&after->cond, &after->lock);
    pthread_mutex_unlock(&after->lock);
    rendezvous_unref(after);
  }
  if (t->staged) gccl_cuda_stage_await(t->staged);
  if (t->nbatches) gccl_drive(t->batches, t->nbatches);
  if (t->call) t->call(t->arg);
  if (t->staged) gccl_cuda_stage_done(t->staged);
  release_others(t);
}

gccl_task *gccl_task_new(int nbatches, int nops) {
  gccl_task *t = calloc(1, sizeof *t + (size_t)nbatches * sizeof(gccl_batch) + (size_t)nops * sizeof(gccl_op));
  if (!t) return NULL;
  t->nbatches = nbatches;
  t->batches = (gccl_batch *)(t + 1);
  t->ops = (gccl_op *)(t->batches + nbatches);
  return t;
}

gccl_task *gccl_task_call(void (*call)(void *), void *arg) {
  gccl_task *t = gccl_task_new(0, 0);
  if (!t) return NULL;
  t->call = call;
  t->arg = arg;
  return t;
}

ncclResult_t gccl_operation_failed(const struct ncclComm *c, int rc, const char *call) {
  if (atomic_load_explicit(&c->error, memory_order_acquire) > 0) return gccl_fail((ncclResult_t)rc, "%s: %s", call, c->cause);
  return gccl_fail((ncclResult_t)rc, "%s: rank %d of %d: the communicator was aborted while the operation ran", call, c->rank, c->nranks);
}

ncclResult_t gccl_worker(struct ncclComm *c, gccl_stream **out, const char *call) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  if (!c->worker) c->worker = gccl_stream_new();
  pthread_mutex_unlock(&lock);
  if (!c->worker)
    return gccl_fail(ncclSystemError, "%s: rank %d: cannot start a thread for the communicator's operations: check the limits on processes",
                     call, c->rank);
  *out = c->worker;
  return ncclSuccess;
}

/* The stream on which comm works when the caller named none: NULL (the caller) unless it must not block. */
static ncclResult_t effective(struct ncclComm *c, cudaStream_t stream, gccl_stream **out, const char *call) {
  ncclResult_t rc = gccl_stream_find(stream, out, call);
  return rc != ncclSuccess || *out || c->blocking ? rc : gccl_worker(c, out, call);
}

ncclResult_t gccl_lonely_message(const struct ncclComm *c, const char *call) {
  return gccl_fail(ncclInvalidUsage,
                   "%s: rank %d sends to or receives from itself outside a group: put ncclSend and ncclRecv into one "
                   "ncclGroupStart/ncclGroupEnd",
                   call, c->rank);
}

ncclResult_t gccl_launch_one(gccl_op *op, cudaStream_t stream, const char *call) {
  struct ncclComm *c = op->comm;
  gccl_stream *s;
  if (c->cuda) return gccl_device_launch_one(op, stream, call);
  ncclResult_t rc = effective(c, stream, &s, call);
  if (rc != ncclSuccess) return rc;
  if ((op->kind == GCCL_DO_SEND || op->kind == GCCL_DO_RECV) && op->root == c->rank) return gccl_lonely_message(c, call);
  if (gccl_probed(c)) gccl_probe_issue(op);
  if (!s) {
    int r = gccl_drive_one(op, gccl_order_take(c));
    return r ? gccl_operation_failed(c, r, call) : ncclSuccess;
  }
  gccl_task *t = gccl_task_new(1, 1);
  if (!t) return gccl_fail(ncclSystemError, "%s: out of memory", call);
  t->ops[0] = *op;
  op->seen = NULL; /* it is the task's */
  pthread_mutex_lock(&issue);
  t->batches[0] = (gccl_batch){.comm = c, .ops = t->ops, .nops = 1, .ticket = gccl_order_take(c)};
  gccl_stream_push(s, t);
  pthread_mutex_unlock(&issue);
  return c->blocking ? ncclSuccess : ncclInProgress;
}

/* Sends to this rank itself: each needs its receive in the group; a pair becomes one copy. */
static int finish_self_messages(gccl_op *ops, int n, const char *call, ncclResult_t *rc) {
  for (int i = 0; i < n; i++) {
    gccl_op *a = &ops[i];
    if ((a->kind != GCCL_DO_SEND && a->kind != GCCL_DO_RECV) || a->root != a->comm->rank) continue;
    gccl_op *b = NULL;
    for (int k = i + 1; k < n && !b; k++)
      if (ops[k].comm == a->comm && ops[k].root == a->root && ops[k].kind + a->kind == GCCL_DO_SEND + GCCL_DO_RECV &&
          ops[k].kind != a->kind)
        b = &ops[k];
    if (!b || b->count != a->count || b->dtype != a->dtype) {
      const struct ncclComm *c = a->comm;
      *rc = b ? gccl_fail(ncclInvalidUsage, "%s: rank %d sends itself %llu elements and receives %llu: count and type must be equal", call,
                          c->rank, (unsigned long long)(a->kind == GCCL_DO_SEND ? a : b)->count,
                          (unsigned long long)(a->kind == GCCL_DO_SEND ? b : a)->count)
              : gccl_fail(ncclInvalidUsage, "%s: rank %d %s itself without the matching call in the same group", call, c->rank,
                          a->kind == GCCL_DO_SEND ? "sends to" : "receives from");
      return 0;
    }
    gccl_op *s = a->kind == GCCL_DO_SEND ? a : b, *r = a->kind == GCCL_DO_SEND ? b : a;
    s->recv = r->recv;
    s->kind = GCCL_DO_COPY;
    s->red = GCCL_RED_SUM;
    r->kind = GCCL_DO_COPY; /* nothing left to do */
    r->count = 0;
    r->red = GCCL_RED_SUM;
    r->send = r->recv;
  }
  return 1;
}

/* A communicator of a group, and everything of a group that shares a stream. */
typedef struct {
  struct ncclComm *comm;
  int nops, launch;
  gccl_op *next; /* where its next operation goes in the launch */
} member;

typedef struct {
  gccl_stream *stream; /* NULL: the calling thread */
  int members, nops;
  gccl_task *task;
} launch;

typedef struct {
  member *member;
  launch *launch;
  int *of; /* of[i]: the member of operation i */
  int nmembers, nlaunches;
} sorted;

static void sorted_free(sorted *s) {
  free(s->member);
  free(s->launch);
  free(s->of);
}

/* Sorts the operations by communicator, and communicators, in order of first use, by the stream of that first use. */
static ncclResult_t sort(sorted *s, const gccl_group *g, const char *call) {
  size_t n = (size_t)g->nops;
  s->member = calloc(n, sizeof *s->member);
  s->launch = calloc(n, sizeof *s->launch);
  s->of = calloc(n, sizeof *s->of);
  if (!s->member || !s->launch || !s->of) return gccl_fail(ncclSystemError, "%s: out of memory for a group of %zu operations", call, n);
  int m = 0;
  for (size_t i = 0; i < n; i++) {
    struct ncclComm *c = g->op[i].comm;
    if (s->nmembers == 0 || s->member[m].comm != c) { /* mostly it is the one of the operation before */
      for (m = 0; m < s->nmembers && s->member[m].comm != c; m++) {
      }
    }
    if (m == s->nmembers) {
      gccl_stream *stream;
      ncclResult_t rc = effective(c, g->stream[i], &stream, call);
      if (rc != ncclSuccess) return rc;
      int l = 0;
      while (l < s->nlaunches && s->launch[l].stream != stream) l++;
      if (l == s->nlaunches) s->launch[s->nlaunches++].stream = stream;
      s->member[s->nmembers++] = (member){.comm = c, .launch = l};
      s->launch[l].members++;
    }
    gccl_stream *alive; /* streams may have gone since the call */
    ncclResult_t rc = gccl_stream_find(g->stream[i], &alive, call);
    if (rc != ncclSuccess) return rc;
    s->of[i] = m;
    s->member[m].nops++;
    s->launch[s->member[m].launch].nops++;
  }
  return ncclSuccess;
}

/* Moves all of a launch into another; the empty one stays. */
static void merge(sorted *s, int from, int to) {
  for (int m = 0; m < s->nmembers; m++)
    if (s->member[m].launch == from) s->member[m].launch = to;
  s->launch[to].members += s->launch[from].members;
  s->launch[to].nops += s->launch[from].nops;
  s->launch[from].members = s->launch[from].nops = 0;
}

/* Communicators that share a stream go into one launch: in separate ones, each could wait on a stream behind the other. */
static void merge_launches(sorted *s, const gccl_group *g) {
  for (int again = 1; again;) {
    again = 0;
    for (int i = 0; i < g->nops; i++) {
      gccl_stream *stream = (gccl_stream *)g->stream[i];
      int to = s->member[s->of[i]].launch;
      if (!stream || stream == s->launch[to].stream) continue;
      for (int l = 0; l < s->nlaunches; l++)
        if (l != to && s->launch[l].members && s->launch[l].stream == stream) merge(s, l, to), again = 1;
      for (int k = 0; k < i; k++) { /* or both only join it */
        int l = s->member[s->of[k]].launch;
        if (l != to && (gccl_stream *)g->stream[k] == stream) merge(s, l, to), again = 1;
      }
    }
  }
}

/* Allocates the launches, takes the tickets and moves the operations over. Preconditions: issue is held. */
static ncclResult_t fill(sorted *s, const gccl_group *g, const char *call) {
  for (int l = 0; l < s->nlaunches; l++) {
    if (s->launch[l].members == 0) continue;
    s->launch[l].task = gccl_task_new(s->launch[l].members, s->launch[l].nops);
    if (s->launch[l].task) continue;
    while (l-- > 0) free(s->launch[l].task);
    return gccl_fail(ncclSystemError, "%s: out of memory for a group of %d operations", call, g->nops);
  }
  for (int l = 0; l < s->nlaunches; l++) s->launch[l].members = s->launch[l].nops = 0; /* now: how many are placed */
  for (int m = 0; m < s->nmembers; m++) {
    launch *l = &s->launch[s->member[m].launch];
    s->member[m].next = l->task->ops + l->nops;
    l->task->batches[l->members++] = (gccl_batch){
        .comm = s->member[m].comm, .ops = s->member[m].next, .nops = s->member[m].nops, .ticket = gccl_order_take(s->member[m].comm)};
    l->nops += s->member[m].nops;
  }
  for (int i = 0; i < g->nops; i++) {
    if (gccl_probed(g->op[i].comm)) gccl_probe_issue(&g->op[i]);
    *s->member[s->of[i]].next++ = g->op[i];
    g->op[i].seen = NULL; /* it is the launch's */
  }
  return ncclSuccess;
}

/* Makes another stream of a communicator wait for the launch, and the launch for what that stream has before. Where memory is
 * out, the order against that stream is lost and the operation itself still runs. */
static void join_stream(gccl_task *task, gccl_stream *stream) {
  gccl_task *join = gccl_task_new(0, 0);
  if (join && !task->before) task->before = rendezvous_new();
  if (!join || !task->before) {
    free(join);
    return;
  }
  pthread_mutex_lock(&task->before->lock);
  task->before->refs++;
  task->before->waiting_for++;
  pthread_mutex_unlock(&task->before->lock);
  join->after = task->before;
  gccl_stream_push(stream, join);
}

static void join_streams(sorted *s, const gccl_group *g) {
  for (int i = 0; i < g->nops; i++) {
    gccl_stream *stream = (gccl_stream *)g->stream[i];
    launch *l = &s->launch[s->member[s->of[i]].launch];
    int seen = !stream || stream == l->stream;
    for (int k = 0; k < i && !seen; k++) /* each launch joins a stream once */
      seen = &s->launch[s->member[s->of[k]].launch] == l && (gccl_stream *)g->stream[k] == stream;
    if (!seen) join_stream(l->task, stream);
  }
}

/* Runs the launch of the calling thread. */
static ncclResult_t run_here(gccl_task *t, const char *call) {
  await_others(t);
  int r = gccl_drive(t->batches, t->nbatches);
  const struct ncclComm *c = t->batches[0].comm;
  for (int b = 0; b < t->nbatches && r; b++)
    if (t->batches[b].rc) c = t->batches[b].comm;
  ncclResult_t rc = r ? gccl_operation_failed(c, r, call) : ncclSuccess;
  release_others(t);
  return rc;
}

static ncclResult_t launch_host(gccl_group *g, const char *call) {
  sorted s = {0};
  ncclResult_t rc;
  if ((rc = sort(&s, g, call)) == ncclSuccess) {
    merge_launches(&s, g);
    gccl_task *mine = NULL;
    pthread_mutex_lock(&issue);
    rc = fill(&s, g, call);
    if (rc == ncclSuccess) join_streams(&s, g);
    for (int l = 0; l < s.nlaunches && rc == ncclSuccess; l++) {
      if (!s.launch[l].task) continue;
      if (s.launch[l].stream)
        gccl_stream_push(s.launch[l].stream, s.launch[l].task);
      else
        mine = s.launch[l].task;
    }
    pthread_mutex_unlock(&issue);
    if (rc != ncclSuccess) {
      sorted_free(&s);
      return rc;
    }
    for (int m = 0; m < s.nmembers; m++)
      if (!s.member[m].comm->blocking) rc = ncclInProgress;
    if (mine) rc = run_here(mine, call);
  }
  sorted_free(&s);
  return rc;
}

/* Moves the operations of CUDA communicators behind the others, each in the order of the calls; returns how many others there are. */
static int separate(gccl_group *g, int *ncuda) {
  int host = 0;
  for (int i = 0; i < g->nops; i++) *ncuda += g->op[i].comm->cuda != NULL;
  if (*ncuda == 0) return g->nops;
  if (*ncuda == g->nops) return 0;
  for (int i = 0; i < g->nops; i++) { /* insertion: mixed groups are rare and small */
    if (g->op[i].comm->cuda) continue;
    gccl_op op = g->op[i];
    cudaStream_t s = g->stream[i];
    memmove(&g->op[host + 1], &g->op[host], (size_t)(i - host) * sizeof op);
    memmove(&g->stream[host + 1], &g->stream[host], (size_t)(i - host) * sizeof s);
    g->op[host] = op;
    g->stream[host++] = s;
  }
  return host;
}

ncclResult_t gccl_launch_group(gccl_group *g, const char *call) {
  ncclResult_t rc = ncclSuccess;
  if (!finish_self_messages(g->op, g->nops, call, &rc)) return rc;
  int ncuda = 0, host = separate(g, &ncuda);
  /* Work on GPUs goes on by itself once it is launched. */
  if (ncuda) rc = gccl_device_launch_group(g->op + host, g->stream + host, ncuda, call);
  if (host == 0 || (rc != ncclSuccess && rc != ncclInProgress)) return rc;
  g->nops = host;
  return launch_host(g, call);
}
