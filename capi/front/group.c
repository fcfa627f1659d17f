/* Groups and launches.
 *
 * Inside ncclGroupStart/End a thread collects operations and jobs. At the outermost end the jobs run in the core, then
 * the operations become launches: everything that shares a stream (or the calling thread) is driven together, so n ranks in
 * one thread progress at once. All tickets of a group are taken before anything runs.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

/* One communicator used on several streams in one group: its operations run on the first stream, after the work already on
 * all of them, and all of them wait for its end. */
struct gccl_rendezvous {
  pthread_mutex_t lock;
  pthread_cond_t cond;
  int waiting_for, refs, open;
};

static void rendezvous_unref(struct gccl_rendezvous *r) {
  pthread_mutex_lock(&r->lock);
  int last = --r->refs == 0;
  pthread_mutex_unlock(&r->lock);
  if (!last) return;
  pthread_mutex_destroy(&r->lock);
  pthread_cond_destroy(&r->cond);
  free(r);
}

void gccl_task_run(gccl_task *t);

void gccl_task_run(gccl_task *t) {
  struct gccl_rendezvous *before = t->before, *after = t->after;
  if (before) { /* this launch goes after other streams' earlier work */
    pthread_mutex_lock(&before->lock);
    while (before->waiting_for > 0) pthread_cond_wait(&before->cond, &before->lock);
    pthread_mutex_unlock(&before->lock);
  }
  if (after) { /* a stream that only takes part in the rendezvous: arrive, then wait for the end */
    pthread_mutex_lock(&after->lock);
    after->waiting_for--;
    pthread_cond_broadcast(&after->cond);
    while (!after->open) pthread_cond_wait(&after->cond, &after->lock);
    pthread_mutex_unlock(&after->lock);
    rendezvous_unref(after);
  }
  if (t->nbatches) gccl_drive(t->batches, t->nbatches);
  if (before) {
    pthread_mutex_lock(&before->lock);
    before->open = 1;
    pthread_cond_broadcast(&before->cond);
    pthread_mutex_unlock(&before->lock);
    rendezvous_unref(before);
  }
  free(t);
}

static gccl_task *task_new(int nbatches, int nops) {
  gccl_task *t = calloc(1, sizeof *t + (size_t)nbatches * sizeof(gccl_batch) + (size_t)nops * sizeof(gccl_op));
  if (!t) return NULL;
  t->nbatches = nbatches;
  t->batches = (gccl_batch *)(t + 1);
  t->ops = (gccl_op *)(t->batches + nbatches);
  return t;
}

ncclResult_t gccl_operation_failed(const struct ncclComm *c, int rc, const char *call) {
  if (atomic_load_explicit(&c->error, memory_order_acquire) > 0) return gccl_fail((ncclResult_t)rc, "%s: %s", call, c->cause);
  return gccl_fail((ncclResult_t)rc, "%s: rank %d of %d: the communicator was aborted while the operation ran", call, c->rank, c->nranks);
}

/* The stream on which comm works when the caller named none: NULL (the caller) unless it must not block. */
static ncclResult_t effective(struct ncclComm *c, cudaStream_t stream, gccl_stream **out, const char *call) {
  ncclResult_t rc = gccl_stream_find(stream, out, call);
  if (rc != ncclSuccess || *out || c->blocking) return rc;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  if (!c->worker) c->worker = gccl_stream_new();
  pthread_mutex_unlock(&lock);
  if (!c->worker) return gccl_fail(ncclSystemError, "%s: rank %d: cannot start the thread of a nonblocking communicator", call, c->rank);
  *out = c->worker;
  return ncclSuccess;
}

static ncclResult_t run_now(gccl_op *op, cudaStream_t stream, const char *call) {
  struct ncclComm *c = op->comm;
  gccl_stream *s;
  ncclResult_t rc = effective(c, stream, &s, call);
  if (rc != ncclSuccess) return rc;
  if ((op->kind == GCCL_DO_SEND || op->kind == GCCL_DO_RECV) && op->root == c->rank)
    return gccl_fail(ncclInvalidUsage, "%s: rank %d sends to or receives from itself outside a group: put ncclSend and ncclRecv into one "
                                       "ncclGroupStart/ncclGroupEnd", call, c->rank);
  if (!s) {
    int r = gccl_drive_one(op, gccl_order_take(c));
    return r ? gccl_operation_failed(c, r, call) : ncclSuccess;
  }
  gccl_task *t = task_new(1, 1);
  if (!t) return gccl_fail(ncclSystemError, "%s: out of memory", call);
  t->ops[0] = *op;
  t->batches[0] = (gccl_batch){.comm = c, .ops = t->ops, .nops = 1, .ticket = gccl_order_take(c)};
  gccl_stream_push(s, t);
  return c->blocking ? ncclSuccess : ncclInProgress;
}

