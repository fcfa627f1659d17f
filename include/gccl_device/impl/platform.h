/* platform.h: what this translation unit is compiled for, and the words that follow from it.
 *
 * GCCL_DEVICE_CUDA     CUDA code: nvcc, clang -x cuda, NVRTC.
 * GCCL_DEVICE_CPU      set by the user (or by gccl_device/cpu.h): the kernels of this unit are compiled for the CPU.
 * GCCL_DEVICE_KERNELS  one of the two: device functions are there. Otherwise only types and host functions are.
 */
#ifndef GCCL_DEVICE_IMPL_PLATFORM_H
#define GCCL_DEVICE_IMPL_PLATFORM_H

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define GCCL_DEVICE_CUDA 1
#undef GCCL_DEVICE_CPU
#elif defined(GCCL_DEVICE_CPU) && !defined(__cplusplus)
#error "GCCL_DEVICE_CPU: kernels are C++: compile this file with a C++14 compiler or do not define GCCL_DEVICE_CPU"
#elif defined(GCCL_DEVICE_CPU) && (defined(__CUDA_RUNTIME_H__) || defined(__VECTOR_TYPES_H__))
#error "GCCL_DEVICE_CPU: kernels for the CPU bring CUDA's names themselves: include no CUDA header before gccl_device.h"
#endif

#if defined(GCCL_DEVICE_CUDA) || defined(GCCL_DEVICE_CPU)
#define GCCL_DEVICE_KERNELS 1
#if __cplusplus < 201402L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 201402L)
#error "gccl_device.h: kernels need C++14 or later"
#endif
#else
#define GCCL_DEVICE_KERNELS 0
#endif

#ifndef NCCL_CHECK_CUDACC
#define NCCL_CHECK_CUDACC GCCL_DEVICE_KERNELS
#endif

#if defined(GCCL_DEVICE_CUDA)
#define NCCL_DEVICE_INLINE __device__ __forceinline__
#define NCCL_HOST_DEVICE_INLINE __host__ __device__ __forceinline__
#elif defined(GCCL_DEVICE_CPU)
#define NCCL_DEVICE_INLINE inline
#define NCCL_HOST_DEVICE_INLINE inline
#else
#ifndef __host__
#define __host__
#endif
#define NCCL_DEVICE_INLINE
#ifdef __cplusplus
#define NCCL_HOST_DEVICE_INLINE inline
#else
#define NCCL_HOST_DEVICE_INLINE static inline
#endif
#endif

#ifdef __cplusplus
#define NCCL_EXTERN_C extern "C"
#else
#define NCCL_EXTERN_C
#endif
#define NCCL_IR_EXTERN_C

/* Declares a host function. NVRTC compiles no host code, and refuses to hear of it. */
#if defined(__CUDACC_RTC__)
#define GCCL_HOST_API NCCL_EXTERN_C
#else
#define GCCL_HOST_API NCCL_EXTERN_C __host__
#endif

/* Loop hints: the device compilers know them, others need none. */
#define GCCL_PRAGMA(X) _Pragma(#X)
#if defined(GCCL_DEVICE_CUDA)
#define GCCL_UNROLL(N) GCCL_PRAGMA(unroll N)
#else
#define GCCL_UNROLL(N)
#endif

#ifdef __CUDACC_RTC__
#include "rtc.h"
#else
#include <stddef.h>
#include <stdint.h>
#endif
#if !defined(__cplusplus)
#include <stdbool.h>
#endif

#if defined(GCCL_DEVICE_CPU)
#include "cpu_names.h"
#elif defined(GCCL_DEVICE_CUDA)
#include "cuda_names.h"
#endif

#endif
