/* GIN in device communicators: not in this version, so every requirement of it is refused by name. */
#include "devcomm.h"

ncclResult_t gccl_devgin_plan(gccl_devcomm *d, const struct ncclDevCommRequirements *r, const char *call) {
  const struct {
    const char *name;
    int asked;
  } field[] = {
      {"ginForceEnable", r->ginForceEnable},
      {"ginConnectionType", r->ginConnectionType != NCCL_GIN_CONNECTION_NONE},
      {"ginSignalCount", r->ginSignalCount > 0},
      {"ginCounterCount", r->ginCounterCount > 0},
      {"railGinBarrierCount", r->railGinBarrierCount > 0},
      {"worldGinBarrierCount", r->worldGinBarrierCount > 0},
      {"barrierCount (between LSA teams)", r->barrierCount > 0 && d->comm->lsa_size < d->comm->nranks},
  };
  for (size_t i = 0; i < sizeof field / sizeof *field; i++)
    if (field[i].asked)
      return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: %s needs GIN, which this version does not have: use LSA", call,
                       d->comm->rank, d->comm->nranks, field[i].name);
  return ncclSuccess;
}
