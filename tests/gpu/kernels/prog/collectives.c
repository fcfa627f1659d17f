/* Collectives against device/host/reduce, by the leader's kernels and by spinning ones. A case is an image: one block of memory with all buffers of all ranks and margins
 * between them. The oracle changes a copy of it on the host, the kernel changes it on the device, and then all bytes must
 * agree, those outside the buffers too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../device/host/reduce/reduce.h"
#include "device.h"

enum { MARGIN = 64, IMAGE = 8 << 20, SHOWN = 5, RANKS = 16 };

static uint64_t state;
static uint64_t rnd(void) { /* xorshift64 */
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}
static uint64_t below(uint64_t n) { return rnd() % n; }

typedef struct {
  unsigned char *image; /* what the oracle works on */
  uint64_t base;        /* the device's copy */
  uint64_t used;
} memory;

/* Room for bytes at an address that is `phase` after a multiple of 16. */
static uint64_t room(memory *m, uint64_t bytes, unsigned phase) {
  uint64_t at = (m->used + MARGIN + 15) / 16 * 16 + phase;
  m->used = at + bytes + MARGIN;
  if (m->used > IMAGE) die("check", "image too small for this case");
  return at;
}

static int64_t scalar_bits(unsigned dtype) {
  gccl_scalar s = {.u64 = 0};
  if (dtype == 8)
    s.f64 = (double)(int64_t)below(9) * 0.25 - 1;
  else if (dtype >= 6)
    s.f32 = (float)(int64_t)below(9) * 0.25f - 1;
  else
    s.u64 = rnd() >> below(60);
  return s.i64;
}

/* One element as a scalar of the accumulator's type. Only types whose accumulator is another need the library's widening: a
 * fold of one partial destination is that. */
static gccl_scalar scalar_of(unsigned dtype, const void *element) {
  gccl_scalar s = {.u64 = 0};
  gccl_reduce_src src = {.ptr = element, .scaled = 1};
  if (dtype <= 5) { /* multiplied in the element's type: high bits do not matter */
    memcpy(&s, element, gccl_dtype_size((int)dtype));
    return s;
  }
  if (dtype == 8)
    src.scale.f64 = 1;
  else
    src.scale.f32 = 1;
  gccl_reduce_dst dst = {.ptr = &s, .partial = 1};
  gccl_reduce(gccl_reduce_named("c"), (int)dtype, 0, &dst, 1, &src, 1, 1, 0);
  return s;
}

static void expect_fold(memory *m, const gccl_leader_work *w, const uint64_t *send, uint64_t shift, const uint64_t *to, unsigned nto,
                        const gccl_scalar *scale) {
  gccl_reduce_src src[GCCL_LEADER_RANKS];
  gccl_reduce_dst dst[GCCL_LEADER_RANKS];
  uint64_t bytes = w->count * gccl_dtype_size(w->dtype);
  unsigned char *copy = malloc(bytes * w->nranks + 1); /* unaligned, and apart from the destinations */
  if (!copy) die("check", "out of memory");
  for (unsigned r = 0; r < w->nranks; r++) {
    memcpy(copy + r * bytes, m->image + send[r] + shift, bytes);
    src[r] = (gccl_reduce_src){.ptr = copy + r * bytes, .scaled = w->op == GCCL_WORK_PREMULSUM, .scale = scale[r]};
  }
  for (unsigned d = 0; d < nto; d++) dst[d] = (gccl_reduce_dst){.ptr = m->image + to[d]};
  int op = w->op >= GCCL_WORK_PREMULSUM ? 0 : w->op;
  gccl_reduce(gccl_reduce_named("c"), w->dtype, op, dst, (int)nto, src, w->nranks, w->count, w->op == GCCL_WORK_SUMPOSTDIV ? w->div : 0);
  free(copy);
}

