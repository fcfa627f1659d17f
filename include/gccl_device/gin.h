/* gin.h: operations on memory of ranks that cannot be loaded and stored: put, get, values, signals, counters.
 *
 *   ncclGin gin(comm, 0);                                               // context 0 of the device communicator
 *   gin.put(world, peer, dst, dstOffset, src, srcOffset, bytes, ncclGin_WeakSignalInc{7});
 *   gin.waitSignal(ncclCoopCta(), 7, 1);                                // at the peer
 *
 * Puts, gets and values are asynchronous and have no order among each other. What proves that something has happened:
 *
 *   at the peer   a signal. Weak: the put that it came with is in the peer's memory. Strong: so are all earlier puts of the same context to
 *                 the same peer. Who sees it with acquire (the default of the waits) may read them.
 *   here          a counter: the put that it came with has read its source. flush: the same for everything that the calling threads have
 *                 posted in the context; destinations of gets are filled. Neither says anything of the peer.
 *
 * Signals and counters are numbers, as many as the requirements asked for in each context (ginSignalCount, ginCounterCount), of 64 bits
 * (counters 56); they wrap, and waits compare by distance: value v has reached `least` if (v - least) mod 2^bits is below 2^(bits-1).
 *
 * Threads. coop says which threads make a call together; all of them make it. Their earlier writes to the source are part of the put.
 * givenRelease is the scope at which the caller has released them already, requiredRelease the one that the call needs: the defaults are
 * right where a put follows ordinary stores to its source. thread_scope_system is for a signal behind stores to memory of the CPU or of another GPU;
 * whoever has made a fence for many puts says so with givenRelease, which saves one for each.
 *
 * Who carries it: ncclDevCommCreate chooses, for each peer. `direct`, for peers of the LSA team: the calling threads copy. `gdaki`: the calling
 * threads write a network card's queue. `proxy`: they leave a descriptor for a CPU thread. The meaning is the same.
 *
 * Errors. A window, offset, signal or context that does not exist: with GCCL_DEVICE_DEBUG the kernel ends with a text; without it the
 * carrier finds most of them and fails the communicator. Every wait ends when the communicator fails. */
#ifndef GCCL_DEVICE_GIN_H
#define GCCL_DEVICE_GIN_H

#include "core.h"
#include "impl/gfd.h"
#include "ptr.h"

#if GCCL_DEVICE_KERNELS && !defined(__CUDACC_RTC__)
#include <new>
#endif

/* Which backends a kernel has code for: bit t stands for type t. This library's header has code for all it offers. */
typedef enum ncclNetDeviceType {
  NCCL_NET_DEVICE_HOST = 0,
  NCCL_NET_DEVICE_UNPACK = 1,
  NCCL_NET_DEVICE_GIN_PROXY = 2,
  NCCL_NET_DEVICE_GIN_GDAKI = 3,
  NCCL_NET_DEVICE_GIN_GPI = 4
} ncclNetDeviceType;
#define NCCL_GIN_BACKEND_MASK_ALL (1u << NCCL_NET_DEVICE_GIN_PROXY | 1u << NCCL_NET_DEVICE_GIN_GDAKI)

typedef enum ncclGinSignalOp_t { ncclGinSignalInc = 0, ncclGinSignalAdd = 1 } ncclGinSignalOp_t;

/* Options of an operation. MaySkipCreditCheck: the caller knows that the queue has room. AggregateRequests: more follows for this peer in
 * this context; the carrier may be told later, at the latest by a flush. */
enum ncclGinOptFlags { ncclGinOptFlagsDefault = 0, ncclGinOptFlagsMaySkipCreditCheck = 1 << 0, ncclGinOptFlagsAggregateRequests = 1 << 1 };

#ifdef __cplusplus
/* Which threads use a context at the same time: any of the GPU, those of one CTA, one thread. */
enum ncclGinResourceSharingMode : uint8_t {
  NCCL_GIN_RESOURCE_SHARING_GPU = 0,
  NCCL_GIN_RESOURCE_SHARING_CTA = 1,
  NCCL_GIN_RESOURCE_SHARING_THREAD = 2
};

