/* v2: names are strings. */
#include <string.h>

#include "adapt.h"

static void start(const gccl_profiler *p, void **handle, const gccl_profile_event *e) {
  const profiler_named *n = p->context;
  profiler_descr_v2 d;
  memset(&d, 0, sizeof d);
  PROFILER_FILL_HEAD(&d, e, profiler_old_parent(e));
  switch (e->type) {
  case GCCL_PROFILE_GROUP: break;
  case GCCL_PROFILE_COLL:
    d.coll.name = n->comm.name;
    d.coll.commHash = n->comm.hash;
    d.coll.seqNumber = e->u.coll.number;
    d.coll.func = e->u.coll.func;
    d.coll.sendBuff = e->u.coll.send;
    d.coll.recvBuff = e->u.coll.recv;
    d.coll.count = e->u.coll.count;
    d.coll.root = e->u.coll.root;
    d.coll.datatype = e->u.coll.datatype;
    d.coll.nMaxChannels = e->u.coll.nchannels;
    d.coll.nWarps = e->u.coll.nwarps;
    d.coll.algo = e->u.coll.algo;
    d.coll.proto = e->u.coll.proto;
    break;
  case GCCL_PROFILE_P2P:
    d.p2p.name = n->comm.name;
    d.p2p.commHash = n->comm.hash;
    d.p2p.func = e->u.p2p.func;
    d.p2p.buff = e->u.p2p.buff;
    d.p2p.datatype = e->u.p2p.datatype;
    d.p2p.count = e->u.p2p.count;
    d.p2p.peer = e->u.p2p.peer;
    break;
  case GCCL_PROFILE_PROXY_OP: PROFILER_FILL_PROXY(&d, e); break;
  case GCCL_PROFILE_PROXY_STEP: d.proxyStep.step = e->u.proxy_step.step; break;
  default: return;
  }
  ((const profiler_table_v2 *)p->table)->startEvent(n->context, handle, &d);
}

PROFILER_STOP(2)
PROFILER_OLD_STATE(2)

int profiler_open_v2(const void *table, const profiler_comm *comm, int *mask, gccl_profiler *out) {
  *out = (gccl_profiler){.start = start, .stop = stop, .state = state};
  return profiler_open_named(table, ((const profiler_table_v2 *)table)->init, comm, mask, out);
}
