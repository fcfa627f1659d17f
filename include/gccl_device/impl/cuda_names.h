/* cuda_names.h: cuda::memory_order and cuda::thread_scope for CUDA code. They are libcu++'s where the compiler finds it, because user
 * code passes libcu++'s. A bare NVRTC has none: then the names that this header's signatures need stand here, with the same values
 * (libcu++, cuda/std/__atomic/order.h and scopes.h, looked at in CUDA 12.8). */
#ifndef GCCL_DEVICE_IMPL_CUDA_NAMES_H
#define GCCL_DEVICE_IMPL_CUDA_NAMES_H

#if __has_include(<cuda/atomic>)
#include <cuda/atomic>
#else
namespace cuda {
enum memory_order {
  memory_order_relaxed = 0,
  memory_order_consume = 1,
  memory_order_acquire = 2,
  memory_order_release = 3,
  memory_order_acq_rel = 4,
  memory_order_seq_cst = 5
};
enum thread_scope { thread_scope_system = 0, thread_scope_device = 1, thread_scope_block = 2, thread_scope_thread = 3 };
} // namespace cuda
#endif

#if __has_include(<cuda_fp16.h>)
#include <cuda_fp16.h>
#endif
#if __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#endif
#if __has_include(<cuda_fp8.h>) && !defined(__clang__)
#include <cuda_fp8.h>
#endif

#endif
