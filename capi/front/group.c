/* Groups: inside ncclGroupStart/End a thread collects operations and jobs. At the outermost end the jobs run first, then
 * the operations are launched (launch.c). */
#include <stdlib.h>
#include <string.h>

#include "../../device/host/exec/probe.h"
#include "front.h"
#include "nvtx.h"

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
  if (op->comm->cuda) {
    ncclResult_t rc = gccl_device_check(op, call);
    if (rc != ncclSuccess) return rc;
  }
  if (!t || t->depth == 0) return gccl_launch_one(op, stream, call);
  gccl_group *g = &t->group;
  gccl_stream *s = (gccl_stream *)stream;
  ncclResult_t rc = op->comm->cuda ? ncclSuccess : gccl_stream_find(stream, &s, call);
  if (rc != ncclSuccess) return rc;
  int cap = g->capops; /* g->stream may be larger, when memory for g->op ran out */
  if (grow((void **)&g->stream, &cap, g->nops, sizeof *g->stream) || grow((void **)&g->op, &g->capops, g->nops, sizeof *g->op))
    return gccl_fail(ncclSystemError, "%s: out of memory for a group of %d operations", call, g->nops);
  g->op[g->nops] = *op;
  op->seen = NULL; /* it is the group's */
  g->stream[g->nops++] = (cudaStream_t)s;
  return op->comm->blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t gccl_group_note(ncclResult_t rc) {
  gccl_thread *t = gccl_thread_self;
  if (t && t->depth > 0 && rc != ncclSuccess && rc != ncclInProgress) t->error = rc;
  return rc;
}

ncclResult_t gccl_submit_job(gccl_job *job, const char *call) {
  gccl_thread *t = gccl_thread_self;
  if (!t || t->depth == 0) {
    gccl_job *one = malloc(sizeof *one);
    if (!one) {
      gccl_job_free(job);
      return gccl_fail(ncclSystemError, "%s: out of memory", call);
    }
    *one = *job;
    return gccl_jobs_run(one, 1, call);
  }
  gccl_group *g = &t->group;
  if (grow((void **)&g->job, &g->capjobs, g->njobs, sizeof *g->job)) {
    gccl_job_free(job);
    return gccl_fail(ncclSystemError, "%s: out of memory for a group of %d jobs", call, g->njobs);
  }
  g->job[g->njobs++] = *job;
  return gccl_job_blocking(job) ? ncclSuccess : ncclInProgress;
}

void gccl_group_forget(gccl_group *g) {
  for (int i = 0; i < g->nops; i++) gccl_probe_forget(&g->op[i]);
  for (int i = 0; i < g->njobs; i++) {
    if (gccl_job_makes_comm(&g->job[i]) && g->job[i].comm) gccl_handle_retire(g->job[i].comm);
    gccl_job_free(&g->job[i]);
  }
  g->nops = g->njobs = 0;
}

static void drop(gccl_group *g) {
  for (int i = 0; i < g->njobs; i++)
    if (g->job[i].kind == GCCL_JOB_INIT && g->job[i].comm && g->job[i].out) *g->job[i].out = NULL;
  gccl_group_forget(g);
}

GCCL_API(ncclResult_t, ncclGroupStart, void) {
  GCCL_RANGE_OF("ncclGroupStart");
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
    rc = gccl_jobs_run(jobs, n, call);
    if (rc != ncclSuccess && rc != ncclInProgress) {
      gccl_group_forget(g);
      return rc;
    }
  }
  if (g->nops) {
    ncclResult_t ops = gccl_launch_group(g, call);
    gccl_group_forget(g);
    if (ops != ncclSuccess) rc = ops;
  }
  return rc;
}

GCCL_API(ncclResult_t, ncclGroupEnd, void) {
  GCCL_RANGE_OF("ncclGroupEnd");
  gccl_thread *t = gccl_thread_self;
  if (__builtin_expect(gccl_forked, 0)) return gccl_core_open("ncclGroupEnd");
  if (!t || t->depth == 0)
    return gccl_fail(ncclInvalidUsage, "ncclGroupEnd: this thread has no open group: call ncclGroupStart in the same thread first");
  if (--t->depth > 0) return ncclSuccess;
  gccl_probe_grouping();
  ncclResult_t rc = end(t, "ncclGroupEnd");
  gccl_probe_grouped(rc);
  return rc;
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
  gccl_probe_grouped(rc);
  if (rc == ncclSuccess) info->estimatedTime = total;
  return rc;
}
