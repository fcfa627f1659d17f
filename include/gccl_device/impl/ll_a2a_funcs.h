/* ll_a2a_funcs.h: code of ll_a2a.h.
 *
 * A block is 1 + 2·nSlots lines of 16 bytes: the first keeps the number of epochs so far; then the slots of even epochs and those of odd
 * ones. The flag of a line is the epoch's number, from 2 on, so that fresh (zero) memory is of no epoch. Slots of one parity are used again
 * two epochs later: by then every rank has received in between from every other, which had therefore emptied them. */
#ifndef GCCL_DEVICE_IMPL_LL_A2A_FUNCS_H
#define GCCL_DEVICE_IMPL_LL_A2A_FUNCS_H

#include "../ll_a2a.h"
#include "core_funcs.h"

#if GCCL_DEVICE_KERNELS

template <typename Coop>
NCCL_DEVICE_INLINE ncclLLA2ASession<Coop>::ncclLLA2ASession(Coop coop, ncclDevComm const &comm, ncclTeam team, ncclLLA2AHandle handle,
                                                            uint32_t block, int maxElts, bool multimem,
                                                            ncclMultimemHandle mmHandle GCCL_DEVICE_CALLER_DEF)
    : coop_(coop), comm_(comm), team_(team), handle_(handle), block_(block), pitch_(maxElts),
      multimem_(multimem && gccl::device::multicast), mm_(mmHandle), epoch_(0) {
#ifdef GCCL_DEVICE_DEBUG
  file_ = gcclFile;
  line_ = gcclLine;
  if (multimem && !mmHandle.mcBasePtr)
    gccl::device::fail(file_, line_, "an LL all-to-all by multicast without a multicast handle", comm.resourceWindow, block, comm.rank);
  gcclDevComm_own const *own = comm.resourceWindow_inlined.gcclOwn;
  if (own && (uint64_t)handle.bufHandle * 128 + (uint64_t)(block + 1) * (1 + 2 * handle.nSlots) * 16 > own->resourceBytes)
    gccl::device::fail(file_, line_, "the block of the LL all-to-all is past the end of its buffer", comm.resourceWindow, block, comm.rank);
#endif
  epoch_ = blockLine()->lo + 2;
}

template <typename Coop> NCCL_DEVICE_INLINE ncclLLA2ASession<Coop>::~ncclLLA2ASession() {
  if (coop_.thread_rank() == 0) blockLine()->lo = epoch_ - 2;
  coop_.sync();
}

template <typename Coop> NCCL_DEVICE_INLINE gccl::device::LLLine *ncclLLA2ASession<Coop>::blockLine() const {
  return static_cast<gccl::device::LLLine *>(ncclGetResourceBufferLocalPointer(comm_, handle_.bufHandle)) +
         block_ * (1 + 2 * handle_.nSlots);
}

/* The slots of this epoch in a buffer. */
template <typename Coop> NCCL_DEVICE_INLINE gccl::device::LLLine *ncclLLA2ASession<Coop>::lines(void *buffer) const {
  return static_cast<gccl::device::LLLine *>(buffer) + block_ * (1 + 2 * handle_.nSlots) + 1 + (epoch_ & 1) * handle_.nSlots;
}

template <typename Coop> NCCL_DEVICE_INLINE void ncclLLA2ASession<Coop>::checkElement(int elt, int lineCount) const {
#ifdef GCCL_DEVICE_DEBUG
  if (elt < 0 || elt >= pitch_ || (uint32_t)(elt + (lineCount - 1) * pitch_) >= handle_.nSlots)
    gccl::device::fail(file_, line_, "the element of the LL all-to-all is past its slots", comm_.resourceWindow, (unsigned)elt, comm_.rank);
#else
  (void)elt;
  (void)lineCount;
#endif
}

template <typename Coop>
NCCL_DEVICE_INLINE void ncclLLA2ASession<Coop>::store(gccl::device::LLLine *to, uint32_t const *words, int n) const {
  GCCL_UNROLL()
  for (int i = 0; i < n; i++) gccl::device::storeLine(to + i * pitch_, words[2 * i], words[2 * i + 1], epoch_);
}

namespace gccl {
namespace device {
/* A value as pairs of words; the last pair is filled with zeroes. */
template <typename T> struct Words {
  enum { n = (sizeof(T) + 7) / 8 };
  uint32_t word[2 * n];
  NCCL_DEVICE_INLINE explicit Words(T const &v) {
    word[2 * n - 1] = word[2 * n - 2] = 0;
    memcpy(word, &v, sizeof(T));
  }
};
} // namespace device
} // namespace gccl

template <typename Coop> template <typename T> NCCL_DEVICE_INLINE void ncclLLA2ASession<Coop>::send(int peer, int elt, T data) {
  gccl::device::Words<T> w(data);
  checkElement(elt, w.n);
  store(lines(ncclGetResourceBufferPeerPointer(comm_, handle_.bufHandle, team_, peer)) + elt, w.word, w.n);
}

