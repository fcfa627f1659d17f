/* gin_gdaki.h: GIN by work-queue entries of mlx5 devices (impl/mlx5.h), which the kernel writes itself: entry, doorbell record, doorbell;
 * completions are polled by whoever waits. One queue for each context and peer.
 *
 * A queue's counts: claimed ≥ ready ≥ rung ≥ (device) ≥ done. Entries become ready in the order of their claims. With
 * sharing mode THREAD one thread uses the context and nothing is atomic. */
#ifndef GCCL_DEVICE_IMPL_GIN_GDAKI_H
#define GCCL_DEVICE_IMPL_GIN_GDAKI_H

#include "gin_types.h"

#if GCCL_DEVICE_KERNELS
namespace gccl {
namespace device {

NCCL_DEVICE_INLINE gccl_gdaki_context *gdakiOf(Gin const &gin) { return static_cast<gccl_gdaki_context *>(gin._ginHandle) + gin.contextId; }
NCCL_DEVICE_INLINE gccl_gdaki_mem const *gdakiKeys(ncclWindow_t w) {
  return static_cast<gccl_gdaki_mem const *>(loadConst(&reinterpret_cast<gcclWindow_device const *>(w)->keys));
}
NCCL_DEVICE_INLINE bool gdakiAlone(Gin const &gin) { return gin.resourceSharingMode == NCCL_GIN_RESOURCE_SHARING_THREAD; }

/* Tells the device of entries below next, unless somebody has. bell: the first word of the entry before next, which the caller has made; without it
 * it is read where the queue is, which may be the host. */
NCCL_DEVICE_INLINE void gdakiRing(Gin const &gin, gccl_gdaki_qp *q, int peer, uint64_t next, uint64_t bell = 0) {
  Wait w(gin.comm.abortFlag, "doorbell of GIN context", gin.contextId, peer);
  uint64_t rung;
  while ((int64_t)((rung = load(&q->rung, cuda::memory_order_acquire)) - next) < 0) {
    if (gdakiAlone(gin) || tryLock(&q->lock)) {
      uint64_t ready = load(&q->ready, cuda::memory_order_acquire);
      if ((int64_t)(ready - load(&q->rung, cuda::memory_order_relaxed)) > 0) {
        gccl_wqe const *last = reinterpret_cast<gccl_wqe const *>(q->sq + (size_t)((ready - 1) & (q->depth - 1)) * GCCL_WQE_BYTES);
        uint64_t word = bell && ready == next ? bell : load(&last->w[0], cuda::memory_order_relaxed);
        fenceSystem(); /* entries, of whichever threads, before the record */
        storeFenced(const_cast<uint32_t *>(q->dbrec) + GCCL_DBREC_SEND, gccl_dbrec_value((uint32_t)ready));
        fenceSystem(); /* record before doorbell, as the device reads */
        storeFenced(const_cast<uint64_t *>(q->doorbell), word);
#if defined(GCCL_DEVICE_CPU)
        fenceSystem(); /* stores to a card may wait to be combined with later ones */
#endif
        publish(&q->rung, ready);
      }
      if (!gdakiAlone(gin)) unlock(&q->lock);
    } else if (w.over(next, rung)) {
      return;
    }
  }
}

/* Takes the completions that have come: raises their counters. */
NCCL_DEVICE_INLINE void gdakiPoll(Gin const &gin, gccl_gdaki_context *x, gccl_gdaki_qp *q) {
  if (!gdakiAlone(gin) && !tryLock(&q->polling)) return;
  uint64_t done = load(&q->done, cuda::memory_order_relaxed), rung = load(&q->rung, cuda::memory_order_acquire);
  for (; (int64_t)(rung - done) > 0; done++) {
    unsigned char const *c = q->cq + (size_t)(done & (q->cq_depth - 1)) * GCCL_CQE_BYTES;
    uint64_t last = load(reinterpret_cast<uint64_t const *>(c + GCCL_CQE_QPN), cuda::memory_order_acquire); /* its last byte is op_own */
    if (!gccl_cqe_is((uint8_t)(last >> 56), done, q->cq_depth)) break;
    if ((uint8_t)(last >> 56) >> 4 == GCCL_CQE_ERROR && !load(&q->error, cuda::memory_order_relaxed))
      store(&q->error, (uint32_t)c[GCCL_CQE_SYNDROME], cuda::memory_order_relaxed);
    uint32_t counter = q->counter[done & (q->depth - 1)];
    if (counter) addTo(x->counters + (counter - 1), (uint64_t)1, cuda::memory_order_release);
  }
  if (q->cq_dbrec) store(const_cast<uint32_t *>(q->cq_dbrec), gccl_be32((uint32_t)done & 0xffffffu), cuda::memory_order_release);
  publish(&q->done, done); /* acquired by whoever waits for room or for a completion */
  if (!gdakiAlone(gin)) unlock(&q->polling);
}

/* Waits until entries below next have completed. */
NCCL_DEVICE_INLINE bool gdakiReach(Gin const &gin, gccl_gdaki_context *x, gccl_gdaki_qp *q, int peer, uint64_t next, char const *what) {
  Wait w(gin.comm.abortFlag, what, gin.contextId, peer);
  uint64_t done;
  while ((int64_t)((done = load(&q->done, cuda::memory_order_acquire)) - next) < 0) {
    gdakiRing(gin, q, peer, load(&q->ready, cuda::memory_order_acquire)); /* what was aggregated is not known to the device yet */
    gdakiPoll(gin, x, q);
    if ((int64_t)(load(&q->done, cuda::memory_order_acquire) - next) < 0 && w.over(next, done)) return false;
  }
  return true;
}

/* Puts an entry into the queue. build(entry, index) makes it. */
template <typename Build>
NCCL_DEVICE_INLINE void gdakiPost(Gin const &gin, gccl_gdaki_context *x, int peer, uint32_t flags, uint32_t counter, Build build) {
  gccl_gdaki_qp *q = x->qp + peer;
  bool alone = gdakiAlone(gin);
  uint64_t at;
  if (alone) {
    at = q->claimed;
    q->claimed = at + 1;
  } else {
    at = fetchAdd(&q->claimed, (uint64_t)1, cuda::memory_order_relaxed);
  }
  if (!(flags & ncclGinOptFlagsMaySkipCreditCheck) && !gdakiReach(gin, x, q, peer, at + 1 - q->depth, "room in GIN queue of context")) return;
  gccl_wqe e;
  build(&e, (uint32_t)at);
  uint64_t *slot = reinterpret_cast<uint64_t *>(q->sq + (size_t)(at & (q->depth - 1)) * GCCL_WQE_BYTES);
  GCCL_UNROLL()
  for (int i = 0; i < 8; i += 2) storePair(slot + i, e.w[i], e.w[i + 1]);
  q->counter[at & (q->depth - 1)] = counter;
  if (!alone) {
    Wait w(gin.comm.abortFlag, "turn in GIN queue of context", gin.contextId, peer);
    uint64_t ready;
    while ((ready = load(&q->ready, cuda::memory_order_acquire)) != at)
      if (w.over(at, ready)) return;
  }
  publish(&q->ready, at + 1); /* acquired in gdakiRing */
  if (!(flags & ncclGinOptFlagsAggregateRequests)) gdakiRing(gin, q, peer, at + 1, e.w[0]);
}

/* One thread. */
NCCL_DEVICE_INLINE void runGdaki(Gin const &gin, GinPut const &p) {
  gccl_gdaki_context *x = gdakiOf(gin);
  uint32_t qpn = x->qp[p.peer].qpn;
  uint32_t more = p.flags | ncclGinOptFlagsAggregateRequests; /* one doorbell for what a call posts */
  bool signals = p.signal.kind != GinSignal::none;
  size_t left = p.what == GinPut::signalOnly ? 0 : p.bytes, done = 0;
  uint32_t counter = p.counts ? p.counter + 1 : 0;
  while (left || counter) {
    size_t bytes = left < GCCL_GFD_PUT_MAX ? left : (size_t)GCCL_GFD_PUT_MAX;
    bool last = bytes == left;
    uint64_t remote = p.remoteOffset + done, local = p.localOffset + done, bits = p.bits;
    uint32_t rkey = left ? gccl_be32(gdakiKeys(p.remote)->rkeys[p.peer]) : 0;
    uint32_t lkey = left && p.what != GinPut::value ? gccl_be32(gdakiKeys(p.local)->lkey) : 0;
    GinPut::What what = p.what;
    gdakiPost(gin, x, p.peer, last && !signals ? p.flags : more, last ? counter : 0, [=](gccl_wqe *e, uint32_t index) {
      if (!bytes)
        gccl_wqe_nop(e, index, qpn); /* an empty put that counts */
      else if (what == GinPut::value)
        gccl_wqe_write_value(e, index, qpn, remote, rkey, bits, (uint32_t)bytes);
      else if (what == GinPut::get)
        gccl_wqe_read(e, index, qpn, remote, rkey, local, lkey, (uint32_t)bytes);
      else
        gccl_wqe_write(e, index, qpn, remote, rkey, local, lkey, (uint32_t)bytes);
    });
    left -= bytes;
    done += bytes;
    if (!left) break;
  }
  if (!signals) return;
  bool byPlace = p.signal.kind == GinSignal::byPlace;
  uint64_t addr = byPlace ? p.signal.offset : 8 * (uint64_t)p.signal.number, add = p.signal.add, sink = x->sink;
  uint32_t rkey = byPlace ? gccl_be32(gdakiKeys(p.signal.window)->rkeys[p.peer]) : x->signal_rkeys[p.peer], lkey = x->sink_lkey;
  /* An atomic takes effect behind all earlier writes of its queue: weak signals are strong here. */
  gdakiPost(gin, x, p.peer, p.flags, 0, [=](gccl_wqe *e, uint32_t index) { gccl_wqe_fetch_add(e, index, qpn, addr, rkey, add, sink, lkey); });
}

NCCL_DEVICE_INLINE uint64_t gdakiMark(Gin const &gin, int peer) { return load(&gdakiOf(gin)->qp[peer].ready, cuda::memory_order_acquire); }

NCCL_DEVICE_INLINE void gdakiFlush(Gin const &gin, int peer, uint64_t mark) {
  gccl_gdaki_context *x = gdakiOf(gin);
  (void)gdakiReach(gin, x, x->qp + peer, peer, mark, "GIN flush of context");
}

/* Completions are taken by whoever asks for a counter. */
NCCL_DEVICE_INLINE void gdakiPollAll(Gin const &gin) {
  gccl_gdaki_context *x = gdakiOf(gin);
  for (int r = 0; r < x->nranks; r++) {
    gccl_gdaki_qp *q = x->qp + r;
    if (load(&q->done, cuda::memory_order_relaxed) == load(&q->claimed, cuda::memory_order_relaxed)) continue;
    gdakiRing(gin, q, r, load(&q->ready, cuda::memory_order_acquire));
    gdakiPoll(gin, x, q);
  }
}

} // namespace device
} // namespace gccl
#endif
#endif