/* Shared memory that a call may use for a descriptor: one for each calling group. */
struct ncclGinDescriptorSmem {
  alignas(16) char space[64];
};
#endif

#if GCCL_DEVICE_KERNELS

/* No action, no descriptor. */
struct ncclGin_None {};

/* Remote actions: what happens to a signal of the peer. Inc and Add may be mixed. Those without Strong or Weak are old names and strong. */
struct ncclGin_StrongSignalInc {
  ncclGinSignal_t signal;
};
struct ncclGin_WeakSignalInc {
  ncclGinSignal_t signal;
};
struct ncclGin_SignalInc {
  ncclGinSignal_t signal;
};
struct ncclGin_StrongSignalAdd {
  ncclGinSignal_t signal;
  uint64_t value;
};
struct ncclGin_WeakSignalAdd {
  ncclGinSignal_t signal;
  uint64_t value;
};
struct ncclGin_SignalAdd {
  ncclGinSignal_t signal;
  uint64_t value;
};
/* The same on 8 aligned bytes of a window of the peer, in place of a number. */
struct ncclGin_StrongVASignalInc {
  ncclWindow_t signalWindow;
  size_t signalOffset;
};
struct ncclGin_WeakVASignalInc {
  ncclWindow_t signalWindow;
  size_t signalOffset;
};
struct ncclGin_VASignalInc {
  ncclWindow_t signalWindow;
  size_t signalOffset;
};
struct ncclGin_StrongVASignalAdd {
  ncclWindow_t signalWindow;
  size_t signalOffset;
  uint64_t value;
};
struct ncclGin_WeakVASignalAdd {
  ncclWindow_t signalWindow;
  size_t signalOffset;
  uint64_t value;
};
struct ncclGin_VASignalAdd {
  ncclWindow_t signalWindow;
  size_t signalOffset;
  uint64_t value;
};

/* Local actions: a counter of this rank is raised when the source has been read. The second is an old name. */
struct ncclGin_WeakCounterInc {
  ncclGinCounter_t counter;
};
struct ncclGin_CounterInc {
  ncclGinCounter_t counter;
};

struct ncclGin_DescriptorSmem {
  ncclGinDescriptorSmem *descriptor;
};

/* What a buffer's physical memory is made of. Windows of this library have one segment, so that all mean the same. */
struct ncclGin_SegmentDevice {};
struct ncclGin_SegmentMixed {};
struct ncclGin_SegmentHostNuma {};

namespace gccl {
namespace device {
struct GinSignal;
struct GinPut;

/* A context as a thread uses it. */
struct Gin {
  ncclDevComm const &comm;
  uint32_t nConnections : 8, connectionId : 8, _ginBackend : 8;
  uint32_t contextId;
  ncclGinResourceSharingMode resourceSharingMode;
  void *_ginHandle;
  uint64_t *_signalShadows;
  gccl_proxy_context _proxy; /* this context of backend proxy, in registers: a fence would throw it out of the cache */

  NCCL_DEVICE_INLINE Gin(ncclDevComm const &comm, int contextIndex, ncclGinResourceSharingMode mode);

