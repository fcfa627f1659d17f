/* Checks that are made only when asked for (GCCL_CHECK): NCCL leaves wrong in-place buffers undefined. */
#include "front.h"

ncclResult_t gccl_check_overlap(const gccl_op *op, const char *call) {
  const struct ncclComm *c = op->comm;
  size_t part = op->count * gccl_dtype_size(op->dtype), nsend = part, nrecv = part;
  const char *send = op->send, *recv = op->recv;
  /* Where the smaller buffer lies in the larger one when a call is in place (nccl.h). */
  ptrdiff_t place = 0;
  switch (op->coll) {
  case GCCL_ALL_GATHER:
  case GCCL_GATHER:
    nrecv *= (size_t)c->nranks;
    place = (ptrdiff_t)(part * (size_t)c->rank);
    break;
  case GCCL_REDUCE_SCATTER:
  case GCCL_SCATTER:
    nsend *= (size_t)c->nranks;
    place = -(ptrdiff_t)(part * (size_t)c->rank);
    break;
  case GCCL_ALL_TO_ALL:
    nsend *= (size_t)c->nranks;
    nrecv = nsend;
    break;
  default: break;
  }
  uintptr_t s = (uintptr_t)send, r = (uintptr_t)recv;
  if (s + nsend <= r || r + nrecv <= s || (intptr_t)(s - r) == place) return ncclSuccess;
  return gccl_fail(ncclInvalidArgument,
                   "%s: rank %d: sendbuff %p (%zu bytes) and recvbuff %p (%zu bytes) overlap, and sendbuff is %td bytes from recvbuff; in "
                   "place it is %td: "
                   "use buffers that do not overlap, or the documented place",
                   call, c->rank, (const void *)send, nsend, (const void *)recv, nrecv, (ptrdiff_t)(s - r), place);
}
