/* suites.cc: what every backend of GIN has to do, over every transport. What arrives is read back and compared exactly. */
#include "frame.h"

namespace {

ncclCoopCta cta() { return ncclCoopCta(); }

/* The byte at i of what `from` sends. */
inline unsigned char byteOf(int from, size_t i) { return (unsigned char)(i * 7 + (size_t)from * 31 + 1); }
void fill(Bench &b, size_t at, size_t n) {
  for (size_t i = 0; i < n; i++) b.mem[at + i] = (char)byteOf(b.r.rank, i);
}

/* ---- puts: every rank to every rank, itself included, every awkward size, weak signals that count bytes ---- */

constexpr size_t kSizes[] = {0, 1, 7, 8, 64, 65, 1000, 4096, 9999};
constexpr size_t kPart = 16384;

void putsKernel(ncclDevComm comm, ncclWindow_t w, int *bad) {
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  uint64_t total = 0;
  for (size_t size : kSizes) {
    for (int p = 0; p < comm.nRanks; p++)
      gin.put(world, p, w, (size_t)(1 + comm.rank) * kPart + size % 16, w, size % 5, size,
              ncclGin_WeakSignalAdd{(ncclGinSignal_t)comm.rank, size + 1}, ncclGin_WeakCounterInc{2}, cta());
    total += size + 1;
  }
  for (int p = 0; p < comm.nRanks; p++) gin.waitSignal(cta(), (ncclGinSignal_t)p, total);
  gin.waitCounter(cta(), 2, (uint64_t)(sizeof kSizes / sizeof *kSizes) * (uint64_t)comm.nRanks);
  if (threadIdx.x == 0)
    for (int p = 0; p < comm.nRanks; p++)
      if (gin.readSignal((ncclGinSignal_t)p) != total) ++*bad;
}
void puts(Rank &r) {
  Bench b(r, "puts", (size_t)(r.n + 2) * kPart, wants(r.n, 4));
  fill(b, 0, kPart);
  meet();
  int bad = 0;
  b.run(1, 40, putsKernel, b.dev, b.win, &bad);
  CHECK(bad == 0, "%d signals have other values", bad);
  meet();
  for (int p = 0; p < r.n; p++)
    for (size_t size : {(size_t)9999}) { /* the longest covers the others of its alignment; where they lie apart they are checked below */
      for (size_t i = 0; i < size; i++) {
        unsigned char got = (unsigned char)b.mem[(size_t)(1 + p) * kPart + size % 16 + i];
        bool other = false; /* a shorter one may have come last: puts have no order */
        for (size_t s : kSizes) {
          size_t at = size % 16 + i - s % 16;
          if (size % 16 + i >= s % 16 && at < s) other = other || got == byteOf(p, s % 5 + at);
        }
        CHECK(other, "byte %zu of rank %d is 0x%02x", i, p, got);
      }
      for (size_t i = size % 16 + size; i < kPart; i++)
        CHECK(b.mem[(size_t)(1 + p) * kPart + i] == 0, "byte %zu behind the puts of rank %d is 0x%02x", i, p,
              b.mem[(size_t)(1 + p) * kPart + i]);
    }
}

/* ---- sequence: numbered payload with a signal behind it around the ring, flow control back ---- */

constexpr int kSlots = 8, kWords = 40;

void sequenceKernel(ncclDevComm comm, ncclWindow_t w, long rounds, long *bad) {
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks, prev = (comm.rank + comm.nRanks - 1) % comm.nRanks;
  constexpr size_t slot = kWords * 8, in = kSlots * slot;
  uint64_t *mine = static_cast<uint64_t *>(ncclGetLocalPointer(w, 0)), *theirs = static_cast<uint64_t *>(ncclGetLocalPointer(w, in));
  for (long round = 0; round < rounds; round++) {
    uint64_t k = (uint64_t)round % kSlots;
    if (round >= kSlots) gin.waitSignal(ncclCoopWarp(), 1, (uint64_t)(round - kSlots + 1)); /* credits: the slot has been read */
    for (int i = (int)threadIdx.x; i < kWords; i += 32) mine[k * kWords + (uint64_t)i] = (uint64_t)round << 16 | (uint64_t)i;
    /* Three puts; the signal has to cover all of them: strong. Every other round one put with a weak signal. */
    if (round % 2) {
      gin.put(world, next, w, in + k * slot, w, k * slot, 64, ncclGin_None{}, ncclGin_None{}, ncclCoopWarp());
      gin.put(world, next, w, in + k * slot + 64, w, k * slot + 64, 8, ncclGin_None{}, ncclGin_None{}, ncclCoopWarp(), ncclGin_None{},
              cuda::thread_scope_thread, cuda::thread_scope_device, ncclGinOptFlagsAggregateRequests);
      gin.put(world, next, w, in + k * slot + 72, w, k * slot + 72, slot - 72, ncclGin_StrongSignalInc{0}, ncclGin_None{}, ncclCoopWarp());
    } else {
      gin.put(world, next, w, in + k * slot, w, k * slot, slot, ncclGin_WeakSignalInc{0}, ncclGin_None{}, ncclCoopWarp());
    }
    gin.waitSignal(ncclCoopWarp(), 0, (uint64_t)round + 1);
    for (int i = (int)threadIdx.x; i < kWords; i += 32)
      if (theirs[k * kWords + (uint64_t)i] != ((uint64_t)round << 16 | (uint64_t)i)) __atomic_fetch_add(bad, 1, __ATOMIC_RELAXED);
    __syncwarp();
    gin.signal(world, prev, ncclGin_StrongSignalInc{1}, ncclCoopWarp());
  }
  gin.flush(ncclCoopWarp());
}
void sequence(Rank &r) {
  Bench b(r, "sequence", 2 * kSlots * kWords * 8, wants(2));
  long bad = 0;
  meet();
  b.run(1, 32, sequenceKernel, b.dev, b.win, gSignals, &bad);
  CHECK(bad == 0, "%ld of %ld words were not there when their signal was", bad, gSignals * kWords);
}

/* ---- signals: wrap-around, adds and incs mixed, by number and by place, resets, shadows ---- */

void signalsKernel(ncclDevComm comm, ncclWindow_t w, int *bad) {
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks;
  auto expect = [&](int line, bool ok) {
    if (!ok && threadIdx.x == 0) {
      printf("suites.cc:%d\n", line);
      ++*bad;
    }
  };
#define EXPECT(X) expect(__LINE__, (X))
/* Nobody goes on before all are here: a neighbour that is half a circle ahead looks as if it were behind. */
#define NEXT() ncclGinBarrier(ncclCoopWarp(), gin, ncclTeamTagWorld(), 0)
  /* 2^32: a wait that looks at 32 bits. */
  gin.signal(world, next, ncclGin_StrongSignalAdd{0, 0xfffffffeull}, ncclCoopWarp());
  gin.waitSignal(ncclCoopWarp(), 0, 0xfffffffeull);
  NEXT();
  gin.signal(world, next, ncclGin_WeakSignalInc{0}, ncclCoopWarp());
  gin.signal(world, next, ncclGin_StrongSignalAdd{0, 4}, ncclCoopWarp());
  gin.waitSignal(ncclCoopWarp(), 0, 3, 32);
  NEXT();
  EXPECT(gin.readSignal(0) == 0x100000003ull && gin.readSignal(0, 32) == 3);
  NEXT();
  /* 2^63 and 2^64. */
  gin.signal(world, next, ncclGin_SignalAdd{1, 0x7ffffffffffffffdull}, ncclCoopWarp());
  gin.waitSignal(ncclCoopWarp(), 1, 0x7ffffffffffffffdull);
  NEXT();
  gin.signal(world, next, ncclGin_SignalAdd{1, 6}, ncclCoopWarp());
  gin.waitSignal(ncclCoopWarp(), 1, 0x8000000000000003ull);
  NEXT();
  gin.signal(world, next, ncclGin_StrongSignalAdd{1, 0x7ffffffffffffffbull}, ncclCoopWarp());
  gin.waitSignal(ncclCoopWarp(), 1, 0xfffffffffffffffeull);
  NEXT();
  gin.signal(world, next, ncclGin_SignalInc{1}, ncclCoopWarp());
  gin.signal(world, next, ncclGin_StrongSignalAdd{1, 10}, ncclCoopWarp());
  gin.waitSignal(ncclCoopWarp(), 1, 9);
  NEXT();
  EXPECT(gin.readSignal(1) == 9);
  NEXT();
  /* By place, all four kinds. */
  gin.signal(world, next, ncclGin_StrongVASignalInc{w, 64}, ncclCoopWarp());
  gin.signal(world, next, ncclGin_WeakVASignalInc{w, 64}, ncclCoopWarp());
  gin.signal(world, next, ncclGin_StrongVASignalAdd{w, 64, (uint64_t)-3}, ncclCoopWarp());
  gin.signal(world, next, ncclGin_WeakVASignalAdd{w, 64, 40}, ncclCoopWarp());
  gin.waitSignal(ncclCoopWarp(), w, 64, 39);
  EXPECT(gin.readSignal(w, 64) == 39);
  gin.put(world, next, w, 128, w, 0, 8, ncclGin_VASignalAdd{w, 72, 1}, ncclGin_None{}, ncclCoopWarp());
  gin.waitSignal(ncclCoopWarp(), w, 72, 1);
  EXPECT(*static_cast<uint64_t *>(ncclGetLocalPointer(w, 128)) == 0x1122334455667788ull);
  /* Resets and shadows. Everybody has seen the values before they are reset: the neighbour's word is not ours. */
  NEXT();
  if (threadIdx.x == 0) {
    gin.resetSignal(0);
    gin.resetSignal(w, 64);
  }
  NEXT();
  EXPECT(gin.readSignal(0) == 0 && gin.readSignal(w, 64) == 0);
  NEXT(); /* all have looked; the neighbour's signals may come */
  gin.signal(world, next, ncclGin_StrongSignalAdd{0, 5}, ncclCoopWarp());
  uint32_t before = 77, delta = 77;
  gin.waitSignalFollowShadow(ncclCoopWarp(), 0, 5u, &before, &delta, 32);
  EXPECT(before == 0 && delta == 5 && *gin.getSignalShadowPtr(0) == 5);
  NEXT();
  if (threadIdx.x == 0) gin.increaseSignalShadow(0, 2);
  __syncwarp();
  gin.signal(world, next, ncclGin_StrongSignalAdd{0, 2}, ncclCoopWarp());
  gin.waitSignalMeetShadow(ncclCoopWarp(), 0);
  EXPECT(gin.readSignal(0) == 7);
#undef EXPECT
#undef NEXT
}
void signals(Rank &r) {
  ncclDevCommRequirements q = wants(4);
  q.worldGinBarrierCount = 1;
  Bench b(r, "signals", 4096, q);
  uint64_t v = 0x1122334455667788ull;
  memcpy(b.mem, &v, 8);
  int bad = 0;
  meet();
  b.run(1, 32, signalsKernel, b.dev, b.win, &bad);
  CHECK(bad == 0, "%d values are wrong", bad);
}

/* ---- local completion: counters, flush, requests; sources are written again afterwards ---- */

void localKernel(ncclDevComm comm, ncclWindow_t w, int *bad) {
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks;
  char *src = static_cast<char *>(ncclGetLocalPointer(w, 0));
  for (int round = 0; round < 12; round++) {
    for (int i = (int)threadIdx.x; i < 512; i += (int)blockDim.x) src[i] = (char)(round + 1);
    cta().sync();
    gin.put(world, next, w, 4096 + (size_t)round * 512, w, 0, 512, ncclGin_None{}, ncclGin_WeakCounterInc{1}, cta());
    if (round % 3 == 0) {
      gin.waitCounter(cta(), 1, (uint64_t)round + 1);
    } else if (round % 3 == 1) {
      gin.flush(cta());
    } else {
      ncclGinRequest_t q;
      if (threadIdx.x == 0) {
        gin.flushAsync(world, (uint32_t)next, &q);
        gin.wait(q);
      }
      cta().sync();
    }
  }
  gin.waitCounter(cta(), 1, 12);
  if (threadIdx.x == 0 && gin.readCounter(1) != 12) ++*bad;
  cta().sync();
  if (threadIdx.x == 0) gin.resetCounter(1);
  cta().sync();
  if (threadIdx.x == 0 && gin.readCounter(1) != 0) ++*bad;
  gin.put(world, next, w, 0, w, 0, 0, ncclGin_StrongSignalInc{0}, ncclGin_CounterInc{1},
          cta()); /* nothing, which still counts and signals */
  gin.waitCounter(cta(), 1, 1);
  gin.waitSignal(cta(), 0, 1);
}
void local(Rank &r) {
  Bench b(r, "local", 4096 + 12 * 512, wants(1, 3));
  int bad = 0;
  meet();
  b.run(1, 40, localKernel, b.dev, b.win, &bad);
  CHECK(bad == 0, "%d counters are wrong", bad);
  meet();
  for (int round = 0; round < 12; round++)
    for (int i = 0; i < 512; i++) {
      char got = b.mem[4096 + round * 512 + i];
      CHECK(got == round + 1, "put %d has byte %d: the source was used again too early", round, got);
    }
}

/* ---- gets and values ---- */

template <int n> struct Odd { unsigned char b[n]; };
template <int n> void putOdd(ncclGin const &gin, ncclTeam world, int peer, ncclWindow_t w) {
  Odd<n> v;
  for (int i = 0; i < n; i++) v.b[i] = (unsigned char)(0x10 * n + i);
  gin.putValue(world, peer, w, 1024 + 16 * n, v);
}
void valuesKernel(ncclDevComm comm, ncclWindow_t w) {
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks;
  if (threadIdx.x == 0) {
    putOdd<1>(gin, world, next, w);
    putOdd<2>(gin, world, next, w);
    putOdd<3>(gin, world, next, w);
    putOdd<4>(gin, world, next, w);
    putOdd<5>(gin, world, next, w);
    putOdd<6>(gin, world, next, w);
    putOdd<7>(gin, world, next, w);
    putOdd<8>(gin, world, next, w);
    gin.putValue(world, next, w, 1200, 0x0123456789abcdefull, ncclGin_StrongSignalInc{0});
  }
  gin.waitSignal(cta(), 0, 1);
  for (size_t k = 0; k < 8; k++) gin.get(world, next, w, 32768 + kSizes[k] % 7, w, 65536 + k * 8192, kSizes[k], cta());
  gin.flush(cta());
}
void values(Rank &r) {
  Bench b(r, "values", 131072, wants(1));
  for (size_t i = 0; i < 8192; i++) b.mem[32768 + i] = (char)byteOf(r.rank, i);
  meet();
  b.run(1, 40, valuesKernel, b.dev, b.win);
  meet();
  for (int n = 1; n <= 8; n++)
    for (int i = 0; i < 16; i++) {
      unsigned char want = i < n ? (unsigned char)(0x10 * n + i) : 0, got = (unsigned char)b.mem[1024 + 16 * n + i];
      CHECK(got == want, "a value of %d bytes has 0x%02x in byte %d", n, got, i);
    }
  uint64_t v;
  memcpy(&v, b.mem + 1200, 8);
  CHECK(v == 0x0123456789abcdefull, "the value of 8 bytes is 0x%llx", (unsigned long long)v);
  for (size_t k = 0; k < 8; k++)
    for (size_t i = 0; i < 8192; i++) {
      unsigned char want = i < kSizes[k] ? byteOf((r.rank + 1) % r.n, kSizes[k] % 7 + i) : 0,
                    got = (unsigned char)b.mem[65536 + k * 8192 + i];
      CHECK(got == want, "a get of %zu has 0x%02x in byte %zu", kSizes[k], got, i);
    }
}

/* ---- queues: 16 entries, many puts, several threads and CTAs in one context, every sharing mode and option ---- */

void queuesKernel(ncclDevComm comm, ncclWindow_t w, long puts) {
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks, t = (int)(blockIdx.x * blockDim.x + threadIdx.x), all = (int)(gridDim.x * blockDim.x);
  ncclGin shared(comm, 0);
  for (long i = t; i < puts; i += all) /* every thread for itself */
    shared.putValue(world, next, w, (size_t)(i % 4096) * 8, (uint64_t)i + 1, ncclGin_WeakSignalInc{0}, ncclCoopThread(), ncclGin_None{},
                    cuda::thread_scope_thread, cuda::thread_scope_device,
                    i % 5 ? ncclGinOptFlagsDefault : ncclGinOptFlagsAggregateRequests);
  shared.flush(ncclCoopThread());
  if (blockIdx.x == 0) {
    ncclGin mine(comm, 1, NCCL_GIN_RESOURCE_SHARING_CTA);
    for (int i = 0; i < 20; i++) mine.put(world, next, w, 32768, w, 40000, 16, ncclGin_StrongSignalInc{1}, ncclGin_None{}, cta());
    mine.flush(cta());
    if (threadIdx.x == 0) {
      ncclGin alone(comm, 2, NCCL_GIN_RESOURCE_SHARING_THREAD);
      for (int i = 0; i < 100; i++)
        alone.put(world, next, w, 32800, w, 40000, 16, ncclGin_StrongSignalInc{1}, ncclGin_WeakCounterInc{0}, ncclCoopThread(),
                  ncclGin_None{}, cuda::thread_scope_thread, cuda::thread_scope_device,
                  i < 7 ? ncclGinOptFlagsMaySkipCreditCheck | ncclGinOptFlagsAggregateRequests : ncclGinOptFlagsDefault);
      alone.waitCounter(ncclCoopThread(), 0, 100);
    }
  }
  shared.waitSignal(cta(), 0, (uint64_t)puts);
  ncclGin(comm, 1).waitSignal(cta(), 1, 20);
  ncclGin(comm, 2).waitSignal(cta(), 1, 100);
}
void queues(Rank &r) {
  Bench b(r, "queues", 65536, wants(2, 1, 3, 16));
  meet();
  b.run(2, 24, queuesKernel, b.dev, b.win, gPuts);
  meet();
  for (long i = 0; i < 4096; i++) { /* the words that one number alone was written to; others may have any of theirs */
    uint64_t v;
    memcpy(&v, b.mem + i * 8, 8);
    CHECK(i >= gPuts ? v == 0 : (long)v > 0 && (long)((v - 1) % 4096) == i && (long)v <= gPuts, "word %ld is %llu", i,
          (unsigned long long)v);
  }
}

/* ---- contexts: the same signal number in each is another signal ---- */

void contextsKernel(ncclDevComm comm) {
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks;
  ncclGin gin(comm, (int)blockIdx.x);
  for (unsigned i = 0; i < 10 * (blockIdx.x + 1); i++) gin.signal(world, next, ncclGin_StrongSignalInc{3}, ncclCoopWarp());
  gin.waitSignal(ncclCoopWarp(), 3, 10 * (blockIdx.x + 1));
}
void readContexts(ncclDevComm comm, uint64_t *out) {
  if (threadIdx.x == 0) out[blockIdx.x] = ncclGin(comm, (int)blockIdx.x).readSignal(3);
}
void contexts(Rank &r) {
  Bench b(r, "contexts", 4096, wants(4, 0, 4));
  uint64_t out[4] = {0};
  CHECK(b.dev.ginContextCount == 4, "%u contexts", b.dev.ginContextCount);
  meet();
  b.run(4, 32, contextsKernel, b.dev);
  meet();
  b.run(4, 32, readContexts, b.dev, out);
  for (int i = 0; i < 4; i++) CHECK(out[i] == 10u * (unsigned)(i + 1), "signal 3 of context %d is %llu", i, (unsigned long long)out[i]);
}

/* ---- again: many device communicators one after another; more contexts than there are at a time ---- */

void againKernel(ncclDevComm comm, ncclWindow_t w) {
  ncclTeam world = ncclTeamWorld(comm);
  for (int c = 0; c < (int)comm.ginContextCount; c++) {
    ncclGin gin(comm, c);
    for (int p = 0; p < comm.nRanks; p++) {
      gin.putValue(world, p, w, (size_t)(c * comm.nRanks + comm.rank) * 8, (uint64_t)(c + 1), ncclGin_StrongSignalInc{1}, ncclCoopWarp());
      gin.signal(world, p, ncclGin_StrongVASignalInc{w, 2048}, ncclCoopWarp());
    }
    gin.waitSignal(ncclCoopWarp(), 1, (uint64_t)comm.nRanks);
  }
  ncclGin(comm, 0).waitSignal(ncclCoopWarp(), w, 2048, (uint64_t)comm.nRanks * comm.ginContextCount);
}
void again(Rank &r) {
  for (int i = 0; i < 18; i++) {
    Bench b(r, "again", 4096, wants(2, 0, 4));
    meet();
    b.run(1, 32, againKernel, b.dev, b.win);
    meet();
    for (int k = 0; k < 4 * r.n; k++) {
      uint64_t v;
      memcpy(&v, b.mem + k * 8, 8);
      CHECK(v == (uint64_t)(k / r.n + 1), "round %d: word %d is %llu", i, k, (unsigned long long)v);
    }
  }
}

/* ---- barriers: world, rail, all contexts, a team of the caller's, hybrid; each CTA its own index ---- */

struct Barriers {
  ncclGinBarrierHandle own;
};
void barriersKernel(ncclDevComm comm, ncclWindow_t w, Barriers h, int rounds, long *bad) {
  ncclTeam world = ncclTeamWorld(comm);
  ncclGin gin(comm, (int)(blockIdx.x % comm.ginContextCount));
  ncclGinBarrierSession<ncclCoopCta> bar(cta(), gin, ncclTeamTagWorld(), blockIdx.x);
  uint64_t *words = static_cast<uint64_t *>(ncclGetLocalPointer(w, 0));
  size_t mine = (size_t)blockIdx.x * 1024;
  for (int round = 0; round < rounds; round++) {
    for (int p = 0; p < comm.nRanks; p++) /* puts to all, without a signal: the barrier has to settle them */
      gin.putValue(world, p, w, (mine + (size_t)comm.rank) * 8, (uint64_t)round + 1, ncclGin_None{}, cta());
    if (round % 4 == 1)
      ncclGinBarrier(cta(), gin, world, h.own, blockIdx.x);
    else if (round % 4 == 2)
      ncclGinBarrier(cta(), ncclGinAllContexts(comm), ncclTeamTagWorld(), 2 + blockIdx.x);
    else if (round % 4 == 3)
      ncclBarrier(cta(), ncclTeamTagWorld(), gin, blockIdx.x);
    else
      bar.sync(cta(), cuda::memory_order_acq_rel);
    for (int p = (int)threadIdx.x; p < comm.nRanks; p += (int)blockDim.x)
      if (__atomic_load_n(words + mine + p, __ATOMIC_RELAXED) != (uint64_t)round + 1) __atomic_fetch_add(bad, 1, __ATOMIC_RELAXED);
    bar.sync(cta(), cuda::memory_order_relaxed, ncclGinFenceLevel::None); /* all have looked */
  }
  ncclGinBarrier(cta(), gin, ncclTeamTagRail(), blockIdx.x);
  ncclBarrier(cta(), ncclTeamTagRail(), gin, blockIdx.x);
  ncclBarrier(cta(), ncclTeamTagWorld(), gin, blockIdx.x, cuda::memory_order_acq_rel, ncclGinFenceLevel::None);
}
void lateKernel(ncclDevComm comm, int *result) { /* rank 0 does not come */
  if (comm.rank == 0) return;
  ncclGinBarrierSession<ncclCoopCta> bar(cta(), ncclGin(comm, 0), ncclTeamTagWorld(), 3);
  ncclResult_t rc = bar.sync(cta(), cuda::memory_order_acq_rel, ncclGinFenceLevel::None, 20000000);
  if (rc == ncclTimeout) __atomic_store_n(result, 1, __ATOMIC_RELAXED);
}
void barriers(Rank &r) {
  ncclDevCommRequirements q = wants(1, 0, 2);
  q.worldGinBarrierCount = 4;
  q.railGinBarrierCount = 2;
  q.barrierCount = 2;
  Barriers h;
  ncclDevResourceRequirements_t own;
  ncclGinBarrierCreateRequirement(r.comm, ncclTeamWorld(r.comm), 2, &h.own, &own);
  ncclGinSignal_t first = 0;
  ncclDevResourceRequirements_t more = {};
  more.ginSignalCount = 5;
  more.outGinSignalStart = &first;
  own.next = &more;
  q.resourceRequirementsList = &own;
  Bench b(r, "barriers", 65536, q);
  CHECK(first + 5 == (ncclGinSignal_t)b.dev.ginSignalCount && h.own.signal0 + 2 * (unsigned)r.n == first,
        "signals begin at %u and %u of %d", h.own.signal0, first, b.dev.ginSignalCount);
  long bad = 0;
  meet();
  b.run(2, 16, barriersKernel, b.dev, b.win, h, 16, &bad);
  CHECK(bad == 0, "%ld puts were not there after a barrier", bad);
  meet();
  int timedOut = 0;
  b.run(1, 8, lateKernel, b.dev, &timedOut);
  CHECK(timedOut == (r.rank != 0), "a barrier without rank 0 ends with %d", timedOut);
}

/* ---- together: two kernels of a rank at once, in contexts of their own; the functions without templates ---- */

void togetherKernel(ncclDevComm comm, ncclWindow_t w, int context, int rounds) {
  ncclGin_C gin(comm, NCCL_GIN_BACKEND_MASK_ALL, context);
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks;
  ncclCoopAny warp{ncclCoopWarp()};
  constexpr cuda::thread_scope t = cuda::thread_scope_thread, d = cuda::thread_scope_device;
  for (int i = 1; i <= rounds; i++) {
    ncclGinPut(&gin, world, next, w, 4096 + (size_t)context * 512, w, 0, 256, true, 0, ncclGinSignalInc, 0, true, 0, warp, false, nullptr,
               t, d);
    ncclGinPutValue(&gin, world, next, w, 8192 + (size_t)context * 8, (uint64_t)i, 8, true, 0, ncclGinSignalAdd, 2, warp, false, nullptr, t,
                    d);
    ncclGinSignal(&gin, world, next, true, 1, ncclGinSignalAdd, 7, warp, false, nullptr, t, d);
    ncclGinWaitSignal(&gin, warp, 0, (uint64_t)i * 3, 64, cuda::memory_order_acquire);
    ncclGinWaitSignal(&gin, warp, 1, (uint64_t)i * 7, 64, cuda::memory_order_acquire);
  }
  ncclGinWaitCounter(&gin, warp, 0, (uint64_t)rounds, 56, cuda::memory_order_acquire);
  ncclGinGet(&gin, world, next, w, 0, w, 12288 + (size_t)context * 256, 256, warp, false, nullptr, ncclGinOptFlagsDefault);
  ncclGinFlush(&gin, warp, cuda::memory_order_acquire);
}
void together(Rank &r) {
  Bench b(r, "together", 16384, wants(2, 1, 2));
  fill(b, 0, 256);
  meet();
  gccl::cpu::Launch l(1, 32);
  l.deadlineNs = (uint64_t)gSeconds * 1000000000u;
  CHECK(l.start(togetherKernel, b.dev, b.win, 0, 30) == ncclSuccess, "%s", l.error());
  b.run(1, 32, togetherKernel, b.dev, b.win, 1, 30);
  CHECK(l.finish() == ncclSuccess, "%s", l.error());
  meet();
  for (int c = 0; c < 2; c++) {
    uint64_t v;
    memcpy(&v, b.mem + 8192 + c * 8, 8);
    CHECK(v == 30, "the last value of kernel %d is %llu", c, (unsigned long long)v);
    for (int i = 0; i < 256; i++) {
      unsigned char got = (unsigned char)b.mem[4096 + c * 512 + i], have = (unsigned char)b.mem[12288 + c * 256 + i];
      CHECK(got == byteOf((r.rank + r.n - 1) % r.n, (size_t)i), "byte %d of kernel %d is 0x%02x", i, c, got);
      CHECK(have == byteOf((r.rank + 1) % r.n, (size_t)i), "byte %d that kernel %d got is 0x%02x", i, c, have);
    }
  }
}

/* ---- race: a word is read without a wait for its signal, which ThreadSanitizer has to find. Only by name ---- */

void raceKernel(ncclDevComm comm, ncclWindow_t w, uint64_t *out) {
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  uint64_t *words = static_cast<uint64_t *>(ncclGetLocalPointer(w, 0));
  if (comm.rank == 0)
    gin.put(world, 1, w, 0, w, 64, 8, ncclGin_StrongSignalInc{0}, ncclGin_None{}, ncclCoopThread());
  else
    *out = words[0];
  if (comm.rank == 1) gin.waitSignal(ncclCoopThread(), 0, 1);
}
void race(Rank &r) {
  Bench b(r, "race", 4096, wants(1));
  uint64_t seen = 0;
  meet();
  b.run(1, 1, raceKernel, b.dev, b.win, &seen);
}

} // namespace

Suite const gSuites[] = {{"puts", puts},         {"sequence", sequence}, {"signals", signals},   {"local", local},
                         {"values", values},     {"queues", queues},     {"contexts", contexts}, {"barriers", barriers},
                         {"together", together}, {"again", again},       {"soak", soak},         {"race", race}};
int const gSuiteCount = sizeof gSuites / sizeof *gSuites;
