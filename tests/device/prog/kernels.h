/* kernels.h: the kernels of the conformance program, CUDA and CPU alike: the same text is compiled by NVRTC in make cuda. What they find
 * wrong they count in *bad. */
#ifndef DEVICE_KERNELS_H
#define DEVICE_KERNELS_H

#include <gccl_device.h>

#ifdef GCCL_DEVICE_CUDA
#define KERNEL extern "C" __global__ void
#else
#define KERNEL static inline void
#endif

__device__ inline void expect(bool ok, int *bad) {
  if (!ok) atomicAdd(bad, 1);
}

/* ---- CUDA itself ---- */

KERNEL warp_functions(int *bad) {
  int t = (int)threadIdx.x, l = t & 31, n = (int)blockDim.x, first = t - l;
  unsigned lanes = n - first >= 32 ? 0xffffffffu : (1u << (n - first)) - 1;
  expect(__shfl_sync(lanes, t, 3 < n - first ? 3 : 0) == first + (3 < n - first ? 3 : 0), bad);
  expect(__shfl_up_sync(lanes, t, 1) == (l ? t - 1 : t), bad);
  expect(__shfl_down_sync(lanes, t, 2) == (l < 30 && t + 2 < n ? t + 2 : t) || t + 2 >= n, bad);
  if (lanes == 0xffffffffu) expect(__shfl_xor_sync(lanes, t, 5) == (t ^ 5), bad);
  expect(__shfl_sync(lanes, (double)t, 0) == (double)first, bad);
  unsigned even = __ballot_sync(lanes, t % 2 == 0);
  expect(even == (0x55555555u & lanes), bad);
  expect(__any_sync(lanes, l == 0) && !__all_sync(lanes, l == 0 && n - first > 1) && __all_sync(lanes, 1), bad);
  if (l < 4 && n - first >= 4) { /* some lanes only */
    int sum = 0;
    for (int k = 0; k < 4; k++) sum += __shfl_sync(0xfu, l, k);
    expect(sum == 6, bad);
    __syncwarp(0xfu);
  }
}

KERNEL shared_memory(int *bad) {
  __shared__ int s[1024];
  int t = (int)threadIdx.x, n = (int)blockDim.x;
  for (int round = 0; round < 5; round++) {
    s[t] = 1000 * (int)blockIdx.x + t + round;
    __syncthreads();
    int other = (t + 7) % n;
    expect(s[other] == 1000 * (int)blockIdx.x + other + round, bad);
    expect(__syncthreads_count(t % 3 == 0) == (n + 2) / 3, bad);
  }
  expect(__syncthreads_or(t == 1) == (n > 1) && !__syncthreads_or(0) && __syncthreads_and(1), bad);
  if (t >= n / 2) return; /* barriers of all threads do not wait for those that have returned */
#ifndef GCCL_DEVICE_CUDA
  __syncthreads();
#endif
}

#if defined(GCCL_DEVICE_CPU) || __has_include(<cuda/atomic>)
/* CTAs that wait for each other, and counting by atomics. */
KERNEL grid_barrier(int *count, int *bad) {
  cuda::atomic_ref<int, cuda::thread_scope_device> c(*count);
  __syncthreads();
  if (threadIdx.x == 0) c.fetch_add(1, cuda::memory_order_acq_rel);
  while (c.load(cuda::memory_order_acquire) < (int)gridDim.x) {
  }
  expect(c.load(cuda::memory_order_relaxed) == (int)gridDim.x, bad);
}
#endif

/* ---- Groups ---- */

template <typename Coop> __device__ inline void one_group(Coop coop, int rank, int size, int *bad) {
  expect(coop.thread_rank() == rank && coop.size() == size && coop.num_threads() == size, bad);
  ncclCoopAny any(coop);
  expect(any.thread_rank() == rank && any.size() == size, bad);
  coop.sync();
  any.sync();
  for (int root = 0; root < size; root += size / 2 + 1) {
    struct {
      int a, b, c;
    } v = {rank, 2 * rank, 3};
    v = ncclCoopBcast(coop, v, root);
    expect(v.a == root && v.b == 2 * root && v.c == 3, bad);
  }
}

