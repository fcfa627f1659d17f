/* What a kernel is given: one structure, passed by value as the kernel's only parameter. Shared by C (who fills it),
 * CUDA and the CPU form of the kernels (who read it). No CUDA header is needed to include this.
 *
 * Addresses are 64-bit integers as the launching process maps them. Structures stay below 4,096 bytes, the parameter
 * limit of every supported architecture (CUDA C++ Programming Guide, function parameters).
 */
#ifndef GCCL_LAYOUT_WORK_H
#define GCCL_LAYOUT_WORK_H

#include "lowered.h"

#define GCCL_WORK_VERSION 3u /* raised with every change of layout; a fat binary carries the number it was built with */

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
  uint64_t done; /* address of a 32-bit word that the kernel stores its done_value to when all is written; 0: none */
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
  uint32_t pad1;
  uint64_t count;
  uint64_t div;          /* for GCCL_WORK_SUMPOSTDIV, not 0 */
  uint64_t scale_device; /* bit r: rank[r].scale is a device address */
  uint64_t ticket; /* device address of a 32-bit word, 0 before and after; needed when done words are and the grid has several blocks */
  uint64_t unless; /* address of a 32-bit word, or 0: nothing is to be done if it is GCCL_SPIN_DONE */
  gccl_leader_rank rank[GCCL_LEADER_RANKS];
  uint32_t done_value[GCCL_LEADER_RANKS];
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

/* A wait until the 32-bit word at that address, which counts up, has reached value. */
typedef struct {
  uint64_t word;
  uint32_t value, pad0;
} gccl_wait_work;

/* ---- Spinning kernels: one a rank, which wait for each other ---- */

enum {
  GCCL_SPIN_RANKS = 64,
  GCCL_SPIN_BLOCKS = 128,                            /* most blocks of a kernel that meets its peers */
  GCCL_LL_BLOCKS = 8,                                /* most blocks of an LL kernel */
  GCCL_LL_ITEMS = 512,                               /* of a block; 8 bytes of data each, in a line of 16 with their flags */
  GCCL_LL_BYTES = GCCL_LL_BLOCKS * GCCL_LL_ITEMS * 8 /* most bytes that one rank sends to one other in an LL kernel */
};

/* The sync area of a rank: device memory that its peers map, zero at first. Offsets in bytes; sizes follow from nranks. Every word
 * has one writer. Block b of a kernel waits for block b of the others only, and all ranks launch the same grid. */
enum {
  GCCL_SPIN_EPOCH = 0,                       /* u64[GCCL_SPIN_BLOCKS], own: meetings that block b has had */
  GCCL_SPIN_LL_EPOCH = 8 * GCCL_SPIN_BLOCKS, /* u64[GCCL_LL_BLOCKS], own: LL operations that block b has done */
  GCCL_SPIN_OPS = 16 * GCCL_SPIN_BLOCKS,     /* u64, own: bounded operations done */
  GCCL_SPIN_START = GCCL_SPIN_OPS + 128,     /* u64, in rank 0's area, by all ranks: who has begun a bounded operation */
  GCCL_SPIN_FLAGS = GCCL_SPIN_START + 128,   /* u64[GCCL_SPIN_BLOCKS][GCCL_SPIN_RANKS], written by that rank */
  GCCL_SPIN_LL =
      GCCL_SPIN_FLAGS + 8 * GCCL_SPIN_BLOCKS * GCCL_SPIN_RANKS /* lines[2][GCCL_LL_BLOCKS][nranks][GCCL_LL_ITEMS], by that rank */
};
static inline uint64_t gccl_spin_area_bytes(unsigned nranks) { return GCCL_SPIN_LL + 2ull * GCCL_LL_BLOCKS * nranks * GCCL_LL_ITEMS * 16; }

/* What became of a kernel, in its status word. */
enum gccl_spin_status { GCCL_SPIN_RUNNING, GCCL_SPIN_DONE, GCCL_SPIN_ABORTED, GCCL_SPIN_GAVE_UP };

/* One rank's part of a collective. op.rank has the buffers of all ranks as this process maps them. An LL kernel uses its own only, and takes
 * all scales as values. op.ticket is needed with status, bound or a done word of this rank and several blocks; that word gets its value at the end, in an
 * operation with status or bound it is not used. The others' and op.unless are not looked at. */
typedef struct {
  gccl_leader_work op;
  uint64_t area[GCCL_SPIN_RANKS]; /* sync areas as mapped here */
  uint64_t abort;                 /* u32 that is non-zero after an abort; any memory; looked at in every wait */
  uint64_t status;                /* u32 that gets an enum gccl_spin_status at the end, by the last block; 0: none */
  uint32_t rank;
  /* 0, or after how many microseconds the ranks give up together if not all blocks of all have begun: nothing is changed then, and
   * another executor may do the operation. Ranks that share a GPU only. */
  uint32_t bound;
} gccl_spin_work;

/* All-reduce by the switch. Only after a proof that multicast works between these ranks. send and recv are multicast addresses of buffers
 * that all ranks bound at the same offset, aligned to 16 bytes; spin.op.rank has the same buffers one by one. */
typedef struct {
  gccl_spin_work spin;
  uint64_t send, recv;
} gccl_multimem_work;

GCCL_LAYOUT_ASSERT(sizeof(gccl_leader_rank) == 32, "gccl_leader_rank");
GCCL_LAYOUT_ASSERT(sizeof(gccl_leader_work) == 56 + 36 * GCCL_LEADER_RANKS && offsetof(gccl_leader_work, count) == 16 &&
                       offsetof(gccl_leader_work, rank) == 56,
                   "gccl_leader_work");
GCCL_LAYOUT_ASSERT(sizeof(gccl_copy_work) == 32 + 24 * GCCL_COPIES + 8 * GCCL_LEADER_RANKS && offsetof(gccl_copy_work, item) == 32,
                   "gccl_copy_work");
GCCL_LAYOUT_ASSERT(sizeof(gccl_leader_work) <= 4096 && sizeof(gccl_copy_work) <= 4096, "kernel parameters");
GCCL_LAYOUT_ASSERT(sizeof(gccl_spin_work) == sizeof(gccl_leader_work) + 8 * GCCL_SPIN_RANKS + 24 && sizeof(gccl_spin_work) <= 4096,
                   "gccl_spin_work");
GCCL_LAYOUT_ASSERT(sizeof(gccl_multimem_work) == sizeof(gccl_spin_work) + 16 && sizeof(gccl_multimem_work) <= 4096, "gccl_multimem_work");

#endif
