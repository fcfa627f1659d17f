/* v4: init is told of the communicator, descriptors no more; channels have a timer. */
#include <string.h>

#include "adapt.h"

static void start(const gccl_profiler *p, void **handle, const gccl_profile_event *e) {
  profiler_descr_v4 d;
  memset(&d, 0, sizeof d);
  PROFILER_FILL_HEAD(&d, e, profiler_old_parent(e));
  switch (e->type) {
  case GCCL_PROFILE_GROUP: break;
  case GCCL_PROFILE_COLL:
    d.coll.seqNumber = e->u.coll.number;
    d.coll.func = e->u.coll.func;
    d.coll.sendBuff = e->u.coll.send;
    d.coll.recvBuff = e->u.coll.recv;
    d.coll.count = e->u.coll.count;
    d.coll.root = e->u.coll.root;
    d.coll.datatype = e->u.coll.datatype;
    d.coll.nChannels = e->u.coll.nchannels;
    d.coll.nWarps = e->u.coll.nwarps;
    d.coll.algo = e->u.coll.algo;
    d.coll.proto = e->u.coll.proto;
    break;
  case GCCL_PROFILE_P2P:
    d.p2p.func = e->u.p2p.func;
    d.p2p.buff = e->u.p2p.buff;
    d.p2p.datatype = e->u.p2p.datatype;
    d.p2p.count = e->u.p2p.count;
    d.p2p.peer = e->u.p2p.peer;
    d.p2p.nChannels = e->u.p2p.nchannels;
    break;
  case GCCL_PROFILE_PROXY_OP: PROFILER_FILL_PROXY(&d, e); break;
  case GCCL_PROFILE_PROXY_STEP: d.proxyStep.step = e->u.proxy_step.step; break;
  case GCCL_PROFILE_KERNEL_CH:
    d.kernelCh.channelId = e->u.kernel_ch.channel;
    d.kernelCh.pTimer = e->u.kernel_ch.timer;
    break;
  case GCCL_PROFILE_NET_PLUGIN:
    d.netPlugin.id = e->u.net_plugin.id;
    d.netPlugin.data = e->u.net_plugin.data;
    break;
  default: return;
  }
  ((const profiler_table_v4 *)p->table)->startEvent(p->context, handle, &d);
}

PROFILER_STOP(4)
PROFILER_NEW_STATE(4, GCCL_PROFILE_KERNEL_CH_STOP)

int profiler_open_v4(const void *table, const profiler_comm *c, int *mask, gccl_profiler *out) {
  *out = (gccl_profiler){.table = table, .mask = mask, .start = start, .stop = stop, .state = state};
  return ((const profiler_table_v4 *)table)->init(&out->context, mask, c->name, c->hash, c->nodes, c->ranks, c->rank, c->log);
}
