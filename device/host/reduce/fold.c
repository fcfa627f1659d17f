/* The driver: picks kernels, and folds many or unlike sources block by block through the first-level cache. */
#include <string.h>

#include "kernels.h"

/* Of accumulators. Larger blocks measured slower from every level of the memory hierarchy (Zen 4, 8 sources). */
enum { BLOCK_BYTES = 4096, LINE = 64 };

static const uint8_t dtype_size[GCCL_NTYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
static const uint8_t acc_size[GCCL_NTYPES] = {1, 1, 4, 4, 8, 8, 4, 4, 8, 4, 4, 4};
/* The type of a partial value, as an element type. */
static const uint8_t acc_dtype[GCCL_NTYPES] = {GCCL_I8,  GCCL_U8,  GCCL_I32, GCCL_U32, GCCL_I64, GCCL_U64,
                                               GCCL_F32, GCCL_F32, GCCL_F64, GCCL_F32, GCCL_F32, GCCL_F32};

size_t gccl_dtype_size(int dtype) { return (unsigned)dtype < GCCL_NTYPES ? dtype_size[dtype] : 0; }
size_t gccl_acc_size(int dtype) { return (unsigned)dtype < GCCL_NTYPES ? acc_size[dtype] : 0; }

void gccl_copy(const gccl_reduce_isa *isa, void *dst, const void *src, size_t bytes, int stream) {
  if (!bytes || dst == src) return;
  if (!stream || bytes < 4096) { /* a fence costs more than a small copy */
    isa->copy(dst, src, bytes);
    return;
  }
  isa->stream(dst, src, bytes);
  isa->fence();
}

/* One block on its way, and room for its accumulators and for a converted source or result. */
typedef struct {
  const gccl_reduce_isa *isa;
  int dtype, acc, op;
  uint64_t div; /* 0 for float types */
  size_t at, n; /* first element, elements */
  _Alignas(LINE) unsigned char value[BLOCK_BYTES], other[BLOCK_BYTES];
} block;

static int form(const block *b, int partial) { return partial ? b->acc : b->dtype; }

static const void *source(const block *b, const gccl_reduce_src *s) {
  return (const char *)s->ptr + b->at * dtype_size[form(b, s->partial)];
}

static void *destination(const block *b, const gccl_reduce_dst *d) { return (char *)d->ptr + b->at * dtype_size[form(b, d->partial)]; }

/* The source's block as accumulators, in `room` unless the source is that already. */
static const void *load(block *b, const gccl_reduce_src *s, void *room) {
  int dtype = form(b, s->partial);
  if (s->scaled)
    b->isa->scale[dtype](room, source(b, s), b->n, s->scale);
  else if (dtype != b->acc)
    b->isa->widen[dtype](room, source(b, s), b->n);
  else
    return source(b, s);
  return room;
}

/* Three unscaled sources of one form, to be summed. */
static int three_alike(const block *b, const gccl_reduce_src *s) {
  return b->op == GCCL_SUM && !(s[0].scaled | s[1].scaled | s[2].scaled) && form(b, s[0].partial) == form(b, s[1].partial) &&
         form(b, s[0].partial) == form(b, s[2].partial);
}

/* The folded value. Only the last step writes to `target`, which may be a source. */
static const void *fold(block *b, const gccl_reduce_src *src, int nsrc, void *target) {
  const gccl_reduce_isa *isa = b->isa;
  const gccl_reduce_src *s = src, *end = src + nsrc;
  const void *v = load(b, s++, b->value);
  while (s < end) {
    int take = end - s >= 3 && three_alike(b, s) ? 3 : 1, dtype = form(b, s->partial);
    void *out = s + take == end ? target : b->value;
    if (take == 3)
      isa->sum3[dtype](out, v, source(b, s), source(b, s + 1), source(b, s + 2), b->n);
    else if (s->scaled)
      isa->fold[b->acc][b->op](out, v, load(b, s, b->other), b->n);
    else
      isa->fold[dtype][b->op](out, v, source(b, s), b->n);
    s += take;
    v = out;
  }
  return v;
}

/* Whether the result of a fold is what the destination takes, without another pass. */
static int takes_fold(const block *b, const gccl_reduce_dst *d) { return d->partial || (b->dtype == b->acc && !b->div); }

/* Stores v to the destinations that are partial, or to those that are not. Their form is computed once, into the
 * first destination or, if that one is streamed, into room, and copied from there. */
static void store(block *b, const gccl_reduce_dst *dst, int ndst, const void *v, int folded, int partial) {
  const void *have = NULL;
  for (const gccl_reduce_dst *d = dst; d < dst + ndst; d++) {
    if ((d->partial != 0) != partial) continue;
    void *to = destination(b, d);
    if (!have && folded && takes_fold(b, d)) {
      have = v;
    } else if (!have) {
      void *room = d->stream ? b->other : to;
      if (b->div && !partial)
        b->isa->divide[b->dtype](room, v, b->n, b->div);
      else
        b->isa->narrow[form(b, partial)](room, v, b->n);
      have = room;
    }
    if (to == have) continue;
    if (d->stream)
      b->isa->stream(to, have, b->n * dtype_size[form(b, partial)]);
    else
      memcpy(to, have, b->n * dtype_size[form(b, partial)]);
  }
}

static void by_blocks(const gccl_reduce_isa *isa, int dtype, int op, const gccl_reduce_dst *dst, int ndst, const gccl_reduce_src *src,
                      int nsrc, size_t n, uint64_t div) {
  block b;
  b.isa = isa, b.dtype = dtype, b.acc = acc_dtype[dtype], b.op = op, b.div = div;
  size_t most = BLOCK_BYTES / acc_size[dtype], first = most;
  const gccl_reduce_dst *direct = NULL; /* the last step of a fold writes straight to it */
  int streamed = 0;
  for (const gccl_reduce_dst *d = dst + ndst; d-- > dst;) {
    if (d->stream) { /* let blocks end where its cache lines do */
      first = most - (uintptr_t)d->ptr % LINE / dtype_size[form(&b, d->partial)];
      streamed = 1;
    } else if (takes_fold(&b, d)) {
      direct = d;
    }
  }
  for (b.at = 0; b.at < n; b.at += b.n) {
    size_t want = b.at ? most : first;
    b.n = n - b.at < want ? n - b.at : want;
    const void *v = fold(&b, src, nsrc, direct ? destination(&b, direct) : b.value);
    /* Partial ones first: v may be a source, and a final destination that is the same memory changes it. */
    store(&b, dst, ndst, v, nsrc > 1, 1);
    store(&b, dst, ndst, v, nsrc > 1, 0);
  }
  if (streamed) isa->fence();
}

/* A pair to one or two streamed destinations: rounded in one pass, then streamed from the first-level cache. Pieces
 * end where the first destination's lines do. */
static void stream_pair(const gccl_reduce_isa *isa, int dtype, int op, const gccl_reduce_dst *dst, int ndst, const gccl_reduce_src *src,
                        size_t n) {
  _Alignas(LINE) unsigned char piece[BLOCK_BYTES];
  size_t size = dtype_size[dtype], m = (BLOCK_BYTES - (uintptr_t)dst->ptr % LINE) / size;
  for (size_t at = 0; at < n; at += m, m = BLOCK_BYTES / size) {
    if (m > n - at) m = n - at;
    isa->pair[dtype][op](piece, (const char *)src[0].ptr + at * size, (const char *)src[1].ptr + at * size, m);
    for (int k = 0; k < ndst; k++) isa->stream((char *)dst[k].ptr + at * size, piece, m * size);
  }
  isa->fence();
}

/* A single unscaled source stored in its own form is copied. Returns 0 if a destination needs arithmetic. */
static int all_copies(int dtype, const gccl_reduce_dst *dst, int ndst, const gccl_reduce_src *src) {
  for (int k = 0; k < ndst; k++)
    if (acc_dtype[dtype] != dtype && !dst[k].partial != !src->partial) return 0;
  return !src->scaled;
}

/* The type whose kernels fit two unscaled sources and their destinations, all of one form; -1 if they differ. */
static int one_form(int dtype, const gccl_reduce_dst *first, const gccl_reduce_dst *last, const gccl_reduce_src *src) {
  if (src[0].scaled | src[1].scaled) return -1;
  if (!(src[0].partial | src[1].partial | first->partial | last->partial) || acc_dtype[dtype] == dtype) return dtype;
  return src[0].partial && src[1].partial && first->partial && last->partial ? acc_dtype[dtype] : -1;
}

int gccl_reduce(const gccl_reduce_isa *isa, int dtype, int op, gccl_reduce_dst *dst, int ndst, const gccl_reduce_src *src, int nsrc,
                size_t n, uint64_t div) {
  if ((unsigned)dtype >= GCCL_NTYPES || (unsigned)op >= GCCL_NOPS || nsrc < 1) return -1;
  if (nsrc == 2 && !div && (unsigned)ndst - 1 < 2) { /* the most frequent calls, small ones too */
    const gccl_reduce_dst *last = dst + ndst - 1;
    int kernels = one_form(dtype, dst, last, src);
    int stream = dst->stream | last->stream;
    if (kernels >= 0 && !stream) {
      if (ndst == 1)
        isa->pair[kernels][op](dst->ptr, src[0].ptr, src[1].ptr, n);
      else
        isa->pair2[kernels][op](dst[0].ptr, dst[1].ptr, src[0].ptr, src[1].ptr, n);
      return 0;
    }
    if (kernels >= 0 && dst->stream && last->stream) {
      stream_pair(isa, kernels, op, dst, ndst, src, n);
      return 0;
    }
  }
  if (!n || ndst < 1) return 0;
  if (!isa->divide[dtype]) div = 0;
  if (nsrc == 1 && !div && all_copies(dtype, dst, ndst, src)) {
    for (int k = 0; k < ndst; k++) gccl_copy(isa, dst[k].ptr, src->ptr, n * (src->partial ? acc_size : dtype_size)[dtype], dst[k].stream);
    return 0;
  }
  by_blocks(isa, dtype, op, dst, ndst, src, nsrc, n, div);
  return 0;
}
