/* ncclConfig_t of every version since 2.14 → gccl_config.
 *
 * A caller's struct may be shorter than ours, or longer; what it cannot have known is "not set". Fields that were added
 * later than the caller's version lie in its tail padding and are ignored (SEMANTICS: config fields).
 */
#include <stdio.h>
#include <string.h>

#include "front.h"

ncclResult_t gccl_config_read(gccl_config *out, const ncclConfig_t *in, const char *call) {
  ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
  memset(out, 0, sizeof *out);
  if (in) {
    if (in->magic != NCCL_API_MAGIC)
      return gccl_fail(ncclInvalidArgument, "%s: config->magic is 0x%x, not 0x%x: start from NCCL_CONFIG_INITIALIZER", call, in->magic,
                       NCCL_API_MAGIC);
    if (in->size < offsetof(ncclConfig_t, blocking) + sizeof(int))
      return gccl_fail(ncclInvalidArgument, "%s: config->size is %zu, less than any version of ncclConfig_t", call, in->size);
    memcpy(&c, in, in->size < sizeof c ? in->size : sizeof c);
  }
  unsigned v = in ? c.version : NCCL_VERSION_CODE;
  const int undef = NCCL_CONFIG_UNDEF_INT;
#define SINCE(X, Y, Z, field) \
  if (v < NCCL_VERSION(X, Y, Z)) c.field = undef
  SINCE(2, 14, 0, blocking);
  SINCE(2, 17, 0, cgaClusterSize);
  SINCE(2, 17, 0, minCTAs);
  SINCE(2, 17, 0, maxCTAs);
  if (v < NCCL_VERSION(2, 17, 0)) c.netName = NULL;
  SINCE(2, 18, 0, splitShare);
  SINCE(2, 25, 0, trafficClass);
  if (v < NCCL_VERSION(2, 26, 0)) c.commName = NULL;
  SINCE(2, 27, 0, collnetEnable);
  SINCE(2, 27, 0, CTAPolicy);
  SINCE(2, 27, 0, shrinkShare);
  SINCE(2, 27, 0, nvlsCTAs);
  SINCE(2, 28, 0, nChannelsPerNetPeer);
  SINCE(2, 28, 0, nvlinkCentricSched);
  SINCE(2, 29, 0, graphUsageMode);
  SINCE(2, 29, 0, numRmaCtx);
  SINCE(2, 30, 0, maxP2pPeers);
  SINCE(2, 30, 5, graphStreamOrdering);
#undef SINCE
  out->blocking = c.blocking;
  out->cga_cluster_size = c.cgaClusterSize;
  out->min_ctas = c.minCTAs;
  out->max_ctas = c.maxCTAs;
  out->split_share = c.splitShare;
  out->shrink_share = c.shrinkShare;
  out->traffic_class = c.trafficClass;
  out->collnet_enable = c.collnetEnable;
  out->cta_policy = c.CTAPolicy;
  out->nvls_ctas = c.nvlsCTAs;
  out->nchannels_per_net_peer = c.nChannelsPerNetPeer;
  out->nvlink_centric_sched = c.nvlinkCentricSched;
  out->graph_usage_mode = c.graphUsageMode;
  out->num_rma_ctx = c.numRmaCtx;
  out->max_p2p_peers = c.maxP2pPeers;
  out->graph_stream_ordering = c.graphStreamOrdering;
  if (c.netName) snprintf(out->net_name, sizeof out->net_name, "%s", c.netName);
  if (c.commName) snprintf(out->comm_name, sizeof out->comm_name, "%s", c.commName);
  gccl_thread *t = gccl_thread_get();
  out->device_kind = t ? t->device_kind : gcclDeviceAuto;
  return ncclSuccess;
}