  /* bytes from srcOffset of a window of this rank to dstOffset of a window at rank peer of team; 0 bytes are a put too. */
  template <typename RemoteAction = ncclGin_None, typename LocalAction = ncclGin_None, typename Coop = ncclCoopThread,
            typename Descriptor = ncclGin_None, typename Segment = ncclGin_SegmentDevice>
  NCCL_DEVICE_INLINE void put(ncclTeam team, int peer, ncclWindow_t dstWnd, size_t dstOffset, ncclWindow_t srcWnd, size_t srcOffset,
                              size_t bytes, RemoteAction remoteAction = ncclGin_None{}, LocalAction localAction = ncclGin_None{},
                              Coop coop = ncclCoopThread{}, Descriptor descriptor = ncclGin_None{},
                              cuda::thread_scope givenRelease = cuda::thread_scope_thread,
                              cuda::thread_scope requiredRelease = cuda::thread_scope_device, uint32_t optFlags = ncclGinOptFlagsDefault,
                              Segment segment = ncclGin_SegmentDevice{}) const;
  template <typename T, typename RemoteAction = ncclGin_None, typename LocalAction = ncclGin_None, typename Coop = ncclCoopThread,
            typename Descriptor = ncclGin_None, typename Segment = ncclGin_SegmentDevice>
  NCCL_DEVICE_INLINE void put(ncclTeam team, int peer, ncclSymPtr<T> dst, ncclSymPtr<T> src, size_t nElts,
                              RemoteAction remoteAction = ncclGin_None{}, LocalAction localAction = ncclGin_None{},
                              Coop coop = ncclCoopThread{}, Descriptor descriptor = ncclGin_None{},
                              cuda::thread_scope givenRelease = cuda::thread_scope_thread,
                              cuda::thread_scope requiredRelease = cuda::thread_scope_device, uint32_t optFlags = ncclGinOptFlagsDefault,
                              Segment segment = ncclGin_SegmentDevice{}) const;

  /* A value of 1 to 8 bytes, which is taken during the call: the first thread's. Aligned 8 bytes arrive as one. */
  template <typename T, typename RemoteAction = ncclGin_None, typename Coop = ncclCoopThread, typename Descriptor = ncclGin_None>
  NCCL_DEVICE_INLINE void putValue(ncclTeam team, int peer, ncclWindow_t dstWnd, size_t dstOffset, T value,
                                   RemoteAction remoteAction = ncclGin_None{}, Coop coop = ncclCoopThread{},
                                   Descriptor descriptor = ncclGin_None{}, cuda::thread_scope givenRelease = cuda::thread_scope_thread,
                                   cuda::thread_scope requiredRelease = cuda::thread_scope_device,
                                   uint32_t optFlags = ncclGinOptFlagsDefault) const;
  template <typename T, typename RemoteAction = ncclGin_None, typename Coop = ncclCoopThread, typename Descriptor = ncclGin_None>
  NCCL_DEVICE_INLINE void putValue(ncclTeam team, int peer, ncclSymPtr<T> dst, T value, RemoteAction remoteAction = ncclGin_None{},
                                   Coop coop = ncclCoopThread{}, Descriptor descriptor = ncclGin_None{},
                                   cuda::thread_scope givenRelease = cuda::thread_scope_thread,
                                   cuda::thread_scope requiredRelease = cuda::thread_scope_device,
                                   uint32_t optFlags = ncclGinOptFlagsDefault) const;

  /* A signal alone. */
  template <typename RemoteAction, typename Coop = ncclCoopThread, typename Descriptor = ncclGin_None>
  NCCL_DEVICE_INLINE void signal(ncclTeam team, int peer, RemoteAction remoteAction, Coop coop = ncclCoopThread{},
                                 Descriptor descriptor = ncclGin_None{}, cuda::thread_scope givenRelease = cuda::thread_scope_thread,
                                 cuda::thread_scope requiredRelease = cuda::thread_scope_device,
                                 uint32_t optFlags = ncclGinOptFlagsDefault) const;

  /* bytes from remoteOffset of a window at the peer to localOffset of a window of this rank; complete after a flush, or after the wait
   * for a flushAsync that came later. */
  template <typename Coop = ncclCoopThread, typename Descriptor = ncclGin_None, typename Segment = ncclGin_SegmentDevice>
  NCCL_DEVICE_INLINE void get(ncclTeam team, int peer, ncclWindow_t remoteWnd, size_t remoteOffset, ncclWindow_t localWnd,
                              size_t localOffset, size_t bytes, Coop coop = ncclCoopThread{}, Descriptor descriptor = ncclGin_None{},
                              uint32_t optFlags = ncclGinOptFlagsDefault, Segment segment = ncclGin_SegmentDevice{}) const;

