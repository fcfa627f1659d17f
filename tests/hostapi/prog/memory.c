/* memory.c: allocation, registration, suspend and resume, memory figures. */
#include "suites.h"

static void allocation(int r) {
  static const size_t sizes[] = {1, 4095, 4096, 65537, 3 << 20};
  struct buf b[5];
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < 5; k++) {
      if (!buf_nccl(&b[k], r, sizes[k])) return;
      TRUE(r, (uintptr_t)b[k].at % 4096 == 0);
      memset(b[k].copy, r + k, sizes[k]);
      buf_put(&b[k], 0, sizes[k]);
    }
    for (int k = 0; k < 5; k++) {
      buf_get(&b[k], 0, sizes[k]);
      TRUE(r, b[k].copy[sizes[k] - 1] == (unsigned char)(r + k));
    }
    for (int k = 4; k >= 0; k--) buf_free(&b[(k + round) % 5], r);
  }
  OK(r, ncclMemFree(NULL));
  TRUE(r, ncclMemAlloc(NULL, 16) != ncclSuccess);
  int local;
  void *p = NULL;
  RC(r, ncclInvalidArgument, ncclMemFree(&local));
  if (OK(r, ncclMemAlloc(&p, 8192))) {
    RC(r, ncclInvalidArgument, ncclMemFree((char *)p + 4096));
    OK(r, ncclMemFree(p));
  }
  void *huge = &local;
  TRUE(r, ncclMemAlloc(&huge, (size_t)1 << 60) != ncclSuccess);
  TRUE(r, huge == &local);
}

/* Only while no other thread allocates: the address of a freed block may be somebody else's next block. */
static void freed_twice(int r) {
  void *p;
  if (!OK(r, ncclMemAlloc(&p, 8192))) return;
  OK(r, ncclMemFree(p));
  RC(r, ncclInvalidArgument, ncclMemFree(p));
}

static void registration(struct team *t) {
  enum { BYTES = 70000 };
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    struct buf b;
    if (!buf_new(&b, r, BYTES)) return;
    unsigned char *buf = b.at;
    void *h[3] = {0}, *none = NULL;
    OK(r, ncclCommRegister(t->comm[i], buf, BYTES, &h[0]));
    OK(r, ncclCommRegister(t->comm[i], buf + 5000, 1000, &h[1])); /* inside the first */
    OK(r, ncclCommRegister(t->comm[i], buf, BYTES, &h[2]));
    OK(r, ncclCommDeregister(t->comm[i], h[1]));
    OK(r, ncclCommDeregister(t->comm[i], h[0]));
    OK(r, ncclCommDeregister(t->comm[i], h[2]));
    OK(r, ncclCommDeregister(t->comm[i], NULL));
    RC(r, ncclInvalidUsage, ncclCommDeregister(t->comm[i], buf));
    RC(r, ncclInvalidArgument, ncclCommRegister(NULL, buf, BYTES, &none));
    RC(r, ncclInvalidArgument, ncclCommDeregister(NULL, buf));
    buf_free(&b, r);
  }
  /* Left-over registrations go with the communicator. */
  ncclComm_t c[CONF_MAX_RANKS];
  struct buf kept[CONF_MAX_RANKS];
  if (!team_init(t, c, NULL)) return;
  for (int i = 0; i < t->nlocal; i++) {
    void *h;
    if (!buf_new(&kept[i], t->first + i, 8192)) return;
    OK(t->first + i, ncclCommRegister(c[i], kept[i].at, 8192, &h));
  }
  coll_alive(t, c);
  team_destroy(t, c);
  for (int i = 0; i < t->nlocal; i++) buf_free(&kept[i], t->first + i);
}

static void figures(struct team *t) {
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    uint64_t v[4] = {0};
    for (int k = 0; k < 4; k++) OK(r, ncclCommMemStats(t->comm[i], (ncclCommMemStat_t)k, &v[k]));
    TRUE(r, v[ncclStatGpuMemTotal] == v[ncclStatGpuMemSuspend] + v[ncclStatGpuMemPersist]);
    TRUE(r, v[ncclStatGpuMemSuspended] == 0);
    RC(r, ncclInvalidArgument, ncclCommMemStats(t->comm[i], ncclStatGpuMemTotal, NULL));
    RC(r, ncclInvalidArgument, ncclCommMemStats(t->comm[i], (ncclCommMemStat_t)4, &v[0]));
    RC(r, ncclInvalidArgument, ncclCommMemStats(t->comm[i], (ncclCommMemStat_t)-1, &v[0]));
    RC(r, ncclInvalidArgument, ncclCommMemStats(NULL, ncclStatGpuMemTotal, &v[0]));
  }
}

static void suspension(struct team *t) {
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++) RC(t->first + i, ncclInvalidUsage, ncclCommResume(t->comm[i]));
  EACH(t, "ncclCommSuspend(0)", ncclCommSuspend(t->comm[i], 0)); /* does nothing */
  coll_alive(t, t->comm);
  for (int round = 0; round < 2; round++) {
    conf_barrier(t);
    EACH(t, "ncclCommSuspend", ncclCommSuspend(t->comm[i], NCCL_SUSPEND_MEM));
    for (int i = 0; i < t->nlocal; i++) {
      uint64_t on = 9;
      OK(t->first + i, ncclCommMemStats(t->comm[i], ncclStatGpuMemSuspended, &on));
      TRUE(t->first + i, on == 1);
      RC(t->first + i, ncclInvalidUsage, ncclCommSuspend(t->comm[i], NCCL_SUSPEND_MEM));
    }
    conf_barrier(t);
    EACH(t, "ncclCommResume", ncclCommResume(t->comm[i]));
    coll_alive(t, t->comm);
    figures(t);
  }
  RC(t->first, ncclInvalidArgument, ncclCommSuspend(NULL, NCCL_SUSPEND_MEM));
  RC(t->first, ncclInvalidArgument, ncclCommResume(NULL));
}

static void counters(struct team *t) {
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    gcclCommStats_t s = GCCL_COMM_STATS_INITIALIZER, bad = GCCL_COMM_STATS_INITIALIZER;
    OK(r, gcclCommGetStats(t->comm[i], &s));
    TRUE(r, s.calls > 0 && s.bytes > 0 && s.size == sizeof s);
    bad.magic = 3;
    RC(r, ncclInvalidArgument, gcclCommGetStats(t->comm[i], &bad));
    bad = (gcclCommStats_t)GCCL_COMM_STATS_INITIALIZER;
    bad.size = 4;
    RC(r, ncclInvalidArgument, gcclCommGetStats(t->comm[i], &bad));
    RC(r, ncclInvalidArgument, gcclCommGetStats(t->comm[i], NULL));
    RC(r, ncclInvalidArgument, gcclCommGetStats(NULL, &s));
  }
}

void suite_memory(struct team *t) {
  for (int i = 0; i < t->nlocal; i++) allocation(t->first + i);
  conf_barrier(t);
  if (t->first == 0) freed_twice(0);
  conf_barrier(t);
  coll_alive(t, t->comm);
  registration(t);
  figures(t);
  counters(t);
  suspension(t);
  coll_alive(t, t->comm);
}
