/* pool.c: buffers of each kind for all local ranks. */
#include "coll.h"

const char *const buf_names[BUF_KINDS] = {"malloc", "memalloc", "window", "symmetric", "mixed"};

static size_t pool_bytes(const struct pool *p) { return 2 * p->half; }

int pool_make(struct pool *p, struct team *t, const ncclComm_t *comm, size_t half) {
  memset(p, 0, sizeof *p);
  p->half = (half + 4 * GUARD_BYTES + 4095) & ~(size_t)4095;
  int ok = 1;
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    ok &= buf_new(&p->base[i][BUF_MALLOC], r, pool_bytes(p)) && buf_new(&p->scalar[i], r, sizeof(uint64_t));
    for (int k = BUF_ALLOC; k <= BUF_SYMMETRIC; k++) ok &= buf_nccl(&p->base[i][k], r, pool_bytes(p));
    ok &= OK(r, mem_stream_create(&p->stream[i]));
  }
  for (int k = BUF_WINDOW; k <= BUF_SYMMETRIC; k++) {
    team_start(t);
    for (int i = 0; i < t->nlocal; i++)
      ok &= OK(t->first + i, ncclCommWindowRegister(comm[i], p->base[i][k].at, pool_bytes(p), &p->win[i][k],
                                                    k == BUF_SYMMETRIC ? NCCL_WIN_COLL_SYMMETRIC : NCCL_WIN_DEFAULT));
    ok &= team_end(t, "ncclCommWindowRegister");
    for (int i = 0; i < t->nlocal; i++) ok &= TRUE(t->first + i, p->win[i][k] != NULL);
  }
  p->windows = ok;
  return ok;
}

void pool_free(struct pool *p, struct team *t, const ncclComm_t *comm) {
  for (int i = 0; i < t->nlocal; i++) {
    OK(t->first + i, mem_stream_sync(p->stream[i]));
    OK(t->first + i, mem_stream_destroy(p->stream[i]));
  }
  conf_barrier(t); /* a window goes only when no rank uses it any more */
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    for (int k = BUF_WINDOW; k <= BUF_SYMMETRIC; k++) OK(r, ncclCommWindowDeregister(comm[i], p->win[i][k]));
    for (int k = BUF_MALLOC; k <= BUF_SYMMETRIC; k++) buf_free(&p->base[i][k], r);
    buf_free(&p->scalar[i], r);
  }
}
