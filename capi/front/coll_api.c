/* The public symbols of coll.c. In a file of their own, which is compiled without link-time optimisation: gcc 12 makes weak
 * aliases strong with it. */
#include "front.h"
#include "nvtx.h"

GCCL_API(ncclResult_t, ncclAllReduce, const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
         ncclComm_t comm, cudaStream_t stream) {
  GCCL_RANGE("ncclAllReduce", count, datatype);
  return gccl_group_note(gccl_all_reduce(sendbuff, recvbuff, count, datatype, op, comm, stream));
}

GCCL_API(ncclResult_t, ncclReduceScatter, const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op,
         ncclComm_t comm, cudaStream_t stream) {
  GCCL_RANGE("ncclReduceScatter", recvcount, datatype);
  return gccl_group_note(
      gccl_collective(GCCL_REDUCE_SCATTER, sendbuff, recvbuff, recvcount, datatype, op, 0, comm, stream, "ncclReduceScatter"));
}

GCCL_API(ncclResult_t, ncclAllGather, const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype, ncclComm_t comm,
         cudaStream_t stream) {
  GCCL_RANGE("ncclAllGather", sendcount, datatype);
  return gccl_group_note(
      gccl_collective(GCCL_ALL_GATHER, sendbuff, recvbuff, sendcount, datatype, ncclSum, 0, comm, stream, "ncclAllGather"));
}

GCCL_API(ncclResult_t, ncclBroadcast, const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
         ncclComm_t comm, cudaStream_t stream) {
  GCCL_RANGE("ncclBroadcast", count, datatype);
  return gccl_group_note(
      gccl_collective(GCCL_BROADCAST, sendbuff, recvbuff, count, datatype, ncclSum, root, comm, stream, "ncclBroadcast"));
}

GCCL_API(ncclResult_t, ncclBcast, void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream) {
  GCCL_RANGE("ncclBcast", count, datatype);
  return gccl_group_note(gccl_collective(GCCL_BROADCAST, buff, buff, count, datatype, ncclSum, root, comm, stream, "ncclBcast"));
}

GCCL_API(ncclResult_t, ncclReduce, const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op, int root,
         ncclComm_t comm, cudaStream_t stream) {
  GCCL_RANGE("ncclReduce", count, datatype);
  return gccl_group_note(gccl_collective(GCCL_REDUCE, sendbuff, recvbuff, count, datatype, op, root, comm, stream, "ncclReduce"));
}

GCCL_API(ncclResult_t, ncclAlltoAll, const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
         cudaStream_t stream) {
  GCCL_RANGE("ncclAlltoAll", count, datatype);
  return gccl_group_note(gccl_collective(GCCL_ALL_TO_ALL, sendbuff, recvbuff, count, datatype, ncclSum, 0, comm, stream, "ncclAlltoAll"));
}

GCCL_API(ncclResult_t, ncclGather, const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
         cudaStream_t stream) {
  GCCL_RANGE("ncclGather", count, datatype);
  return gccl_group_note(gccl_collective(GCCL_GATHER, sendbuff, recvbuff, count, datatype, ncclSum, root, comm, stream, "ncclGather"));
}

GCCL_API(ncclResult_t, ncclScatter, const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
         cudaStream_t stream) {
  GCCL_RANGE("ncclScatter", count, datatype);
  return gccl_group_note(gccl_collective(GCCL_SCATTER, sendbuff, recvbuff, count, datatype, ncclSum, root, comm, stream, "ncclScatter"));
}

GCCL_API(ncclResult_t, ncclSend, const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
         cudaStream_t stream) {
  GCCL_RANGE("ncclSend", count, datatype);
  return gccl_group_note(gccl_message(GCCL_DO_SEND, sendbuff, NULL, count, datatype, peer, comm, stream, "ncclSend"));
}

GCCL_API(ncclResult_t, ncclRecv, void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm, cudaStream_t stream) {
  GCCL_RANGE("ncclRecv", count, datatype);
  return gccl_group_note(gccl_message(GCCL_DO_RECV, NULL, recvbuff, count, datatype, peer, comm, stream, "ncclRecv"));
}

GCCL_API(ncclResult_t, ncclPutSignal, const void *localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin,
         size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream) {
  GCCL_RANGE("ncclPutSignal", count, datatype);
  return gccl_group_note(
      gccl_onesided(localbuff, count, datatype, peer, peerWin, peerWinOffset, 1, sigIdx, ctx, flags, comm, stream, "ncclPutSignal"));
}

GCCL_API(ncclResult_t, ncclSignal, int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream) {
  GCCL_RANGE_OF("ncclSignal");
  return gccl_group_note(gccl_onesided(NULL, 0, ncclInt8, peer, NULL, 0, 0, sigIdx, ctx, flags, comm, stream, "ncclSignal"));
}

GCCL_API(ncclResult_t, ncclWaitSignal, int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream) {
  GCCL_RANGE_OF("ncclWaitSignal");
  return gccl_group_note(gccl_wait_signal(nDesc, signalDescs, comm, stream));
}
