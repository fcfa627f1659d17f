/* The fused path of the smallest all-reduce, in a header because its only caller is the front's all-reduce and a call of a hundred
 * nanoseconds has no room for more calls.
 *
 * It does what the interpreter does with the eager all-reduce plan when the payload fits into the record: copy into the
 * record, publish, wait for every peer's record, fold in rank order. Whatever is out of the ordinary (not this call's turn,
 * an abort, a slow peer) goes to the interpreter at the point reached.
 */
#ifndef GCCL_HOST_EXEC_SMALL_H
#define GCCL_HOST_EXEC_SMALL_H

#include <string.h>

#include "exec.h"

enum { GCCL_SMALL_RANKS = 16, GCCL_SMALL_SPINS = 4000, GCCL_SMALL_TIGHT = 512 };

/* All peers have finished the operation whose record slot this one takes. */
static inline int gccl_small_slot_is_free(struct ncclComm *c, uint64_t seq) {
  uint64_t least = UINT64_MAX;
  for (int q = 0; q < c->nranks; q++) {
    if (q == c->rank) continue;
    uint64_t p = gccl_load(&gccl_area_of(c, q)->progress) >> GCCL_STEP_BITS;
    if (p < least) least = p;
  }
  if (least == 0) return 0;
  c->done_seen = least - 1;
  return c->done_seen + GCCL_RECORDS >= seq;
}

/* An all-reduce of at most GCCL_SMALL_BYTES with a built-in operator other than the average: the eager plan's two reduces, its
 * signal and its wait. op holds the arguments, the element size and the plan; the ticket is op's. */
static inline int gccl_small_all_reduce(gccl_op *x, uint64_t ticket) {
  struct ncclComm *c = x->comm;
  uint64_t seq = __atomic_load_n(&c->seq, __ATOMIC_RELAXED) + 1; /* until it is this call's turn, only a guess */
  if (atomic_load_explicit(&c->serving, memory_order_acquire) != ticket || c->nranks > GCCL_SMALL_RANKS ||
      atomic_load_explicit(&c->abort, memory_order_seq_cst) || (c->done_seen + GCCL_RECORDS < seq && !gccl_small_slot_is_free(c, seq)))
    return gccl_drive_one(x, ticket);

  gccl_record *mine = gccl_record_of(c, c->rank, seq);
  uint64_t bytes = x->count * x->esize;
  if (bytes == 8)
    memcpy(mine->u.data, x->send, 8);
  else
    memcpy(mine->u.data, x->send, bytes);
  x->hash = gccl_call_hash(x);
  x->send_kind = GCCL_BUF_INLINE;
  x->recv_kind = GCCL_BUF_NONE;
  x->scaled = 0;
  x->seq = seq;
  gccl_record_fill(mine, x);
  gccl_store(&mine->seq, seq); /* acquired below */
  gccl_sample(x);
  gccl_wake(c);

  gccl_reduce_src src[GCCL_SMALL_RANKS];
  int spins = c->spin_ns ? GCCL_SMALL_SPINS : 64;
  for (int q = 0; q < c->nranks; q++) {
    const gccl_record *r = gccl_record_of(c, q, seq);
    /* This rank's own data from where it came: its record is still on the way to memory, and a vector load of it would wait. */
    src[q] = (gccl_reduce_src){.ptr = q == c->rank ? x->send : (const void *)r->u.data};
    if (q == c->rank) continue;
    for (int i = 0; gccl_load(&r->seq) != seq; i++) {
      if (i == spins) {
        x->moved = 0;
        int rc = gccl_coll_begin_published(x);
        if (rc == 0) return gccl_drive_begun(x, ticket);
        atomic_store_explicit(&c->serving, ticket + 1, memory_order_release);
        return rc;
      }
      if (i > GCCL_SMALL_TIGHT) gccl_relax();
    }
    if (__builtin_expect(r->hash != x->hash, 0)) {
      int rc = gccl_call_mismatch(x, q);
      atomic_store_explicit(&c->serving, ticket + 1, memory_order_release);
      return rc;
    }
  }
  gccl_reduce_dst dst = {.ptr = x->recv};
  gccl_reduce(c->simd, x->dtype, x->red, &dst, 1, src, c->nranks, x->count, 0);
  __atomic_store_n(&c->seq, seq, __ATOMIC_RELAXED);
  gccl_store(&((gccl_area *)c->self.area)->progress, (seq + 1) << GCCL_STEP_BITS);
  gccl_wake(c);
  atomic_store_explicit(&c->serving, ticket + 1, memory_order_release);
  return GCCL_DONE;
}

#endif
