/* gin_funcs.h: code of gin.h: from the calls to an operation (GinPut), and from there to the backend of the peer. */
#ifndef GCCL_DEVICE_IMPL_GIN_FUNCS_H
#define GCCL_DEVICE_IMPL_GIN_FUNCS_H

#include "gin_direct.h"
#include "gin_gdaki.h"
#include "gin_proxy.h"

#if GCCL_DEVICE_KERNELS

#ifdef GCCL_DEVICE_DEBUG
#define GCCL_GIN_CHECK(OK, WHAT, NUMBER) \
  if (!(OK)) fail(__FILE__, __LINE__, WHAT, nullptr, (unsigned long long)(NUMBER), comm.rank)
#define GCCL_GIN_CHECK_RANGE(W, OFFSET, BYTES) checkRange(comm, W, OFFSET, BYTES)
#else
#define GCCL_GIN_CHECK(OK, WHAT, NUMBER) (void)0
#define GCCL_GIN_CHECK_RANGE(W, OFFSET, BYTES) (void)0
#endif

namespace gccl {
namespace device {

#ifdef GCCL_DEVICE_DEBUG
/* A range of this rank's part of a window of this communicator; the parts of other ranks may be longer or shorter, and are checked by the
 * carrier. */
NCCL_DEVICE_INLINE void checkRange(ncclDevComm const &comm, ncclWindow_t w, size_t offset, size_t bytes) {
  gcclWindow_device const *d = reinterpret_cast<gcclWindow_device const *>(w);
  if (!w || d->magic != GCCL_DEVICE_WINDOW_MAGIC) return fail(__FILE__, __LINE__, "not a window of this library", w, offset, comm.rank);
  gcclDevComm_own const *own = comm.resourceWindow_inlined.gcclOwn;
  if (own && own->owner != d->owner) return fail(__FILE__, __LINE__, "a window of another communicator", w, offset, comm.rank);
  if (offset > d->size || bytes > d->size - offset) fail(__FILE__, __LINE__, "a range past the end of the window", w, offset + bytes, comm.rank);
}
#endif

NCCL_DEVICE_INLINE Gin::Gin(ncclDevComm const &comm_, int contextIndex, ncclGinResourceSharingMode mode)
    : comm(comm_), nConnections(comm_.ginConnectionCount), connectionId(0), _ginBackend(comm_.ginNetDeviceTypes[0]),
      contextId((uint32_t)contextIndex), resourceSharingMode(mode), _ginHandle(comm_.ginHandles[0]),
      _signalShadows(comm_.ginSignalShadows + (size_t)contextIndex * (size_t)comm_.ginSignalCount), _proxy() {
  if (proxied(*this)) _proxy = proxyLoad(static_cast<gccl_proxy_context const *>(_ginHandle) + contextIndex);
  GCCL_GIN_CHECK((uint32_t)contextIndex < comm.ginContextCount, "no such GIN context", contextIndex);
}

NCCL_DEVICE_INLINE bool Gin::direct(int worldPeer) const {
  int lsaPeer = comm.lsaRank + worldPeer - comm.rank;
  return directOf(comm) && lsaPeer >= 0 && lsaPeer < comm.lsaSize;
}

template <typename Coop> NCCL_DEVICE_INLINE void Gin::run(Coop coop, GinPut const &p) const {
  GCCL_GIN_CHECK(p.peer >= 0 && p.peer < comm.nRanks, "no such rank", p.peer);
  GCCL_GIN_CHECK(p.signal.kind != GinSignal::byNumber || p.signal.number < (uint32_t)comm.ginSignalCount, "no such signal", p.signal.number);
  GCCL_GIN_CHECK(!p.counts || p.counter < (uint32_t)comm.ginCounterCount, "no such counter", p.counter);
#ifdef GCCL_DEVICE_DEBUG
  if (p.what != GinPut::signalOnly && p.bytes) {
    GCCL_GIN_CHECK_RANGE(p.remote, p.remoteOffset, p.peer == comm.rank ? p.bytes : 0);
    if (p.what != GinPut::value) GCCL_GIN_CHECK_RANGE(p.local, p.localOffset, p.bytes);
  }
  if (p.signal.kind == GinSignal::byPlace) GCCL_GIN_CHECK(p.signal.offset % 8 == 0, "a signal that is not aligned to 8 bytes", p.signal.offset);
#endif
  coop.sync();
  if (direct(p.peer)) {
    runDirect(*this, coop, p);
    if (placeByBackend(*this, p)) {
      GinPut alone = p;
      alone.what = GinPut::signalOnly;
      alone.bytes = 0;
      alone.counts = false;
      alone.fence = GinPut::forSystem; /* the group has just stored to the peer */
      coop.sync();
      post(coop, alone);
    }
  } else {
    GCCL_GIN_CHECK(_ginHandle != nullptr, "GIN to a rank that nothing carries to", p.peer);
    post(coop, p);
  }
  coop.sync();
}

/* Tells the carrier. */
template <typename Coop> NCCL_DEVICE_INLINE void Gin::post(Coop coop, GinPut const &p) const {
  if (coop.thread_rank() == 0 && p.fence == GinPut::forDevice) fenceDevice();
  if (coop.thread_rank() == 0 && p.fence == GinPut::forSystem) fenceSystem();
  if (proxied(*this))
    runProxyOf(*this, coop, p);
  else if (coop.thread_rank() == 0)
    runGdaki(*this, p);
}

NCCL_DEVICE_INLINE GinPut operation(Gin const &gin, GinPut::What what, ncclTeam team, int peer, ncclWindow_t remote, size_t remoteOffset,
                                    ncclWindow_t local, size_t localOffset, size_t bytes, uint64_t bits, GinSignal signal, GinCount count,
                                    uint32_t flags, cuda::thread_scope given = cuda::thread_scope_thread,
                                    cuda::thread_scope required = cuda::thread_scope_device) {
  GinPut p;
  p.what = what;
  p.counts = count.counts;
  p.mode = (uint8_t)gin.resourceSharingMode;
  p.fence = (int)given <= (int)required ? GinPut::unfenced : required == cuda::thread_scope_system ? GinPut::forSystem : GinPut::forDevice;
  p.peer = ncclTeamRankToWorld(gin.comm, team, peer);
  p.remote = remote;
  p.local = local;
  p.remoteOffset = remoteOffset;
  p.localOffset = localOffset;
  p.bytes = bytes;
  p.bits = bits;
  p.signal = signal;
  p.counter = count.counter;
  p.flags = flags;
  return p;
}

/* ---- Operations ---- */

template <typename RemoteAction, typename LocalAction, typename Coop, typename Descriptor, typename Segment>
NCCL_DEVICE_INLINE void Gin::put(ncclTeam team, int peer, ncclWindow_t dstWnd, size_t dstOffset, ncclWindow_t srcWnd, size_t srcOffset,
                                 size_t bytes, RemoteAction remoteAction, LocalAction localAction, Coop coop, Descriptor,
                                 cuda::thread_scope given, cuda::thread_scope required, uint32_t optFlags, Segment) const {
  run(coop, operation(*this, GinPut::put, team, peer, dstWnd, dstOffset, srcWnd, srcOffset, bytes, 0,
                      signalOf(remoteAction, comm.ginStrongLegacySignals), countOf(localAction), optFlags, given, required));
}
template <typename T, typename RemoteAction, typename LocalAction, typename Coop, typename Descriptor, typename Segment>
NCCL_DEVICE_INLINE void Gin::put(ncclTeam team, int peer, ncclSymPtr<T> dst, ncclSymPtr<T> src, size_t nElts, RemoteAction remoteAction,
                                 LocalAction localAction, Coop coop, Descriptor descriptor, cuda::thread_scope given,
                                 cuda::thread_scope required, uint32_t optFlags, Segment segment) const {
  put(team, peer, dst.window, dst.offset, src.window, src.offset, nElts * sizeof(T), remoteAction, localAction, coop, descriptor, given,
      required, optFlags, segment);
}

template <typename T, typename RemoteAction, typename Coop, typename Descriptor>
NCCL_DEVICE_INLINE void Gin::putValue(ncclTeam team, int peer, ncclWindow_t dstWnd, size_t dstOffset, T value, RemoteAction remoteAction,
                                      Coop coop, Descriptor, cuda::thread_scope given, cuda::thread_scope required, uint32_t optFlags) const {
  static_assert(sizeof(T) <= 8, "a value has 1 to 8 bytes");
  union {
    uint64_t bits;
    T v;
  } u;
  u.bits = 0;
  u.v = value;
  run(coop, operation(*this, GinPut::value, team, peer, dstWnd, dstOffset, nullptr, 0, sizeof(T), u.bits,
                      signalOf(remoteAction, comm.ginStrongLegacySignals), GinCount{false, 0}, optFlags, given, required));
}
template <typename T, typename RemoteAction, typename Coop, typename Descriptor>
NCCL_DEVICE_INLINE void Gin::putValue(ncclTeam team, int peer, ncclSymPtr<T> dst, T value, RemoteAction remoteAction, Coop coop,
                                      Descriptor descriptor, cuda::thread_scope given, cuda::thread_scope required,
                                      uint32_t optFlags) const {
  putValue(team, peer, dst.window, dst.offset, value, remoteAction, coop, descriptor, given, required, optFlags);
}

template <typename RemoteAction, typename Coop, typename Descriptor>
NCCL_DEVICE_INLINE void Gin::signal(ncclTeam team, int peer, RemoteAction remoteAction, Coop coop, Descriptor, cuda::thread_scope given,
                                    cuda::thread_scope required, uint32_t optFlags) const {
  run(coop, operation(*this, GinPut::signalOnly, team, peer, nullptr, 0, nullptr, 0, 0, 0, signalOf(remoteAction, comm.ginStrongLegacySignals),
                      GinCount{false, 0}, optFlags, given, required));
}

template <typename Coop, typename Descriptor, typename Segment>
NCCL_DEVICE_INLINE void Gin::get(ncclTeam team, int peer, ncclWindow_t remoteWnd, size_t remoteOffset, ncclWindow_t localWnd,
                                 size_t localOffset, size_t bytes, Coop coop, Descriptor, uint32_t optFlags, Segment) const {
  run(coop, operation(*this, GinPut::get, team, peer, remoteWnd, remoteOffset, localWnd, localOffset, bytes, 0,
                      signalOf(ncclGin_None{}, false), GinCount{false, 0}, optFlags));
}

/* ---- Local completion ---- */

/* opaque: {peer, mark}; peer -1: done already. */
template <typename Coop, typename Descriptor>
NCCL_DEVICE_INLINE void Gin::flushAsync(ncclTeam team, uint32_t peer, ncclGinRequest_t *outRequest, Coop coop, uint32_t, Descriptor) const {
  coop.sync();
  if (coop.thread_rank() == 0) {
    int world = ncclTeamRankToWorld(comm, team, (int)peer);
    bool done = direct(world) || !_ginHandle;
    outRequest->opaque[0] = done ? ~(uint64_t)0 : (uint64_t)world;
    if (!done) outRequest->opaque[1] = _ginBackend == NCCL_NET_DEVICE_GIN_GDAKI ? gdakiMark(*this, world) : proxyMark(*this, world);
  }
  coop.sync();
}

template <typename Coop, typename Descriptor>
NCCL_DEVICE_INLINE void Gin::wait(ncclGinRequest_t &request, Coop coop, Descriptor, cuda::memory_order order) const {
  coop.sync();
  if (coop.thread_rank() == 0 && request.opaque[0] != ~(uint64_t)0) {
    if (_ginBackend == NCCL_NET_DEVICE_GIN_GDAKI)
      gdakiFlush(*this, (int)request.opaque[0], request.opaque[1]);
    else
      proxyFlush(*this, (int)request.opaque[0], request.opaque[1], acquireOf(order));
  }
  coop.sync();
}

template <typename Coop, typename Descriptor>
NCCL_DEVICE_INLINE void Gin::flush(Coop coop, cuda::memory_order order, Descriptor) const {
  coop.sync();
  ncclTeam world = ncclTeamWorld(comm);
  for (int r = coop.thread_rank(); r < comm.nRanks; r += coop.size()) {
    ncclGinRequest_t request;
    flushAsync(world, (uint32_t)r, &request);
    wait(request, ncclCoopThread{}, ncclGin_None{}, order);
  }
  coop.sync();
}

/* ---- Counters ---- */

NCCL_DEVICE_INLINE uint64_t Gin::counted(ncclGinCounter_t counter, cuda::memory_order order) const {
  GCCL_GIN_CHECK(counter < (uint32_t)comm.ginCounterCount, "no such counter", counter);
  uint64_t sum = 0;
  if (proxied(*this)) {
    sum = load(_proxy.counters + counter, order);
  } else if (_ginHandle) {
    gdakiPollAll(*this);
    sum = load(gdakiOf(*this)->counters + counter, order);
  }
  gccl_gin_direct const *d = directOf(comm);
  if (d) sum += load(directCounter(d, contextId, counter), order);
  return sum;
}
NCCL_DEVICE_INLINE uint64_t Gin::readCounter(ncclGinCounter_t counter, int bits, cuda::memory_order order) const {
  return counted(counter, acquireOf(order)) & lowBits(bits);
}
template <typename Coop>
NCCL_DEVICE_INLINE void Gin::waitCounter(Coop coop, ncclGinCounter_t counter, uint64_t least, int bits, cuda::memory_order order) const {
  coop.sync();
  if (coop.thread_rank() == 0) {
    Wait w(comm.abortFlag, "GIN counter", counter, -1);
    uint64_t is;
    while (!reached(is = counted(counter, acquireOf(order)), least, bits))
      if (w.over(least, is)) break;
  }
  coop.sync();
}
NCCL_DEVICE_INLINE void Gin::resetCounter(ncclGinCounter_t counter) const {
  GCCL_GIN_CHECK(counter < (uint32_t)comm.ginCounterCount, "no such counter", counter);
  if (_ginHandle) store((proxied(*this) ? _proxy.counters : gdakiOf(*this)->counters) + counter, (uint64_t)0, cuda::memory_order_relaxed);
  gccl_gin_direct const *d = directOf(comm);
  if (d) store(directCounter(d, contextId, counter), (uint64_t)0, cuda::memory_order_relaxed);
}

/* ---- Signals ---- */

/* Where a reset has left what the value counts from. */
NCCL_DEVICE_INLINE uint64_t *signalOffset(Gin const &gin, ncclGinSignal_t signal) {
  gccl_gin_direct const *d = directOf(gin.comm);
  if (d) return loadConst(&d->signal_offsets) + (size_t)gin.contextId * loadConst(&d->nsignals) + signal;
  return (proxied(gin) ? gin._proxy.signal_offsets : gdakiOf(gin)->signal_offsets) + signal;
}
/* Sum of its words, and what is behind the last look at them before anything that they speak of is taken for there. */
NCCL_DEVICE_INLINE uint64_t signalWords(Gin const &gin, ncclGinSignal_t signal, cuda::memory_order order) {
  uint64_t sum = 0;
  if (proxied(gin))
    sum = proxySignal(gin, signal, order);
  else if (gin._ginHandle)
    sum = load(gdakiOf(gin)->signals + signal, order);
  gccl_gin_direct const *d = directOf(gin.comm);
  if (d) sum += load(directSignal(gin.comm, d, gin.contextId, signal, gin.comm.lsaRank), order);
  return sum;
}

NCCL_DEVICE_INLINE void signalAcquired(Gin const &gin, cuda::memory_order order) {
  if (proxied(gin)) proxyAcquired(gin, order);
}

NCCL_DEVICE_INLINE uint64_t Gin::value(ncclGinSignal_t signal, cuda::memory_order order) const {
  GCCL_GIN_CHECK(signal < (uint32_t)comm.ginSignalCount, "no such signal", signal);
  uint64_t from = load(signalOffset(*this, signal), cuda::memory_order_relaxed); /* first: loads behind an acquire wait for it */
  uint64_t is = signalWords(*this, signal, acquireOf(order));
  signalAcquired(*this, acquireOf(order));
  return is - from;
}
NCCL_DEVICE_INLINE uint64_t Gin::readSignal(ncclGinSignal_t signal, int bits, cuda::memory_order order) const {
  return value(signal, order) & lowBits(bits);
}
NCCL_DEVICE_INLINE uint64_t Gin::readSignal(ncclWindow_t signalWindow, size_t signalOffset, int bits, cuda::memory_order order) const {
  return load(static_cast<uint64_t const *>(ncclGetLocalPointer(signalWindow, signalOffset)), acquireOf(order)) & lowBits(bits);
}
template <typename Coop>
NCCL_DEVICE_INLINE void Gin::waitSignal(Coop coop, ncclGinSignal_t signal, uint64_t least, int bits, cuda::memory_order order) const {
  GCCL_GIN_CHECK(signal < (uint32_t)comm.ginSignalCount, "no such signal", signal);
  coop.sync();
  if (coop.thread_rank() == 0) {
    Wait w(comm.abortFlag, "GIN signal", signal, -1);
    uint64_t is;
    uint64_t from = load(signalOffset(*this, signal), cuda::memory_order_relaxed); /* nobody resets a signal that is waited for */
    while (!reached(is = signalWords(*this, signal, acquireOf(order)) - from, least, bits))
      if (w.over(least, is)) break;
    signalAcquired(*this, acquireOf(order));
  }
  coop.sync();
}
template <typename Coop>
NCCL_DEVICE_INLINE void Gin::waitSignal(Coop coop, ncclWindow_t signalWindow, size_t signalOffset, uint64_t least, int bits,
                                        cuda::memory_order order) const {
  coop.sync();
  if (coop.thread_rank() == 0) {
    Wait w(comm.abortFlag, "GIN signal in a window at offset", signalOffset, -1);
    uint64_t is;
    while (!reached(is = readSignal(signalWindow, signalOffset, 64, order), least, bits))
      if (w.over(least, is)) break;
  }
  coop.sync();
}
NCCL_DEVICE_INLINE void Gin::resetSignal(ncclGinSignal_t signal) const {
  GCCL_GIN_CHECK(signal < (uint32_t)comm.ginSignalCount, "no such signal", signal);
  store(signalOffset(*this, signal), signalWords(*this, signal, cuda::memory_order_relaxed), cuda::memory_order_relaxed);
  _signalShadows[signal] = 0;
}
NCCL_DEVICE_INLINE void Gin::resetSignal(ncclWindow_t signalWindow, size_t signalOffset) const {
  store(static_cast<uint64_t *>(ncclGetLocalPointer(signalWindow, signalOffset)), (uint64_t)0, cuda::memory_order_relaxed);
}

NCCL_DEVICE_INLINE uint64_t *Gin::getSignalShadowPtr(ncclGinSignal_t signal) const { return _signalShadows + signal; }
NCCL_DEVICE_INLINE void Gin::increaseSignalShadow(ncclGinSignal_t signal, uint64_t delta) const {
  addTo(_signalShadows + signal, delta, cuda::memory_order_relaxed);
}
template <typename Coop>
NCCL_DEVICE_INLINE void Gin::waitSignalMeetShadow(Coop coop, ncclGinSignal_t signal, int bits, cuda::memory_order order) const {
  coop.sync();
  waitSignal(coop, signal, load(_signalShadows + signal, cuda::memory_order_relaxed), bits, order);
}
template <typename Coop, typename Uint>
NCCL_DEVICE_INLINE void Gin::waitSignalFollowShadow(Coop coop, ncclGinSignal_t signal, Uint leastDelta, Uint *before, Uint *delta, int bits,
                                                    cuda::memory_order order) const {
  coop.sync();
  uint64_t was = _signalShadows[signal], is = 0;
  coop.sync(); /* all have read the shadow */
  if (coop.thread_rank() == 0) {
    Wait w(comm.abortFlag, "GIN signal", signal, -1);
    uint64_t from = load(signalOffset(*this, signal), cuda::memory_order_relaxed);
    while (!reached(is = signalWords(*this, signal, acquireOf(order)) - from, was + leastDelta, bits))
      if (w.over(was + leastDelta, is)) break;
    signalAcquired(*this, acquireOf(order));
    _signalShadows[signal] = is;
  }
  is = ncclCoopBcast(coop, is, 0);
  *before = (Uint)(was & lowBits(bits));
  *delta = (Uint)((is - was) & lowBits(bits));
}

} // namespace device
} // namespace gccl