static void expect(memory *m, const gccl_leader_work *w, const uint64_t *send, const uint64_t *recv, const gccl_scalar *scale) {
  uint64_t part = w->count * gccl_dtype_size(w->dtype);
  unsigned n = w->nranks;
  unsigned char *in = malloc(n * n * part + 1);
  if (!in) die("check", "out of memory");
  switch (w->coll) {
  case GCCL_ALL_REDUCE: expect_fold(m, w, send, 0, recv, n, scale); break;
  case GCCL_REDUCE: expect_fold(m, w, send, 0, recv + w->root, 1, scale); break;
  case GCCL_REDUCE_SCATTER: {
    /* In place, part r of rank r is overwritten only after everybody has read it: parts one after another do that. */
    for (unsigned r = 0; r < n; r++) expect_fold(m, w, send, r * part, recv + r, 1, scale);
    break;
  }
  case GCCL_BROADCAST:
    for (unsigned r = 0; r < n; r++) memmove(m->image + recv[r], m->image + send[w->root], part);
    break;
  case GCCL_ALL_GATHER:
    for (unsigned s = 0; s < n; s++)
      for (unsigned r = 0; r < n; r++) memmove(m->image + recv[r] + s * part, m->image + send[s], part);
    break;
  case GCCL_GATHER:
    for (unsigned s = 0; s < n; s++) memmove(m->image + recv[w->root] + s * part, m->image + send[s], part);
    break;
  case GCCL_SCATTER:
    for (unsigned r = 0; r < n; r++) memmove(m->image + recv[r], m->image + send[w->root] + r * part, part);
    break;
  case GCCL_ALL_TO_ALL:
    for (unsigned s = 0; s < n; s++) memcpy(in + s * n * part, m->image + send[s], n * part);
    for (unsigned s = 0; s < n; s++)
      for (unsigned r = 0; r < n; r++) memcpy(m->image + recv[r] + s * part, in + (s * n + r) * part, part);
    break;
  default: die("check", "unknown collective");
  }
  free(in);
}

/* Ranks of a case: spinning kernels have areas for some numbers only. */
static unsigned some_ranks(enum executor how) {
  static const uint8_t few[] = {1, 2, 3, 4, 5, 8, 16};
  return how == LEADER ? 1 + (unsigned)below(RANKS) : few[below(sizeof few)];
}

/* Parts that a send and a receive buffer have. */
static void parts_of(unsigned coll, unsigned n, unsigned *send, unsigned *recv) {
  *send = coll == GCCL_REDUCE_SCATTER || coll == GCCL_SCATTER || coll == GCCL_ALL_TO_ALL ? n : 1;
  *recv = coll == GCCL_ALL_GATHER || coll == GCCL_GATHER || coll == GCCL_ALL_TO_ALL ? n : 1;
}

static uint64_t some_count(const device *d, uint64_t most) {
  static const uint16_t edges[] = {0, 1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 255, 257};
  uint64_t c;
  switch (below(3)) {
  case 0: c = edges[below(sizeof edges / sizeof *edges)]; break;
  case 1: c = below(1500); break;
  default: c = d->major ? below(most) : below(6000); /* on a GPU rounds of many blocks need more */
  }
  return c < most ? c : most;
}

/* Differences between the device's image and the expected one. */
static uint64_t differences(const device *d, const memory *m, unsigned char *got, uint64_t *first) {
  uint64_t n = 0;
  d->get(got, m->base, m->used);
  for (uint64_t i = 0; i < m->used; i++)
    if (got[i] != m->image[i] && !n++) *first = i;
  return n;
}

static const enum gccl_spin_method method_of[EXECUTORS] = {
    [DIRECT] = GCCL_SPIN_DIRECT, [LOW_LATENCY] = GCCL_SPIN_LL_METHOD, [MULTIMEM] = GCCL_SPIN_MULTIMEM};

static int kernel_name(enum executor how, char *name, unsigned coll, unsigned dtype, unsigned op) {
  if (how == LEADER) return gccl_leader_kernel_name(name, coll, dtype, op);
  return gccl_spin_kernel_name(name, method_of[how], coll, dtype, op);
}