/* 96 threads. */
KERNEL groups(int *bad) {
  int t = (int)threadIdx.x, l = t & 31;
  one_group(ncclCoopCta(), t, (int)blockDim.x, bad);
  one_group(ncclCoopWarp(), l, 32, bad);
  one_group(ncclCoopTile<8>(), l & 7, 8, bad);
  one_group(ncclCoopThread(), 0, 1, bad);
  if (t >= 32) one_group(ncclCoopWarpSpan(1, 2, 3), t - 32, 64, bad);
  if (t < 32) one_group(ncclCoopWarpSpan(0, 1, 4), t, 32, bad);
  if (l % 3 == 0) one_group(ncclCoopLanes(0x49249249u), l / 3, 11, bad);
  expect(ncclCoopIsThread(ncclCoopThread()) && !ncclCoopIsThread(ncclCoopWarp()) && ncclCoopWithinWarp(ncclCoopTile<4>()), bad);
  expect(!ncclCoopWithinWarp(ncclCoopCta()) && ncclCoopGetLaneMask(ncclCoopTile<16>()) == 0xffffu << (l & 16), bad);
  expect((ncclCoopCoalesced().lmask >> l & 1) == 1 && ncclCoopCoalesced(ncclCoopCta()).size() == 32, bad);
}

/* ---- Pointers ---- */

/* Every rank writes to every rank's window, by each way to a pointer; read_windows looks after a barrier of the host. */
KERNEL write_windows(ncclDevComm comm, ncclWindow_t w, void *mine, int *bad) {
  int me = comm.rank, t = (int)threadIdx.x;
  expect(ncclFindWindow(ncclCoopCta(), comm, (char *)mine + 100) == w, bad);
  expect(ncclFindWindow(ncclCoopThread(), comm, bad) == nullptr, bad);
  expect(ncclGetLocalPointer(w, 0) == ncclGetPeerPointer(w, 0, me), bad);
  ncclSymPtr<int> p(w, 0);
  expect(p.localPtr() == p.peerPtr(me) && (p + 3) - p == 3 && p + 3 != p && ncclSymPtr<int>(w, 12) == p + 3, bad);
  for (int q = t; q < comm.nRanks; q += (int)blockDim.x) {
    ((int *)ncclGetPeerPointer(w, 0, q))[me] = 1000 * me + q;
    ((int *)ncclGetPeerPointer(w, 4096, ncclTeamWorld(comm), q))[me] = 2000 * me + q;
    (p + 2048).peerPtr(q)[me] = 3000 * me + q;
    int lsa = ncclTeamRankToLsa(comm, ncclTeamWorld(comm), q);
    ((int *)ncclGetLsaPointer(w, 12288, lsa))[me] = 4000 * me + q;
  }
}
KERNEL read_windows(ncclDevComm comm, ncclWindow_t w, int *bad) {
  for (int q = (int)threadIdx.x; q < comm.nRanks; q += (int)blockDim.x)
    for (int way = 0; way < 4; way++) expect(((int *)ncclGetLocalPointer(w, 4096 * way))[q] == 1000 * (way + 1) * q + comm.rank, bad);
}

/* A resource buffer is zero on every rank, and everybody's is where the pointers say. */
KERNEL resource_buffer(ncclDevComm comm, ncclDevResourceHandle h, int words, int *bad) {
  int *local = (int *)ncclGetResourceBufferLocalPointer(comm, h);
  for (int i = (int)threadIdx.x; i < words; i += (int)blockDim.x) expect(local[i] == 0, bad);
  expect(ncclGetResourceBuffer(comm, h).localPtr() == (char *)local, bad);
  expect(ncclGetResourceBufferPeerPointer(comm, h, ncclTeamWorld(comm), comm.rank) == (void *)local, bad);
  expect(ncclGetResourceBufferLsaPointer(comm, h, comm.lsaRank) == (void *)local, bad);
}

/* ---- Barriers ---- */