/* ---- As functions ---- */

namespace gccl {
namespace device {
NCCL_DEVICE_INLINE GinSignal signalOf(bool is, ncclGinSignal_t id, ncclGinSignalOp_t op, uint64_t arg) {
  return is ? numbered(id, op == ncclGinSignalInc ? 1 : arg, true) : signalOf(ncclGin_None{}, false);
}
} // namespace device
} // namespace gccl

NCCL_DEVICE_INLINE void ncclGin_C_initWithResourceSharingMode(ncclGin_C *net, unsigned backendMask, ncclDevComm const &comm, int contextIndex,
                                                              ncclGinResourceSharingMode mode) {
  ::new (static_cast<void *>(net)) ncclGin_C(comm, backendMask, contextIndex, mode);
}
NCCL_DEVICE_INLINE void ncclGin_C_init(ncclGin_C *net, unsigned backendMask, ncclDevComm const &comm, int contextIndex) {
  ncclGin_C_initWithResourceSharingMode(net, backendMask, comm, contextIndex, NCCL_GIN_RESOURCE_SHARING_GPU);
}
NCCL_DEVICE_INLINE void ncclGinPut_v2(ncclGin_C *net, ncclTeam team, int peer, ncclWindow_t dstWin, size_t dstOffset, ncclWindow_t srcWin,
                                      size_t srcOffset, size_t bytes, bool isSignal, ncclGinSignal_t signalId, ncclGinSignalOp_t signalOp,
                                      uint64_t signalOpArg, bool isCounter, ncclGinCounter_t counterId, ncclCoopAny coop, bool,
                                      ncclGinDescriptorSmem *, cuda::thread_scope, cuda::thread_scope, uint32_t optFlags) {
  using namespace gccl::device;
  net->run(coop, operation(*net, GinPut::put, team, peer, dstWin, dstOffset, srcWin, srcOffset, bytes, 0,
                           signalOf(isSignal, signalId, signalOp, signalOpArg), GinCount{isCounter, counterId}, optFlags));
}
NCCL_DEVICE_INLINE void ncclGinPut(ncclGin_C *net, ncclTeam team, int peer, ncclWindow_t dstWin, size_t dstOffset, ncclWindow_t srcWin,
                                   size_t srcOffset, size_t bytes, bool isSignal, ncclGinSignal_t signalId, ncclGinSignalOp_t signalOp,
                                   uint64_t signalOpArg, bool isCounter, ncclGinCounter_t counterId, ncclCoopAny coop, bool isDescriptor,
                                   ncclGinDescriptorSmem *descriptor, cuda::thread_scope given, cuda::thread_scope required) {
  ncclGinPut_v2(net, team, peer, dstWin, dstOffset, srcWin, srcOffset, bytes, isSignal, signalId, signalOp, signalOpArg, isCounter, counterId,
                coop, isDescriptor, descriptor, given, required, ncclGinOptFlagsDefault);
}
NCCL_DEVICE_INLINE void ncclGinPutValue_v2(ncclGin_C *net, ncclTeam team, int peer, ncclWindow_t dstWin, size_t dstOffset, uint64_t value,
                                           size_t size, bool isSignal, ncclGinSignal_t signalId, ncclGinSignalOp_t signalOp,
                                           uint64_t signalOpArg, ncclCoopAny coop, bool, ncclGinDescriptorSmem *, cuda::thread_scope,
                                           cuda::thread_scope, uint32_t optFlags) {
  using namespace gccl::device;
  net->run(coop, operation(*net, GinPut::value, team, peer, dstWin, dstOffset, nullptr, 0, size < 8 ? size : 8, value,
                           signalOf(isSignal, signalId, signalOp, signalOpArg), GinCount{false, 0}, optFlags));
}
NCCL_DEVICE_INLINE void ncclGinPutValue(ncclGin_C *net, ncclTeam team, int peer, ncclWindow_t dstWin, size_t dstOffset, uint64_t value,
                                        size_t size, bool isSignal, ncclGinSignal_t signalId, ncclGinSignalOp_t signalOp,
                                        uint64_t signalOpArg, ncclCoopAny coop, bool isDescriptor, ncclGinDescriptorSmem *descriptor,
                                        cuda::thread_scope given, cuda::thread_scope required) {
  ncclGinPutValue_v2(net, team, peer, dstWin, dstOffset, value, size, isSignal, signalId, signalOp, signalOpArg, coop, isDescriptor,
                     descriptor, given, required, ncclGinOptFlagsDefault);
}
NCCL_DEVICE_INLINE void ncclGinSignal_v2(ncclGin_C *net, ncclTeam team, int peer, bool isSignal, ncclGinSignal_t signalId,
                                         ncclGinSignalOp_t signalOp, uint64_t signalOpArg, ncclCoopAny coop, bool, ncclGinDescriptorSmem *,
                                         cuda::thread_scope, cuda::thread_scope, uint32_t optFlags) {
  using namespace gccl::device;
  net->run(coop, operation(*net, GinPut::signalOnly, team, peer, nullptr, 0, nullptr, 0, 0, 0,
                           signalOf(isSignal, signalId, signalOp, signalOpArg), GinCount{false, 0}, optFlags));
}
NCCL_DEVICE_INLINE void ncclGinSignal(ncclGin_C *net, ncclTeam team, int peer, bool isSignal, ncclGinSignal_t signalId,
                                      ncclGinSignalOp_t signalOp, uint64_t signalOpArg, ncclCoopAny coop, bool isDescriptor,
                                      ncclGinDescriptorSmem *descriptor, cuda::thread_scope given, cuda::thread_scope required) {
  ncclGinSignal_v2(net, team, peer, isSignal, signalId, signalOp, signalOpArg, coop, isDescriptor, descriptor, given, required,
                   ncclGinOptFlagsDefault);
}
NCCL_DEVICE_INLINE void ncclGinGet(ncclGin_C *net, ncclTeam team, int peer, ncclWindow_t remoteWnd, size_t remoteOffset,
                                   ncclWindow_t localWnd, size_t localOffset, size_t bytes, ncclCoopAny coop, bool, ncclGinDescriptorSmem *,
                                   uint32_t optFlags) {
  net->get(team, peer, remoteWnd, remoteOffset, localWnd, localOffset, bytes, coop, ncclGin_None{}, optFlags);
}
NCCL_DEVICE_INLINE void ncclGinFlush(ncclGin_C *net, ncclCoopAny coop, cuda::memory_order order) { net->flush(coop, order); }
NCCL_DEVICE_INLINE uint64_t ncclGinReadCounter(ncclGin_C *net, ncclGinCounter_t counter, int bits, cuda::memory_order order) {
  return net->readCounter(counter, bits, order);
}
NCCL_DEVICE_INLINE void ncclGinWaitCounter(ncclGin_C *net, ncclCoopAny coop, ncclGinCounter_t counter, uint64_t least, int bits,
                                           cuda::memory_order order) {
  net->waitCounter(coop, counter, least, bits, order);
}
NCCL_DEVICE_INLINE uint64_t ncclGinReadSignal(ncclGin_C *net, ncclGinSignal_t signal, int bits, cuda::memory_order order) {
  return net->readSignal(signal, bits, order);
}
NCCL_DEVICE_INLINE void ncclGinWaitSignal(ncclGin_C *net, ncclCoopAny coop, ncclGinSignal_t signal, uint64_t least, int bits,
                                          cuda::memory_order order) {
  net->waitSignal(coop, signal, least, bits, order);
}
NCCL_DEVICE_INLINE void ncclGinResetCounter(ncclGin_C *net, ncclGinCounter_t counter) { net->resetCounter(counter); }
NCCL_DEVICE_INLINE void ncclGinResetSignal(ncclGin_C *net, ncclGinSignal_t signal) { net->resetSignal(signal); }
NCCL_DEVICE_INLINE uint64_t *ncclGinGetSignalShadowPtr(ncclGin_C *net, ncclGinSignal_t signal) { return net->getSignalShadowPtr(signal); }

#undef GCCL_GIN_CHECK
#undef GCCL_GIN_CHECK_RANGE
#endif
#endif
