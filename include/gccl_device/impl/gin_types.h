/* gin_types.h: what an operation of GIN comes to, once the templates have looked at the types of its actions. */
#ifndef GCCL_DEVICE_IMPL_GIN_TYPES_H
#define GCCL_DEVICE_IMPL_GIN_TYPES_H

#include "../gin.h"

#if GCCL_DEVICE_KERNELS
namespace gccl {
namespace device {

/* The change of a signal. */
struct GinSignal {
  enum Kind : uint8_t { none, byNumber, byPlace } kind;
  bool strong;
  ncclGinSignal_t number;
  ncclWindow_t window;
  size_t offset;
  uint64_t add;
};

struct GinPut {
  enum What : uint8_t { put, value, get, signalOnly } what;
  bool counts;
  uint8_t mode; /* ncclGinResourceSharingMode */
  enum Fence : uint8_t { unfenced, forDevice, forSystem } fence; /* before the carrier is told: what the group wrote is part of it */
  int peer;     /* of the communicator */
  ncclWindow_t remote, local;
  size_t remoteOffset, localOffset, bytes;
  uint64_t bits; /* of value */
  GinSignal signal;
  ncclGinCounter_t counter;
  uint32_t flags;
};

NCCL_DEVICE_INLINE GinSignal numbered(ncclGinSignal_t number, uint64_t add, bool strong) {
  return GinSignal{GinSignal::byNumber, strong, number, nullptr, 0, add};
}
NCCL_DEVICE_INLINE GinSignal placed(ncclWindow_t window, size_t offset, uint64_t add, bool strong) {
  return GinSignal{GinSignal::byPlace, strong, 0, window, offset, add};
}

/* legacy: whether the old names are strong. */
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_None, bool) { return GinSignal{GinSignal::none, false, 0, nullptr, 0, 0}; }
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_StrongSignalInc a, bool) { return numbered(a.signal, 1, true); }
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_WeakSignalInc a, bool) { return numbered(a.signal, 1, false); }
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_SignalInc a, bool legacy) { return numbered(a.signal, 1, legacy); }
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_StrongSignalAdd a, bool) { return numbered(a.signal, a.value, true); }
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_WeakSignalAdd a, bool) { return numbered(a.signal, a.value, false); }
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_SignalAdd a, bool legacy) { return numbered(a.signal, a.value, legacy); }
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_StrongVASignalInc a, bool) { return placed(a.signalWindow, a.signalOffset, 1, true); }
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_WeakVASignalInc a, bool) { return placed(a.signalWindow, a.signalOffset, 1, false); }
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_VASignalInc a, bool legacy) { return placed(a.signalWindow, a.signalOffset, 1, legacy); }
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_StrongVASignalAdd a, bool) { return placed(a.signalWindow, a.signalOffset, a.value, true); }
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_WeakVASignalAdd a, bool) { return placed(a.signalWindow, a.signalOffset, a.value, false); }
NCCL_DEVICE_INLINE GinSignal signalOf(ncclGin_VASignalAdd a, bool legacy) { return placed(a.signalWindow, a.signalOffset, a.value, legacy); }

struct GinCount {
  bool counts;
  ncclGinCounter_t counter;
};
NCCL_DEVICE_INLINE GinCount countOf(ncclGin_None) { return GinCount{false, 0}; }
NCCL_DEVICE_INLINE GinCount countOf(ncclGin_WeakCounterInc a) { return GinCount{true, a.counter}; }
NCCL_DEVICE_INLINE GinCount countOf(ncclGin_CounterInc a) { return GinCount{true, a.counter}; }

/* Orders everything before against everything after, for all of the system. */
NCCL_DEVICE_INLINE void fenceSystem() {
#if defined(GCCL_DEVICE_CPU)
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst);
#else
  __threadfence_system();
#endif
}

/* The same for this device alone. */
NCCL_DEVICE_INLINE void fenceDevice() {
#if defined(GCCL_DEVICE_CPU)
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst);
#else
  __threadfence();
#endif
}

/* Stores v where the word is `is`; returns what it was. Relaxed. */
NCCL_DEVICE_INLINE uint32_t compareExchange(uint32_t *word, uint32_t is, uint32_t v) {
#if defined(GCCL_DEVICE_CPU)
  __atomic_compare_exchange_n(word, &is, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return is;
#else
  return atomicCAS(word, is, v);
#endif
}

/* Whether a value of so many bits has come to another, in a circle. */
NCCL_DEVICE_INLINE uint64_t lowBits(int bits) { return bits >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1; }
NCCL_DEVICE_INLINE bool reached(uint64_t value, uint64_t least, int bits) {
  uint64_t m = lowBits(bits);
  return ((value - least) & m) <= m >> 1;
}

} // namespace device
} // namespace gccl
#endif
#endif
