/* kernels.h: the kernels of the suites of GIN, CUDA and CPU alike: the same text is compiled by NVRTC in make cuda. What they find wrong they
 * count in *bad. */
#ifndef DEVGIN_KERNELS_H
#define DEVGIN_KERNELS_H

#include <gccl_device.h>

#ifdef GCCL_DEVICE_CUDA
#define KERNEL extern "C" __global__ void
#else
#define KERNEL static inline void
#endif

__device__ inline ncclCoopCta cta() { return ncclCoopCta(); }

/* ---- puts: every rank to every rank, itself included, every awkward size, weak signals that count bytes ---- */

__device__ constexpr size_t kSizes[] = {0, 1, 7, 8, 64, 65, 1000, 4096, 9999};
constexpr size_t kPart = 16384;

KERNEL putsKernel(ncclDevComm comm, ncclWindow_t w, int *bad) {
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
      if (gin.readSignal((ncclGinSignal_t)p) != total) atomicAdd(bad, 1);
}

/* ---- sequence: numbered payload with a signal behind it around the ring, flow control back ---- */

constexpr int kSlots = 8, kWords = 40;

KERNEL sequenceKernel(ncclDevComm comm, ncclWindow_t w, long rounds, int *bad) {
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
      if (theirs[k * kWords + (uint64_t)i] != ((uint64_t)round << 16 | (uint64_t)i)) atomicAdd(bad, 1);
    __syncwarp();
    gin.signal(world, prev, ncclGin_StrongSignalInc{1}, ncclCoopWarp());
  }
  gin.flush(ncclCoopWarp());
}

/* ---- signals: wrap-around, adds and incs mixed, by number and by place, resets, shadows ---- */

