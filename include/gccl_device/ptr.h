/* ptr.h: ncclSymPtr, a place in a window that means something on every rank: a window and a byte offset, with the arithmetic of a T*. */
#ifndef GCCL_DEVICE_PTR_H
#define GCCL_DEVICE_PTR_H

#include "impl/core_funcs.h"

#ifdef __cplusplus

template <typename T> struct ncclSymPtr {
  using ElementType = T;
  ncclWindow_t window;
  size_t offset; /* bytes */

  NCCL_HOST_DEVICE_INLINE constexpr ncclSymPtr(ncclWindow_t window_ = nullptr, size_t offset_ = 0) : window(window_), offset(offset_) {}

  /* The same place as another type. */
  template <typename U> NCCL_HOST_DEVICE_INLINE operator ncclSymPtr<U>() const { return ncclSymPtr<U>(window, offset); }

  /* Moves by d elements. */
  template <typename Int> NCCL_HOST_DEVICE_INLINE ncclSymPtr &operator+=(Int d) {
    offset += (size_t)d * sizeof(T);
    return *this;
  }
  template <typename Int> NCCL_HOST_DEVICE_INLINE ncclSymPtr &operator-=(Int d) {
    offset -= (size_t)d * sizeof(T);
    return *this;
  }

#if GCCL_DEVICE_KERNELS
  /* Addresses, as the functions of core.h give them. localPtr of a pointer without a window takes the offset for an address. */
  NCCL_DEVICE_INLINE T *localPtr(GCCL_DEVICE_CALLER_ONLY) const {
    return static_cast<T *>(window ? ncclGetLocalPointer(window, offset GCCL_DEVICE_CALLER_PASS) : reinterpret_cast<void *>(offset));
  }
  NCCL_DEVICE_INLINE T *lsaPtr(int peer GCCL_DEVICE_CALLER) const {
    return static_cast<T *>(ncclGetLsaPointer(window, offset, peer GCCL_DEVICE_CALLER_PASS));
  }
  NCCL_DEVICE_INLINE T *peerPtr(int peer GCCL_DEVICE_CALLER) const {
    return static_cast<T *>(ncclGetPeerPointer(window, offset, peer GCCL_DEVICE_CALLER_PASS));
  }
  NCCL_DEVICE_INLINE T *peerPtr(ncclTeam team, int peer GCCL_DEVICE_CALLER) const {
    return static_cast<T *>(ncclGetPeerPointer(window, offset, team, peer GCCL_DEVICE_CALLER_PASS));
  }
  NCCL_DEVICE_INLINE T *multimemPtr(ncclMultimemHandle multimem GCCL_DEVICE_CALLER) const {
    return static_cast<T *>(ncclGetMultimemPointer(window, offset, multimem GCCL_DEVICE_CALLER_PASS));
  }
  NCCL_DEVICE_INLINE T *lsaMultimemPtr(ncclDevComm const &comm GCCL_DEVICE_CALLER) const {
    return static_cast<T *>(ncclGetLsaMultimemPointer(window, offset, comm GCCL_DEVICE_CALLER_PASS));
  }
#endif
};

template <typename T, typename Int> NCCL_HOST_DEVICE_INLINE ncclSymPtr<T> operator+(ncclSymPtr<T> p, Int d) { return p += d; }
template <typename T, typename Int> NCCL_HOST_DEVICE_INLINE ncclSymPtr<T> operator-(ncclSymPtr<T> p, Int d) { return p -= d; }
/* Distance in elements; both in one window. */
template <typename T> NCCL_HOST_DEVICE_INLINE ptrdiff_t operator-(ncclSymPtr<T> a, ncclSymPtr<T> b) {
  return (ptrdiff_t)(a.offset - b.offset) / (ptrdiff_t)sizeof(T);
}
template <typename T> NCCL_HOST_DEVICE_INLINE bool operator==(ncclSymPtr<T> a, ncclSymPtr<T> b) {
  return a.window == b.window && a.offset == b.offset;
}
template <typename T> NCCL_HOST_DEVICE_INLINE bool operator!=(ncclSymPtr<T> a, ncclSymPtr<T> b) { return !(a == b); }

#if GCCL_DEVICE_KERNELS
/* A resource buffer as a place in the resource window. */
NCCL_DEVICE_INLINE ncclSymPtr<char> ncclGetResourceBuffer(ncclDevComm const &comm, ncclDevResourceHandle handle) {
  return ncclSymPtr<char>(comm.resourceWindow, ncclGetResourceBufferOffset(handle));
}
#endif

#endif
#endif
