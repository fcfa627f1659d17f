/* Proxy operations and their steps, for profiler plugins: what the network does for an operation, a proxy operation for each remote rank and
 * direction, a step for each slot or piece.
 *
 * A step of a send lasts until the network has completed its put and no request that was made for it is under way, so it outlives the op that
 * sent it, and its proxy operation may outlive the operation. A step of a receive lasts until its bytes are there. Net plugins open events below
 * steps; those that a step still has when it ends, end with it.
 */
#ifndef GCCL_HOST_EXEC_STEPS_H
#define GCCL_HOST_EXEC_STEPS_H

#include "../../layout/probe.h"

/* The executor opens and ends it; it is freed when its last step has ended. */
typedef struct gccl_proxy gccl_proxy;
struct gccl_proxy {
  gccl_proxy *next; /* the owner's */
  int32_t peer;
  uint8_t send;
  /* steps.c */
  gccl_probe *probe;
  int steps, open, ended;
  uint32_t step; /* under way in the executor */
  void *op[GCCL_PROFILERS];
};

gccl_proxy *gccl_proxy_open(gccl_probe *, void *const *parents, int32_t peer, int send, int nsteps, uint64_t chunk); /* NULL: no memory */
void gccl_proxy_end(gccl_proxy *);

/* at: where the bytes of a receive come to. One step of a proxy operation at a time is the executor's. */
void gccl_step_begin(gccl_proxy *, const void *at, uint64_t bytes);
void gccl_step_end(gccl_proxy *); /* a send has been given to the network, a receive is there */
/* The step that a put is for, which then waits for it; 0: none. A step has one put. */
uint32_t gccl_step_put(gccl_probe *);

void gccl_steps_settle(gccl_probe *);
extern const gccl_step_api gccl_steps;

#endif
