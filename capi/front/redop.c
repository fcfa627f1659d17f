/* Reduction operators of users: ncclRedOpCreatePreMulSum. */
#include "front.h"

enum { SLOTS = sizeof(((struct ncclComm *)0)->user_ops) / sizeof(gccl_user_op) };

/* Handles are small, unlike any built-in operator, and differ between communicators: slot in the low byte, a part of the
 * communicator's address above. */
static int handle_of(const struct ncclComm *c, int slot) {
  unsigned salt = (unsigned)(((uintptr_t)c >> 12) & 0x3fffff);
  return (int)((salt << 8 | (unsigned)slot) + ncclNumOps);
}

static gccl_user_op *find(struct ncclComm *c, int op) {
  if (op < ncclNumOps) return NULL;
  int slot = (op - ncclNumOps) & 0xff;
  gccl_user_op *u = &c->user_ops[slot];
  return slot < SLOTS && u->handle == op ? u : NULL;
}

ncclResult_t gccl_redop_apply(struct ncclComm *c, ncclRedOp_t op, ncclDataType_t type, gccl_op *o, const char *call) {
  if ((int)op >= 0 && op < ncclNumOps) {
    o->red = (uint8_t)op; /* GCCL_RED_* has the same order */
    return ncclSuccess;
  }
  gccl_user_op *u = find(c, (int)op);
  if (!u)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: op %d is neither built in nor a live operator of this communicator", call, c->rank,
                     (int)op);
  if (u->dtype != (int)type)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: op %d was made for data type %d and is used with %d", call, c->rank, (int)op,
                     u->dtype, (int)type);
  o->red = GCCL_RED_USER;
  o->scale.u64 = u->scalar;
  o->device_scalar = u->device != NULL;
  o->scalar = u->device;
  return ncclSuccess;
}

GCCL_API(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t *op, void *scalar, ncclDataType_t type, ncclScalarResidence_t residence,
         ncclComm_t comm) {
  const char *call = "ncclRedOpCreatePreMulSum";
  ncclResult_t rc = gccl_comm_check(comm, call);
  if (rc != ncclSuccess) return rc;
  if (!op || !scalar) return gccl_fail(ncclInvalidArgument, "%s: rank %d: %s is NULL", call, comm->rank, op ? "scalar" : "op");
  if ((unsigned)type >= ncclNumTypes)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: data type %d is unknown", call, comm->rank, (int)type);
  if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: residence %d is unknown", call, comm->rank, (int)residence);
  for (int i = 0; i < SLOTS; i++) {
    gccl_user_op *u = &comm->user_ops[i];
    int32_t expect = 0, mine = handle_of(comm, i);
    if (!__atomic_compare_exchange_n(&u->handle, &expect, -1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
    u->dtype = (int32_t)type;
    u->device = residence == ncclScalarDevice ? scalar : NULL;
    u->scalar = u->device ? 0 : gccl_scalar_load((int)type, scalar).u64;
    __atomic_store_n(&u->handle, mine, __ATOMIC_RELEASE);
    *op = (ncclRedOp_t)mine;
    return ncclSuccess;
  }
  return gccl_fail(ncclInvalidUsage, "%s: rank %d has %d live operators, the most there can be: destroy some", call, comm->rank, SLOTS);
}

GCCL_API(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm) {
  ncclResult_t rc = gccl_handle_check(comm, "ncclRedOpDestroy");
  if (rc != ncclSuccess) return rc;
  gccl_user_op *u = find(comm, (int)op);
  if (!u)
    return gccl_fail(ncclInvalidArgument, "ncclRedOpDestroy: rank %d: op %d is not a live user operator of this communicator", comm->rank,
                     (int)op);
  __atomic_store_n(&u->handle, 0, __ATOMIC_RELEASE);
  return ncclSuccess;
}
