/* process.c: limits and forks. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "faults.h"

/* With 64 descriptors communicators are made until it fails: the text names the limit, and what was made works on. A
 * rank that cannot even open a connection cannot tell the others, who wait for it: GCCL_INIT_TIMEOUT is 3 s. */
void fault_descriptors(struct team *t) {
  int me = t->first;
  struct rlimit l = {64, 64};
  if (W->launch == LAUNCH_PROCS || me == 0) TRUE(me, setrlimit(RLIMIT_NOFILE, &l) == 0);
  conf_barrier(t);
  ncclComm_t comm[300];
  int made = 0, failed = 0;
  while (made < 300 && !failed) {
    int slot = t->next_id++;
    if (me == 0) {
      ncclResult_t rc = ncclGetUniqueId(&W->id[slot]);
      if (rc != ncclSuccess && !strstr(ncclGetLastError(NULL), "64"))
        conf_fail(me, "ncclGetUniqueId without descriptors: the text does not name the limit 64: \"%s\"", ncclGetLastError(NULL));
      atomic_store(&W->id_ready[slot], rc == ncclSuccess ? 1 : 2);
    }
    while (atomic_load(&W->id_ready[slot]) == 0) conf_sleep(0.0005);
    if (atomic_load(&W->id_ready[slot]) == 2) break;
    conf_at(me, "communicator %d under a limit of 64 descriptors", made);
    comm[made] = NULL;
    double start = conf_now();
    ncclResult_t rc = ncclCommInitRank(&comm[made], t->nranks, W->id[slot], me);
    if (rc == ncclSuccess)
      made++;
    else {
      failed = 1;
      char text[1024];
      snprintf(text, sizeof text, "%s", ncclGetLastError(NULL)); /* abort below may have an error of its own */
      conf_note("rank %d, communicator %d: %s", me, made, text);
      conf_rc_any(me, rc, "ncclCommInitRank without descriptors", 3, ncclSystemError, ncclRemoteError, ncclTimeout);
      if (rc == ncclSystemError &&
          (!strstr(text, "64") || !(strstr(text, "descriptor") || strstr(text, "NOFILE") || strstr(text, "open files"))))
        conf_fail(me, "ncclCommInitRank without descriptors: the text names no limit: \"%s\"", text);
      if (conf_now() - start > 10) conf_fail(me, "running out of descriptors was reported after %.1f s", conf_now() - start);
      if (comm[made]) bounded_abort(me, comm[made]);
    }
    /* Ranks agree on whether all succeeded. */
    if (failed) atomic_store(&W->note[slot % 64], 1);
    conf_barrier(t);
    if (atomic_load(&W->note[slot % 64]) && !failed) {
      made--;
      bounded_abort(me, comm[made]);
      failed = 1;
    }
  }
  if (me == 0) conf_note("%d communicators under a limit of 64 descriptors", made);
  TRUE(me, made > 0);
  for (int k = 0; k < made; k++) {
    int32_t x = 1, y = 0;
    if (k < 3) {
      OK(me, ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, comm[k], NULL));
      TRUE(me, y == t->nranks);
    }
    OK(me, ncclCommDestroy(comm[k]));
  }
}

static int child_ends(int me, pid_t pid, double seconds) {
  double end = conf_now() + seconds;
  int st;
  while (waitpid(pid, &st, WNOHANG) == 0) {
    if (conf_now() > end) {
      kill(pid, SIGKILL);
      waitpid(pid, NULL, 0);
      return conf_fail(me, "the forked child hangs at: %s", W->at[me]);
    }
    conf_sleep(0.005);
  }
  if (WIFEXITED(st) && WEXITSTATUS(st) == 0) return 1;
  return conf_fail(me, "the forked child ended with status %#x", st);
}

/* A child of a process that has used the library gets errors, and no call hangs; the parent goes on. */
void fault_fork_after(struct team *t) {
  int me = t->first;
  int32_t x = 1, y = 0;
  ncclComm_t c = t->comm[0];
  OK(me, ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, c, NULL));
  conf_barrier(t);
  pid_t pid = fork();
  if (pid == 0) {
    int v = 0, n;
    void *p = NULL;
    ncclUniqueId id;
    ncclComm_t made = NULL;
    ncclResult_t state;
    OK(me, ncclGetVersion(&v));
    TRUE(me, ncclGetErrorString(ncclSystemError) != NULL);
    TRUE(me, ncclGetUniqueId(&id) != ncclSuccess);
    TRUE(me, strstr(ncclGetLastError(NULL), "fork") != NULL);
    TRUE(me, ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, c, NULL) != ncclSuccess);
    memset(&id, 1, sizeof id);
    TRUE(me, ncclCommInitRank(&made, 1, id, 0) != ncclSuccess);
    TRUE(me, ncclMemAlloc(&p, 4096) != ncclSuccess);
    TRUE(me, ncclCommDestroy(c) != ncclSuccess);
    (void)ncclCommCount(c, &n);
    (void)ncclCommGetAsyncError(c, &state);
    (void)ncclCommAbort(c);
    _exit(0);
  }
  if (!TRUE(me, pid > 0)) return;
  child_ends(me, pid, 10);
  conf_barrier(t);
  OK(me, ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, c, NULL));
  TRUE(me, y == t->nranks);
}

static int one_rank(int me) {
  ncclUniqueId id;
  ncclComm_t c = NULL;
  int32_t x = 6, y = 0;
  return OK(me, ncclGetUniqueId(&id)) && OK(me, ncclCommInitRank(&c, 1, id, 0)) &&
         OK(me, ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, c, NULL)) && TRUE(me, y == 6) && OK(me, ncclCommDestroy(c));
}

/* Fork with the library loaded and unused: it works in the child and in the parent. */
void fault_fork_before(struct team *t) {
  int me = t->first, v;
  OK(me, ncclGetVersion(&v)); /* asking for the version is no use */
  if (W->launch == LAUNCH_PROCS) TRUE(me, conf_proc_status("Threads") == 1);
  pid_t pid = fork();
  if (pid == 0) _exit(one_rank(me) ? 0 : 1);
  if (!TRUE(me, pid > 0)) return;
  one_rank(me);
  child_ends(me, pid, 15);
}
