/* ll_a2a.h: all-to-all of small elements without barriers. Every element travels in 16-byte lines of 8 bytes of data and two flags, so that
 * whoever sees the flag has the data (the LL protocol).
 *
 * A session is opened by all threads of a group on every rank of a team, for the same block; one group of a rank uses a block at a time.
 * In an epoch every rank sends to and receives from every rank of the team (itself may be left out) at slots that the program chooses, each
 * slot of a receiver once; then endEpoch begins the next. An element of b bytes needs ceil(b / 8) lines, maxElts lines apart. */
#ifndef GCCL_DEVICE_LL_A2A_H
#define GCCL_DEVICE_LL_A2A_H

#include "core.h"

/* Slots for maxElts elements of up to maxEltSize bytes: maxElts · ceil(maxEltSize / 8). */
GCCL_HOST_API int ncclLLA2ACalcSlots(int maxElts, int maxEltSize);

/* Requirement for nBlocks blocks of nSlots slots. Fills *outReq, which the caller puts into resourceRequirementsList; *outHandle is
 * complete once ncclDevCommCreate has returned. Counts that are not positive, or NULL: ncclInvalidArgument. */
GCCL_HOST_API ncclResult_t ncclLLA2ACreateRequirement(int nBlocks, int nSlots, ncclLLA2AHandle_t *outHandle,
                                                      ncclDevResourceRequirements_t *outReq);

#if GCCL_DEVICE_KERNELS
template <typename Coop> struct ncclLLA2ASession {
  /* maxElts as given to ncclLLA2ACalcSlots. multimem: bcast stores once by multicast; needs a handle. */
  NCCL_DEVICE_INLINE ncclLLA2ASession(Coop coop, ncclDevComm const &comm, ncclTeam team, ncclLLA2AHandle handle, uint32_t block,
                                      int maxElts, bool multimem = false,
                                      ncclMultimemHandle mmHandle = ncclMultimemHandle() GCCL_DEVICE_CALLER);
  /* Keeps the epoch for the next session; a coop.sync() is in it. endEpoch has been called after the last send or receive. */
  NCCL_DEVICE_INLINE ~ncclLLA2ASession();
  ncclLLA2ASession(ncclLLA2ASession const &) = delete;

  /* Puts data into element elt of rank peer of the team; called by one thread for itself. No order with other memory. */
  template <typename T> NCCL_DEVICE_INLINE void send(int peer, int elt, T data);
  /* The same to all ranks of the team, itself included. */
  template <typename T> NCCL_DEVICE_INLINE void bcast(int elt, T data);
  /* Waits for element elt of this rank and gives it to the calling thread. Undefined contents when the communicator fails. */
  template <typename T> NCCL_DEVICE_INLINE T recv(int elt);
  /* eltCount elements, eltStart, eltStart + eltStride, …, waited for together; MinEltCount <= eltCount <= MaxEltCount. */
  template <int MinEltCount, int MaxEltCount, typename T>
  NCCL_DEVICE_INLINE void recvUnrolled(int eltStart, int eltCount, int eltStride, T (&vals)[MaxEltCount]);
  /* Receives eltCount (at least 1) elements of type Elt and combines eltToAcc of each by reduce, in order, Unroll at a time. */
  template <int Unroll, typename Elt, typename EltToAcc, typename Reduce>
  NCCL_DEVICE_INLINE auto recvReduce(int eltStart, int eltCount, int eltStride, EltToAcc eltToAcc, Reduce reduce)
      -> decltype(eltToAcc(*(Elt const *)nullptr));

  /* Ends the epoch: called by all threads of the group, after each has done its sends and receives. */
  NCCL_DEVICE_INLINE void endEpoch(Coop coop);

private:
  NCCL_DEVICE_INLINE gccl::device::LLLine *lines(void *buffer) const;
  NCCL_DEVICE_INLINE gccl::device::LLLine *blockLine() const;
  NCCL_DEVICE_INLINE void store(gccl::device::LLLine *to, uint32_t const *words, int n) const;
  NCCL_DEVICE_INLINE void checkElement(int elt, int lineCount) const;

  Coop coop_;
  ncclDevComm const &comm_;
  ncclTeam team_;
  ncclLLA2AHandle handle_;
  uint32_t block_;
  int pitch_;
  bool multimem_;
  ncclMultimemHandle mm_;
  uint32_t epoch_;
#ifdef GCCL_DEVICE_DEBUG
  char const *file_;
  int line_;
#endif
};
#endif

#endif
