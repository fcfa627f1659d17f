/* The kernels of the fat binary: their names and how they are launched. Plain C for the executor.
 *
 * Names begin like NCCL's own (ncclDevKernel_AllReduce_Sum_f32_…), because profilers and trace tools recognise collective
 * kernels by that; the last part says that they are ours and who runs them.
 */
#ifndef GCCL_CUDA_KERNELS_H
#define GCCL_CUDA_KERNELS_H

#include <stdio.h>

#include "../../layout/work.h"

enum { GCCL_KERNEL_NAME = 64, GCCL_LEADER_THREADS = 512 };

static const char *const gccl_kernel_types[12] = {"i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"};
static const uint8_t gccl_kernel_type_size[12] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
static const char *const gccl_kernel_ops[GCCL_WORK_OPS] = {"Sum", "Prod", "Max", "Min", "PreMulSum", "SumPostDiv"};
static const char *const gccl_kernel_colls[GCCL_NUM_COLLS] = {"AllReduce", "ReduceScatter", "AllGather", "Broadcast", "Reduce",
                                                              "AllToAll",  "Gather",        "Scatter",   "SendRecv"};

static inline int gccl_coll_folds(unsigned coll) { return coll == GCCL_ALL_REDUCE || coll == GCCL_REDUCE_SCATTER || coll == GCCL_REDUCE; }

/* The leader's kernel: takes a gccl_leader_work, for GCCL_SEND_RECV a gccl_copy_work. dtype and op matter to folds only. Returns 0,
 * or -1 if there is no such kernel. */
static inline int gccl_leader_kernel_name(char name[GCCL_KERNEL_NAME], unsigned coll, unsigned dtype, unsigned op) {
  if (coll >= GCCL_NUM_COLLS) return -1;
  if (!gccl_coll_folds(coll))
    snprintf(name, GCCL_KERNEL_NAME, "ncclDevKernel_%s_GCCL_LEADER", gccl_kernel_colls[coll]);
  else if (dtype < 12 && op < GCCL_WORK_OPS && (op != GCCL_WORK_SUMPOSTDIV || dtype <= 5))
    snprintf(name, GCCL_KERNEL_NAME, "ncclDevKernel_%s_%s_%s_GCCL_LEADER", gccl_kernel_colls[coll], gccl_kernel_ops[op],
             gccl_kernel_types[dtype]);
  else
    return -1;
  return 0;
}

typedef struct {
  unsigned grid, block; /* both one-dimensional; no dynamic shared memory */
} gccl_launch_dims;

/* Blocks so that every thread has one vector of a part, up to `most` and at least one for each part. */
static inline gccl_launch_dims gccl_leader_blocks(uint64_t parts, uint64_t bytes, uint64_t most) {
  const uint64_t tile = 16 * GCCL_LEADER_THREADS, want = (bytes + tile - 1) / tile, each = want * parts > most ? most / parts : want;
  const gccl_launch_dims d = {(unsigned)(parts * (each ? each : 1)), GCCL_LEADER_THREADS};
  return d;
}

/* The grid must be this one: kernels of several parts take it as so many blocks for each. multiprocessors:
 * CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT. */
static inline gccl_launch_dims gccl_leader_dims(const gccl_leader_work *w, unsigned multiprocessors) {
  uint64_t parts = 1; /* of count elements, each visited once */
  if (w->coll == GCCL_REDUCE_SCATTER || w->coll == GCCL_ALL_GATHER || w->coll == GCCL_GATHER || w->coll == GCCL_SCATTER) parts = w->nranks;
  if (w->coll == GCCL_ALL_TO_ALL) parts = (uint64_t)w->nranks * w->nranks;
  return gccl_leader_blocks(parts, w->count * gccl_kernel_type_size[w->dtype], 2ull * multiprocessors);
}

/* Sets w->chunk too: small lists are spread over more blocks. */
static inline gccl_launch_dims gccl_copy_dims(gccl_copy_work *w, unsigned multiprocessors) {
  const uint64_t small = 16 * GCCL_LEADER_THREADS;
  uint64_t chunks = 0;
  for (unsigned i = 0; i < w->n; i++) chunks += (w->item[i].bytes + small - 1) / small;
  w->chunk = chunks <= 2 * multiprocessors ? small : 8 * small;
  return gccl_leader_blocks(1, chunks * small, 2ull * multiprocessors);
}

