/* faults.c: a killed peer, bad input, and what a communicator takes. */
#include <signal.h>

#include "gpu.h"

/* A rank dies; the others, whose work waits for it, are free within 5 s and know its name. */
static void killed(struct team *t, int last) {
  if (W->launch != LAUNCH_PROCS || t->nranks < 2) {
    conf_note("a rank that dies needs processes");
    OK(t->first, ncclCommCount(t->comm[0], &(int){0}));
    return;
  }
  ncclComm_t comm[1];
  struct sums v;
  void *s = NULL;
  int me = t->first;
  if (!team_init(t, comm, NULL) || !sums_new(&v, t, 1000) || !CU(me, cu.StreamCreate(&s, CU_NON_BLOCKING))) return;
  sums_put(&v, t, 1);
  OK(me, sums_call(&v, 0, comm[0], s));
  CU(me, cu.StreamSynchronize(s));
  sums_check(&v, t, 1, "before the death");
  conf_barrier(t);
  if (me == last) {
    atomic_store(&W->doomed[me], 1);
    raise(SIGKILL);
  }
  double start = conf_now();
  ncclResult_t rc = sums_call(&v, 0, comm[0], s);
  conf_at(me, "stream after the death of rank %d", last);
  int cuda = cu.StreamSynchronize(s);
  ncclResult_t state = team_wait(comm[0], 0.001);
  while (rc == ncclSuccess && (state == ncclSuccess || state == ncclInProgress) && conf_now() - start < 8) {
    conf_sleep(0.02);
    if (ncclCommGetAsyncError(comm[0], &state) != ncclSuccess) break;
  }
  double took = conf_now() - start;
  conf_note("rank %d: freed after %.2f s, call %d, stream %d, state %d: %s", me, took, rc, cuda, state, ncclGetLastError(comm[0]));
  if (rc == ncclSuccess && state == ncclSuccess) conf_fail(me, "the death of rank %d was not noticed", last);
  if (took > 5) conf_fail(me, "the death of rank %d was noticed after %.1f s", last, took);
  char name[32];
  snprintf(name, sizeof name, "rank %d", last);
  if (!strstr(ncclGetLastError(comm[0]), name)) conf_fail(me, "the text does not name %s: \"%s\"", name, ncclGetLastError(comm[0]));
  OK(me, ncclCommAbort(comm[0]));
  /* The driver still works for this process. */
  cu_ptr p = 0;
  CU(me, cu.MemAlloc(&p, 4096));
  CU(me, cu.MemsetD8Async(p, 1, 4096, s));
  CU(me, cu.StreamSynchronize(s));
  _exit(atomic_load(&W->failures) ? 1 : 0); /* the world's barrier has lost a member */
}

void suite_killed(struct team *t) { killed(t, t->nranks - 1); } /* the executor waits for it on the host */
void suite_killedleader(struct team *t) { killed(t, 0); }       /* the executor: streams wait for it */

static void refused(int r, ncclResult_t got, const char *what, const char *word) {
  conf_rc_any(r, got, what, 2, ncclInvalidArgument, ncclInvalidUsage);
  const char *text = ncclGetLastError(NULL);
  if (!strstr(text, word)) conf_fail(r, "%s: the text does not say %s: \"%s\"", what, word, text);
}

/* Every rank makes the same mistake at the same time, and the communicator goes on working. */
void suite_bad(struct team *t) {
  int r = t->first;
  struct buf b, host_side;
  void *s = NULL, *pinned = NULL;
  if (!buf_new(&b, r, 4096) || !CU(r, cu.StreamCreate(&s, CU_NON_BLOCKING)) || !CU(r, cu.MemHostAlloc(&pinned, 4096, 3))) return;
  static char plain[4096];
  conf_barrier(t);
  refused(r, ncclAllReduce(plain, b.at, 64, ncclInt32, ncclSum, t->comm[0], s), "a send buffer on the host", "sendbuff");
  refused(r, ncclAllReduce(b.at, plain, 64, ncclInt32, ncclSum, t->comm[0], s), "a receive buffer on the host", "recvbuff");
  refused(r, ncclAllReduce(NULL, b.at, 64, ncclInt32, ncclSum, t->comm[0], s), "no send buffer", "sendbuff");
  refused(r, ncclSend(plain, 64, ncclInt32, 0, t->comm[0], s), "ncclSend from the host", "sendbuff");
  conf_barrier(t);
  /* Freed memory. */
  if (!buf_new(&host_side, r, 1 << 21)) return;
  void *gone = host_side.at;
  buf_free(&host_side, r);
  conf_barrier(t); /* all are free, nobody allocates */
  refused(r, ncclAllReduce(gone, b.at, 64, ncclInt32, ncclSum, t->comm[0], s), "freed memory", "sendbuff");
  /* Past the end of an allocation. */
  refused(r, ncclAllReduce(b.at, b.at, (size_t)1 << 40, ncclInt32, ncclSum, t->comm[0], s), "a count past the allocation", "count");
  conf_barrier(t);
  CU(r, cu.StreamSynchronize(s));
  CU(r, cu.MemFreeHost(pinned));
  struct sums v;
  if (!sums_new(&v, t, 100)) return;
  sums_put(&v, t, 5);
  EACH(t, "after mistakes", sums_call(&v, i, t->comm[i], NULL));
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    CU(t->first + i, cu.StreamSynchronize(NULL));
  }
  sums_check(&v, t, 5, "after mistakes");
  sums_free(&v, t);
  buf_free(&b, r);
  CU(r, cu.StreamDestroy(s));
}

/* Device memory of a communicator: at most 64 MiB for 8 ranks, all processes together; everything is given back. */
void suite_footprint(struct team *t) {
  size_t before = 0, with = 0, after = 0, total = 0;
  ncclComm_t comm[CONF_MAX_RANKS];
  struct sums v;
  if (!sums_new(&v, t, 1000)) return;
  conf_barrier(t);
  CU(t->first, cu.MemGetInfo(&before, &total));
  conf_barrier(t);
  if (!team_init(t, comm, NULL)) return;
  sums_put(&v, t, 1);
  EACH(t, "ncclAllReduce", sums_call(&v, i, comm[i], NULL));
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    CU(t->first + i, cu.StreamSynchronize(NULL));
  }
  conf_barrier(t);
  CU(t->first, cu.MemGetInfo(&with, &total));
  conf_barrier(t);
  team_destroy(t, comm);
  conf_barrier(t);
  CU(t->first, cu.MemGetInfo(&after, &total));
  double mib = ((double)before - (double)with) / (1 << 20), left = ((double)before - (double)after) / (1 << 20);
  if (t->first == 0) conf_note("device memory of a second communicator of %d ranks: %.1f MiB, left behind %.1f MiB", t->nranks, mib, left);
  if (mib > 8.0 * t->nranks) conf_fail(t->first, "%d ranks take %.1f MiB of device memory, more than 8 MiB a rank", t->nranks, mib);
  if (left > 2.0 * t->nranks) conf_fail(t->first, "%.1f MiB of device memory are left behind", left);
  sums_free(&v, t);
}

/* Whether there is a CUDA device at all: a communicator comes into being. */
void suite_probe(struct team *t) {
  char name[64] = "";
  CU(t->first, cu.DeviceGetName(name, sizeof name, 0));
  conf_note("device 0: %s", name);
}
