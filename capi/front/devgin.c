/* GIN in device communicators: which signals and counters there are, and the memory that kernels of this library's header use for peers of
 * their LSA team. Contexts for other peers are the core's (comm/devgin.go). */
#include <string.h>

#include "devcomm.h"

enum {
  CONTEXTS_MAX = 16,
  DEPTH = 256, /* of a queue, where the caller does not say: a guess */
  DEPTH_MIN = 16,
  DEPTH_MAX = 1 << 15, /* indices of work-queue entries have 16 bits */
  SIGNALS_MAX = 1 << 20
};

ncclResult_t gccl_devgin_take(gccl_devcomm *d, uint32_t *numbers, int n, const char *field, uint32_t *first, const char *call) {
  const struct ncclComm *c = d->comm;
  *first = *numbers;
  if (n < 0 || n > SIGNALS_MAX - (int)*numbers)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: %s: %d more make more than %d signals or counters", call, c->rank, c->nranks,
                     field, n, SIGNALS_MAX);
  if (n > 0 && d->gin.contexts == 0)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: %s is %d, and GIN is not asked for: set ginConnectionType", call, c->rank,
                     c->nranks, field, n);
  *numbers += (uint32_t)n;
  return ncclSuccess;
}

static ncclResult_t barriers(gccl_devcomm *d, ncclGinBarrierHandle_t *h, int n, int ranks, const char *field, const char *call) {
  if (n > SIGNALS_MAX / ranks)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: %s: %d barriers of %d ranks are too many", call, d->comm->rank,
                     d->comm->nranks, field, n, ranks);
  return gccl_devgin_take(d, &d->signals, n * ranks, field, &h->signal0, call);
}

static int power_of_two(int n) {
  int p = DEPTH_MIN;
  while (p < n) p *= 2;
  return p;
}

ncclResult_t gccl_devgin_plan(gccl_devcomm *d, const struct ncclDevCommRequirements *r, const char *call) {
  const struct ncclComm *c = d->comm;
  int teams = c->nranks / c->lsa_size, type = r->ginConnectionType;
  if (type == NCCL_GIN_CONNECTION_NONE && r->ginForceEnable) type = NCCL_GIN_CONNECTION_FULL;
  if (type < NCCL_GIN_CONNECTION_NONE || type > NCCL_GIN_CONNECTION_RAIL)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: ginConnectionType is %d", call, c->rank, c->nranks, type);
  if (r->ginQueueDepth < 0 || r->ginQueueDepth > DEPTH_MAX)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: ginQueueDepth is %d, and must be 0 to %d", call, c->rank, c->nranks,
                     r->ginQueueDepth, DEPTH_MAX);
  if (type == NCCL_GIN_CONNECTION_RAIL && r->worldGinBarrierCount > 0)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: worldGinBarrierCount needs ginConnectionType FULL, not RAIL", call, c->rank,
                     c->nranks);
  if (type != NCCL_GIN_CONNECTION_NONE) {
    if (d->form < GCCL_FORM_23003)
      return gccl_fail(ncclInvalidArgument,
                       "%s: rank %d of %d: ginConnectionType: kernels compiled with headers before 2.30 do not get GIN from this library",
                       call, c->rank, c->nranks);
    d->gin.contexts = r->ginContextCount < 1 ? 1 : r->ginContextCount > CONTEXTS_MAX ? CONTEXTS_MAX : r->ginContextCount;
    d->gin.depth = r->ginQueueDepth ? power_of_two(r->ginQueueDepth) : DEPTH;
    d->gin.own_header = d->stamp != 0;
  }
  ncclGinBarrierHandle_t *hybrid = &d->dev.hybridRailGinBarrier;
  uint32_t first;
  ncclResult_t rc = gccl_devgin_take(d, &d->signals, r->ginSignalCount, "ginSignalCount", &first, call);
  if (rc == ncclSuccess) rc = gccl_devgin_take(d, &d->counters, r->ginCounterCount, "ginCounterCount", &first, call);
  if (rc == ncclSuccess) rc = barriers(d, &d->dev.railGinBarrier, r->railGinBarrierCount, teams, "railGinBarrierCount", call);
  if (rc == ncclSuccess) rc = barriers(d, &d->dev.worldGinBarrier, r->worldGinBarrierCount, c->nranks, "worldGinBarrierCount", call);
  /* Hybrid barriers of one LSA team do without GIN where none is asked for. */
  d->dev.ginContextsRailed = type != NCCL_GIN_CONNECTION_FULL;
  if (rc == ncclSuccess && (teams > 1 || d->gin.contexts)) {
    rc = barriers(d, hybrid, r->barrierCount, teams, "barrierCount", call);
    if (rc == ncclSuccess && !d->dev.ginContextsRailed)
      rc = barriers(d, &d->dev.hybridWorldGinBarrier, r->barrierCount, c->nranks, "barrierCount", call);
  }
  return rc;
}

void gccl_devgin_room(gccl_devcomm *d) {
  uint64_t contexts = (uint64_t)d->gin.contexts, signals = contexts * d->signals * 8, counters = contexts * d->counters * 8;
  d->gin.signals = (int32_t)d->signals;
  d->gin.counters = (int32_t)d->counters;
  if (!contexts) return;
  d->shadows = gccl_devcomm_take(d, signals, 128);
  if (!d->stamp) return;
  d->direct = gccl_devcomm_take(d, sizeof(gccl_gin_direct), 128);
  d->direct_signals = gccl_devcomm_take(d, signals, 128);
  d->direct_counters = gccl_devcomm_take(d, counters, 128);
  d->direct_offsets = gccl_devcomm_take(d, signals, 128);
}

void gccl_devgin_complete(gccl_devcomm *d, char *resources, struct gcclDevComm_own *own) {
  struct ncclDevComm *v = &d->dev;
  if (!d->gin.contexts) return;
  v->ginConnectionCount = 1;
  v->ginNetDeviceTypes[0] = (uint8_t)d->gin.type;
  v->ginHandles[0] = d->gin.handles;
  v->ginSignalCount = (int)d->signals;
  v->ginCounterCount = (int)d->counters;
  v->ginSignalShadows = (uint64_t *)(resources + (uint64_t)d->shadows * 128);
  v->ginContextCount = (uint32_t)d->gin.contexts;
  v->ginConnectionsRailed = false; /* all ranks can be reached, also where the rail was asked for */
  v->ginStrongLegacySignals = true;
  if (!own || !d->gin.direct) return;
  gccl_gin_direct *direct = (gccl_gin_direct *)(resources + (uint64_t)d->direct * 128);
  *direct = (gccl_gin_direct){.ncontexts = (uint32_t)d->gin.contexts,
                              .nsignals = d->signals,
                              .ncounters = d->counters,
                              .signals = d->direct_signals,
                              .counters = (uint64_t *)(resources + (uint64_t)d->direct_counters * 128),
                              .signal_offsets = (uint64_t *)(resources + (uint64_t)d->direct_offsets * 128)};
  own->direct = direct;
}
