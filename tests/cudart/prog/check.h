/* What the programs check with. Every failure is printed; main returns failures. */
#ifndef CHECK_H
#define CHECK_H

#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define TRUE(x)                                                                                                          \
  do {                                                                                                                   \
    if (!(x)) __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED), printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #x); \
  } while (0)
#define CUDA_IS(want, call)                                                                                  \
  do {                                                                                                       \
    cudaError_t got_ = (call);                                                                               \
    if (got_ != (want))                                                                                      \
      __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED),                                                    \
          printf("%s:%d: %s gives %s (%d)\n", __FILE__, __LINE__, #call, cudaGetErrorName(got_), (int)got_); \
  } while (0)
#define CUDA(call) CUDA_IS(cudaSuccess, call)
#define NCCL(call)                                                                                                         \
  do {                                                                                                                     \
    ncclResult_t got_ = (call);                                                                                            \
    if (got_ != ncclSuccess)                                                                                               \
      __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED),                                                                  \
          printf("%s:%d: %s gives %s: %s\n", __FILE__, __LINE__, #call, ncclGetErrorString(got_), ncclGetLastError(NULL)); \
  } while (0)

#endif