  /* Waits until sources of earlier puts to any peer may be used again, and destinations of gets are filled. */
  template <typename Coop, typename Descriptor = ncclGin_None>
  NCCL_DEVICE_INLINE void flush(Coop coop, cuda::memory_order order = cuda::memory_order_acquire,
                                Descriptor descriptor = ncclGin_None{}) const;
  /* The same for one peer, in two steps. */
  template <typename Coop = ncclCoopThread, typename Descriptor = ncclGin_None>
  NCCL_DEVICE_INLINE void flushAsync(ncclTeam team, uint32_t peer, ncclGinRequest_t *outRequest, Coop coop = ncclCoopThread{},
                                     uint32_t optFlags = ncclGinOptFlagsDefault, Descriptor descriptor = ncclGin_None{}) const;
  template <typename Coop = ncclCoopThread, typename Descriptor = ncclGin_None>
  NCCL_DEVICE_INLINE void wait(ncclGinRequest_t &request, Coop coop = ncclCoopThread{}, Descriptor descriptor = ncclGin_None{},
                               cuda::memory_order order = cuda::memory_order_acquire) const;

  NCCL_DEVICE_INLINE uint64_t readCounter(ncclGinCounter_t counter, int bits = 56, cuda::memory_order order = cuda::memory_order_acquire) const;
  template <typename Coop>
  NCCL_DEVICE_INLINE void waitCounter(Coop coop, ncclGinCounter_t counter, uint64_t least, int bits = 56,
                                      cuda::memory_order order = cuda::memory_order_acquire) const;
  /* Sets it to zero. Nothing may raise it meanwhile. */
  NCCL_DEVICE_INLINE void resetCounter(ncclGinCounter_t counter) const;

  /* A signal of this rank, by number and by place. */
  NCCL_DEVICE_INLINE uint64_t readSignal(ncclGinSignal_t signal, int bits = 64, cuda::memory_order order = cuda::memory_order_acquire) const;
  NCCL_DEVICE_INLINE uint64_t readSignal(ncclWindow_t signalWindow, size_t signalOffset, int bits = 64,
                                         cuda::memory_order order = cuda::memory_order_acquire) const;
  template <typename Coop>
  NCCL_DEVICE_INLINE void waitSignal(Coop coop, ncclGinSignal_t signal, uint64_t least, int bits = 64,
                                     cuda::memory_order order = cuda::memory_order_acquire) const;
  template <typename Coop>
  NCCL_DEVICE_INLINE void waitSignal(Coop coop, ncclWindow_t signalWindow, size_t signalOffset, uint64_t least, int bits = 64,
                                     cuda::memory_order order = cuda::memory_order_acquire) const;
  /* Sets the signal, and its shadow, to zero. Nothing may change it meanwhile. */
  NCCL_DEVICE_INLINE void resetSignal(ncclGinSignal_t signal) const;
  NCCL_DEVICE_INLINE void resetSignal(ncclWindow_t signalWindow, size_t signalOffset) const;

  /* Each signal has a shadow: a word of this rank that outlives kernels, for what the program wants to remember. Only increaseSignalShadow,
   * waitSignalFollowShadow and resetSignal change it. */
  NCCL_DEVICE_INLINE uint64_t *getSignalShadowPtr(ncclGinSignal_t signal) const;
  NCCL_DEVICE_INLINE void increaseSignalShadow(ncclGinSignal_t signal, uint64_t delta) const;
  /* Waits until the signal has reached its shadow. */
  template <typename Coop>
  NCCL_DEVICE_INLINE void waitSignalMeetShadow(Coop coop, ncclGinSignal_t signal, int bits = 64,
                                               cuda::memory_order order = cuda::memory_order_acquire) const;
  /* Waits until the signal is leastDelta past its shadow, sets the shadow to it, and gives the old shadow and the difference. */
  template <typename Coop, typename Uint>
  NCCL_DEVICE_INLINE void waitSignalFollowShadow(Coop coop, ncclGinSignal_t signal, Uint leastDelta, Uint *before, Uint *delta, int bits = 64,
                                                 cuda::memory_order order = cuda::memory_order_acquire) const;