template <typename Coop> template <typename T> NCCL_DEVICE_INLINE void ncclLLA2ASession<Coop>::bcast(int elt, T data) {
  gccl::device::Words<T> w(data);
  checkElement(elt, w.n);
  if (multimem_) {
    store(lines(ncclGetResourceBufferMultimemPointer(comm_, handle_.bufHandle, mm_)) + elt, w.word, w.n);
    return;
  }
  int peer = team_.rank; /* every rank begins with another */
  for (int i = 0; i < team_.nRanks; i++) {
    store(lines(ncclGetResourceBufferPeerPointer(comm_, handle_.bufHandle, team_, peer)) + elt, w.word, w.n);
    if (++peer == team_.nRanks) peer = 0;
  }
}

template <typename Coop>
template <int MinEltCount, int MaxEltCount, typename T>
NCCL_DEVICE_INLINE void ncclLLA2ASession<Coop>::recvUnrolled(int eltStart, int eltCount, int eltStride, T (&vals)[MaxEltCount]) {
  constexpr int n = gccl::device::Words<T>::n;
  gccl::device::LLLine const *from = lines(ncclGetResourceBufferLocalPointer(comm_, handle_.bufHandle)) + eltStart;
  gccl::device::LLLine got[MaxEltCount][n];
  gccl::device::Wait wait(comm_.abortFlag, "LL all-to-all element", (uint64_t)eltStart, -1);
  checkElement(eltStart, n);
  for (;;) {
    uint32_t seen = epoch_;
    GCCL_UNROLL()
    for (int e = 0; e < MaxEltCount; e++) {
      if (e >= MinEltCount && e >= eltCount) break;
      GCCL_UNROLL()
      for (int i = 0; i < n; i++) got[e][i] = gccl::device::loadLine(from + e * eltStride + i * pitch_);
    }
    GCCL_UNROLL()
    for (int e = 0; e < MaxEltCount; e++) {
      if (e >= MinEltCount && e >= eltCount) break;
      GCCL_UNROLL()
      for (int i = 0; i < n; i++) {
        if (got[e][i].loFlag != epoch_) seen = got[e][i].loFlag;
        if (got[e][i].hiFlag != epoch_) seen = got[e][i].hiFlag;
      }
    }
    if (seen == epoch_ || wait.over(epoch_, seen)) break;
  }
  GCCL_UNROLL()
  for (int e = 0; e < MaxEltCount; e++) {
    if (e >= MinEltCount && e >= eltCount) break;
    uint32_t word[2 * n];
    GCCL_UNROLL()
    for (int i = 0; i < n; i++) {
      word[2 * i] = got[e][i].lo;
      word[2 * i + 1] = got[e][i].hi;
    }
    memcpy(&vals[e], word, sizeof(T));
  }
}

template <typename Coop> template <typename T> NCCL_DEVICE_INLINE T ncclLLA2ASession<Coop>::recv(int elt) {
  T v[1];
  this->template recvUnrolled<1, 1>(elt, 1, 0, v);
  return v[0];
}

template <typename Coop>
template <int Unroll, typename Elt, typename EltToAcc, typename Reduce>
NCCL_DEVICE_INLINE auto ncclLLA2ASession<Coop>::recvReduce(int eltStart, int eltCount, int eltStride, EltToAcc eltToAcc, Reduce reduce)
    -> decltype(eltToAcc(*(Elt const *)nullptr)) {
  Elt got[Unroll];
  int n = eltCount < Unroll ? eltCount : Unroll;
  this->template recvUnrolled<1, Unroll>(eltStart, n, eltStride, got);
  auto acc = eltToAcc(got[0]);
  GCCL_UNROLL()
  for (int j = 1; j < Unroll; j++)
    if (j < n) acc = reduce(acc, eltToAcc(got[j]));
  for (int i = n; i < eltCount; i += n) {
    n = eltCount - i < Unroll ? eltCount - i : Unroll;
    this->template recvUnrolled<1, Unroll>(eltStart + i * eltStride, n, eltStride, got);
    GCCL_UNROLL()
    for (int j = 0; j < Unroll; j++)
      if (j < n) acc = reduce(acc, eltToAcc(got[j]));
  }
  return acc;
}

template <typename Coop> NCCL_DEVICE_INLINE void ncclLLA2ASession<Coop>::endEpoch(Coop) {
  coop_.sync();                /* all threads have received */
  if (epoch_ >= 0xfffffffeu) { /* the last epoch of each parity before the numbers begin anew: clear its flags, which will come again */
    gccl::device::LLLine *slot = lines(ncclGetResourceBufferLocalPointer(comm_, handle_.bufHandle));
    for (uint32_t i = (uint32_t)coop_.thread_rank(); i < handle_.nSlots; i += (uint32_t)coop_.size())
      gccl::device::storeLine(slot + i, 0, 0, 0);
    __threadfence_system(); /* before this rank's next send, which lets peers use the slots */
    coop_.sync();
  }
  epoch_ += epoch_ == 0xffffffffu ? 3 : 1; /* 2 follows: 0 and 1 are no epochs */
}

#endif
#endif
