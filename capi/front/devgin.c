/* GIN in device communicators: which signals and counters there are, and the memory that kernels of this library's header use for peers of
 * their LSA team. Contexts for other peers are the core's (comm/devgin.go).
 *
 * What the headers differ in (NCCL 2.28.9, 2.29.3, 2.29.7, 2.30.3, 2.30.7: src/include/nccl_device, read 2026-11-30): descriptors and their
 * contexts (impl/gfd.h); before 2.29.5 a barrier has one signal, which all ranks add to, and its round in the resource buffer; later one
 * signal for each rank. */
#include <string.h>

#include "devcomm.h"

enum {
  CONTEXTS_MAX = 16,
  DEPTH = 256, /* of a queue, where the caller does not say: a guess */
  DEPTH_MIN = 16,
  DEPTH_MAX = 1 << 15, /* indices of work-queue entries have 16 bits */
  SIGNALS_MAX = 1 << 20
};

static const struct {
  int32_t format, context_bytes, contexts, numbers;
} header_of[] = {
    [GCCL_FORM_22807] = {GCCL_GFD_FORMAT_64, GCCL_PROXY_CONTEXT_OLD, 4, 1 << 16},
    [GCCL_FORM_22902] = {GCCL_GFD_FORMAT_64, GCCL_PROXY_CONTEXT_OLD, 4, 1 << 16},
    [GCCL_FORM_22907] = {GCCL_GFD_FORMAT_64_WIDE, GCCL_PROXY_CONTEXT_OLD, CONTEXTS_MAX, SIGNALS_MAX},
    [GCCL_FORM_23003] = {GCCL_GFD_FORMAT_128, GCCL_PROXY_CONTEXT_OLD, CONTEXTS_MAX, SIGNALS_MAX},
    [GCCL_FORM_23007] = {GCCL_GFD_FORMAT_128, GCCL_PROXY_CONTEXT_23007, CONTEXTS_MAX, SIGNALS_MAX},
};

ncclResult_t gccl_devgin_take(gccl_devcomm *d, uint32_t *numbers, int n, const char *field, uint32_t *first, const char *call) {
  const struct ncclComm *c = d->comm;
  int most = header_of[d->form].numbers;
  *first = *numbers;
  if (n < 0 || n > most - (int)*numbers)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: %s: %d more make more than %d signals or counters", call, c->rank, c->nranks,
                     field, n, most);
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

/* The barriers of the rail for headers before 2.30, which are those of hybrid barriers too. */
static ncclResult_t old_barriers(gccl_devcomm *d, const struct ncclDevCommRequirements *r, int teams, const char *call) {
  int hybrid = teams > 1 || d->gin.contexts ? r->barrierCount : 0, n = r->railGinBarrierCount > hybrid ? r->railGinBarrierCount : hybrid;
  const char *field = r->railGinBarrierCount ? "railGinBarrierCount" : "barrierCount";
  ncclGinBarrierHandle_t *h = &d->dev.railGinBarrier;
  if (d->form == GCCL_FORM_22907) return barriers(d, h, n, teams, field, call);
  if (d->form == GCCL_FORM_22803 || r->barrierCount + n == 0) return ncclSuccess;
  /* Also where no signals are needed: a session stores its round. */
  h->unused = gccl_devcomm_take(d, (uint64_t)(n > r->barrierCount ? n : r->barrierCount) * GCCL_GIN_OLD_EPOCHS, 4);
  return gccl_devgin_take(d, &d->signals, n, field, &h->signal0, call);
}

/* Whether a caller wants GIN. Requirements before 2.29.5 do not say it: it is there where it is asked of, and where there are several teams and
 * nothing speaks against it (NCCL 2.28.9, src/dev_runtime.cc: several nodes). */
static int connection(const gccl_devcomm *d, const struct ncclDevCommRequirements *r, int teams) {
  if (r->ginConnectionType != NCCL_GIN_CONNECTION_NONE) return r->ginConnectionType;
  int asked = r->ginForceEnable;
  if (d->form == GCCL_FORM_22807 || d->form == GCCL_FORM_22902) {
    asked |= r->ginSignalCount > 0 || r->ginCounterCount > 0 || r->railGinBarrierCount > 0 || (teams > 1 && d->comm->gin_type);
    const void *at = r->resourceRequirementsList;
    for (int n = 0; at && n < GCCL_DEVCOMM_OUTPUTS; n++) {
      ncclDevResourceRequirements_t q;
      gccl_devcomm_read_resource(&q, at, d->form);
      asked |= q.ginSignalCount > 0 || q.ginCounterCount > 0;
      at = q.next;
    }
  }
  return asked ? NCCL_GIN_CONNECTION_FULL : NCCL_GIN_CONNECTION_NONE;
}

