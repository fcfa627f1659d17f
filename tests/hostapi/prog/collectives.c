/* collectives.c: all collectives, types, operators, counts, places and buffers. The full product is far too large;
 * "matrix" takes every kind × type × operator with the other factors drawn at random, "pairs" covers every pair of
 * values of any two factors, "large" goes past the sizes that one slot or chunk holds. */
#include "numfmt.h"
#include "suites.h"

static const size_t counts[] = {0, 1, 2, 3, 7, 17, 64, 255, 1000, 4097};
enum { NCOUNTS = sizeof counts / sizeof *counts };

static int pick(uint64_t *s, int n) { return (int)(conf_rand(s) % (uint64_t)n); }

static int can_be_inplace(int kind) { return kind != K_ALLTOALL && kind != K_SENDRECV; }

/* Values that the header forbids together are moved to allowed ones. */
static void repair(struct coll_case *c, int nranks) {
  if (c->kind == K_BCAST) c->inplace = 1;
  if (!can_be_inplace(c->kind)) c->inplace = 0;
  if (!coll_reduces(c->kind)) c->op = 0;
  if (c->inplace) c->nulls = 0;
  c->root %= nranks;
}

static struct coll_case draw(uint64_t *s, int nranks) {
  struct coll_case c = {0};
  c.kind = pick(s, K_COUNT);
  c.op = pick(s, OP_COUNT);
  c.type = (ncclDataType_t)pick(s, ncclNumTypes);
  c.count = counts[pick(s, NCOUNTS)];
  c.root = pick(s, nranks);
  c.inplace = pick(s, 2);
  c.buf = pick(s, BUF_KINDS);
  if (pick(s, 2)) c.shift_send = pick(s, 16);
  if (pick(s, 2)) c.shift_recv = pick(s, 16);
  /* A symmetric window means the same offset on all ranks; ours is the same by construction. */
  c.nulls = pick(s, 2);
  c.stream = pick(s, 3) == 0;
  c.flavour = pick(s, 2) ? EXACT : ROUGH;
  c.seed = conf_rand(s) >> 16;
  repair(&c, nranks);
  return c;
}

void suite_matrix(struct team *t) {
  struct pool p;
  if (!pool_make(&p, t, t->comm, 4097u * 8 * (size_t)t->nranks)) return;
  uint64_t s = W->seed;
  for (int kind = 0; kind < K_COUNT; kind++)
    for (int type = 0; type < ncclNumTypes; type++)
      for (int op = 0; op < (coll_reduces(kind) ? OP_COUNT : 1); op++) {
        struct coll_case c = draw(&s, t->nranks);
        c.kind = kind;
        c.type = (ncclDataType_t)type;
        c.op = op;
        if (c.count == 0) c.count = 33;
        repair(&c, t->nranks);
        coll_run_case(t, t->comm, &p, &c);
      }
  coll_compare_hashes(t);
  pool_free(&p, t, t->comm);
}

/* Factors of the pair cover, as small numbers. */
enum { FACTORS = 9 };
#define LEVELS 12 /* the most values that one factor has */
_Static_assert(LEVELS >= (int)ncclNumTypes && LEVELS >= (int)NCOUNTS && LEVELS >= (int)K_COUNT, "a factor has more values than room");

static void factor_values(const struct coll_case *c, int v[FACTORS]) {
  int count = 0;
  while (counts[count] != c->count) count++;
  int all[FACTORS] = {c->kind, c->op, (int)c->type, count, c->root, c->inplace, c->buf, c->shift_send != c->shift_recv, c->stream};
  memcpy(v, all, sizeof all);
}

typedef unsigned char cover_t[FACTORS][LEVELS][FACTORS][LEVELS];

static int fresh_pairs(const cover_t cover, const struct coll_case *c) {
  int v[FACTORS], n = 0;
  factor_values(c, v);
  for (int a = 0; a < FACTORS; a++)
    for (int b = a + 1; b < FACTORS; b++) n += !cover[a][v[a]][b][v[b]];
  return n;
}

static void mark(cover_t cover, const struct coll_case *c) {
  int v[FACTORS];
  factor_values(c, v);
  for (int a = 0; a < FACTORS; a++)
    for (int b = a + 1; b < FACTORS; b++) cover[a][v[a]][b][v[b]] = 1;
}

void suite_pairs(struct team *t) {
  struct pool p;
  if (!pool_make(&p, t, t->comm, 4097u * 8 * (size_t)t->nranks)) return;
  cover_t *cover = calloc(1, sizeof *cover);
  uint64_t s = W->seed * 77 + 5;
  /* Greedy: the best of 40 draws each time, until draws bring nothing new or the budget is used. */
  for (int done = 0, dry = 0; done < 350 && dry < 5; done++) {
    struct coll_case best = draw(&s, t->nranks);
    for (int k = 0; k < 40; k++) {
      struct coll_case c = draw(&s, t->nranks);
      if (fresh_pairs(*cover, &c) > fresh_pairs(*cover, &best)) best = c;
    }
    dry = fresh_pairs(*cover, &best) == 0 ? dry + 1 : 0;
    mark(*cover, &best);
    coll_run_case(t, t->comm, &p, &best);
  }
  free(cover);
  coll_compare_hashes(t);
  pool_free(&p, t, t->comm);
}

void suite_large(struct team *t) {
  static const struct {
    size_t count;
    ncclDataType_t type;
  } sizes[] = {{100003, ncclFloat32}, {262147, ncclBfloat16}, {1000003, ncclInt8}, {131072, ncclFloat64}, {524289, ncclFloat16}};
  struct pool p;
  size_t cap = (size_t)2 << 20;
  if (!pool_make(&p, t, t->comm, cap)) return;
  uint64_t s = W->seed * 13 + 1;
  for (int kind = 0; kind < K_COUNT; kind++)
    for (int k = 0; k < 1 + coll_reduces(kind); k++) {
      struct coll_case c = draw(&s, t->nranks);
      int z = (kind * 2 + k) % (int)(sizeof sizes / sizeof *sizes);
      c.kind = kind;
      c.type = sizes[z].type;
      c.count = sizes[z].count;
      c.op = pick(&s, 2) ? ncclSum : ncclMax;
      c.flavour = EXACT;
      repair(&c, t->nranks);
      size_t most = coll_send_elements(&c, t->nranks) > coll_recv_elements(&c, t->nranks) ? coll_send_elements(&c, t->nranks)
                                                                                          : coll_recv_elements(&c, t->nranks);
      while (most * num_size(c.type) > cap) { /* odd counts stay odd: tails matter */
        c.count = c.count / 2 | 1;
        most = most / 2 + (size_t)t->nranks;
      }
      coll_run_case(t, t->comm, &p, &c);
    }
  coll_compare_hashes(t);
  pool_free(&p, t, t->comm);
}
