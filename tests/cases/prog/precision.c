/* precision.c: C19, sums of many small floats: within one rounding of an fp32 sum, and the same bits always. The
 * environment has GCCL_DETERMINISTIC=1. */
#include <math.h>

#include "cases.h"
#include "numfmt.h"

enum { N = 257, BIG = 4000, AT = 1000 };

/* 1, then 2^-9 from most ranks, and pairs that cancel. */
static long double contribution(int rank, size_t j) {
  if (rank == 0) return 1;
  if (rank % 4 == 1) return 100.0L * (long double)(j % 3 + 1);
  if (rank % 4 == 2) return -100.0L * (long double)(j % 3 + 1);
  return 0x1p-9L * (long double)(1 + (rank + (int)j) % 3);
}

static void sum_type(struct team *t, ncclDataType_t type, uint64_t *first) {
  static __thread unsigned char in[BIG * 4], out[BIG * 4], again[BIG * 4];
  size_t es = num_size(type);
  int me = t->first;
  for (size_t j = 0; j < N; j++) num_store(type, in, j, num_encode(type, contribution(me, j)));
  if (!OK(me, ncclAllReduce(in, out, N, type, ncclSum, t->comm[0], NULL))) return;
  for (size_t j = 0; j < N; j++) {
    long double s = 0, mag = 0;
    for (int r = 0; r < t->nranks; r++) {
      long double x = num_decode(type, num_encode(type, contribution(r, j)));
      s += x;
      mag += fabsl(x);
    }
    long double b = ldexpl(mag * t->nranks, -24);
    uint64_t lo = num_encode(type, s - b), hi = num_encode(type, s + b), got = num_load(type, out, j);
    if (oracle_match(type, got, lo, hi)) continue;
    conf_fail(me, "sum of %d %s at index %zu: want %Lg to %Lg, got %Lg", t->nranks, num_name(type), j, num_decode(type, lo),
              num_decode(type, hi), num_decode(type, got));
    break;
  }
  uint64_t h = 0;
  for (size_t j = 0; j < N * es; j++) h = h * 1099511628211u + out[j];
  W->hash[t->next_hash++][me] = h;
  if (*first == 0) *first = h;
  TRUE(me, h == *first); /* also after other communicators were made and used */
  for (int k = 0; k < 10; k++) {
    OK(me, ncclAllReduce(in, again, N, type, ncclSum, t->comm[0], NULL));
    if (!TRUE(me, memcmp(out, again, N * es) == 0)) break;
  }
  /* The same elements in the middle of a larger buffer. */
  memmove(in + AT * es, in, N * es);
  for (size_t j = 0; j < BIG; j++)
    if (j < AT || j >= AT + N) num_store(type, in, j, num_one(type, 1));
  OK(me, ncclAllReduce(in, again, BIG, type, ncclSum, t->comm[0], NULL));
  TRUE(me, memcmp(out, again + AT * es, N * es) == 0);
}

void c19(struct team *t) {
  static const ncclDataType_t types[] = {ncclBfloat16, ncclFloat16, ncclFloat32};
  uint64_t first[3] = {0};
  for (int pass = 0; pass < 2; pass++) {
    for (int k = 0; k < 3; k++) sum_type(t, types[k], &first[k]);
    if (pass) break;
    ncclComm_t other[CONF_MAX_RANKS];
    if (!team_init(t, other, NULL)) return;
    coll_alive(t, other);
    team_destroy(t, other);
  }
  coll_compare_hashes(t);
}
