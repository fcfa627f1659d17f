/* coops.cc: the launcher and CUDA's own functions; groups. */
#include "frame.h"
#include "kernels.h"

static void never_meet() {
  if (threadIdx.x == 3)
    __barrier_sync_count(2, 64);
  else
    __syncthreads();
}
static void traps() {
  if (threadIdx.x == 5) __trap();
  __syncthreads();
}
static void loops(int *word) {
  while (!cuda::atomic_ref<int>(*word).load(cuda::memory_order_acquire)) {
  }
}
static void shape(int *bad) {
  expect(gridDim.x == 2 && gridDim.y == 3 && gridDim.z == 1 && blockDim.x == 4 && blockDim.y == 2 && blockDim.z == 2, bad);
  expect(blockIdx.x < 2 && blockIdx.y < 3 && threadIdx.x < 4 && threadIdx.y < 2 && threadIdx.z < 2, bad);
  int *count = gccl::cpu::dynamicShared<int>();
  if (threadIdx.x + threadIdx.y + threadIdx.z == 0) count[255] = 0;
  __syncthreads();
  atomicAdd(&count[255], (int)(threadIdx.x + 4 * threadIdx.y + 8 * threadIdx.z));
  __syncthreads();
  expect(count[255] == 15 * 16 / 2, bad);
}

void suite_cuda(Rank &r) {
  place::Shared<int> bad;
  for (unsigned threads : {1u, 5u, 32u, 33u, 96u, 256u}) {
    Grid(2, threads)(r, "warp functions", K(warp_functions), bad);
    r.check(*bad == 0, "warp functions, %u threads: %d wrong", threads, *bad);
    Grid(3, threads)(r, "shared memory", K(shared_memory), bad);
    r.check(*bad == 0, "shared memory, %u threads: %d wrong", threads, *bad);
  }
  place::Shared<int> count;
  Grid(8, 4)(r, "grid barrier", K(grid_barrier), count, bad);
  r.check(*bad == 0 && *count == 8, "grid barrier: %d CTAs, %d wrong", *count, *bad);
  if (place::onGpu()) return; /* the rest is about the launcher */
  Grid s(1, 1);
  s.cpu.grid = dim3(2, 3);
  s.cpu.block = dim3(4, 2, 2);
  s.cpu.sharedBytes = 1024;
  s.cpu.resident = 2; /* six CTAs, two at a time */
  s(r, "three dimensions", K(shape), bad);
  r.check(*bad == 0, "three dimensions: %d wrong", *bad);
  Grid l(2, 32);
  r.refused(ncclInvalidUsage, l.run(K(never_meet)), l.error(), "wait for each other for ever");
  r.refused(ncclInvalidUsage, l.run(K(traps)), l.error(), "thread 5: the kernel called __trap()");
  int never = 0;
  l.deadlineNs = 20000000;
  r.refused(ncclTimeout, l.run(K(loops), &never), l.error(), "deadline");
  Grid wrong(1, 2000);
  r.refused(ncclInvalidArgument, wrong.run(K(traps)), wrong.error(), "1024 threads");
  Grid two(1, 4);
  r.ok(two.start(K(loops), &never), "start");
  r.check(two.start(K(loops), &never) == ncclInvalidUsage, "a launch was started twice");
  __atomic_store_n(&never, 1, __ATOMIC_RELEASE);
  r.ok(two.finish(), "finish");
}

/* For ThreadSanitizer: threads read what others wrote with no barrier in between. */
static void forgotten_barrier(int *sum) {
  __shared__ int s[64];
  s[threadIdx.x] = (int)threadIdx.x;
  atomicAdd(sum, s[(threadIdx.x + 1) % blockDim.x]);
}
void suite_race(Rank &r) {
  int sum = 0;
  Grid(1, 64)(r, "a forgotten barrier", K(forgotten_barrier), &sum);
}

void suite_coops(Rank &r) {
  place::Shared<int> bad;
  Grid(2, 96)(r, "groups", K(groups), bad);
  r.check(*bad == 0, "groups: %d wrong", *bad);
}