  /* The same with what the templates have found out. */
  template <typename Coop> NCCL_DEVICE_INLINE void run(Coop coop, GinPut const &put) const;
  template <typename Coop> NCCL_DEVICE_INLINE void post(Coop coop, GinPut const &put) const;
  NCCL_DEVICE_INLINE uint64_t value(ncclGinSignal_t signal, cuda::memory_order order) const;
  NCCL_DEVICE_INLINE uint64_t counted(ncclGinCounter_t counter, cuda::memory_order order) const;
  NCCL_DEVICE_INLINE bool direct(int worldPeer) const;
};
} // namespace device
} // namespace gccl

/* backendMask: which backends there is code for. contextIndex: 0 … comm.ginContextCount-1. */
template <unsigned backendMask> struct ncclGin_BackendMask : gccl::device::Gin {
  NCCL_DEVICE_INLINE ncclGin_BackendMask(ncclDevComm const &comm, int contextIndex,
                                         ncclGinResourceSharingMode mode = NCCL_GIN_RESOURCE_SHARING_GPU)
      : gccl::device::Gin(comm, contextIndex, mode) {}
};
template <ncclNetDeviceType backend> using ncclGin_BackendOne = ncclGin_BackendMask<(1u << (int)backend)>;
using ncclGin = ncclGin_BackendMask<NCCL_GIN_BACKEND_MASK_ALL>;

/* ---- The same as functions, for kernels that are no C++ templates ---- */

struct ncclGin_C : gccl::device::Gin {
  unsigned backendMask;
  NCCL_DEVICE_INLINE ncclGin_C(ncclDevComm const &comm, unsigned backendMask_, int contextIndex,
                               ncclGinResourceSharingMode mode = NCCL_GIN_RESOURCE_SHARING_GPU)
      : gccl::device::Gin(comm, contextIndex, mode), backendMask(backendMask_) {}
};

NCCL_DEVICE_INLINE void ncclGin_C_init(ncclGin_C *net, unsigned backendMask, ncclDevComm const &comm, int contextIndex);
NCCL_DEVICE_INLINE void ncclGin_C_initWithResourceSharingMode(ncclGin_C *net, unsigned backendMask, ncclDevComm const &comm, int contextIndex,
                                                              ncclGinResourceSharingMode mode);
NCCL_DEVICE_INLINE void ncclGinPut(ncclGin_C *net, ncclTeam team, int peer, ncclWindow_t dstWin, size_t dstOffset, ncclWindow_t srcWin,
                                   size_t srcOffset, size_t bytes, bool isSignal, ncclGinSignal_t signalId, ncclGinSignalOp_t signalOp,
                                   uint64_t signalOpArg, bool isCounter, ncclGinCounter_t counterId, ncclCoopAny coop, bool isDescriptor,
                                   ncclGinDescriptorSmem *descriptor, cuda::thread_scope givenRelease, cuda::thread_scope requiredRelease);
NCCL_DEVICE_INLINE void ncclGinPut_v2(ncclGin_C *net, ncclTeam team, int peer, ncclWindow_t dstWin, size_t dstOffset, ncclWindow_t srcWin,
                                      size_t srcOffset, size_t bytes, bool isSignal, ncclGinSignal_t signalId, ncclGinSignalOp_t signalOp,
                                      uint64_t signalOpArg, bool isCounter, ncclGinCounter_t counterId, ncclCoopAny coop, bool isDescriptor,
                                      ncclGinDescriptorSmem *descriptor, cuda::thread_scope givenRelease, cuda::thread_scope requiredRelease,
                                      uint32_t optFlags);
