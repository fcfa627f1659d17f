/* One-sided operations on windows: ncclPutSignal, ncclSignal, ncclWaitSignal.
 *
 * A put is a store by the caller into the peer's arena; the signal word of the pair (in the target's area, written by this rank
 * alone) is raised behind it with release, so a visible signal implies its data and all earlier puts to that peer. At a rank on
 * another host the rank's own agent raises it, when the puts before it are in place.
 */
#include <string.h>

#include "exec.h"
#include "remote.h"

static uint64_t *signal_word(const struct ncclComm *c, int from, int to) {
  if (c->nranks == 1) return &c->signals_sent[0]; /* no area: what was sent is what has arrived */
  return (uint64_t *)(c->peers[to].area + c->geo.signals + (uint64_t)from * GCCL_LINE);
}

/* To a rank on another host: done when the local buffer may be used again. */
static int put_remote(gccl_op *x) {
  struct ncclComm *c = x->comm;
  int peer = x->root;
  if (x->phase == 0) {
    uint64_t word = c->geo.signals + (uint64_t)c->rank * GCCL_LINE, bytes = x->count * gccl_dtype_size(x->dtype);
    gccl_remote_put(c, peer, GCCL_AT_WINDOW, x->window, x->window_offset, x->send, bytes, GCCL_AT_AREA, word, ++c->signals_sent[peer],
                    bytes ? GCCL_CMD_TRACKED : 0);
    gccl_port_help(c);
    if (!bytes) return GCCL_DONE;
    x->phase = 1;
    x->seq = ++c->puts_tracked[peer];
  }
  x->blocked_on = peer;
  return gccl_load(&c->port->done[peer]) >= x->seq ? GCCL_DONE : GCCL_BLOCKED;
}

int gccl_onesided_step(gccl_op *x) {
  struct ncclComm *c = x->comm;
  int peer = x->root;
  if (x->kind == GCCL_DO_PUT) {
    if (gccl_is_remote(c, peer)) return put_remote(x);
    if (x->count) gccl_copy(c->simd, x->recv, x->send, x->count * gccl_dtype_size(x->dtype), 0);
    if (x->signal) {
      gccl_store(signal_word(c, c->rank, peer), ++c->signals_sent[peer]); /* acquired below */
      if (c->nranks > 1) gccl_wake(c);
    }
    return GCCL_DONE;
  }
  x->blocked_on = peer;
  if (gccl_load(signal_word(c, peer, c->rank)) < c->signals_waited[peer] + x->count) return GCCL_BLOCKED;
  c->signals_waited[peer] += x->count;
  return GCCL_DONE;
}
