/* many.c: C09, many communicators: nothing is left behind, and subsets made at once do not block each other. */
#include "cases.h"

struct held {
  int fds;
  long threads, rss;
};

static struct held now(void) { return (struct held){conf_open_fds(), conf_proc_status("Threads"), conf_proc_status("VmRSS")}; }

void c09_cycles(struct team *t) {
  enum { CYCLES = 150, WARM = 20 };
  ncclComm_t c[CONF_MAX_RANKS];
  struct held warm = {0}, end;
  for (int k = 0; k < CYCLES; k++) {
    if (k == WARM) {
      conf_barrier(t);
      warm = now();
      conf_barrier(t);
    }
    if (!team_init(t, c, NULL)) return;
    coll_alive(t, c);
    team_destroy(t, c);
  }
  conf_barrier(t);
  conf_sleep(0.3); /* background closing may lag a little behind destroy */
  end = now();
  conf_barrier(t);
  if (end.fds > warm.fds + 4) conf_fail(t->first, "descriptors went from %d to %d in %d cycles", warm.fds, end.fds, CYCLES - WARM);
  if (end.threads > warm.threads + 4)
    conf_fail(t->first, "threads went from %ld to %ld in %d cycles", warm.threads, end.threads, CYCLES - WARM);
  if (end.rss > warm.rss + 16 * 1024) conf_fail(t->first, "memory went from %ld to %ld KiB in %d cycles", warm.rss, end.rss, CYCLES - WARM);
}

enum { SUBSETS = 12, ROUNDS = 4 };

struct member {
  int rank, subset, size, index;
};

static void *join_subset(void *arg) {
  struct member *m = arg;
  ncclComm_t c = NULL;
  if (!OK(m->rank, ncclCommInitRank(&c, m->size, W->id[m->subset], m->index))) return NULL;
  int64_t want = (int64_t)m->size * (m->size - 1) / 2;
  TRUE(m->rank, sum_of(m->rank, c, m->index) == want);
  OK(m->rank, ncclCommDestroy(c));
  return NULL;
}

/* Subset k holds rank r when bit r of the mask is set; each rank joins all its subsets at once, a thread for each. */
void c09_subsets(struct team *t) {
  for (int round = 0; round < ROUNDS; round++) {
    if (t->first == 0)
      for (int k = 0; k < SUBSETS; k++)
        if (!OK(0, ncclGetUniqueId(&W->id[k]))) return;
    conf_barrier(t);
    pthread_t th[SUBSETS];
    struct member m[SUBSETS];
    int n = 0;
    for (int k = 0; k < SUBSETS; k++) {
      unsigned mask = (unsigned)(k + 1 + round) % (1u << t->nranks);
      if (!(mask >> t->first & 1)) continue;
      m[n] = (struct member){t->first, k, __builtin_popcount(mask), __builtin_popcount(mask & ((1u << t->first) - 1))};
      if (pthread_create(&th[n], NULL, join_subset, &m[n]))
        conf_fail(t->first, "pthread_create failed");
      else
        n++;
    }
    for (int k = 0; k < n; k++) pthread_join(th[k], NULL);
    conf_barrier(t);
  }
}

/* A communicator of one rank holds less than 1 MiB before use. */
void c09_footprint(struct team *t) {
  int me = t->first;
  ncclUniqueId id;
  ncclComm_t c[20];
  for (int k = 0; k < 20; k++) {
    if (!OK(me, ncclGetUniqueId(&id)) || !OK(me, ncclCommInitRank(&c[k], 1, id, 0))) return;
    gcclCommStats_t s = GCCL_COMM_STATS_INITIALIZER;
    uint64_t total = 0;
    OK(me, gcclCommGetStats(c[k], &s));
    OK(me, ncclCommMemStats(c[k], ncclStatGpuMemTotal, &total));
    if (s.sharedBytes + s.privateBytes >= 1 << 20 || total >= 1 << 20)
      conf_fail(me, "one rank: %llu shared, %llu private, %llu total bytes before use", (unsigned long long)s.sharedBytes,
                (unsigned long long)s.privateBytes, (unsigned long long)total);
  }
  for (int k = 0; k < 20; k++) OK(me, ncclCommDestroy(c[k]));
}
