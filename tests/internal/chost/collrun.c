/* collrun.c: runs a case on all local ranks, and compares results over ranks. */
#include "coll.h"
#include "numfmt.h"

static uint64_t hash_bytes(const unsigned char *p, size_t n) {
  uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, 64 bits */
  for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3u;
  return h;
}

int coll_run_case(struct team *t, const ncclComm_t *comm, struct pool *p, const struct coll_case *c) {
  struct coll_run run[CONF_MAX_RANKS];
  char text[256];
  int ok = 1, grouped = t->nlocal > 1 || c->kind == K_SENDRECV;
  coll_text(c, text, sizeof text);
  for (int i = 0; i < t->nlocal; i++) {
    conf_at(t->first + i, "%s", text);
    coll_prepare(c, t, p, i, &run[i]);
  }
  if (grouped) ok &= OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    conf_at(r, "call of %s", text);
    ncclResult_t rc = coll_call(c, comm[i], t->nranks, r, &run[i], c->stream ? p->stream[i] : mem_null);
    if (rc != ncclSuccess)
      ok = conf_fail(r, "%s: got %d (%s); last error \"%s\"", text, rc, ncclGetErrorString(rc), ncclGetLastError(NULL));
  }
  if (grouped) {
    conf_at(t->first, "group end of %s", text);
    ncclResult_t rc = ncclGroupEnd();
    if (rc != ncclSuccess) ok = conf_fail(t->first, "%s: ncclGroupEnd got %d; last error \"%s\"", text, rc, ncclGetLastError(NULL));
  }
  for (int i = 0; i < t->nlocal; i++) {
    conf_at(t->first + i, "stream of %s", text);
    mem_rank(t->first + i);
    ok &= conf_rc(t->first + i, ncclSuccess, mem_stream_sync(c->stream ? p->stream[i] : mem_null), "synchronize", text, 0);
  }
  int slot = t->next_hash++ % CONF_MAX_HASHES;
  for (int i = 0; i < t->nlocal && ok; i++) {
    conf_at(t->first + i, "check of %s", text);
    ok &= coll_check(c, t, i, &run[i]);
    if (c->kind == K_ALLREDUCE) W->hash[slot][t->first + i] = hash_bytes(run[i].recv, c->count * num_size(c->type));
  }
  return ok;
}

void coll_compare_hashes(struct team *t) {
  conf_barrier(t);
  if (t->first == 0 && atomic_load(&W->failures) == 0)
    for (int s = 0; s < t->next_hash && s < CONF_MAX_HASHES; s++)
      for (int r = 1; r < t->nranks; r++)
        if (W->hash[s][r] != W->hash[s][0]) {
          conf_fail(r, "all-reduce number %d: bits differ from rank 0", s);
          break;
        }
  conf_barrier(t);
}

int coll_alive(struct team *t, const ncclComm_t *comm) {
  enum { N = 17 };
  struct buf buf[CONF_MAX_RANKS];
  int ok = 1, size = 0, rank = 0, calls = 0;
  for (int i = 0; i < t->nlocal; i++) {
    if (!comm[i]) continue;
    calls++;
    ok &= buf_new(&buf[i], t->first + i, 2 * N * sizeof(int32_t)) && OK(t->first + i, ncclCommUserRank(comm[i], &rank));
    for (int j = 0; j < N && ok; j++) {
      ((int32_t *)buf[i].copy)[j] = (rank + 1) * 1000 + j;
      ((int32_t *)buf[i].copy)[N + j] = -1;
    }
    if (ok) buf_put(&buf[i], 0, buf[i].bytes);
  }
  if (calls > 1) OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++)
    if (comm[i])
      ok &= OK(t->first + i, ncclAllReduce(buf[i].at, buf[i].at + N * sizeof(int32_t), N, ncclInt32, ncclSum, comm[i], mem_null));
  if (calls > 1) ok &= OK(t->first, ncclGroupEnd());
  for (int i = 0; i < t->nlocal; i++) {
    if (!comm[i]) continue;
    mem_rank(t->first + i);
    ok &= OK(t->first + i, mem_stream_sync(mem_null)) && OK(t->first + i, ncclCommCount(comm[i], &size));
    if (ok) buf_get(&buf[i], 0, buf[i].bytes);
    for (int j = 0; j < N && ok; j++) {
      int32_t want = size * (size + 1) / 2 * 1000 + size * j, got = ((int32_t *)buf[i].copy)[N + j];
      if (got != want)
        ok = conf_fail(t->first + i, "ncclAllReduce int32 sum count %d on a communicator of %d: index %d: want %d, got %d", N, size, j,
                       want, got);
    }
    buf_free(&buf[i], t->first + i);
  }
  return ok;
}
