/* init.c: faults while communicators are made. */
#include <signal.h>

#include "faults.h"

/* The call must fail by itself soon after W->when, and say which rank is lost. */
static void failed_init(struct team *t, ncclComm_t comm, ncclResult_t rc, int lost) {
  int me = t->first, host_lost = lost == 0, late_rank = me == t->nranks - 1;
  double late = conf_now() - atomic_load(&W->when);
  conf_rc(me, ncclRemoteError, rc, "ncclCommInitRank after a rank was killed", __FILE__, __LINE__);
  /* Who comes when the id's process is gone finds closed doors; it tries for a while, as the process might be late. */
  double limit = host_lost && late_rank ? 3 * REPORT_SECONDS : REPORT_SECONDS;
  if (late > limit) conf_fail(me, "the loss of rank %d was reported after %.1f s", lost, late);
  char pid[32];
  snprintf(pid, sizeof pid, "pid %d", (int)W->pid[lost]);
  if (!host_lost || !strstr(ncclGetLastError(NULL), pid)) names_rank(me, ncclGetLastError(NULL), lost, "ncclCommInitRank");
  if (comm) bounded_abort(me, comm);
  /* Nobody leaves before all have heard. */
  atomic_fetch_add(&W->note[1], 1);
  conf_await(1, t->nranks - 1, 20);
}

static void init_with_victim(struct team *t, int victim) {
  int me = t->first, late = t->nranks - 1;
  ncclUniqueId id;
  ncclComm_t comm = NULL;
  if (!team_id(t, &id)) return;
  if (me == late) { /* comes last: all others are inside init and wait for it */
    conf_await(0, t->nranks - 1, 10);
    conf_sleep(0.7);
    atomic_store(&W->doomed[victim], 1);
    atomic_store(&W->when, conf_now());
    kill(W->pid[victim], SIGKILL);
    conf_sleep(0.3);
  } else {
    atomic_fetch_add(&W->note[0], 1);
  }
  conf_at(me, "ncclCommInitRank");
  ncclResult_t rc = ncclCommInitRank(&comm, t->nranks, id, me);
  failed_init(t, comm, rc, victim);
}

void fault_init_kill(struct team *t) { init_with_victim(t, t->nranks - 2); }
void fault_init_kill_root(struct team *t) { init_with_victim(t, 0); }

/* The last rank never comes: after the limit, 3 s in the environment, every other rank names it. */
void fault_missing(struct team *t) {
  int me = t->first;
  ncclUniqueId id;
  ncclComm_t comm = NULL;
  if (!team_id(t, &id)) return;
  if (me == t->nranks - 1) {
    conf_await(0, t->nranks - 1, 20); /* alive, but elsewhere */
    return;
  }
  double start = conf_now();
  ncclResult_t rc = ncclCommInitRank(&comm, t->nranks, id, me);
  conf_rc_any(me, rc, "ncclCommInitRank with a missing rank", 2, ncclTimeout, ncclRemoteError);
  names_rank(me, ncclGetLastError(NULL), t->nranks - 1, "ncclCommInitRank");
  if (conf_now() - start > 10) conf_fail(me, "a limit of 3 s took %.1f s", conf_now() - start);
  if (comm) bounded_abort(me, comm);
  atomic_fetch_add(&W->note[0], 1);
}

/* A blocking init that waits for the last rank is ended by abort from another thread. */
void fault_abort_init(struct team *t) {
  int me = t->first;
  ncclUniqueId id;
  static ncclComm_t comm[CONF_MAX_RANKS];
  if (!team_id(t, &id)) return;
  if (me == t->nranks - 1) {
    conf_sleep(0.5);
    atomic_store(&W->note[0], 1);
    conf_await(1, t->nranks - 1, 20);
    return;
  }
  struct aborter a;
  aborter_start(&a, me, &comm[me], 0, 0);
  ncclResult_t rc = ncclCommInitRank(&comm[me], t->nranks, id, me);
  if (rc == ncclSuccess) conf_fail(me, "ncclCommInitRank succeeded without the last rank");
  aborter_join(&a);
  atomic_fetch_add(&W->note[1], 1);
}