/* One case of one kernel; 1 if it failed. */
static int one(const device *d, enum executor how, memory *m, unsigned char *got, unsigned coll, unsigned dtype, unsigned op, int show) {
  gccl_leader_work w = {.version = GCCL_WORK_VERSION, .coll = (uint8_t)coll, .dtype = (uint8_t)dtype, .op = (uint8_t)op};
  uint64_t es = gccl_dtype_size((int)dtype), send[RANKS], recv[RANKS], done[RANKS];
  gccl_scalar scale[RANKS];
  unsigned sp, rp, n = some_ranks(how);
  if (n == 1 && gccl_coll_folds(coll) && op != GCCL_WORK_PREMULSUM) n = 2;
  w.nranks = (uint16_t)n, w.root = (uint16_t)below(n), w.div = below(4) ? n : rnd();
  if (!w.div) w.div = 1;
  parts_of(coll, n, &sp, &rp);
  w.count = some_count(d, (IMAGE - 65536) / (n * (sp + rp) * es) - 16);
  if (how == LOW_LATENCY) { /* all blocks of all ranks are resident together: one for each multiprocessor */
    uint64_t blocks = d->major ? d->multiprocessors / n : GCCL_LL_BLOCKS, most = GCCL_LL_BYTES / GCCL_LL_BLOCKS * (blocks ? blocks : 1);
    if (most > GCCL_LL_BYTES) most = GCCL_LL_BYTES;
    if (w.count * es > most) w.count = below(most / es + 1);
  }
  uint64_t part = w.count * es;
  m->used = 0;
  /* Alignment: all 16, one phase for all, each its own multiple of the element's size, or anything. */
  unsigned style = how == MULTIMEM ? 0 : (unsigned)below(5), common = (unsigned)(below(16) / es * es), in_place = !below(3);
  for (unsigned r = 0; r < n; r++) {
    unsigned a[2];
    for (int k = 0; k < 2; k++)
      a[k] = style == 0   ? 0
             : style == 1 ? common
             : style == 2 ? (unsigned)(below(16) / es * es)
             : style == 3 ? 4 * (unsigned)below(4) + common % 4
                          : (unsigned)below(16);
    send[r] = room(m, sp * part, a[0]);
    recv[r] = room(m, rp * part, a[1]);
    if (in_place && coll != GCCL_ALL_TO_ALL) {
      /* NCCL's in place: the receive buffer is one with the send buffer, or a part of it, or it of the receive buffer. */
      if (sp == rp)
        recv[r] = send[r];
      else if (sp > rp && (coll != GCCL_SCATTER || r == w.root))
        recv[r] = send[r] + r * part;
      else if (rp > sp && (coll != GCCL_GATHER || r == w.root))
        send[r] = recv[r] + r * part;
    }
    done[r] = how != LEADER || below(2) ? room(m, 4, 0) : 0;
    w.done_value[r] = how == LEADER ? (uint32_t)rnd() : GCCL_SPIN_DONE;
    w.rank[r] = (gccl_leader_rank){.send = m->base + send[r], .recv = m->base + recv[r], .done = done[r] ? m->base + done[r] : 0};
  }
  uint64_t ticket[RANKS], scalars[RANKS];
  for (unsigned r = 0; r < n; r++) ticket[r] = room(m, 4, 0);
  for (unsigned r = 0; r < n; r++) scalars[r] = room(m, es, 0);
  for (uint64_t i = 0; i < m->used; i += 8) { /* all bit patterns */
    uint64_t v = rnd();
    memcpy(m->image + i, &v, m->used - i < 8 ? m->used - i : 8);
  }
  for (unsigned r = 0; r < n; r++) {
    scale[r].i64 = scalar_bits(dtype);
    w.rank[r].scale = scale[r].u64;
    if (how != LOW_LATENCY && below(2)) {
      w.scale_device |= 1ull << r;
      w.rank[r].scale = m->base + scalars[r];
      scale[r] = scalar_of(dtype, m->image + scalars[r]);
    }
  }
  for (unsigned r = 0; r < n; r++) memset(m->image + ticket[r], 0, 4);
  d->put(m->base, m->image, m->used);
  expect(m, &w, send, recv, scale);
  for (unsigned r = 0; r < n; r++)
    if (done[r]) memcpy(m->image + done[r], &w.done_value[r], 4);

  char name[GCCL_KERNEL_NAME];
  gccl_launch_dims dims;
  if (kernel_name(how, name, coll, dtype, op)) die("check", "no such kernel");
  if (how == LEADER) {
    w.ticket = m->base + ticket[0];
    dims = gccl_leader_dims(&w, below(2) ? 1 + (unsigned)below(d->multiprocessors) : 1);
    d->launch(name, &w, dims);
  } else {
    static gccl_spin_work work[RANKS];
    static gccl_multimem_work multimem[RANKS];
    const uint64_t *area = areas_of(d, n);
    const uint32_t bound = below(4) ? 0 : 10000000;
    for (unsigned r = 0; r < n; r++) {
      work[r] = (gccl_spin_work){.op = w, .rank = r, .status = m->base + done[r], .bound = bound};
      work[r].op.ticket = m->base + ticket[r];
      memcpy(work[r].area, area, n * sizeof *area);
    }
    unsigned most = d->multiprocessors / n;
    if (most > GCCL_SPIN_BLOCKS) most = GCCL_SPIN_BLOCKS;
    dims = gccl_spin_dims(work, method_of[how], 1 + (unsigned)below(most ? most : 1));
    for (unsigned r = 0; r < n; r++) multimem[r] = (gccl_multimem_work){.spin = work[r]};
    if (how == MULTIMEM)
      d->launch_all(name, multimem, sizeof *multimem, n, dims);
    else
      d->launch_all(name, work, sizeof *work, n, dims);
  }
  d->finish();
  uint64_t first = 0, bad = differences(d, m, got, &first);
  if (bad && show)
    printf("FAIL %s type %s ranks %u root %u count %lu style %u in place %u grid %u: %lu of %lu bytes differ, first at %lu (%02x, want "
           "%02x); recv[0] at %lu\n",
           name, gccl_kernel_types[dtype], n, w.root, w.count, style, in_place, dims.grid, bad, m->used, first, got[first], m->image[first],
           recv[0]);
  return bad != 0;
}

