/* v1: names are numbers. */
#include <string.h>

#include "adapt.h"

static uint8_t index_of(const char *name, const char *const *names, int n, uint8_t otherwise) {
  for (int i = 0; name && i < n; i++)
    if (!strcmp(name, names[i])) return (uint8_t)i;
  return otherwise;
}

/* ncclFunc_t, ncclDataType_t, and the numbers of algorithms of NCCL 2.23. A method of ours that NCCL has not is 255. */
static const char *const funcs[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv",
                                    "Send",      "Recv",   "AlltoAll",  "Scatter",       "Gather"};
static const char *const types[] = {"ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",   "ncclInt64",      "ncclUint64",
                                    "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
static const char *const algos[] = {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protos[] = {"LL", "LL128", "SIMPLE"};

static void start(const gccl_profiler *p, void **handle, const gccl_profile_event *e) {
  const profiler_named *n = p->context;
  profiler_descr_v1 d;
  memset(&d, 0, sizeof d);
  PROFILER_FILL_HEAD(&d, e, profiler_old_parent(e));
  switch (e->type) {
  case GCCL_PROFILE_GROUP: break;
  case GCCL_PROFILE_COLL:
    d.coll.name = n->comm.name;
    d.coll.commHash = n->comm.hash;
    d.coll.seqNumber = e->u.coll.number;
    d.coll.func = index_of(e->u.coll.func, funcs, 11, 255);
    d.coll.sendBuff = e->u.coll.send;
    d.coll.recvBuff = e->u.coll.recv;
    d.coll.count = e->u.coll.count;
    d.coll.root = e->u.coll.root;
    d.coll.datatype = index_of(e->u.coll.datatype, types, 12, 255);
    d.coll.nMaxChannels = e->u.coll.nchannels;
    d.coll.nWarps = e->u.coll.nwarps;
    d.coll.algo = index_of(e->u.coll.algo, algos, 7, 255);
    d.coll.proto = index_of(e->u.coll.proto, protos, 3, 255);
    break;
  case GCCL_PROFILE_P2P:
    d.p2p.name = n->comm.name;
    d.p2p.commHash = n->comm.hash;
    d.p2p.func = index_of(e->u.p2p.func, funcs, 11, 255);
    d.p2p.buff = e->u.p2p.buff;
    d.p2p.datatype = index_of(e->u.p2p.datatype, types, 12, 255);
    d.p2p.count = e->u.p2p.count;
    d.p2p.peer = e->u.p2p.peer;
    break;
  case GCCL_PROFILE_PROXY_OP: PROFILER_FILL_PROXY(&d, e); break;
  case GCCL_PROFILE_PROXY_STEP: d.proxyStep.step = e->u.proxy_step.step; break;
  default: return;
  }
  ((const profiler_table_v1 *)p->table)->startEvent(n->context, handle, &d);
}

PROFILER_STOP(1)
PROFILER_OLD_STATE(1)

int profiler_open_v1(const void *table, const profiler_comm *comm, int *mask, gccl_profiler *out) {
  *out = (gccl_profiler){.start = start, .stop = stop, .state = state};
  return profiler_open_named(table, ((const profiler_table_v1 *)table)->init, comm, mask, out);
}