static ncclResult_t grow(void **p, int *cap, int n, size_t size) {
  if (n < *cap) return ncclSuccess;
  int want = *cap ? *cap * 2 : 16;
  void *q = realloc(*p, (size_t)want * size);
  if (!q) return ncclSystemError;
  *p = q;
  *cap = want;
  return ncclSuccess;
}

ncclResult_t gccl_submit(gccl_op *op, cudaStream_t stream, const char *call) {
  gccl_thread *t = gccl_thread_self;
  if (!t || t->depth == 0) return run_now(op, stream, call);
  gccl_group *g = &t->group;
  gccl_stream *s;
  ncclResult_t rc = gccl_stream_find(stream, &s, call);
  if (rc != ncclSuccess) return rc;
  int cap = g->capops;
  if (grow((void **)&g->op, &g->capops, g->nops, sizeof *g->op) || grow((void **)&g->stream, &cap, g->nops, sizeof *g->stream))
    return gccl_fail(ncclSystemError, "%s: out of memory for a group of %d operations", call, g->nops);
  g->op[g->nops] = *op;
  g->stream[g->nops++] = (cudaStream_t)s;
  return op->comm->blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t gccl_group_note(ncclResult_t rc) {
  gccl_thread *t = gccl_thread_self;
  if (t && t->depth > 0 && rc != ncclSuccess && rc != ncclInProgress) t->error = rc;
  return rc;
}

/* --- jobs --- */

static void free_job(gccl_job *j) {
  free((void *)j->ids);
  free((void *)j->exclude);
}

static int makes_comm(const gccl_job *j) {
  return j->kind == GCCL_JOB_INIT || j->kind == GCCL_JOB_SPLIT || j->kind == GCCL_JOB_SHRINK || j->kind == GCCL_JOB_GROW;
}

/* Publishes what a finished job leaves behind. */
static void settle(gccl_job *j) {
  struct ncclComm *c = j->comm;
  if (!c) return;
  if (j->rc != ncclSuccess && makes_comm(j)) {
    if (j->kind == GCCL_JOB_INIT) { /* the caller has the handle already and must abort it */
      gccl_comm_latch(c, j->rc, "%s", j->text);
      atomic_store(&c->state, GCCL_COMM_FAILED);
      return;
    }
    gccl_handle_retire(c);
    j->comm = NULL;
    return;
  }
  if (j->kind == GCCL_JOB_DESTROY || j->kind == GCCL_JOB_ABORT) return; /* retired by the core; the slot is not ours any more */
  if (makes_comm(j) && j->out && j->rc == ncclSuccess) *j->out = c;
  int32_t busy = ncclInProgress;
  atomic_compare_exchange_strong(&c->async, &busy, j->rc);
}

void gccl_job_done(gccl_job *jobs, int32_t n, void *cookie) {
  (void)cookie;
  for (int i = 0; i < n; i++) {
    struct ncclComm *watch = jobs[i].parent && jobs[i].kind != GCCL_JOB_GROW ? jobs[i].parent : NULL;
    settle(&jobs[i]);
    if (watch) {
      int32_t busy = ncclInProgress;
      atomic_compare_exchange_strong(&watch->async, &busy, jobs[i].rc);
    }
    free_job(&jobs[i]);
  }
  free(jobs);
}

static int job_blocking(const gccl_job *j) {
  switch (j->kind) {
  case GCCL_JOB_INIT: return j->config.blocking != 0;
  case GCCL_JOB_SPLIT:
  case GCCL_JOB_SHRINK: return j->parent->blocking != 0;
  case GCCL_JOB_GROW: return j->parent ? j->parent->blocking != 0 : j->config.blocking != 0;
  case GCCL_JOB_DESTROY:
  case GCCL_JOB_ABORT: return 1; /* nothing could be asked about the result */
  default: return j->comm->blocking != 0;
  }
}

static ncclResult_t run_jobs(gccl_job *jobs, int n, const char *call) {
  int nonblocking = 0;
  for (int i = 0; i < n; i++) nonblocking += !job_blocking(&jobs[i]);
  if (nonblocking && nonblocking != n) {
    for (int i = 0; i < n; i++) {
      if (makes_comm(&jobs[i]) && jobs[i].comm) gccl_handle_retire(jobs[i].comm);
      free_job(&jobs[i]);
    }
    free(jobs);
    return gccl_fail(ncclInvalidArgument, "%s: %d of %d communicators of the group are nonblocking: use one mode in a group", call, nonblocking, n);
  }
  if (nonblocking) {
    for (int i = 0; i < n; i++) {
      struct ncclComm *watch = jobs[i].kind == GCCL_JOB_INIT || !jobs[i].parent ? jobs[i].comm : jobs[i].parent;
      if (jobs[i].comm) atomic_store(&jobs[i].comm->async, ncclInProgress);
      if (watch) atomic_store(&watch->async, ncclInProgress);
    }
    int32_t rc = gccl_core.run(jobs, n, 0, NULL);
    if (rc == ncclInProgress) return ncclInProgress;
    gccl_job_done(jobs, n, NULL); /* it could not even start */
    return gccl_fail((ncclResult_t)rc, "%s: the core did not accept the work", call);
  }
  gccl_core.run(jobs, n, 1, NULL);
  ncclResult_t rc = ncclSuccess;
  for (int i = 0; i < n; i++) {
    if (jobs[i].rc != ncclSuccess) rc = gccl_fail((ncclResult_t)jobs[i].rc, "%s", jobs[i].text[0] ? jobs[i].text : call);
    settle(&jobs[i]);
    free_job(&jobs[i]);
  }
  free(jobs);
  return rc;
}

ncclResult_t gccl_submit_job(gccl_job *job, const char *call) {
  gccl_thread *t = gccl_thread_self;
  if (!t || t->depth == 0) {
    gccl_job *one = malloc(sizeof *one);
    if (!one) {
      free_job(job);
      return gccl_fail(ncclSystemError, "%s: out of memory", call);
    }
    *one = *job;
    return run_jobs(one, 1, call);
  }
  gccl_group *g = &t->group;
  if (grow((void **)&g->job, &g->capjobs, g->njobs, sizeof *g->job)) {
    free_job(job);
    return gccl_fail(ncclSystemError, "%s: out of memory for a group of %d jobs", call, g->njobs);
  }
  g->job[g->njobs++] = *job;
  return job_blocking(job) ? ncclSuccess : ncclInProgress;
}

/* --- operations --- */

/* Sends to this rank itself: each needs its receive in the group; a pair becomes one copy. */
static int finish_self_messages(gccl_op *ops, int n, const char *call, ncclResult_t *rc) {
  for (int i = 0; i < n; i++) {
    gccl_op *a = &ops[i];
    if ((a->kind != GCCL_DO_SEND && a->kind != GCCL_DO_RECV) || a->root != a->comm->rank) continue;
    gccl_op *b = NULL;
    for (int k = i + 1; k < n && !b; k++)
      if (ops[k].comm == a->comm && ops[k].root == a->root && ops[k].kind + a->kind == GCCL_DO_SEND + GCCL_DO_RECV && ops[k].kind != a->kind)
        b = &ops[k];
    if (!b || b->count != a->count || b->dtype != a->dtype) {
      const struct ncclComm *c = a->comm;
      *rc = b ? gccl_fail(ncclInvalidUsage, "%s: rank %d sends itself %llu elements and receives %llu: count and type must be equal", call, c->rank,
                          (unsigned long long)(a->kind == GCCL_DO_SEND ? a : b)->count, (unsigned long long)(a->kind == GCCL_DO_SEND ? b : a)->count)
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

static ncclResult_t run_ops(gccl_group *g, const char *call) {
  size_t n = (size_t)g->nops;
  ncclResult_t rc = ncclSuccess;
  if (!finish_self_messages(g->op, (int)n, call, &rc)) return rc;
  /* Communicators in order of their first operation, each with the stream it runs on. */
  struct ncclComm **comm = calloc(n, sizeof *comm);
  gccl_stream **on = calloc(n, sizeof *on);
  int *of = calloc(n, sizeof *of), *count = calloc(n, sizeof *count);
  int *place = calloc(n, sizeof *place);
  gccl_task **task = NULL;
  int ncomm = 0, nonblocking = 0;
  if (!comm || !on || !of || !count || !place) rc = gccl_fail(ncclSystemError, "%s: out of memory", call);
  for (size_t i = 0; i < n && rc == ncclSuccess; i++) {
    int k = ncomm > 0 && comm[ncomm - 1] == g->op[i].comm ? ncomm - 1 : 0;
    while (k < ncomm && comm[k] != g->op[i].comm) k++;
    if (k == ncomm) {
      comm[ncomm++] = g->op[i].comm;
      nonblocking |= !g->op[i].comm->blocking;
      rc = effective(g->op[i].comm, g->stream[i], &on[k], call);
    }
    of[i] = k;
    count[k]++;
  }
  /* One launch per stream: its communicators' batches, each with its operations in order. */
  if (rc == ncclSuccess && !(task = calloc((size_t)ncomm, sizeof *task))) rc = gccl_fail(ncclSystemError, "%s: out of memory", call);
  for (int k = 0; k < ncomm && rc == ncclSuccess; k++) {
    int first = 1, nb = 0, no = 0;
    for (int m = 0; m < ncomm; m++)
      if (on[m] == on[k]) {
        if (m < k) first = 0;
        nb++;
        no += count[m];
      }
    if (first && !(task[k] = task_new(nb, no))) rc = gccl_fail(ncclSystemError, "%s: out of memory", call);
  }
  gccl_task *mine = NULL;
  if (rc == ncclSuccess) {
    for (int k = 0; k < ncomm; k++) {
      if (!task[k]) continue;
      gccl_op *op = task[k]->ops;
      int b = 0;
      for (int m = k; m < ncomm; m++) {
        if (on[m] != on[k]) continue;
        task[k]->batches[b++] = (gccl_batch){.comm = comm[m], .ops = op, .nops = count[m], .ticket = gccl_order_take(comm[m])};
        place[m] = (int)(op - task[k]->ops);
        op += count[m];
      }
    }
    int *owner = of; /* of[i]: communicator; its task is the first with the same stream */
    for (size_t i = 0; i < n; i++) {
      int m = owner[i], k = m;
      for (int q = 0; q < m; q++)
        if (on[q] == on[m]) {
          k = q;
          break;
        }
      task[k]->ops[place[m]++] = g->op[i];
    }
    /* Further streams of a communicator. */
    for (size_t i = 0; i < n; i++) {
      int m = of[i], seen = 0, k = m;
      gccl_stream *s = (gccl_stream *)g->stream[i];
      if (!s || s == on[m]) continue;
      for (size_t q = 0; q < i; q++) seen |= of[q] == m && (gccl_stream *)g->stream[q] == s;
      if (seen) continue;
      for (int q = 0; q < m; q++)
        if (on[q] == on[m]) {
          k = q;
          break;
        }
      gccl_task *join = task_new(0, 0);
      if (!join) continue; /* order against that stream is lost only when memory is: the operation itself still runs */
      struct gccl_rendezvous *r = task[k]->before;
      if (!r) {
        r = calloc(1, sizeof *r);
        if (!r) {
          free(join);
          continue;
        }
        pthread_mutex_init(&r->lock, NULL);
        pthread_cond_init(&r->cond, NULL);
        r->refs = 1;
        task[k]->before = r;
      }
      pthread_mutex_lock(&r->lock);
      r->refs++;
      r->waiting_for++;
      pthread_mutex_unlock(&r->lock);
      join->after = r;
      gccl_stream_push(s, join);
    }
    for (int k = 0; k < ncomm; k++) {
      if (!task[k]) continue;
      if (on[k])
        gccl_stream_push(on[k], task[k]);
      else
        mine = task[k];
    }
    if (mine) {
      struct ncclComm *c = mine->batches[0].comm;
      int r = gccl_drive(mine->batches, mine->nbatches);
      for (int b = 0; b < mine->nbatches && r; b++)
        if (mine->batches[b].rc) c = mine->batches[b].comm;
      if (r) rc = gccl_operation_failed(c, r, call);
      mine->nbatches = 0;
      gccl_task_run(mine); /* opens the rendezvous, if there is one, and frees */
    } else if (nonblocking) {
      rc = ncclInProgress;
    }
  } else if (task) {
    for (int k = 0; k < ncomm; k++) free(task[k]);
  }
  free(task);
  free(place);
  free(count);
  free(of);
  free(on);
  free(comm);
  return rc;
}

static void drop(gccl_group *g) {
  for (int i = 0; i < g->njobs; i++) {
    if (makes_comm(&g->job[i]) && g->job[i].comm) {
      if (g->job[i].kind == GCCL_JOB_INIT && g->job[i].out) *g->job[i].out = NULL;
      gccl_handle_retire(g->job[i].comm);
    }
    free_job(&g->job[i]);
  }
  g->nops = g->njobs = 0;
}

GCCL_API(ncclResult_t, ncclGroupStart, void) {
  gccl_thread *t = gccl_thread_get();
  if (!t) return gccl_fail(ncclSystemError, "ncclGroupStart: out of memory");
  t->depth++;
  return ncclSuccess;
}

static ncclResult_t end(gccl_thread *t, const char *call) {
  gccl_group *g = &t->group;
  ncclResult_t rc = t->error;
  t->error = ncclSuccess;
  if (rc != ncclSuccess) {
    drop(g); /* the call that failed has said why; nothing of the group runs */
    return rc;
  }
  if (g->njobs) {
    gccl_job *jobs = malloc((size_t)g->njobs * sizeof *jobs);
    if (!jobs) {
      drop(g);
      return gccl_fail(ncclSystemError, "%s: out of memory", call);
    }
    memcpy(jobs, g->job, (size_t)g->njobs * sizeof *jobs);
    int n = g->njobs;
    g->njobs = 0;
    rc = run_jobs(jobs, n, call);
    if (rc != ncclSuccess && rc != ncclInProgress) {
      g->nops = 0;
      return rc;
    }
  }
  if (g->nops) {
    ncclResult_t ops = run_ops(g, call);
    g->nops = 0;
    if (ops != ncclSuccess) rc = ops;
  }
  return rc;
}

GCCL_API(ncclResult_t, ncclGroupEnd, void) {
  gccl_thread *t = gccl_thread_self;
  if (__builtin_expect(gccl_forked, 0)) return gccl_core_open("ncclGroupEnd");
  if (!t || t->depth == 0)
    return gccl_fail(ncclInvalidUsage, "ncclGroupEnd: this thread has no open group: call ncclGroupStart in the same thread first");
  if (--t->depth > 0) return ncclSuccess;
  return end(t, "ncclGroupEnd");
}

GCCL_API(ncclResult_t, ncclGroupSimulateEnd, ncclSimInfo_t *info) {
  gccl_thread *t = gccl_thread_self;
  if (!info) return pncclGroupEnd();
  if (__builtin_expect(gccl_forked, 0)) return gccl_core_open("ncclGroupSimulateEnd");
  if (!t || t->depth == 0)
    return gccl_fail(ncclInvalidUsage, "ncclGroupSimulateEnd: this thread has no open group: call ncclGroupStart in the same thread first");
  if (--t->depth > 0) return ncclSuccess;
  ncclResult_t rc = t->error;
  t->error = ncclSuccess;
  if (info->magic != 0x74685283 || info->size < offsetof(ncclSimInfo_t, estimatedTime) + sizeof(float))
    rc = gccl_fail(ncclInvalidArgument, "ncclGroupSimulateEnd: simInfo must be set to NCCL_SIM_INFO_INITIALIZER");
  float total = 0;
  for (int i = 0; i < t->group.nops && rc == ncclSuccess; i++) {
    const gccl_op *op = &t->group.op[i];
    char text[GCCL_TEXT] = "";
    float us = 0;
    uint32_t coll = op->kind == GCCL_DO_COLL ? op->coll : GCCL_SEND_RECV;
    rc = (ncclResult_t)gccl_core.estimate(op->comm, coll, op->count * gccl_dtype_size(op->dtype), &us, text);
    if (rc != ncclSuccess) gccl_fail(rc, "ncclGroupSimulateEnd: %s", text);
    total += us;
  }
  drop(&t->group);
  if (rc == ncclSuccess) info->estimatedTime = total;
  return rc;
}