/* Takes a gccl_wait_work; one block of one warp. */
static const char gccl_wait_kernel_name[] = "ncclDevKernel_Done_GCCL_WAIT";

/* ---- Spinning kernels, which take a gccl_spin_work ---- */

/* GCCL_SPIN_MULTIMEM takes a gccl_multimem_work and exists for float sums of AllReduce, on sm_90 and later. */
enum gccl_spin_method { GCCL_SPIN_DIRECT, GCCL_SPIN_LL_METHOD, GCCL_SPIN_MULTIMEM };

/* Bytes that one rank has for one other: what decides about a method. */
static inline uint64_t gccl_spin_bytes(const gccl_spin_work *w) { return w->op.count * gccl_kernel_type_size[w->op.dtype]; }

/* As gccl_leader_kernel_name. An LL kernel exists for collectives in which every rank receives from every other, and takes up to
 * GCCL_LL_BYTES. */
static inline int gccl_spin_kernel_name(char name[GCCL_KERNEL_NAME], enum gccl_spin_method method, unsigned coll, unsigned dtype,
                                        unsigned op) {
  const int ll = method == GCCL_SPIN_LL_METHOD;
  if (coll >= GCCL_SEND_RECV) return -1;
  if (method == GCCL_SPIN_MULTIMEM) {
    if (coll != GCCL_ALL_REDUCE || op != GCCL_WORK_SUM || (dtype != 6 && dtype != 7 && dtype != 9)) return -1;
    snprintf(name, GCCL_KERNEL_NAME, "ncclDevKernel_AllReduce_Sum_%s_GCCL_MULTIMEM", gccl_kernel_types[dtype]);
    return 0;
  }
  if (ll && coll != GCCL_ALL_REDUCE && coll != GCCL_REDUCE_SCATTER && coll != GCCL_ALL_GATHER && coll != GCCL_ALL_TO_ALL) return -1;
  if (!gccl_coll_folds(coll))
    snprintf(name, GCCL_KERNEL_NAME, "ncclDevKernel_%s_GCCL_%s", gccl_kernel_colls[coll], ll ? "LL" : "DIRECT");
  else if (dtype < 12 && op < GCCL_WORK_OPS && (op != GCCL_WORK_SUMPOSTDIV || dtype <= 5))
    snprintf(name, GCCL_KERNEL_NAME, "ncclDevKernel_%s_%s_%s_GCCL_%s", gccl_kernel_colls[coll], gccl_kernel_ops[op],
             gccl_kernel_types[dtype], ll ? "LL" : "DIRECT");
  else
    return -1;
  return 0;
}

/* The launch; the same on all ranks, because it follows from what they agree on. most: the blocks that a rank may have, at most
 * GCCL_SPIN_BLOCKS; for ranks of one GPU so few that all of them are resident together: one block for each multiprocessor. */
static inline gccl_launch_dims gccl_spin_dims(const gccl_spin_work *w, enum gccl_spin_method method, unsigned most) {
  const uint64_t bytes = gccl_spin_bytes(w), n = w->op.nranks;
  if (method == GCCL_SPIN_LL_METHOD) {
    const uint64_t items = (bytes + 7) / 8, blocks = (items + GCCL_LL_ITEMS - 1) / GCCL_LL_ITEMS;
    const gccl_launch_dims d = {blocks ? (unsigned)blocks : 1,
                                items >= GCCL_LL_ITEMS ? GCCL_LL_ITEMS : ((unsigned)items + 31) / 32 * 32 + !items * 32};
    return d;
  }
  const int split = w->op.coll == GCCL_ALL_REDUCE || w->op.coll == GCCL_REDUCE || w->op.coll == GCCL_BROADCAST;
  return gccl_leader_blocks(1, split ? (bytes + n - 1) / n : bytes, most);
}

/* The same kernels compiled for the CPU (libgccl_kernels_cpu.so, make kernels-cpu): symbols of the same names. Runs the blocks 0 … grid-1
 * in order in the calling thread, each with one thread. Waiting kernels wait for the same block of their peers only,
 * so ranks in threads of their own make progress. */
typedef void (*gccl_cpu_kernel)(const void *param, unsigned grid, unsigned block);

#endif
