/* One rank on host memory: make a communicator, all-reduce, check the sum. For programs linked with the library. */
#ifndef HOST_RANK_H
#define HOST_RANK_H

#include <nccl.h>

#include "abi_check.h"

#define TRY(call)                                                                             \
  do {                                                                                        \
    ncclResult_t try_rc = (call);                                                             \
    CHECK(try_rc == ncclSuccess, "%s: %s (%s)", #call, ncclGetErrorString(try_rc), ncclGetLastError(NULL)); \
  } while (0)

static inline ncclComm_t host_comm(void) {
  ncclUniqueId id;
  ncclComm_t comm = NULL;
  TRY(gcclSetDeviceKind(gcclDeviceHost));
  TRY(ncclGetUniqueId(&id));
  TRY(ncclCommInitRank(&comm, 1, id, 0));
  return comm;
}

static inline void host_all_reduce(ncclComm_t comm) {
  float in[5] = {1, 2, 3, 4, 5}, out[5] = {0, 0, 0, 0, 0};
  TRY(ncclAllReduce(in, out, 5, ncclFloat, ncclSum, comm, NULL));
  for (int i = 0; i < 5; i++) CHECK(out[i] == in[i], "element %d is %g, want %g", i, out[i], in[i]);
}

static inline void host_round(void) {
  ncclComm_t comm = host_comm();
  host_all_reduce(comm);
  TRY(ncclCommDestroy(comm));
}

#endif
