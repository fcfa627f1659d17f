/* Ranks as threads run a long random row of operations with nothing between them but the executor's own words, so that
 * ThreadSanitizer sees whether every access to a buffer, a record and a slot is ordered by them; results are checked.
 *
 * usage: tsan PLANS SEED OPS. The plans of all collectives, methods and roots for one number of ranks come from the Go test.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../world.h"

#include "../../../small.h"

enum { MAX_RANKS = 8, MAX_METHODS = 16, MAX_COUNT = 3000, EAGER = 1024, STAGE = 8192 };

typedef struct { uint32_t coll, method, ranks, rank, root, size, pad[2]; } header; /* of a plan in the file; keeps what follows aligned */

static int n;
static int methods[GCCL_NUM_COLLS];
static gccl_lowered *plans[GCCL_NUM_COLLS][MAX_METHODS][MAX_RANKS][MAX_RANKS]; /* method, root, rank */
static gccl_world *world;
static int32_t *near_buf[MAX_RANKS][2], *far_buf[MAX_RANKS][2], *window[MAX_RANKS];
static uint64_t seed;
static int nops, failures;

static void load(const char *path) {
  FILE *f = fopen(path, "rb");
  header h;
  if (!f) exit(2);
  while (fread(&h, sizeof h, 1, f) == 1) {
    if (h.coll >= GCCL_NUM_COLLS || h.method >= MAX_METHODS || h.rank >= MAX_RANKS || h.root >= MAX_RANKS) exit(2);
    gccl_lowered *p = malloc(h.size);
    if (!p || fread(p, h.size, 1, f) != 1) exit(2);
    n = (int)h.ranks;
    plans[h.coll][h.method][h.root][h.rank] = p;
    if (methods[h.coll] <= (int)h.method) methods[h.coll] = (int)h.method + 1;
  }
  fclose(f);
}

static uint64_t next(uint64_t *s) { /* splitmix64, Steele, Lea and Flood 2014 */
  uint64_t z = *s += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

static int32_t element(int op, int rank, uint64_t k) { return (int32_t)((unsigned)op * 31u + (unsigned)rank * 1003u + (unsigned)k * 7u) & 0xffff; }

static void expect(int me, int op, int k, int32_t got, int32_t want, const char *what) {
  if (got == want) return;
  if (__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) < 10)
    fprintf(stderr, "rank %d of %d, operation %d (%s): element %d is %d instead of %d\n", me, n, op, what, k, got, want);
}

static void ended(int me, int op, int rc) {
  if (rc == 0) return;
  fprintf(stderr, "rank %d, operation %d: code %d: %s\n", me, op, rc, gccl_world_cause(world, me));
  exit(1);
}

static void collective(int me, int op, uint64_t *rng, uint64_t *own) {
  struct ncclComm *c = gccl_world_comm(world, me);
  int coll = (int)(next(rng) % GCCL_SEND_RECV), method = (int)(next(rng) % (unsigned)methods[coll]), root = (int)(next(rng) % (unsigned)n);
  int count = next(rng) % 3 == 0 ? 1 + (int)(next(rng) % 12) : 1 + (int)(next(rng) % MAX_COUNT), small = next(rng) % 2 == 0;
  gccl_lowered *p = plans[coll][method][root][me];
  if (!p) p = plans[coll][method][root = 0][me];
  if (p->eager && count > (int)(EAGER / sizeof(int32_t) / p->send_parts)) count = 1 + count % (int)(EAGER / sizeof(int32_t) / p->send_parts);
  int32_t *send = next(own) % 2 ? near_buf[me][0] : far_buf[me][0], *recv = next(own) % 2 ? near_buf[me][1] : far_buf[me][1];
  int parts = coll == GCCL_REDUCE_SCATTER || coll == GCCL_SCATTER || coll == GCCL_ALL_TO_ALL ? n : 1;
  for (int k = 0; k < count * parts; k++) send[k] = element(op, me, (uint64_t)k);
  gccl_op x = {.comm = c, .kind = GCCL_DO_COLL, .coll = (uint8_t)coll, .dtype = 2, .red = GCCL_RED_SUM, .cls = 0, .root = root, .send = send, .recv = recv,
               .count = (uint64_t)count, .plan = p, .esize = 4};
  if (coll == GCCL_ALL_REDUCE && p->eager && count * 4 <= GCCL_SMALL_BYTES && small)
    ended(me, op, gccl_small_all_reduce(&x, gccl_order_take(c)));
  else
    ended(me, op, gccl_drive_one(&x, gccl_order_take(c)));
  const char *what = p->method;
  for (int k = 0; k < count; k++) {
    int32_t sum = 0, part = 0;
    for (int r = 0; r < n; r++) sum += element(op, r, (uint64_t)k), part += element(op, r, (uint64_t)(me * count + k));
    switch (coll) {
    case GCCL_ALL_REDUCE: expect(me, op, k, recv[k], sum, what); break;
    case GCCL_REDUCE:
      if (me == root) expect(me, op, k, recv[k], sum, what);
      break;
    case GCCL_REDUCE_SCATTER: expect(me, op, k, recv[k], part, what); break;
    case GCCL_BROADCAST: expect(me, op, k, recv[k], element(op, root, (uint64_t)k), what); break;
    case GCCL_SCATTER: expect(me, op, k, recv[k], element(op, root, (uint64_t)(me * count + k)), what); break;
    case GCCL_ALL_GATHER:
    case GCCL_GATHER:
      for (int r = 0; r < n && (coll == GCCL_ALL_GATHER || me == root); r++) expect(me, op, k, recv[r * count + k], element(op, r, (uint64_t)k), what);
      break;
    default:
      for (int r = 0; r < n; r++) expect(me, op, k, recv[r * count + k], element(op, r, (uint64_t)(me * count + k)), what);
    }
  }
}