/* size: 1, 2, 4 or 8. */
NCCL_DEVICE_INLINE void ncclGinPutValue(ncclGin_C *net, ncclTeam team, int peer, ncclWindow_t dstWin, size_t dstOffset, uint64_t value,
                                        size_t size, bool isSignal, ncclGinSignal_t signalId, ncclGinSignalOp_t signalOp,
                                        uint64_t signalOpArg, ncclCoopAny coop, bool isDescriptor, ncclGinDescriptorSmem *descriptor,
                                        cuda::thread_scope givenRelease, cuda::thread_scope requiredRelease);
NCCL_DEVICE_INLINE void ncclGinPutValue_v2(ncclGin_C *net, ncclTeam team, int peer, ncclWindow_t dstWin, size_t dstOffset, uint64_t value,
                                           size_t size, bool isSignal, ncclGinSignal_t signalId, ncclGinSignalOp_t signalOp,
                                           uint64_t signalOpArg, ncclCoopAny coop, bool isDescriptor, ncclGinDescriptorSmem *descriptor,
                                           cuda::thread_scope givenRelease, cuda::thread_scope requiredRelease, uint32_t optFlags);
NCCL_DEVICE_INLINE void ncclGinSignal(ncclGin_C *net, ncclTeam team, int peer, bool isSignal, ncclGinSignal_t signalId,
                                      ncclGinSignalOp_t signalOp, uint64_t signalOpArg, ncclCoopAny coop, bool isDescriptor,
                                      ncclGinDescriptorSmem *descriptor, cuda::thread_scope givenRelease, cuda::thread_scope requiredRelease);
NCCL_DEVICE_INLINE void ncclGinSignal_v2(ncclGin_C *net, ncclTeam team, int peer, bool isSignal, ncclGinSignal_t signalId,
                                         ncclGinSignalOp_t signalOp, uint64_t signalOpArg, ncclCoopAny coop, bool isDescriptor,
                                         ncclGinDescriptorSmem *descriptor, cuda::thread_scope givenRelease,
                                         cuda::thread_scope requiredRelease, uint32_t optFlags);
NCCL_DEVICE_INLINE void ncclGinGet(ncclGin_C *net, ncclTeam team, int peer, ncclWindow_t remoteWnd, size_t remoteOffset,
                                   ncclWindow_t localWnd, size_t localOffset, size_t bytes, ncclCoopAny coop, bool isDescriptor,
                                   ncclGinDescriptorSmem *descriptor, uint32_t optFlags);
NCCL_DEVICE_INLINE void ncclGinFlush(ncclGin_C *net, ncclCoopAny coop, cuda::memory_order order);
NCCL_DEVICE_INLINE uint64_t ncclGinReadCounter(ncclGin_C *net, ncclGinCounter_t counter, int bits, cuda::memory_order order);
NCCL_DEVICE_INLINE void ncclGinWaitCounter(ncclGin_C *net, ncclCoopAny coop, ncclGinCounter_t counter, uint64_t least, int bits,
                                           cuda::memory_order order);
NCCL_DEVICE_INLINE uint64_t ncclGinReadSignal(ncclGin_C *net, ncclGinSignal_t signal, int bits, cuda::memory_order order);
NCCL_DEVICE_INLINE void ncclGinWaitSignal(ncclGin_C *net, ncclCoopAny coop, ncclGinSignal_t signal, uint64_t least, int bits,
                                          cuda::memory_order order);
NCCL_DEVICE_INLINE void ncclGinResetCounter(ncclGin_C *net, ncclGinCounter_t counter);
NCCL_DEVICE_INLINE void ncclGinResetSignal(ncclGin_C *net, ncclGinSignal_t signal);
NCCL_DEVICE_INLINE uint64_t *ncclGinGetSignalShadowPtr(ncclGin_C *net, ncclGinSignal_t signal);

#endif
#endif
