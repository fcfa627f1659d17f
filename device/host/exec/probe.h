/* The event points: what the trace and profiler plugins see of an operation, from the call to its end.
 *
 *   gccl_probe_call      a public call has good arguments          the caller's thread
 *   gccl_probe_issue     its operation has a place in the order    the thread that ends the group
 *   gccl_probe_run       the operation has its turn                the thread that runs it, as all below
 *   gccl_probe_step      an op of its plan, or another wait, begins
 *   gccl_probe_end       it has ended, or will never run
 *   gccl_probe_called    the call returns                          the caller's thread; may come before or after the end
 *   gccl_probe_grouped   the group ends
 *
 * Whoever has gccl_probed(comm) false calls none of them.
 */
#ifndef GCCL_HOST_EXEC_PROBE_H
#define GCCL_HOST_EXEC_PROBE_H

#include "exec.h"

static inline int gccl_probed(const struct ncclComm *c) { return __builtin_expect(c->probe != NULL, 0); }

/* A call under way, on its caller's stack: the operation may have ended and be gone before the call returns. */
typedef struct {
  gccl_probe *probe;
  uint64_t call;
  uint8_t what, traced;
  void *handle[GCCL_PROFILERS];
} gccl_probe_call_state;

/* depth: open groups of the thread. Fills x->call and x->seen. */
void gccl_probe_call(gccl_probe_call_state *, gccl_op *x, void *stream, int depth);
void gccl_probe_called(gccl_probe_call_state *, int rc, int depth);
void gccl_probe_grouping(void); /* ncclGroupEnd begins */
void gccl_probe_grouped(int rc);
/* The core makes a plan that the launch table lacks. */
void gccl_probe_plan(const gccl_op *);
void gccl_probe_planned(const gccl_op *, int rc);
void gccl_probe_issue(gccl_op *);
void gccl_probe_run(gccl_op *);
/* what: enum gccl_kind or gccl_trace_wait; op: of the plan, or NULL; slot: that it passes on or waits for, if it does. */
void gccl_probe_step(gccl_op *, unsigned what, const gccl_lop *op, int32_t peer, const void *slot);
/* The piece x->done of a message, at `at` here, is about to be given to the network, or is waited for; more than once does not matter. And
 * it has been given to it, or has come. */
void gccl_probe_piece(gccl_op *, int32_t peer, int send, const void *at, uint64_t bytes);
void gccl_probe_pieced(gccl_op *);
void gccl_probe_end(gccl_op *, int rc);
/* The number of a put to a remote rank, for its command, and the step that it is for; 0: not traced, none. */
uint32_t gccl_probe_put(struct ncclComm *, int32_t peer, uint64_t bytes, uint32_t *step);
void gccl_probe_put_done(gccl_probe *, uint32_t put, uint32_t step, int32_t peer);
/* An operation of a group that never ran. */
static inline void gccl_probe_forget(gccl_op *x) {
  if (x->seen) gccl_probe_end(x, GCCL_RC_USAGE);
}

#endif
