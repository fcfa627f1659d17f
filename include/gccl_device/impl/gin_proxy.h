/* gin_proxy.h: GIN by descriptors for a CPU thread (net/gin). One queue for each context and peer, many producers. */
#ifndef GCCL_DEVICE_IMPL_GIN_PROXY_H
#define GCCL_DEVICE_IMPL_GIN_PROXY_H

#include "gin_types.h"

#if GCCL_DEVICE_KERNELS
namespace gccl {
namespace device {

NCCL_DEVICE_INLINE gccl_proxy_context *proxyOf(Gin const &gin) { return static_cast<gccl_proxy_context *>(gin._ginHandle) + gin.contextId; }
NCCL_DEVICE_INLINE uint64_t proxyWindow(ncclWindow_t w) { return (uint64_t) reinterpret_cast<uintptr_t>(loadConst(&w->ginWins[0])); }
NCCL_DEVICE_INLINE size_t ginOffset(ncclWindow_t w, size_t offset) { return 4096 * (size_t)loadConst(&w->ginOffset4K) + offset; }

/* Claims a place, waits until it is free, and stores the words. The caller has released what the descriptor speaks of, by a fence; the
 * agent acquires every word. */
NCCL_DEVICE_INLINE void proxyPost(Gin const &gin, gccl_proxy_context *x, int peer, gccl_gfd const &d, uint32_t flags) {
  uint64_t words[GCCL_GFD_WORDS];
  gccl_gfd_words(&d, words);
  uint32_t size = loadConst(&x->queue_size);
  uint32_t *pi = loadConst(&x->pis) + peer, *ci = loadConst(&x->cis) + peer;
  uint32_t at = fetchAdd(pi, 1u, cuda::memory_order_relaxed), done;
  if (!(flags & ncclGinOptFlagsMaySkipCreditCheck)) {
    Wait w(gin.comm.abortFlag, "GIN queue of context", gin.contextId, peer);
    while (at - (done = load(ci, cuda::memory_order_acquire)) >= size) /* acquire: the agent has cleared the words */
      if (w.over(at - size + 1, done)) return;
  }
  uint64_t *slot = loadConst(&x->queues) + ((size_t)(uint32_t)peer * size + (at & (size - 1))) * GCCL_GFD_WORDS;
  GCCL_UNROLL()
  for (int i = 0; i < GCCL_GFD_WORDS; i++) store(slot + i, words[i], cuda::memory_order_relaxed);
  if (d.op & GCCL_GFD_GET) { /* the highest index of a get: in a circle, other threads may be further */
    uint32_t *last = loadConst(&x->last_issued_get) + peer, is = load(last, cuda::memory_order_relaxed);
    while (at + 1 - is < 0x80000000u && at + 1 != is) {
      uint32_t was = compareExchange(last, is, at + 1);
      if (was == is) break;
      is = was;
    }
  }
}

/* One thread. */
NCCL_DEVICE_INLINE void runProxy(Gin const &gin, GinPut const &p) {
  gccl_proxy_context *x = proxyOf(gin);
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
    if (bytes || d.op != GCCL_GFD_PUT) proxyPost(gin, x, p.peer, d, p.flags);
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
    proxyPost(gin, x, p.peer, s, p.flags);
  }
}

/* What a flush waits for: descriptors claimed so far, and the last get among them. */
NCCL_DEVICE_INLINE uint64_t proxyMark(Gin const &gin, int peer) {
  gccl_proxy_context *x = proxyOf(gin);
  uint32_t get = load(loadConst(&x->last_issued_get) + peer, cuda::memory_order_acquire); /* before the other: gets may go on */
  return (uint64_t)get << 32 | load(loadConst(&x->pis) + peer, cuda::memory_order_relaxed);
}

NCCL_DEVICE_INLINE bool proxyReach(Gin const &gin, int peer, uint32_t next, cuda::memory_order order) {
  Wait w(gin.comm.abortFlag, "GIN flush of context", gin.contextId, peer);
  uint32_t *ci = loadConst(&proxyOf(gin)->cis) + peer, done;
  while ((done = load(ci, order)) - next > 0x7fffffffu)
    if (w.over(next, done)) return false;
  return true;
}

NCCL_DEVICE_INLINE void proxyFlush(Gin const &gin, int peer, uint64_t mark, cuda::memory_order order) {
  gccl_proxy_context *x = proxyOf(gin);
  if (!proxyReach(gin, peer, (uint32_t)mark, order)) return;
  uint32_t get = (uint32_t)(mark >> 32), *visible = loadConst(&x->last_visible_get) + peer;
  if (load(visible, cuda::memory_order_relaxed) - get <= 0x7fffffffu) return;
  gccl_gfd d = gccl_gfd(); /* gets have completed; a flush behind them makes them visible to this device's loads */
  d.op = GCCL_GFD_FLUSH;
  proxyPost(gin, x, peer, d, ncclGinOptFlagsDefault);
  if (!proxyReach(gin, peer, load(loadConst(&x->pis) + peer, cuda::memory_order_relaxed), order)) return;
  store(visible, get, cuda::memory_order_relaxed); /* may go back where threads flush at the same time: then one flushes once more */
}

} // namespace device
} // namespace gccl
#endif
#endif
