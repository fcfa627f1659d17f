/* What a kernel is given: one structure, passed by value as the kernel's only parameter. Shared by C (who fills it),
 * CUDA and the CPU form of the kernels (who read it). No CUDA header is needed to include this.
 *
 * Addresses are 64-bit integers as the launching process maps them. Structures stay below 4,096 bytes, the parameter
 * limit of every supported architecture (CUDA C++ Programming Guide, function parameters).
 */
#ifndef GCCL_LAYOUT_WORK_H
#define GCCL_LAYOUT_WORK_H

#include "lowered.h"

#define GCCL_WORK_VERSION 1u /* raised with every change of layout; a fat binary carries the number it was built with */

enum { GCCL_LEADER_RANKS = 64 };
enum { GCCL_COPIES = 96 };

/* Reduction operators of kernels. An average is a premulsum for floats (scale 1/n), a sumpostdiv for integers. */
enum gccl_work_op {
  GCCL_WORK_SUM,
  GCCL_WORK_PROD,
  GCCL_WORK_MAX,
  GCCL_WORK_MIN,
  GCCL_WORK_PREMULSUM,  /* every rank's elements are multiplied by its scale, then added */
  GCCL_WORK_SUMPOSTDIV, /* integers only: the sum is divided by div, toward zero */
  GCCL_WORK_OPS
};

/* One rank of a leader's operation. */
typedef struct {
  uint64_t send, recv; /* as mapped in the leader's process; 0 where the collective does not use it */
  /* For GCCL_WORK_PREMULSUM: gccl_scalar bits (f32 in the low half for fp8, fp16, bf16 and fp32; f64; i64; u64), or the
   * device address of one element of dtype if this rank's bit of scale_device is set. */
  uint64_t scale;
  uint64_t done; /* address of a 32-bit word that the kernel stores done_value to when all is written; 0: none */
} gccl_leader_rank;

/* One collective that one ordinary kernel does for all ranks of a GPU. Nothing in it waits.
 *
 * count is NCCL's: elements of the whole buffer for AllReduce, Reduce and Broadcast; of one part (what one rank contributes or
 * receives) for ReduceScatter, AllGather, AllToAll, Gather, Scatter. Folds go in rank order, 0 first, and have the bits of
 * device/host/reduce. Buffers need no alignment. In place is allowed where NCCL allows it.
 *
 * A fold over one rank is a copy and belongs to the copy kernel (canonical NaNs would change bits), except a premulsum. */
typedef struct {
  uint32_t version; /* GCCL_WORK_VERSION */
  uint8_t coll;     /* enum gccl_coll, not GCCL_SEND_RECV */
  uint8_t dtype;    /* ncclDataType_t, 0 … 11 */
  uint8_t op;       /* enum gccl_work_op */
  uint8_t pad0;
  uint16_t nranks, root;
  uint32_t done_value;
  uint64_t count;
  uint64_t div;          /* for GCCL_WORK_SUMPOSTDIV, not 0 */
  uint64_t scale_device; /* bit r: rank[r].scale is a device address */
  uint64_t ticket; /* device address of a 32-bit word, 0 before and after; needed when done words are and the grid has several blocks */
  uint64_t pad;
  gccl_leader_rank rank[GCCL_LEADER_RANKS];
} gccl_leader_work;

/* One copy of a list. Source and destination are equal (nothing to do) or do not overlap. */
typedef struct {
  uint64_t src, dst, bytes;
} gccl_copy_item;

/* A list of copies: send/recv, the leader's side of grouped messages. The done words are of the ranks that take part. */
typedef struct {
  uint32_t version;
  uint16_t n, ndone;
  uint32_t done_value, pad0;
  uint64_t ticket; /* as above */
  uint64_t chunk;  /* bytes that a block takes at a time: gccl_copy_dims sets it */
  gccl_copy_item item[GCCL_COPIES];
  uint64_t done[GCCL_LEADER_RANKS];
} gccl_copy_work;

GCCL_LAYOUT_ASSERT(sizeof(gccl_leader_rank) == 32, "gccl_leader_rank");
GCCL_LAYOUT_ASSERT(sizeof(gccl_leader_work) == 56 + 32 * GCCL_LEADER_RANKS && offsetof(gccl_leader_work, count) == 16 &&
                       offsetof(gccl_leader_work, rank) == 56,
                   "gccl_leader_work");
GCCL_LAYOUT_ASSERT(sizeof(gccl_copy_work) == 32 + 24 * GCCL_COPIES + 8 * GCCL_LEADER_RANKS && offsetof(gccl_copy_work, item) == 32,
                   "gccl_copy_work");
GCCL_LAYOUT_ASSERT(sizeof(gccl_leader_work) <= 4096 && sizeof(gccl_copy_work) <= 4096, "kernel parameters");

#endif
