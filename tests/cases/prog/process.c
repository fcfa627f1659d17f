/* process.c: C27 namespaces, C29 restricted environments, C31 idle and crowded CPUs. */
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "cases.h"

/* C27: rank 1 moves into namespaces of its own, named in CASE_UNSHARE by letters: user, uts, ipc, mount, network.
 * The result is right, or all ranks get a clear error in bounded time; never a wrong sum, never a hang. */
void c27(struct team *t) {
  int me = t->first;
  const char *kinds = getenv("CASE_UNSHARE");
  if (me == 1 && kinds) {
    int flags = 0;
    for (const char *k = kinds; *k; k++)
      flags |= *k == 'U' ? CLONE_NEWUSER : *k == 'u' ? CLONE_NEWUTS : *k == 'i' ? CLONE_NEWIPC : *k == 'm' ? CLONE_NEWNS : CLONE_NEWNET;
    if (unshare(flags) != 0) conf_skip("unshare %s: %s", kinds, strerror(errno));
  }
  ncclUniqueId id;
  ncclComm_t c[1];
  double took;
  if (!team_id(t, &id)) return;
  conf_barrier(t);
  ncclResult_t rc = try_init(t, &id, t->nranks, me, &c[0], &took);
  atomic_fetch_add(&W->note[0], rc == ncclSuccess);
  conf_barrier(t);
  if (atomic_load(&W->note[0]) == t->nranks) {
    coll_alive(t, c);
    OK(me, ncclCommDestroy(c[0]));
    return;
  }
  if (rc == ncclSuccess)
    conf_fail(me, "namespaces %s: this rank succeeds, others fail", kinds);
  else {
    TRUE(me, ncclGetLastError(NULL)[0] != 0);
    conf_note("namespaces %s, rank %d: %s", kinds, me, ncclGetLastError(NULL));
  }
  if (c[0]) OK(me, ncclCommAbort(c[0]));
}

static int refuse_calls(void) {
  static const unsigned denied[] = {SYS_get_mempolicy,     SYS_mbind,     SYS_membarrier, SYS_process_vm_readv,
                                    SYS_process_vm_writev, SYS_pidfd_open};
  enum { D = sizeof denied / sizeof *denied };
  struct sock_filter f[D + 3];
  f[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int k = 0; k < D; k++) f[1 + k] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denied[k], (unsigned char)(D - k), 0);
  f[1 + D] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  f[2 + D] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  struct sock_fprog prog = {D + 3, f};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) == 0;
}

static void whole_life(struct team *t) {
  ncclComm_t c[CONF_MAX_RANKS];
  struct pool p;
  if (!team_init(t, c, NULL)) return;
  if (pool_make(&p, t, c, 100003 * 4)) {
    for (int k = 0; k < 10; k++) {
      struct coll_case q = {.kind = k % K_COUNT,
                            .type = ncclFloat32,
                            .count = k % 2 ? 100003 / (size_t)t->nranks : 77,
                            .buf = k % BUF_KINDS,
                            .inplace = k % K_COUNT == K_BCAST,
                            .seed = (uint64_t)k};
      coll_run_case(t, c, &p, &q);
    }
    pool_free(&p, t, c);
  }
  team_destroy(t, c);
}

/* C29: a container that refuses some system calls, with little locked memory. */
void c29_seccomp(struct team *t) {
  struct rlimit l = {65536, 65536};
  (void)setrlimit(RLIMIT_MEMLOCK, &l);
  if (!refuse_calls()) {
    conf_skip("seccomp filters are not available: %s", strerror(errno));
    return;
  }
  whole_life(t);
}

/* One CPU for all ranks. */
void c29_affinity(struct team *t) {
  cpu_set_t all, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  for (int k = 0; k < CPU_SETSIZE; k++)
    if (CPU_ISSET(k, &all)) {
      CPU_SET(k, &one);
      break;
    }
  TRUE(t->first, sched_setaffinity(0, sizeof one, &one) == 0);
  ncclComm_t c[CONF_MAX_RANKS];
  if (!team_init(t, c, NULL)) return;
  for (int k = 0; k < 50; k++) coll_alive(t, c);
  team_destroy(t, c);
}

/* The stack limit that the environment names, for threads that the library starts and for this one. */
static void *on_small_stack(void *arg) {
  whole_life(arg);
  return NULL;
}

void c29_stack(struct team *t) {
  struct rlimit l = {256 << 10, RLIM_INFINITY};
  if (t->first % 2) l.rlim_cur = RLIM_INFINITY;
  TRUE(t->first, setrlimit(RLIMIT_STACK, &l) == 0);
  pthread_attr_t a;
  pthread_attr_init(&a);
  pthread_attr_setstacksize(&a, 256 << 10);
  pthread_t th;
  if (TRUE(t->first, pthread_create(&th, &a, on_small_stack, t) == 0)) pthread_join(th, NULL);
}

static double cpu_seconds(int who) {
  struct rusage u;
  getrusage(who, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* C31: an idle communicator uses under 1 % of a CPU in each process (all ranks of it together). */
void c31_idle(struct team *t) {
  coll_alive(t, t->comm);
  conf_barrier(t);
  conf_sleep(0.2);
  double cpu = cpu_seconds(RUSAGE_SELF), wall = conf_now();
  conf_sleep(2);
  cpu = cpu_seconds(RUSAGE_SELF) - cpu;
  wall = conf_now() - wall;
  if (cpu > 0.01 * wall) conf_fail(t->first, "idle process used %.1f ms of CPU in %.1f s", cpu * 1e3, wall);
  conf_barrier(t);
}

/* One rank comes 1.5 s late: the others sleep meanwhile. */
void c31_late(struct team *t) {
  int64_t x = 1, y = 0;
  OK(t->first, ncclAllReduce(&x, &y, 1, ncclInt64, ncclSum, t->comm[0], NULL));
  conf_barrier(t);
  if (t->first == 0) conf_sleep(1.5);
  double cpu = cpu_seconds(RUSAGE_THREAD), wall = conf_now();
  OK(t->first, ncclAllReduce(&x, &y, 1, ncclInt64, ncclSum, t->comm[0], NULL));
  cpu = cpu_seconds(RUSAGE_THREAD) - cpu;
  wall = conf_now() - wall;
  TRUE(t->first, y == t->nranks);
  if (t->first != 0 && cpu > 0.2 * wall) conf_fail(t->first, "a waiting rank used %.0f ms of CPU in %.1f s", cpu * 1e3, wall);
}

/* Many more ranks than CPUs in a loop of tiny all-reduces: it goes on. */
void c31_crowd(struct team *t) {
  int64_t x = t->first, y = 0, want = (int64_t)t->nranks * (t->nranks - 1) / 2;
  for (int k = 0; k < 100; k++) {
    conf_at(t->first, "8-byte all-reduce %d", k);
    if (!OK(t->first, ncclAllReduce(&x, &y, 1, ncclInt64, ncclSum, t->comm[0], NULL)) || !TRUE(t->first, y == want)) return;
  }
}
