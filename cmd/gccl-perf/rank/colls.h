/* The collectives: how much each rank sends and receives, and the call. */
#ifndef GCCL_PERF_COLLS_H
#define GCCL_PERF_COLLS_H

#include <stddef.h>

#include "nccl.h"

struct perf_call {
  const void *send;
  void *recv;
  size_t count;
  size_t type_bytes;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root, rank, nranks;
  ncclComm_t comm;
  cudaStream_t stream;
};

struct perf_coll {
  const char *name;
  int sends_all;    /* the send buffer holds nranks blocks of count elements, else one */
  int receives_all; /* the same for the receive buffer */
  int reduces;      /* the operator counts */
  int to_root;      /* only the root receives */
  int from_root;    /* only the root sends */
  ncclResult_t (*run)(const struct perf_call *c, const char **failed_call);
};

/* NULL where the name is unknown. */
const struct perf_coll *perf_coll_find(const char *name);

#endif