KERNEL signalsKernel(ncclDevComm comm, ncclWindow_t w, int *bad) {
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks;
  auto expect = [&](int line, bool ok) {
    if (!ok && threadIdx.x == 0) {
      printf("kernels.h:%d\n", line);
      atomicAdd(bad, 1);
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

/* ---- local completion: counters, flush, requests; sources are written again afterwards ---- */

KERNEL localKernel(ncclDevComm comm, ncclWindow_t w, int *bad) {
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
  if (threadIdx.x == 0 && gin.readCounter(1) != 12) atomicAdd(bad, 1);
  cta().sync();
  if (threadIdx.x == 0) gin.resetCounter(1);
  cta().sync();
  if (threadIdx.x == 0 && gin.readCounter(1) != 0) atomicAdd(bad, 1);
  gin.put(world, next, w, 0, w, 0, 0, ncclGin_StrongSignalInc{0}, ncclGin_CounterInc{1},
          cta()); /* nothing, which still counts and signals */
  gin.waitCounter(cta(), 1, 1);
  gin.waitSignal(cta(), 0, 1);
}

/* ---- gets and values ---- */

template <int n> struct Odd { unsigned char b[n]; };
template <int n> __device__ inline void putOdd(ncclGin const &gin, ncclTeam world, int peer, ncclWindow_t w) {
  Odd<n> v;
  for (int i = 0; i < n; i++) v.b[i] = (unsigned char)(0x10 * n + i);
  gin.putValue(world, peer, w, 1024 + 16 * n, v);
}
KERNEL valuesKernel(ncclDevComm comm, ncclWindow_t w) {
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

/* ---- bulk: puts and gets between all ranks at once, each longer than what any backend has under way; two puts behind one strong signal ---- */

__device__ inline uint64_t bulkWord(int rank, int round, size_t i) { return ((uint64_t)rank << 48 | (uint64_t)(round + 1) << 40) + i * 3; }
KERNEL bulkKernel(ncclDevComm comm, ncclWindow_t w, size_t bytes, int rounds, int *bad) {
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  size_t words = bytes / 8, half = bytes / 2 + 3;
  uint64_t *mine = static_cast<uint64_t *>(ncclGetLocalPointer(w, 0));
  auto check = [&](int from, int round, size_t at) {
    uint64_t *v = static_cast<uint64_t *>(ncclGetLocalPointer(w, at));
    for (size_t i = threadIdx.x; i < words; i += blockDim.x)
      if (v[i] != bulkWord(from, round, i)) atomicAdd(bad, 1);
  };
  for (int round = 0; round < rounds; round++) {
    for (size_t i = threadIdx.x; i < words; i += blockDim.x) mine[i] = bulkWord(comm.rank, round, i);
    ncclGinBarrier(cta(), gin, ncclTeamTagWorld(), 0); /* sources are filled, and what was there before has been read */
    for (int k = 0; k < comm.nRanks; k++) {
      int p = (comm.rank + k) % comm.nRanks;
      gin.get(world, p, w, 0, w, bytes * (size_t)(1 + comm.nRanks + p), bytes, cta());
      gin.put(world, p, w, bytes * (size_t)(1 + comm.rank), w, 0, half, ncclGin_None{}, ncclGin_None{}, cta());
      gin.put(world, p, w, bytes * (size_t)(1 + comm.rank) + half, w, half, bytes - half,
              ncclGin_StrongSignalInc{(ncclGinSignal_t)comm.rank}, ncclGin_None{}, cta());
    }
    for (int p = 0; p < comm.nRanks; p++) {
      gin.waitSignal(cta(), (ncclGinSignal_t)p, (uint64_t)round + 1);
      check(p, round, bytes * (size_t)(1 + p));
    }
    gin.flush(cta());
    for (int p = 0; p < comm.nRanks; p++) check(p, round, bytes * (size_t)(1 + comm.nRanks + p));
    ncclGinBarrier(cta(), gin, ncclTeamTagWorld(), 0);
  }
}

/* ---- killed: puts to everybody that end when the communicator fails ---- */

KERNEL killedKernel(ncclDevComm comm, ncclWindow_t w, size_t bytes) {
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  for (uint64_t round = 1; !gccl::device::load(comm.abortFlag, cuda::memory_order_relaxed); round++) {
    for (int p = 0; p < comm.nRanks; p++)
      gin.put(world, p, w, bytes * (size_t)(1 + comm.rank), w, 0, bytes, ncclGin_StrongSignalInc{(ncclGinSignal_t)comm.rank},
              ncclGin_None{}, cta());
    for (int p = 0; p < comm.nRanks; p++) gin.waitSignal(cta(), (ncclGinSignal_t)p, round);
  }
}

/* ---- queues: 16 entries, many puts, several threads and CTAs in one context, every sharing mode and option ---- */

KERNEL queuesKernel(ncclDevComm comm, ncclWindow_t w, long puts) {
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

/* ---- contexts: the same signal number in each is another signal ---- */

KERNEL contextsKernel(ncclDevComm comm) {
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks;
  ncclGin gin(comm, (int)blockIdx.x);
  for (unsigned i = 0; i < 10 * (blockIdx.x + 1); i++) gin.signal(world, next, ncclGin_StrongSignalInc{3}, ncclCoopWarp());
  gin.waitSignal(ncclCoopWarp(), 3, 10 * (blockIdx.x + 1));
}
KERNEL readContexts(ncclDevComm comm, uint64_t *out) {
  if (threadIdx.x == 0) out[blockIdx.x] = ncclGin(comm, (int)blockIdx.x).readSignal(3);
}

/* ---- again: many device communicators one after another ---- */

KERNEL againKernel(ncclDevComm comm, ncclWindow_t w) {
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

/* ---- barriers: world, rail, all contexts, a team of the caller's, hybrid; each CTA its own index ---- */

struct Barriers {
  ncclGinBarrierHandle own;
};
KERNEL barriersKernel(ncclDevComm comm, ncclWindow_t w, Barriers h, int rounds, int *bad) {
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
      if (gccl::device::load(words + mine + p, cuda::memory_order_relaxed) != (uint64_t)round + 1) atomicAdd(bad, 1);
    bar.sync(cta(), cuda::memory_order_relaxed, ncclGinFenceLevel::None); /* all have looked */
  }
  ncclGinBarrier(cta(), gin, ncclTeamTagRail(), blockIdx.x);
  ncclBarrier(cta(), ncclTeamTagRail(), gin, blockIdx.x);
  ncclBarrier(cta(), ncclTeamTagWorld(), gin, blockIdx.x, cuda::memory_order_acq_rel, ncclGinFenceLevel::None);
}
KERNEL lateKernel(ncclDevComm comm, int *result) { /* rank 0 does not come */
  if (comm.rank == 0) return;
  ncclGinBarrierSession<ncclCoopCta> bar(cta(), ncclGin(comm, 0), ncclTeamTagWorld(), 3);
  ncclResult_t rc = bar.sync(cta(), cuda::memory_order_acq_rel, ncclGinFenceLevel::None, 20000000);
  if (rc == ncclTimeout) atomicExch(result, 1);
}

/* ---- together: two kernels of a rank at once, in contexts of their own; the functions without templates ---- */

KERNEL togetherKernel(ncclDevComm comm, ncclWindow_t w, int context, int rounds) {
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

/* ---- behind: a put, a value and signals around the ring; round 0 does nothing ---- */

KERNEL roundKernel(ncclDevComm comm, ncclWindow_t w, int round) {
  if (!round) return;
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks;
  gin.put(world, next, w, 8192, w, 0, 4096, ncclGin_StrongSignalInc{0}, ncclGin_None{}, ncclCoopWarp());
  gin.waitSignal(ncclCoopWarp(), 0, 2 * (uint64_t)round - 1);
  gin.putValue(world, next, w, 12288, (uint64_t)round, ncclGin_StrongSignalInc{0}, ncclCoopWarp());
  gin.waitSignal(ncclCoopWarp(), 0, 2 * (uint64_t)round);
  gin.flush(ncclCoopWarp());
}

/* ---- full: CTA 0 puts to its own rank and waits, while the others fill the GPU until it is done ---- */

KERNEL fullKernel(ncclDevComm comm, ncclWindow_t w, int rounds, uint64_t *done) {
  if (comm.rank != 0) return;
  if (blockIdx.x != 0) {
    gccl::device::Wait wait(comm.abortFlag, "CTA 0 of the kernel that fills the GPU", 0, -1);
    while (threadIdx.x == 0 && !gccl::device::load(done, cuda::memory_order_relaxed) && !wait.over(1, 0)) {
    }
    __syncthreads();
    return;
  }
  ncclGin gin(comm, 0);
  for (int i = 1; i <= rounds; i++) {
    gin.put(ncclTeamWorld(comm), 0, w, 65536, w, 0, 65536, ncclGin_StrongSignalInc{0}, ncclGin_None{}, cta());
    gin.putValue(ncclTeamWorld(comm), 0, w, 131072, (uint64_t)i, ncclGin_StrongSignalInc{0}, cta());
    gin.signal(ncclTeamWorld(comm), 0, ncclGin_StrongVASignalInc{w, 131080}, cta());
    gin.waitSignal(cta(), 0, 2 * (uint64_t)i);
    gin.waitSignal(cta(), w, 131080, (uint64_t)i);
  }
  if (threadIdx.x == 0) gccl::device::store(done, (uint64_t)1, cuda::memory_order_release);
}

/* ---- race: a word is read without a wait for its signal ---- */

KERNEL raceKernel(ncclDevComm comm, ncclWindow_t w, uint64_t *out) {
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  uint64_t *words = static_cast<uint64_t *>(ncclGetLocalPointer(w, 0));
  if (comm.rank == 0)
    gin.put(world, 1, w, 0, w, 64, 8, ncclGin_StrongSignalInc{0}, ncclGin_None{}, ncclCoopThread());
  else
    *out = words[0];
  if (comm.rank == 1) gin.waitSignal(ncclCoopThread(), 0, 1);
}

/* ---- soak ---- */

constexpr int kSoakSlots = 16, kSoakWords = 48, kCredit = kSoakSlots; /* signals: one for each slot, then the credits */

__device__ inline uint64_t mixed(uint64_t v) { /* splitmix64 */
  v += 0x9e3779b97f4a7c15ull;
  v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
  v = (v ^ v >> 27) * 0x94d049bb133111ebull;
  return v ^ v >> 31;
}
/* Message number n of a rank, and word i of it. */
__device__ inline uint64_t messageOf(uint64_t seed, int rank, long n) { return mixed(mixed(seed + (uint64_t)rank) + (uint64_t)n); }
__device__ inline int wordsIn(uint64_t message) { return 1 + (int)(message % kSoakWords); }
__device__ inline uint64_t wordOf(uint64_t message, long n, int i) { return (mixed(message + (uint64_t)i) & 0xffffff) | (uint64_t)n << 24; }

KERNEL soakKernel(ncclDevComm comm, ncclWindow_t w, uint64_t seed, long count, long *bad, long *words) {
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks, prev = (comm.rank + comm.nRanks - 1) % comm.nRanks;
  constexpr size_t slot = kSoakWords * 8, in = kSoakSlots * slot;
  ncclCoopThread thread;
  if (blockIdx.x == 0) {
    ncclGin gin(comm, 0), credits(comm, 1);
    for (long n = 0; n < count; n++) {
      size_t k = (size_t)(n % kSoakSlots), at = k * slot;
      uint64_t m = messageOf(seed, comm.rank, n);
      int size = wordsIn(m);
      if (n >= kSoakSlots) credits.waitSignal(thread, kCredit, (uint64_t)(n - kSoakSlots + 1));
      uint64_t *mine = static_cast<uint64_t *>(ncclGetLocalPointer(w, at));
      for (int i = 0; i < size; i++) mine[i] = wordOf(m, n, i);
      size_t bytes = (size_t)size * 8, first = 8 * (1 + (size_t)(m >> 32) % (size_t)size);
      switch (m >> 60 & 3) {
      case 0: gin.put(world, next, w, in + at, w, at, bytes, ncclGin_WeakSignalInc{(ncclGinSignal_t)k}); break;
      case 1: gin.put(world, next, w, in + at, w, at, bytes, ncclGin_StrongSignalAdd{(ncclGinSignal_t)k, 1}); break;
      case 2: /* two puts, the first of which the signal of the second covers; told together */
        gin.put(world, next, w, in + at, w, at, first, ncclGin_None{}, ncclGin_None{}, thread, ncclGin_None{}, cuda::thread_scope_thread,
                cuda::thread_scope_device, ncclGinOptFlagsAggregateRequests);
        gin.put(world, next, w, in + at + first, w, at + first, bytes - first, ncclGin_StrongSignalInc{(ncclGinSignal_t)k});
        break;
      default: /* the last word as a value, then a signal alone */
        if (size > 1) gin.put(world, next, w, in + at, w, at, bytes - 8);
        gin.putValue(world, next, w, in + at + bytes - 8, wordOf(m, n, size - 1));
        gin.signal(world, next, ncclGin_StrongSignalInc{(ncclGinSignal_t)k});
      }
    }
    gin.flush(thread);
    return;
  }
  ncclGin gin(comm, 1), arrivals(comm, 0);
  long wrong = 0, seen = 0;
  for (long n = 0; n < count; n++) {
    size_t k = (size_t)(n % kSoakSlots);
    uint64_t m = messageOf(seed, prev, n);
    arrivals.waitSignal(thread, (ncclGinSignal_t)k, (uint64_t)(n / kSoakSlots + 1));
    uint64_t const *theirs = static_cast<uint64_t const *>(ncclGetLocalPointer(w, in + k * slot));
    for (int i = 0; i < wordsIn(m); i++, seen++) wrong += theirs[i] != wordOf(m, n, i);
    gin.signal(world, prev, ncclGin_StrongSignalInc{kCredit});
  }
  *bad = wrong;
  *words = seen;
}

/* ---- times ---- */

/* Ranks 0 and 1 in turn: bytes and a signal there, and back. bytes of 8: a value. start: rounds before this launch. */
KERNEL pingPongKernel(ncclDevComm comm, ncclWindow_t w, size_t bytes, uint64_t start, int rounds) {
  if (comm.rank > 1) return;
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  int peer = 1 - comm.rank;
  for (int i = 1; i <= rounds; i++) {
    if (comm.rank == 1) gin.waitSignal(cta(), 0, start + (uint64_t)i);
    if (bytes > 8)
      gin.put(world, peer, w, 0, w, 65536, bytes, ncclGin_WeakSignalInc{0}, ncclGin_None{}, cta());
    else
      gin.putValue(world, peer, w, 0, (uint64_t)i, ncclGin_WeakSignalInc{0}, cta());
    if (comm.rank == 0) gin.waitSignal(cta(), 0, start + (uint64_t)i);
  }
}
/* Rank 0 asks for many puts of 8 bytes to rank 1; the others wait for nothing. */
KERNEL issueKernel(ncclDevComm comm, ncclWindow_t w, int rounds) {
  if (comm.rank != 0) return;
  ncclGin gin(comm, 0);
  for (int i = 0; i < rounds; i++)
    gin.put(ncclTeamWorld(comm), 1, w, 64 + 8 * (size_t)threadIdx.x, w, 65536 + 8 * (size_t)threadIdx.x, 8, ncclGin_None{}, ncclGin_None{},
            ncclCoopThread());
  gin.flush(ncclCoopThread());
}
/* The same, timed in the kernel: what it costs to ask for puts of 8 bytes, as long as the queue has room for all of them. By one thread, or by a
 * warp for each put; in a context that others may use, or alone; with a fence for each, or none because the caller has released the source. */
__device__ inline uint64_t nowNs() {
#ifdef GCCL_DEVICE_CUDA
  uint64_t ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
#else
  return (uint64_t)clock64();
#endif
}
template <typename Coop>
__device__ inline void enqueue(ncclDevComm const &comm, ncclWindow_t w, int rounds, int alone, int released, long *ns, Coop coop) {
  ncclGin gin(comm, 0, alone ? NCCL_GIN_RESOURCE_SHARING_THREAD : NCCL_GIN_RESOURCE_SHARING_GPU);
  coop.sync();
  uint64_t start = nowNs();
  for (int i = 0; i < rounds; i++)
    gin.put(ncclTeamWorld(comm), 1, w, 64, w, 65536, 8, ncclGin_None{}, ncclGin_None{}, coop, ncclGin_None{},
            released ? cuda::thread_scope_device : cuda::thread_scope_thread);
  if (threadIdx.x == 0) *ns = (long)(nowNs() - start);
  gin.flush(coop);
}
KERNEL enqueueKernel(ncclDevComm comm, ncclWindow_t w, int rounds, int alone, int released, long *ns) {
  if (comm.rank != 0) return;
  if (blockDim.x == 1)
    enqueue(comm, w, rounds, alone, released, ns, ncclCoopThread());
  else
    enqueue(comm, w, rounds, alone, released, ns, ncclCoopWarp());
}
/* How fast a queue is emptied: what 32 threads of rank 0 ask for has completed. Puts of nothing with a counter, or signals. */
KERNEL drainKernel(ncclDevComm comm, ncclWindow_t w, int rounds, int signals) {
  if (comm.rank != 0) return;
  ncclGin gin(comm, 0);
  for (int i = 0; i < rounds; i++) {
    if (signals)
      gin.signal(ncclTeamWorld(comm), 1, ncclGin_StrongSignalInc{1}, ncclCoopThread());
    else
      gin.put(ncclTeamWorld(comm), 1, w, 0, w, 0, 0, ncclGin_None{}, ncclGin_WeakCounterInc{0}, ncclCoopThread());
  }
  gin.flush(ncclCoopThread());
}

#endif
