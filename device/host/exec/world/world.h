/* A whole communicator in one process for tests: n ranks with their areas, and buffers that peers can or cannot reach. */
#ifndef GCCL_EXEC_WORLD_H
#define GCCL_EXEC_WORLD_H

#include "../exec.h"

typedef struct gccl_world gccl_world;

/* arena_bytes: memory that all ranks reach, handed out by gccl_world_alloc. simd: name of a kernel set, NULL for the best. */
gccl_world *gccl_world_new(int nranks, uint64_t eager, uint64_t stage, uint64_t arena_bytes, const char *simd);
void gccl_world_free(gccl_world *);
/* A buffer; reachable says whether peers may address it. Freed with gccl_world_reset. */
void *gccl_world_alloc(gccl_world *, uint64_t bytes, int reachable);
void gccl_world_reset(gccl_world *);
/* Adds an operation of rank; runs happen in order per rank. */
int gccl_world_add(gccl_world *, int rank, const gccl_op *op);
/* The same with a flow: of every part of the send buffer, so many bytes in all, no more is there than `ahead` elements beyond what all ranks
 * of the run have made. To be run with threads. */
int gccl_world_add_flow(gccl_world *, int rank, const gccl_op *op, uint64_t send_bytes, uint64_t ahead);
int gccl_world_stuck(const gccl_world *); /* whether some rank has waited for what the others could not make */
/* Runs what was added: threads = 0 drives all ranks from this thread, otherwise one thread per rank. */
int gccl_world_run(gccl_world *, int threads);
struct ncclComm *gccl_world_comm(gccl_world *, int rank);
const char *gccl_world_cause(gccl_world *, int rank);

#endif
