/* Jobs: the slow work that the core does for the front, and what becomes of its results. */
#include <stdio.h>
#include <stdlib.h>

#include "front.h"

void gccl_job_free(gccl_job *j) {
  free((void *)j->ids);
  free((void *)j->exclude);
  free(j->devcomm);
}

int gccl_job_makes_comm(const gccl_job *j) {
  return j->kind == GCCL_JOB_INIT || j->kind == GCCL_JOB_SPLIT || j->kind == GCCL_JOB_SHRINK || j->kind == GCCL_JOB_GROW;
}

/* Publishes what a finished job leaves behind. */
static void settle(gccl_job *j) {
  struct ncclComm *c = j->comm;
  if (!c) return;
  if (j->rc != ncclSuccess && gccl_job_makes_comm(j)) {
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
  if (gccl_job_makes_comm(j) && j->out && j->rc == ncclSuccess) *j->out = c;
  if (j->kind == GCCL_JOB_DEVCOMM && j->rc == ncclSuccess && (j->rc = gccl_devcomm_complete(j->devcomm)) != ncclSuccess)
    snprintf(j->text, sizeof j->text, "%s", gccl_last_error());
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
    gccl_job_free(&jobs[i]);
  }
  free(jobs);
}

int gccl_job_blocking(const gccl_job *j) {
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

ncclResult_t gccl_jobs_run(gccl_job *jobs, int n, const char *call) {
  int nonblocking = 0;
  for (int i = 0; i < n; i++) nonblocking += !gccl_job_blocking(&jobs[i]);
  if (nonblocking && nonblocking != n) {
    for (int i = 0; i < n; i++) {
      if (gccl_job_makes_comm(&jobs[i]) && jobs[i].comm) gccl_handle_retire(jobs[i].comm);
      gccl_job_free(&jobs[i]);
    }
    free(jobs);
    return gccl_fail(ncclInvalidArgument, "%s: %d of %d communicators of the group are nonblocking: use one mode in a group", call,
                     nonblocking, n);
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
    gccl_job_free(&jobs[i]);
  }
  free(jobs);
  return rc;
}