static int power_of_two(int n) {
  int p = DEPTH_MIN;
  while (p < n) p *= 2;
  return p;
}

ncclResult_t gccl_devgin_plan(gccl_devcomm *d, const struct ncclDevCommRequirements *r, const char *call) {
  const struct ncclComm *c = d->comm;
  int teams = c->nranks / c->lsa_size, type = connection(d, r, teams), most = header_of[d->form].contexts;
  if (type < NCCL_GIN_CONNECTION_NONE || type > NCCL_GIN_CONNECTION_RAIL)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: ginConnectionType is %d", call, c->rank, c->nranks, type);
  if (r->ginQueueDepth < 0 || r->ginQueueDepth > DEPTH_MAX)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: ginQueueDepth is %d, and must be 0 to %d", call, c->rank, c->nranks,
                     r->ginQueueDepth, DEPTH_MAX);
  if (type == NCCL_GIN_CONNECTION_RAIL && r->worldGinBarrierCount > 0)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d of %d: worldGinBarrierCount needs ginConnectionType FULL, not RAIL", call, c->rank,
                     c->nranks);
  if (type != NCCL_GIN_CONNECTION_NONE) {
    d->gin.contexts = r->ginContextCount < 1 ? 1 : r->ginContextCount > most ? most : r->ginContextCount;
    d->gin.format = header_of[d->form].format;
    d->gin.context_bytes = d->stamp ? (int32_t)sizeof(gccl_proxy_context) : header_of[d->form].context_bytes;
    d->gin.depth = r->ginQueueDepth ? power_of_two(r->ginQueueDepth) : DEPTH;
    d->gin.own_header = d->stamp != 0;
  }
  ncclGinBarrierHandle_t *hybrid = &d->dev.hybridRailGinBarrier;
  uint32_t first;
  ncclResult_t rc = gccl_devgin_take(d, &d->signals, r->ginSignalCount, "ginSignalCount", &first, call);
  if (rc == ncclSuccess) rc = gccl_devgin_take(d, &d->counters, r->ginCounterCount, "ginCounterCount", &first, call);
  if (rc == ncclSuccess && d->form < GCCL_FORM_23003) return old_barriers(d, r, teams, call);
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
  if (d->comm->cuda) d->gin.told = (int32_t)gccl_devcomm_take(d, signals * (uint64_t)d->comm->nranks, 128);
  d->direct = gccl_devcomm_take(d, sizeof(gccl_gin_direct), 128);
  d->direct_signals = gccl_devcomm_take(d, signals, 128);
  d->direct_counters = gccl_devcomm_take(d, counters, 128);
  d->direct_offsets = gccl_devcomm_take(d, signals, 128);
}

ncclResult_t gccl_devgin_complete(gccl_devcomm *d, char *resources, struct gcclDevComm_own *own) {
  struct ncclDevComm *v = &d->dev;
  if (!d->gin.contexts) return ncclSuccess;
  v->ginConnectionCount = 1;
  v->ginNetDeviceTypes[0] = (uint8_t)d->gin.type;
  v->ginHandles[0] = d->gin.handles;
  v->ginSignalCount = (int)d->signals;
  v->ginCounterCount = (int)d->counters;
  v->ginSignalShadows = (uint64_t *)(resources + (uint64_t)d->shadows * 128);
  v->ginContextCount = (uint32_t)d->gin.contexts;
  v->ginConnectionsRailed = false; /* all ranks can be reached, also where the rail was asked for */
  v->ginStrongLegacySignals = true;
  if (!own || !d->gin.direct) return ncclSuccess;
  gccl_gin_direct direct = {.ncontexts = (uint32_t)d->gin.contexts,
                            .nsignals = d->signals,
                            .ncounters = d->counters,
                            .places = d->comm->cuda && d->gin.handles,
                            .signals = d->direct_signals,
                            .counters = (uint64_t *)(resources + (uint64_t)d->direct_counters * 128),
                            .signal_offsets = (uint64_t *)(resources + (uint64_t)d->direct_offsets * 128)};
  own->direct = (gccl_gin_direct *)(resources + (uint64_t)d->direct * 128);
  return gccl_devcomm_put(d, (uint64_t)d->direct * 128, &direct, sizeof direct);
}