/* rounds barriers; before each, every thread writes the round into its place at all peers, and after it reads what they wrote here. */
template <typename Coop>
__device__ inline void pass_barriers(Coop coop, ncclDevComm const &comm, ncclLsaBarrierSession<Coop> &bar, ncclWindow_t w, size_t at,
                                     int rounds, int *bad) {
  int me = coop.thread_rank(), n = coop.size();
  for (int round = 1; round <= rounds; round++) {
    for (int q = 0; q < comm.lsaSize; q++) ((int *)ncclGetLsaPointer(w, at, q))[comm.lsaRank * n + me] = round * 100 + comm.lsaRank;
    bar.sync(coop, cuda::memory_order_acq_rel);
    for (int q = 0; q < comm.lsaSize; q++) expect(((int *)ncclGetLocalPointer(w, at))[q * n + (me + 1) % n] == round * 100 + q, bad);
    if (round % 2)
      bar.sync(coop, cuda::memory_order_acq_rel);
    else { /* the same in two steps */
      bar.arrive(coop, cuda::memory_order_release);
      bar.wait(coop, cuda::memory_order_acquire);
    }
  }
}
/* window: 4 KiB for each CTA. */
KERNEL cta_barriers(ncclDevComm comm, ncclWindow_t w, int rounds, int *bad) {
  ncclLsaBarrierSession<ncclCoopCta> bar(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
  pass_barriers(ncclCoopCta(), comm, bar, w, 4096 * blockIdx.x, rounds, bad);
}
/* Every warp of one CTA has a barrier. */
KERNEL warp_barriers(ncclDevComm comm, ncclLsaBarrierHandle handle, ncclWindow_t w, int rounds, int *bad) {
  int warp = (int)threadIdx.x / 32;
  ncclLsaBarrierSession<ncclCoopWarp> bar(ncclCoopWarp(), comm, ncclTeamLsa(comm), handle, warp);
  pass_barriers(ncclCoopWarp(), comm, bar, w, 4096 * warp, rounds, bad);
}
KERNEL thread_barriers(ncclDevComm comm, ncclWindow_t w, int rounds, int *bad) {
  ncclLsaBarrierSession<ncclCoopThread> bar(ncclCoopThread(), comm, ncclTeamTagLsa(), threadIdx.x);
  pass_barriers(ncclCoopThread(), comm, bar, w, 4096 * threadIdx.x, rounds, bad);
}
/* Epochs about to wrap: rank-local words of barrier 0 and its inboxes are set before. */
KERNEL set_epochs(ncclDevComm comm, uint32_t epoch) {
  uint32_t *state = (uint32_t *)ncclGetResourceBufferLocalPointer(comm, comm.lsaBarrier.bufHandle);
  int n = comm.lsaBarrier.nBarriers;
  state[n] = epoch;
  for (int q = 0; q < comm.lsaSize; q++) gccl::device::store(&state[3 * n + q], epoch, cuda::memory_order_relaxed); /* peers come next */
}
/* A barrier that others never reach. */
KERNEL lonely_barrier(ncclDevComm comm, uint64_t cycles, int *result) {
  ncclLsaBarrierSession<ncclCoopCta> bar(ncclCoopCta(), comm, ncclTeamTagLsa(), 0);
  ncclResult_t rc = ncclSuccess;
  if (cycles)
    rc = bar.sync(ncclCoopCta(), cuda::memory_order_acq_rel, cycles);
  else
    bar.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  if (rc != ncclSuccess) atomicExch(result, (int)rc);
}

/* ---- LL all-to-all ---- */

struct Element {
  int from, to, epoch, extra, more;
};
/* epochs of: send one element to everybody and receive theirs; then broadcast and fold. slots: 2 * nRanks elements of 20 bytes. */
KERNEL ll_a2a(ncclDevComm comm, ncclLLA2AHandle handle, int epochs, int *bad) {
  ncclCoopCta cta;
  int n = comm.lsaSize, me = comm.lsaRank;
  ncclLLA2ASession<ncclCoopCta> a2a(cta, comm, ncclTeamLsa(comm), handle, blockIdx.x, 2 * n);
  for (int e = 0; e < epochs; e++) {
    if (cta.thread_rank() == 0) a2a.bcast(n + me, 10 * me + e);
    for (int q = cta.thread_rank(); q < n; q += cta.size()) {
      Element x = {me, q, e, 7, -e};
      a2a.send(q, me, x);
    }
    for (int q = cta.thread_rank(); q < n; q += cta.size()) {
      Element x = a2a.recv<Element>(q);
      expect(x.from == q && x.to == me && x.epoch == e && x.extra == 7 && x.more == -e, bad);
      expect(a2a.recv<int>(n + q) == 10 * q + e, bad);
    }
    a2a.endEpoch(cta);
  }
}
/* Every rank broadcasts one value a thread; everybody sums those of all ranks. */
KERNEL ll_sum(ncclDevComm comm, ncclLLA2AHandle handle, int epochs, int *bad) {
  ncclCoopCta cta;
  int n = comm.lsaSize, t = cta.thread_rank(), width = cta.size();
  ncclLLA2ASession<ncclCoopCta> a2a(cta, comm, ncclTeamLsa(comm), handle, blockIdx.x, n * width);
  for (int e = 0; e < epochs; e++) {
    a2a.bcast(comm.lsaRank * width + t, (double)(comm.lsaRank + t + e));
    double sum = a2a.recvReduce<4, double>(
        t, n, width, [](double x) { return x; }, [](double x, double y) { return x + y; });
    expect(sum == n * (n - 1) / 2 + (double)n * (t + e), bad);
    double two[3];
    a2a.recvUnrolled<1, 3>(t, n < 3 ? n : 3, width, two);
    expect(two[0] == t + e, bad);
    a2a.endEpoch(cta);
  }
}
KERNEL set_a2a_epoch(ncclDevComm comm, ncclLLA2AHandle handle, uint32_t epoch) {
  *(uint32_t *)ncclGetResourceBufferLocalPointer(comm, handle.bufHandle) = epoch - 2;
}

/* ---- Reduce and copy ---- */

struct MaxOf {
  __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
template <typename T> struct Parts {
  T *base;
  size_t step;
  __device__ T *operator()(int i) const { return base + (size_t)i * step; }
};
/* local: 4 sources of n elements, `step` apart; results behind them. Offsets shift source and destination against 16 bytes. */
template <typename T> __device__ inline void local_reduce(T *base, size_t step, size_t n, int srcShift, int dstShift, int *bad) {
  ncclCoopCta cta;
  T *out = base + 4 * step;
  for (size_t i = threadIdx.x; i < 6 * step; i += blockDim.x) base[i] = i < 4 * step ? (T)(i % step + i / step) : (T)99;
  cta.sync();
  Parts<T> src = {base + srcShift, step}, dst = {out + dstShift, step};
  ncclLsaReduceSumLsaCopy<T>(cta, src, 4, dst, 2, n);
  cta.sync();
  for (size_t i = threadIdx.x; i < 2 * step; i += blockDim.x) {
    size_t at = i % step - (size_t)dstShift;
    expect(out[i] == (at < n ? (T)(4 * (at + srcShift) + 6) : (T)99), bad);
  }
  cta.sync();
  ncclLocalReduceSum(cta, 3, base + srcShift, step, out + dstShift, n);
  cta.sync();
  for (size_t i = threadIdx.x; i < n; i += blockDim.x) expect(out[i + dstShift] == (T)(3 * (i + srcShift) + 3), bad);
  cta.sync();
  ncclLocalCopy(cta, base + srcShift, 2, out + dstShift, step, n);
  cta.sync();
  for (size_t i = threadIdx.x; i < n; i += blockDim.x) expect(out[i + dstShift + step] == (T)(i + srcShift), bad);
  cta.sync();
}
KERNEL local_reduces(char *memory, int *bad) {
  size_t counts[] = {0, 1, 3, 4, 5, 15, 16, 17, 64, 333};
  for (int c = 0; c < 10; c++)
    for (int shift = 0; shift < 5; shift++) {
      local_reduce((float *)memory, 400, counts[c], shift % 3, shift, bad);
      local_reduce((double *)memory, 400, counts[c], shift, shift % 2, bad);
      local_reduce((unsigned char *)memory, 400, counts[c], shift, 2 * shift % 5, bad);
      local_reduce((short *)memory, 400, counts[c], shift, shift, bad);
    }
  ncclCoopCta cta;
  int *v = (int *)memory;
  for (int i = (int)threadIdx.x; i < 300; i += (int)blockDim.x) v[i] = i % 100 == 7 ? 1000 + i : i;
  cta.sync();
  Parts<int> src = {v, 100}, dst = {v + 400, 100};
  ncclLsaReduceLsaCopy<int>(cta, src, 3, dst, 1, MaxOf(), 100);
  cta.sync();
  for (int i = (int)threadIdx.x; i < 100; i += (int)blockDim.x) expect(v[400 + i] == (i == 7 ? 1207 : 200 + i), bad);
}

/* An all-reduce of n floats: this rank sums its share of all and stores it to all. */
__device__ inline void all_reduce_once(ncclCoopCta cta, ncclDevComm const &comm, ncclLsaBarrierSession<ncclCoopCta> &bar, ncclWindow_t in,
                                       ncclWindow_t out, size_t n) {
  bar.sync(cta, cuda::memory_order_acquire);
  size_t parts = (size_t)gridDim.x * comm.lsaSize, part = blockIdx.x * (size_t)comm.lsaSize + comm.lsaRank;
  size_t first = n * part / parts, last = n * (part + 1) / parts;
  ncclLsaReduceSumCopy(cta, ncclSymPtr<float>(in) + first, ncclSymPtr<float>(out) + first, last - first, comm);
  bar.sync(cta, cuda::memory_order_release);
}
KERNEL lsa_all_reduce(ncclDevComm comm, ncclWindow_t in, ncclWindow_t out, size_t n) {
  ncclLsaBarrierSession<ncclCoopCta> bar(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
  all_reduce_once(ncclCoopCta(), comm, bar, in, out, n);
}
/* For times. */
KERNEL many_barriers(ncclDevComm comm, int rounds) {
  ncclLsaBarrierSession<ncclCoopCta> bar(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
  for (int i = 0; i < rounds; i++) bar.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}
KERNEL many_all_reduces(ncclDevComm comm, ncclWindow_t in, ncclWindow_t out, size_t n, int rounds) {
  ncclLsaBarrierSession<ncclCoopCta> bar(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
  for (int i = 0; i < rounds; i++) all_reduce_once(ncclCoopCta(), comm, bar, in, out, n);
}
/* The other ways to say it: sum to this rank, then copy to all. */
KERNEL lsa_all_reduce_twice(ncclDevComm comm, ncclWindow_t in, ncclWindow_t out, float *scratch, size_t n) {
  ncclCoopCta cta;
  ncclLsaBarrierSession<ncclCoopCta> bar(cta, comm, ncclTeamTagLsa(), 0);
  bar.sync(cta, cuda::memory_order_acq_rel);
  size_t first = n * comm.lsaRank / comm.lsaSize, last = n * (comm.lsaRank + 1) / comm.lsaSize;
  ncclLsaReduceSum(cta, in, first * sizeof(float), scratch, last - first, comm);
  cta.sync();
  ncclLsaCopy(cta, scratch, out, first * sizeof(float), last - first, ncclTeamLsa(comm));
  bar.sync(cta, cuda::memory_order_acq_rel);
}

#ifdef GCCL_DEVICE_CUDA
/* By multicast: compiled only, because no machine of the tests has it. */
template <typename T> __device__ inline void by_multicast(ncclDevComm const &comm, ncclWindow_t in, ncclWindow_t out, size_t n) {
  ncclCoopCta cta;
  ncclLsaBarrierSession<ncclCoopCta> bar(cta, comm, ncclTeamTagLsa(), blockIdx.x, true);
  bar.sync(cta, cuda::memory_order_relaxed);
  size_t first = n * comm.lsaRank / comm.lsaSize, last = n * (comm.lsaRank + 1) / comm.lsaSize;
  ncclMultimemReduceSumCopy(cta, ncclSymPtr<T>(in) + first, comm.lsaMultimem, ncclSymPtr<T>(out) + first, comm.lsaMultimem, last - first);
  bar.sync(cta, cuda::memory_order_release);
}
KERNEL multimem_float(ncclDevComm comm, ncclWindow_t in, ncclWindow_t out, size_t n) { by_multicast<float>(comm, in, out, n); }
KERNEL multimem_double(ncclDevComm comm, ncclWindow_t in, ncclWindow_t out, size_t n) { by_multicast<double>(comm, in, out, n); }
#if __has_include(<cuda_fp16.h>)
KERNEL multimem_half(ncclDevComm comm, ncclWindow_t in, ncclWindow_t out, size_t n) { by_multicast<__half>(comm, in, out, n); }
KERNEL multimem_bfloat16(ncclDevComm comm, ncclWindow_t in, ncclWindow_t out, size_t n) { by_multicast<__nv_bfloat16>(comm, in, out, n); }
KERNEL half_all_reduce(ncclDevComm comm, ncclWindow_t in, ncclWindow_t out, size_t n) {
  ncclLsaReduceSumCopy(ncclCoopCta(), ncclSymPtr<__half>(in), ncclSymPtr<__half>(out), n, comm);
}
#endif
#endif

#endif
