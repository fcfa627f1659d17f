/* The CPU form of the kernels: the same .cu files compiled by g++ (-x c++ -include cpu.h), for tests and for device/fake. A block
 * has one thread; the blocks of a launch run in order in the thread that calls the kernel's symbol (gccl_cpu_kernel in
 * kernels.h). Everything of CUDA that the kernels use is defined here or has a CPU branch in ptx.cuh. */
#ifndef GCCL_CUDA_KERNELS_CPU_H
#define GCCL_CUDA_KERNELS_CPU_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GCCL_ON_CPU 1
#define __device__
#define __forceinline__ inline
#define __shared__ static thread_local

struct gccl_cpu_dim {
  unsigned x;
};
static thread_local gccl_cpu_dim blockIdx, gridDim;
static const gccl_cpu_dim threadIdx = {0}, blockDim = {1};
enum { THREADS = 1 };

static inline void __syncthreads() {}
static inline int __syncthreads_or(int x) { return x; }

#define GCCL_KERNEL(NAME, WORK, BLOCKS, BODY)                        \
  extern "C" void NAME(const void *param, unsigned grid, unsigned) { \
    const WORK &w = *(const WORK *)param;                            \
    gridDim.x = grid;                                                \
    for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++) {          \
      BODY;                                                          \
    }                                                                \
  }

#endif
