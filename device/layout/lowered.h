/* The lowered plan: one format for every executor (host C, CUDA, simulator in C order).
 *
 * Made by Go (algo/plan → device/lower), read by C and CUDA. No pointers: a plan is one block that may be copied
 * to any memory. Sizes and offsets are asserted here and in the Go mirror (device/layout/lowered.go); a change
 * of layout raises GCCL_LOWERED_VERSION.
 */
#ifndef GCCL_LAYOUT_LOWERED_H
#define GCCL_LAYOUT_LOWERED_H

#include <stddef.h>
#include <stdint.h>

#define GCCL_LOWERED_MAGIC 0x4c50434cu /* "LCPL" */
#define GCCL_LOWERED_VERSION 1u

/* Same values as algo/plan.Coll. */
enum gccl_coll {
  GCCL_ALL_REDUCE,
  GCCL_REDUCE_SCATTER,
  GCCL_ALL_GATHER,
  GCCL_BROADCAST,
  GCCL_REDUCE,
  GCCL_ALL_TO_ALL,
  GCCL_GATHER,
  GCCL_SCATTER,
  GCCL_SEND_RECV,
  GCCL_NUM_COLLS
};

/* Same values as algo/plan.Space, Kind, When, Sync. */
enum gccl_space { GCCL_SEND, GCCL_RECV, GCCL_STAGE, GCCL_OUT, GCCL_EAGER, GCCL_SLOT };
enum gccl_kind { GCCL_OP_REDUCE, GCCL_OP_PUT, GCCL_OP_GET, GCCL_OP_SIGNAL, GCCL_OP_WAIT, GCCL_OP_LOOP, GCCL_OP_END };
enum gccl_when { GCCL_ALWAYS, GCCL_SEND_STAGED, GCCL_RECV_STAGED };
enum gccl_sync { GCCL_SYNC_STEP, GCCL_SYNC_DATA, GCCL_SYNC_CREDIT };

/* base + i*I + j*J, reduced into [0, mod) when mod > 0. */
typedef struct {
  int32_t base, i, j, mod;
} gccl_affine;

typedef struct {
  uint8_t space;
  uint8_t partial;
  uint16_t edge;
  uint32_t count;
  gccl_affine rank, chunk;
} gccl_ref;

enum { GCCL_MAX_REFS = 4 };  /* sources or destinations of one op; each may be a set */
enum { GCCL_ALL_PEERS = 1 }; /* gccl_lop.flags: a step wait is about all other ranks */
enum { GCCL_FOLD = 2, GCCL_FINAL = 4 };
/* gccl_lowered.needs: the plan has an op for SendStaged, for RecvStaged. */
enum { GCCL_NEEDS_SEND = 1, GCCL_NEEDS_RECV = 2 };

typedef struct {
  uint8_t kind, when, sync, flags;
  uint8_t nsrc, ndst;
  uint16_t edge;
  uint32_t step;
  uint32_t n;    /* KindLoop: trip count */
  uint32_t jump; /* KindLoop: index of its END; KindEnd: index of its LOOP */
  uint32_t pad;
  gccl_affine peer;
  gccl_ref src[GCCL_MAX_REFS], dst[GCCL_MAX_REFS];
} gccl_lop;

typedef struct {
  int32_t peer;
  uint16_t slots;
  uint8_t out, pad;
  uint32_t index, place;
} gccl_edge;

/* Followed in memory by nops × gccl_lop, then nedges × gccl_edge. */
typedef struct {
  uint32_t magic, version;
  uint32_t size; /* of the whole block, bytes */
  uint8_t coll, split, eager;
  uint8_t needs; /* GCCL_NEEDS_*: peers read this rank's send buffer, write its receive buffer */
  int32_t nranks, rank, root;
  uint32_t send_parts, recv_parts;
  uint32_t steps;
  uint32_t nops, nedges;
  uint32_t places; /* slots into which scratch is divided */
  char method[28];
} gccl_lowered;

static inline const gccl_lop *gccl_lowered_ops(const gccl_lowered *p) { return (const gccl_lop *)(p + 1); }
static inline const gccl_edge *gccl_lowered_edges(const gccl_lowered *p) { return (const gccl_edge *)(gccl_lowered_ops(p) + p->nops); }

#if defined(__cplusplus)
#define GCCL_LAYOUT_ASSERT(c, name) static_assert(c, name)
#else
#define GCCL_LAYOUT_ASSERT(c, name) _Static_assert(c, name)
#endif
GCCL_LAYOUT_ASSERT(sizeof(gccl_affine) == 16, "gccl_affine");
GCCL_LAYOUT_ASSERT(sizeof(gccl_ref) == 40, "gccl_ref");
GCCL_LAYOUT_ASSERT(sizeof(gccl_lop) == 40 + 8 * 40, "gccl_lop");
GCCL_LAYOUT_ASSERT(sizeof(gccl_edge) == 16, "gccl_edge");
GCCL_LAYOUT_ASSERT(sizeof(gccl_lowered) == 80 && offsetof(gccl_lowered, method) == 52, "gccl_lowered");

#endif