/* Lists of copies. */
static int list(const device *d, memory *m, unsigned char *got, int show) {
  gccl_copy_work w = {.version = GCCL_WORK_VERSION, .n = (uint16_t)below(GCCL_COPIES + 1), .ndone = (uint16_t)below(9), .done_value = 1};
  uint64_t src[GCCL_COPIES], dst[GCCL_COPIES], done[GCCL_LEADER_RANKS];
  m->used = 0;
  for (unsigned i = 0; i < w.n; i++) {
    uint64_t bytes = below(2) ? below(64) : below(30000);
    src[i] = room(m, bytes, below(2) ? 0 : (unsigned)below(16));
    dst[i] = below(8) ? room(m, bytes, below(2) ? 0 : (unsigned)below(16)) : src[i];
    w.item[i] = (gccl_copy_item){m->base + src[i], m->base + dst[i], bytes};
  }
  for (unsigned r = 0; r < w.ndone; r++) {
    done[r] = below(3) ? room(m, 4, 0) : 0;
    w.done[r] = done[r] ? m->base + done[r] : 0;
  }
  uint64_t ticket = room(m, 4, 0);
  for (uint64_t i = 0; i < m->used; i++) m->image[i] = (unsigned char)rnd();
  memset(m->image + ticket, 0, 4);
  w.ticket = m->base + ticket;
  d->put(m->base, m->image, m->used);
  for (unsigned i = 0; i < w.n; i++) memmove(m->image + dst[i], m->image + src[i], w.item[i].bytes);
  for (unsigned r = 0; r < w.ndone; r++)
    if (done[r]) memcpy(m->image + done[r], &w.done_value, 4);
  char name[GCCL_KERNEL_NAME];
  gccl_leader_kernel_name(name, GCCL_SEND_RECV, 0, 0);
  gccl_launch_dims dims = gccl_copy_dims(&w, 1 + (unsigned)below(d->multiprocessors));
  d->launch(name, &w, dims);
  d->finish();
  uint64_t first = 0, bad = differences(d, m, got, &first);
  if (bad && show) printf("FAIL %s items %u grid %u: %lu bytes differ, first at %lu\n", name, w.n, dims.grid, bad, first);
  return bad != 0;
}

tally check_collectives(const device *d, enum executor how, uint64_t seed, unsigned rounds) {
  memory m = {malloc(IMAGE), d->alloc(IMAGE), 0};
  unsigned char *got = malloc(IMAGE);
  if (!m.image || !got) die("check", "out of memory");
  tally t = {0};
  state = seed;
  char name[GCCL_KERNEL_NAME];
  for (unsigned coll = 0; coll < GCCL_NUM_COLLS; coll++)
    for (unsigned dtype = 0; dtype < 12; dtype++)
      for (unsigned op = 0; op < GCCL_WORK_OPS; op++) {
        if (kernel_name(how, name, coll, dtype, op) || (op && !gccl_coll_folds(coll)) || (coll == GCCL_SEND_RECV && dtype)) continue;
        t.kernels += gccl_coll_folds(coll) || !dtype;
        for (unsigned k = 0; k < rounds; k++) {
          t.cases++;
          t.failed += (uint64_t)(coll == GCCL_SEND_RECV ? list(d, &m, got, t.failed < SHOWN)
                                                        : one(d, how, &m, got, coll, dtype, op, t.failed < SHOWN));
        }
      }
  free(m.image), free(got);
  d->release(m.base);
  return t;
}
