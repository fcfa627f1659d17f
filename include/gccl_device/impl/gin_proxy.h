/* gin_proxy.h: GIN by descriptors for a CPU thread (net/gin). One queue for each context and peer, many producers. */
#ifndef GCCL_DEVICE_IMPL_GIN_PROXY_H
#define GCCL_DEVICE_IMPL_GIN_PROXY_H

#include "gin_types.h"

#if GCCL_DEVICE_KERNELS
namespace gccl {
namespace device {

NCCL_DEVICE_INLINE bool proxied(Gin const &gin) { return gin._ginHandle && gin._ginBackend != NCCL_NET_DEVICE_GIN_GDAKI; }
NCCL_DEVICE_INLINE gccl_proxy_context proxyLoad(gccl_proxy_context const *x) {
  gccl_proxy_context c;
  c.nranks = (int32_t)loadConst(&x->nranks);
  c.queue_size = loadConst(&x->queue_size);
  c.queues = loadConst(&x->queues);
  c.pis = loadConst(&x->pis);
  c.cis = loadConst(&x->cis);
  c.counters = loadConst(&x->counters);
  c.signals = loadConst(&x->signals);
  c.signal_offsets = loadConst(&x->signal_offsets);
  c.last_issued_get = loadConst(&x->last_issued_get);
  c.last_visible_get = loadConst(&x->last_visible_get);
  c.seen = loadConst(&x->seen);
  c.told = loadConst(&x->told);
  c.nsignals = loadConst(&x->nsignals);
  c.pad = 0;
  return c;
}
NCCL_DEVICE_INLINE uint64_t proxyWindow(ncclWindow_t w) { return (uint64_t) reinterpret_cast<uintptr_t>(loadConst(&w->ginWins[0])); }
NCCL_DEVICE_INLINE size_t ginOffset(ncclWindow_t w, size_t offset) { return 4096 * (size_t)loadConst(&w->ginOffset4K) + offset; }

/* Who stores a descriptor: one thread, or the lanes of a tile, which all come with the same operation and store a part each, as one line. */
struct ProxyThread {
  NCCL_DEVICE_INLINE bool first() const { return true; }
  NCCL_DEVICE_INLINE uint64_t fromFirst(uint64_t v) const { return v; }
  NCCL_DEVICE_INLINE void put(uint64_t *slot, uint64_t const *words) const {
    GCCL_UNROLL()
    for (int i = 0; i < GCCL_GFD_WORDS; i += 2) storePair(slot + i, words[i], words[i + 1]);
  }
};
template <int n> struct ProxyTile {
  ncclCoopTile<n> tile;
  NCCL_DEVICE_INLINE bool first() const { return tile.thread_rank() == 0; }
  NCCL_DEVICE_INLINE uint64_t fromFirst(uint64_t v) const { return ncclCoopBcast(tile, v, 0); }
  NCCL_DEVICE_INLINE void put(uint64_t *slot, uint64_t const *words) const {
    int part = tile.thread_rank();
    uint64_t a = words[0], b = words[1];
    GCCL_UNROLL()
    for (int i = 1; i < GCCL_GFD_WORDS / 2; i++) { /* not by an index, which would put the words into memory */
      a = part == i ? words[2 * i] : a;
      b = part == i ? words[2 * i + 1] : b;
    }
    if (part < GCCL_GFD_WORDS / 2) storePair(slot + 2 * part, a, b);
  }
};

/* The next index. With sharing mode THREAD one thread, or one group, uses the context, and nothing is atomic. */
NCCL_DEVICE_INLINE uint32_t proxyClaim(Gin const &gin, uint32_t *pi) {
  if (gin.resourceSharingMode != NCCL_GIN_RESOURCE_SHARING_THREAD) return fetchAdd(pi, 1u, cuda::memory_order_relaxed);
  uint32_t at = *pi;
  *pi = at + 1;
  return at;
}

/* Claims a place and waits until it is free; false after an abort. */
NCCL_DEVICE_INLINE bool proxyPlace(Gin const &gin, int peer, uint32_t flags, uint32_t *out) {
  gccl_proxy_context const &x = gin._proxy;
  uint32_t *known = x.seen + peer, before = loadToStore(known); /* first: beside the claim, not behind it */
  uint32_t at = *out = proxyClaim(gin, x.pis + peer);
  /* The agent has cleared the words. Threads that pass at the same time may set `known` back: then somebody looks once more. */
  if (flags & ncclGinOptFlagsMaySkipCreditCheck || at - before < x.queue_size) return true;
  uint32_t done;
  Wait w(gin.comm.abortFlag, "GIN queue of context", gin.contextId, peer);
  while (at - (done = load(x.cis + peer, cuda::memory_order_acquire)) >= x.queue_size)
    if (w.over(at - x.queue_size + 1, done)) return false;
  store(known, done, cuda::memory_order_release);
  return true;
}

/* Stores the words of a descriptor. The caller has released what it speaks of, by a fence of the first thread; the agent acquires every word. */
template <typename Who>
NCCL_DEVICE_INLINE void proxyPost(Gin const &gin, int peer, gccl_gfd const &d, uint32_t flags, Who who) {
  gccl_proxy_context const &x = gin._proxy;
  uint64_t words[GCCL_GFD_WORDS], place = 0;
  uint32_t at = 0;
  gccl_gfd_words(&d, words);
  if (who.first()) place = proxyPlace(gin, peer, flags, &at) ? (uint64_t)1 << 32 | at : 0;
  place = who.fromFirst(place);
  if (!place) return;
  at = (uint32_t)place;
  who.put(x.queues + ((size_t)(uint32_t)peer * x.queue_size + (at & (x.queue_size - 1))) * GCCL_GFD_WORDS, words);
  if (d.op & GCCL_GFD_GET && who.first()) { /* the highest index of a get: in a circle, other threads may be further */
    uint32_t *last = x.last_issued_get + peer, is = load(last, cuda::memory_order_relaxed);
    while (at + 1 - is < 0x80000000u && at + 1 != is) {
      uint32_t was = compareExchange(last, is, at + 1);
      if (was == is) break;
      is = was;
    }
  }
}

template <typename Who> NCCL_DEVICE_INLINE void runProxy(Gin const &gin, GinPut const &p, Who who) {
  gccl_gfd d = gccl_gfd();
  size_t left = p.bytes, done = 0;
  bool divided = left > GCCL_GFD_PUT_MAX;
  if (p.what != GinPut::signalOnly && left) {
    d.dst_window = proxyWindow(p.what == GinPut::get ? p.local : p.remote);
    if (p.what != GinPut::value) d.src_window = proxyWindow(p.what == GinPut::get ? p.remote : p.local);
  }
  do {
    size_t bytes = left < GCCL_GFD_PUT_MAX ? left : (size_t)GCCL_GFD_PUT_MAX;
    bool last = bytes == left;
    size_t remote = p.bytes ? ginOffset(p.remote, p.remoteOffset + done) : 0, local = p.bytes && p.what != GinPut::value ? ginOffset(p.local, p.localOffset + done) : 0;
    d.bytes = bytes;
    d.strong = 1;
    if (p.what == GinPut::get) {
      if (!bytes) return;
      d.op = GCCL_GFD_GET;
      d.src_off = remote;
      d.dst_off = local;
    } else {
      d.op = GCCL_GFD_PUT;
      d.dst_off = remote;
      d.src_off = local;
      if (p.what == GinPut::value) {
        d.op |= GCCL_GFD_INLINE;
        d.value = p.bits;
      }
      if (last && p.counts) {
        d.op |= GCCL_GFD_COUNTER;
        d.counter = p.counter;
      }
      if (last && p.signal.kind == GinSignal::byNumber) {
        d.op |= p.signal.add == 1 ? GCCL_GFD_SIGNAL_INC : GCCL_GFD_SIGNAL_ADD;
        d.signal = p.signal.number;
        d.signal_value = p.signal.add;
        d.strong = p.signal.strong || divided; /* a weak one is for the whole put */
      }
    }
    if (bytes || d.op != GCCL_GFD_PUT) proxyPost(gin, p.peer, d, p.flags, who);
    left -= bytes;
    done += bytes;
  } while (left);
  if (p.signal.kind == GinSignal::byPlace) {
    gccl_gfd s = gccl_gfd();
    s.op = GCCL_GFD_VA_SIGNAL | (p.signal.add == 1 ? GCCL_GFD_SIGNAL_INC : GCCL_GFD_SIGNAL_ADD);
    s.strong = 1; /* a descriptor of its own: it has no put that it could be weak for */
    s.signal_window = proxyWindow(p.signal.window);
    s.signal_off = ginOffset(p.signal.window, p.signal.offset);
    s.signal_value = p.signal.add;
    proxyPost(gin, p.peer, s, p.flags, who);
  }
}

/* A tile of at least eight lanes does it together. */
template <typename Coop> NCCL_DEVICE_INLINE void runProxyOf(Gin const &gin, Coop coop, GinPut const &p) {
  if (coop.thread_rank() == 0) runProxy(gin, p, ProxyThread());
}
template <int n> NCCL_DEVICE_INLINE void runProxyOf(Gin const &gin, ncclCoopTile<n> tile, GinPut const &p) {
  if (n >= GCCL_GFD_WORDS / 2)
    runProxy(gin, p, ProxyTile<n>{tile});
  else if (tile.thread_rank() == 0)
    runProxy(gin, p, ProxyThread());
}

/* The value of a signal: one word, or the sum of one word of each rank. Of many words none is acquired on a GPU, where such loads wait for each
 * other, and a fence takes as long as two of them: proxyAcquired is behind the last look. */
NCCL_DEVICE_INLINE bool proxyFences(Gin const &gin, cuda::memory_order order) {
#if defined(GCCL_DEVICE_CPU)
  (void)gin;
  (void)order;
  return false; /* ThreadSanitizer knows no fences */
#else
  return order != cuda::memory_order_relaxed && gin._proxy.told && gin._proxy.nranks > 2;
#endif
}
NCCL_DEVICE_INLINE uint64_t proxySignal(Gin const &gin, ncclGinSignal_t signal, cuda::memory_order order) {
  gccl_proxy_context const &x = gin._proxy;
  if (!x.told) return load(x.signals + signal, order);
  uint64_t const *word = x.told + signal;
  uint64_t sum = 0;
  if (proxyFences(gin, order)) order = cuda::memory_order_relaxed;
  GCCL_UNROLL(4)
  for (int r = 0; r < x.nranks; r++) sum += load(word + (size_t)(uint32_t)r * x.nsignals, order);
  return sum;
}
NCCL_DEVICE_INLINE void proxyAcquired(Gin const &gin, cuda::memory_order order) {
  if (proxyFences(gin, order)) fenceSystem();
}

/* What a flush waits for: descriptors claimed so far, and the last get among them. */
NCCL_DEVICE_INLINE uint64_t proxyMark(Gin const &gin, int peer) {
  uint32_t get = load(gin._proxy.last_issued_get + peer, cuda::memory_order_acquire); /* before the other: gets may go on */
  return (uint64_t)get << 32 | load(gin._proxy.pis + peer, cuda::memory_order_relaxed);
}

NCCL_DEVICE_INLINE bool proxyReach(Gin const &gin, int peer, uint32_t next, cuda::memory_order order) {
  Wait w(gin.comm.abortFlag, "GIN flush of context", gin.contextId, peer);
  uint32_t *ci = gin._proxy.cis + peer, done;
  while ((done = load(ci, order)) - next > 0x7fffffffu)
    if (w.over(next, done)) return false;
  return true;
}

NCCL_DEVICE_INLINE void proxyFlush(Gin const &gin, int peer, uint64_t mark, cuda::memory_order order) {
  gccl_proxy_context const &x = gin._proxy;
  if (!proxyReach(gin, peer, (uint32_t)mark, order)) return;
  uint32_t get = (uint32_t)(mark >> 32), *visible = x.last_visible_get + peer;
  if (load(visible, cuda::memory_order_relaxed) - get <= 0x7fffffffu) return;
  gccl_gfd d = gccl_gfd(); /* gets have completed; a flush behind them makes them visible to this device's loads */
  d.op = GCCL_GFD_FLUSH;
  proxyPost(gin, peer, d, ncclGinOptFlagsDefault, ProxyThread());
  if (!proxyReach(gin, peer, load(x.pis + peer, cuda::memory_order_relaxed), order)) return;
  store(visible, get, cuda::memory_order_relaxed); /* may go back where threads flush at the same time: then one flushes once more */
}

} // namespace device
} // namespace gccl
#endif
#endif
