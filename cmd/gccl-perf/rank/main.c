/* gccl-perf-rank: one process of a measurement, with one or more ranks as threads.
 *
 * It is started by gccl-perf, never by hand. From the environment: GCCL_PERF_RANK (first
 * rank of this process), GCCL_PERF_SIZE, GCCL_PERF_THREADS, GCCL_PERF_BARRIER (1: descriptor 5 is
 * a file of zeroed barrier lines that all ranks share). Descriptor 3 is the control pipe: the job as text
 * lines (job.h). Descriptor 4 takes the results (events.h). The process with rank 0 first
 * reports the unique id it made; all others get it as a line of the job. When the other end
 * of the control pipe closes, the front-end is gone and the process ends at once.
 *
 * It uses the public C ABI only. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "pin.h"
#include "runner.h"

enum { CONTROL_FD = 3, EVENTS_FD = 4, BARRIER_FD = 5 };

/* Reads a variable and takes it away, because the library warns about GCCL_ names that it does not know. */
static int take_env_int(const char *name, int fallback) {
  const char *text = getenv(name);
  int value = text && *text ? atoi(text) : fallback;
  unsetenv(name);
  return value;
}

static void *watch_front_end(void *unused) {
  (void)unused;
  struct pollfd p = {CONTROL_FD, 0, 0}; /* POLLHUP and POLLERR are always reported */
  while (poll(&p, 1, -1) < 0 && errno == EINTR) {
  }
  _exit(3);
}

struct thread {
  pthread_t id;
  struct perf_rank rank;
  const cpu_set_t *allowed;
};

static void *rank_thread(void *arg) {
  struct thread *t = arg;
  t->rank.core = t->rank.job->pin ? perf_pin(t->allowed, t->rank.rank) : -1;
  /* after a failure the process ends at once: the other threads may wait for this one for ever */
  if (perf_rank_run(&t->rank)) _exit(1);
  return NULL;
}

static int die(int rank, const char *call, const char *text) {
  perf_event_error(rank, call, ncclSystemError, text);
  return 1;
}

int main(void) {
  struct perf_job job = {.timeout_s = 120};
  job.first_rank = take_env_int("GCCL_PERF_RANK", 0);
  job.nranks = take_env_int("GCCL_PERF_SIZE", 0);
  job.nthreads = take_env_int("GCCL_PERF_THREADS", 1);
  int shared_barrier = take_env_int("GCCL_PERF_BARRIER", 0);
  if (job.nranks < 1 || job.nthreads < 1 || job.first_rank < 0 || job.first_rank + job.nthreads > job.nranks) {
    fprintf(stderr, "gccl-perf-rank: GCCL_PERF_RANK, GCCL_PERF_SIZE and GCCL_PERF_THREADS are missing or do not fit;"
                    " start gccl-perf instead\n");
    return 2;
  }
  perf_events_open(EVENTS_FD);
  perf_types_init();
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return die(job.first_rank, "sched_getaffinity", strerror(errno));

  if (job.first_rank == 0) {
    ncclResult_t result = ncclGetUniqueId(&job.id);
    if (result != ncclSuccess) {
      perf_event_error(0, "ncclGetUniqueId", (int)result, ncclGetLastError(NULL));
      return 1;
    }
    perf_event_id(&job.id);
  }
  char why[256];
  if (perf_job_read(&job, CONTROL_FD, job.first_rank == 0, why, sizeof why)) return die(job.first_rank, "job", why);

  void *lines = NULL;
  if (shared_barrier && !(lines = perf_barrier_map(BARRIER_FD, job.nranks)))
    return die(job.first_rank, "mmap of the barrier", strerror(errno));

  pthread_t watcher;
  struct thread *threads = calloc((size_t)job.nthreads, sizeof *threads);
  if (!threads || pthread_create(&watcher, NULL, watch_front_end, NULL)) return die(job.first_rank, "pthread_create", "cannot start");
  for (int t = 0; t < job.nthreads; t++) {
    struct thread *th = &threads[t];
    th->allowed = &allowed;
    th->rank.job = &job;
    th->rank.rank = job.first_rank + t;
    perf_barrier_init(&th->rank.barrier, lines, th->rank.rank, job.nranks, CPU_COUNT(&allowed), job.timeout_s);
    if (pthread_create(&th->id, NULL, rank_thread, th)) return die(th->rank.rank, "pthread_create", "cannot start");
  }
  for (int t = 0; t < job.nthreads; t++) pthread_join(threads[t].id, NULL);
  free(threads);
  free(job.cases);
  return 0;
}
