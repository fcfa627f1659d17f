/* Begin and step of any operation: dispatch by kind. */
#include <string.h>

#include "probe.h"

gccl_scalar gccl_scalar_load(int dtype, const void *element) {
  gccl_scalar s = {.u64 = 0};
  switch (dtype) {
  case 0: s.i64 = *(const int8_t *)element; break;
  case 1: s.u64 = *(const uint8_t *)element; break;
  case 2: s.i64 = *(const int32_t *)element; break;
  case 3: s.u64 = *(const uint32_t *)element; break;
  case 4:
  case 5: memcpy(&s.u64, element, 8); break;
  default: { /* floats: the conversion of the reduction kernels, to the accumulator type */
    gccl_reduce_src from = {.ptr = element};
    gccl_reduce_dst to = {.ptr = &s, .partial = 1};
    gccl_reduce(gccl_reduce_best(), dtype, GCCL_RED_SUM, &to, 1, &from, 1, 1, 0);
  }
  }
  return s;
}

/* Operators on one rank: what a fold over a single contribution leaves, that is a scaled copy. */
static void copy_scaled(gccl_op *x) {
  const struct ncclComm *c = x->comm;
  if (x->red != GCCL_RED_USER) {
    if (x->send != x->recv) gccl_copy(c->simd, x->recv, x->send, x->count * gccl_dtype_size(x->dtype), 0);
    return;
  }
  gccl_reduce_src s = {.ptr = x->send, .scaled = 1, .scale = x->scale};
  gccl_reduce_dst d = {.ptr = x->recv};
  gccl_reduce(c->simd, x->dtype, GCCL_RED_SUM, &d, 1, &s, 1, x->count, 0);
}

int gccl_op_begin(gccl_op *x) {
  struct ncclComm *c = x->comm;
  x->phase = 0;
  x->moved = 0;
  x->blocked_on = -1;
  if (gccl_probed(c)) gccl_probe_run(x);
  if (x->device_scalar) x->scale = gccl_scalar_load(x->dtype, x->scalar);
  switch (x->kind) {
  case GCCL_DO_COLL: return gccl_coll_begin(x);
  case GCCL_DO_SEND: x->seq = ++c->p2p_sent[x->root]; return 0;
  case GCCL_DO_RECV: x->seq = ++c->p2p_received[x->root]; return 0;
  default: return 0;
  }
}

static int other_step(gccl_op *x) {
  switch (x->kind) {
  case GCCL_DO_SEND:
  case GCCL_DO_RECV: return gccl_message_step(x);
  case GCCL_DO_COPY: copy_scaled(x); return GCCL_DONE;
  default: return gccl_onesided_step(x);
  }
}

int gccl_op_step(gccl_op *x) {
  if (x->kind == GCCL_DO_COLL) return gccl_coll_step(x);
  int r = other_step(x);
  if (gccl_probed(x->comm) && r == GCCL_BLOCKED && !x->stepped) {
    x->stepped = 1;
    gccl_probe_step(x, GCCL_WAIT_MESSAGE, NULL, x->blocked_on, NULL);
  }
  return r;
}
