/* One rank: its communicator, its buffers, and the cases of the job in order. */
#ifndef GCCL_PERF_RUNNER_H
#define GCCL_PERF_RUNNER_H

#include "job.h"
#include "shbarrier.h"

struct perf_rank {
  const struct perf_job *job;
  int rank;
  int core; /* pinned to, or -1 */
  struct perf_barrier barrier;
};

/* Runs everything and reports it. 0, or -1 after the failure was reported. */
int perf_rank_run(struct perf_rank *r);

#endif