/* A shift by some ranks, as one batch: both messages progress together. */
static void messages(int me, int op, uint64_t *rng, uint64_t *own) {
  struct ncclComm *c = gccl_world_comm(world, me);
  int by = 1 + (int)(next(rng) % (unsigned)(n - 1)), to = (me + by) % n, from = (me + n - by) % n;
  int count = next(rng) % 2 ? (int)(next(rng) % 8) : (int)(next(rng) % (2 * MAX_COUNT));
  int32_t *send = next(own) % 2 ? near_buf[me][0] : far_buf[me][0], *recv = next(own) % 2 ? near_buf[me][1] : far_buf[me][1];
  for (int k = 0; k < count; k++) send[k] = element(op, me, (uint64_t)k);
  gccl_op x[2] = {{.comm = c, .kind = GCCL_DO_SEND, .dtype = 2, .root = to, .send = send, .count = (uint64_t)count},
                  {.comm = c, .kind = GCCL_DO_RECV, .dtype = 2, .root = from, .recv = recv, .count = (uint64_t)count}};
  gccl_batch b = {.comm = c, .ops = x, .nops = 2, .ticket = gccl_order_take(c)};
  ended(me, op, gccl_drive(&b, 1));
  for (int k = 0; k < count; k++) expect(me, op, k, recv[k], element(op, from, (uint64_t)k), "message");
}

/* Puts into the next rank's window, waits for the previous rank's, and says back that the window was read. */
static void onesided(int me, int op, uint64_t *rng) {
  struct ncclComm *c = gccl_world_comm(world, me);
  int to = (me + 1) % n, from = (me + n - 1) % n, count = 1 + (int)(next(rng) % MAX_COUNT);
  for (int k = 0; k < count; k++) near_buf[me][0][k] = element(op, me, (uint64_t)k);
  gccl_op x[] = {{.comm = c, .kind = GCCL_DO_PUT, .dtype = 2, .signal = 1, .root = to, .send = near_buf[me][0], .recv = window[to], .count = (uint64_t)count},
                 {.comm = c, .kind = GCCL_DO_WAIT_SIGNAL, .root = from, .count = 1},
                 {.comm = c, .kind = GCCL_DO_PUT, .signal = 1, .root = from},
                 {.comm = c, .kind = GCCL_DO_WAIT_SIGNAL, .root = to, .count = 1}};
  for (int i = 0; i < 4; i++) {
    ended(me, op, gccl_drive_one(&x[i], gccl_order_take(c)));
    for (int k = 0; k < count && i == 1; k++) expect(me, op, k, window[me][k], element(op, from, (uint64_t)k), "put");
  }
}

static void *rank_main(void *arg) {
  int me = (int)(intptr_t)arg;
  uint64_t rng = seed, own = seed * 77 + (uint64_t)me;
  for (int op = 0; op < nops; op++) {
    if (next(&own) % 50 == 0) { /* the others fall asleep */
      struct timespec t = {0, (long)(next(&own) % 3000000)};
      nanosleep(&t, NULL);
    }
    unsigned what = (unsigned)(next(&rng) % 8);
    if (what == 0)
      onesided(me, op, &rng);
    else if (what < 3)
      messages(me, op, &rng, &own);
    else
      collective(me, op, &rng, &own);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  load(argv[1]);
  seed = strtoull(argv[2], NULL, 0);
  nops = atoi(argv[3]);
  if (n < 2 || !(world = gccl_world_new(n, EAGER, STAGE, 64 << 20, NULL))) return 2;
  size_t bytes = (size_t)(2 * MAX_COUNT * n) * sizeof(int32_t);
  pthread_t t[MAX_RANKS];
  for (int r = 0; r < n; r++) {
    for (int i = 0; i < 2; i++) near_buf[r][i] = gccl_world_alloc(world, bytes, 1), far_buf[r][i] = gccl_world_alloc(world, bytes, 0);
    window[r] = gccl_world_alloc(world, bytes, 1);
  }
  for (int r = 0; r < n; r++) pthread_create(&t[r], NULL, rank_main, (void *)(intptr_t)r);
  for (int r = 0; r < n; r++) pthread_join(t[r], NULL);
  gccl_world_free(world);
  return failures != 0;
}
