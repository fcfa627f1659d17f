/* windows.c: C43 wrong handles and offsets, C46 registration while operations run. */
#include "cases.h"

static int window(struct team *t, ncclComm_t *c, size_t bytes, void **mem, ncclWindow_t *win) {
  *win = NULL;
  return OK(t->first, ncclMemAlloc(mem, bytes)) && OK(t->first, ncclCommWindowRegister(c[0], *mem, bytes, win, NCCL_WIN_COLL_SYMMETRIC)) &&
         TRUE(t->first, *win != NULL);
}

/* A window of A used on B, handles of the wrong kind, a put past the end: refused, nothing written, all goes on. */
void c43(struct team *t) {
  int me = t->first, peer = (me + 1) % t->nranks;
  ncclComm_t b[CONF_MAX_RANKS];
  void *ma, *mb, *reg = NULL, *user = NULL;
  ncclWindow_t wa, wb;
  static char plain[8192];
  if (!team_init(t, b, NULL) || !window(t, t->comm, 8192, &ma, &wa) || !window(t, b, 8192, &mb, &wb)) return;
  memset(ma, 0x11, 8192);
  memset(mb, 0x22, 8192);
  OK(me, ncclCommRegister(t->comm[0], plain, sizeof plain, &reg));
  conf_barrier(t);
  RC(me, ncclInvalidArgument, ncclPutSignal(mb, 4, ncclInt32, peer, wa, 0, 0, 0, 0, b[0], NULL));
  RC(me, ncclInvalidArgument, ncclPutSignal(ma, 4, ncclInt32, peer, wb, 0, 0, 0, 0, t->comm[0], NULL));
  RC(me, ncclInvalidArgument, ncclPutSignal(mb, 4, ncclInt32, peer, wa, 0, 0, 0, 0, t->comm[0], NULL)); /* source of another */
  RC(me, ncclInvalidArgument, ncclPutSignal(ma, 16, ncclInt8, peer, wa, 8192 - 8, 0, 0, 0, t->comm[0], NULL));
  RC(me, ncclInvalidArgument, ncclPutSignal(ma, SIZE_MAX / 4 + 2, ncclInt32, peer, wa, 0, 0, 0, 0, t->comm[0], NULL));
  RC(me, ncclInvalidArgument, ncclWinGetUserPtr(b[0], wa, &user));
  RC(me, ncclInvalidArgument, ncclCommWindowDeregister(b[0], wa));
  RC(me, ncclInvalidUsage, ncclCommDeregister(t->comm[0], wa));
  if (reg) RC(me, ncclInvalidArgument, ncclCommWindowDeregister(t->comm[0], (ncclWindow_t)reg));
  conf_barrier(t);
  for (int j = 0; j < 8192; j++)
    if (!TRUE(me, ((char *)ma)[j] == 0x11 && ((char *)mb)[j] == 0x22)) break;
  OK(me, ncclCommDeregister(t->comm[0], reg));
  OK(me, ncclCommWindowDeregister(t->comm[0], wa));
  OK(me, ncclCommWindowDeregister(b[0], wb));
  RC(me, ncclInvalidArgument, ncclCommWindowDeregister(t->comm[0], wa)); /* twice */
  OK(me, ncclMemFree(ma));
  OK(me, ncclMemFree(mb));
  coll_alive(t, t->comm);
  team_destroy(t, b);
}

struct looper {
  int rank;
  ncclComm_t comm;
  atomic_int stop, loops;
};

static void *register_loop(void *arg) {
  struct looper *l = arg;
  while (!atomic_load(&l->stop)) {
    char *mem = malloc(20000);
    void *h = NULL, *p = NULL;
    OK(l->rank, ncclCommRegister(l->comm, mem, 20000, &h));
    OK(l->rank, ncclCommDeregister(l->comm, h));
    free(mem);
    OK(l->rank, ncclMemAlloc(&p, 20000));
    OK(l->rank, ncclMemFree(p));
    atomic_fetch_add(&l->loops, 1);
  }
  return NULL;
}

/* A second thread registers other memory and frees it all the time; the all-gathers stay right. */
void c46_other(struct team *t) {
  struct pool p;
  struct looper l = {.rank = t->first, .comm = t->comm[0]};
  pthread_t th;
  if (!pool_make(&p, t, t->comm, 3000 * 4 * (size_t)t->nranks)) return;
  if (!TRUE(t->first, pthread_create(&th, NULL, register_loop, &l) == 0)) return;
  for (int k = 0; k < 60; k++) {
    struct coll_case c = {.kind = K_ALLGATHER, .type = ncclFloat32, .count = 3000, .buf = k % BUF_KINDS, .seed = (uint64_t)k};
    if (!coll_run_case(t, t->comm, &p, &c)) break;
  }
  while (atomic_load(&l.loops) == 0) conf_sleep(0.001);
  atomic_store(&l.stop, 1);
  pthread_join(th, NULL);
  pool_free(&p, t, t->comm);
}

/* Deregistering a window that a running operation uses waits for the operation or is refused; the result is right. */
void c46_used(struct team *t) {
  enum { N = 200003 };
  int me = t->first;
  void *mem;
  ncclWindow_t win;
  cudaStream_t s;
  size_t bytes = (N * sizeof(int32_t) + 4095) & ~(size_t)4095;
  if (!OK(me, gcclStreamCreate(&s))) return;
  for (int round = 0; round < 6; round++) {
    if (!window(t, t->comm, bytes, &mem, &win)) return;
    int32_t *x = mem;
    for (int j = 0; j < N; j++) x[j] = j % 1000;
    OK(me, ncclAllReduce(x, x, N, ncclInt32, ncclSum, t->comm[0], s));
    conf_at(me, "ncclCommWindowDeregister of a window in use");
    ncclResult_t rc = ncclCommWindowDeregister(t->comm[0], win);
    conf_rc_any(me, rc, "ncclCommWindowDeregister of a window in use", 2, ncclSuccess, ncclInvalidUsage);
    OK(me, gcclStreamSynchronize(s));
    for (int j = 0; j < N; j++)
      if (x[j] != j % 1000 * t->nranks) {
        conf_fail(me, "round %d: ncclAllReduce int32 sum count %d: index %d: want %d, got %d", round, N, j, j % 1000 * t->nranks, x[j]);
        break;
      }
    if (rc != ncclSuccess) OK(me, ncclCommWindowDeregister(t->comm[0], win));
    conf_barrier(t);
    OK(me, ncclMemFree(mem));
  }
  OK(me, gcclStreamDestroy(s));
}
