/* A wait in a stream for a word of host memory. Unlike the driver's value waits it leaves the hardware queue when it starts: streams
 * that share the queue go on, as long as nothing is enqueued behind it. */
#include "span.cuh"

DEV void wait_word(const gccl_wait_work &w) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  while ((int32_t)(load_acquire_system(w.word) - w.value) < 0) idle();
}

GCCL_KERNEL(ncclDevKernel_Done_GCCL_WAIT, gccl_wait_work, 1, wait_word(w))
