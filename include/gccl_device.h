/* gccl_device.h: kernels that communicate. The names and meanings of NCCL 2.30.7's device API, for kernels on a GPU and on the CPU.
 *
 * - CUDA (nvcc, NVRTC, clang): include this file and use it.
 * - Kernels on the CPU: compile the same source as C++14 or later with -DGCCL_DEVICE_CPU, launch by gccl_device/cpu.h, link libgccl_cpu.
 * - Plain C (C11) and C++ without GCCL_DEVICE_CPU: types and host functions only.
 *
 * GCCL_DEVICE_DEBUG makes the functions check their arguments. docs/device-api.md is the guide. */
#ifndef GCCL_DEVICE_H
#define GCCL_DEVICE_H

#include "gccl_device/barrier.h"
#include "gccl_device/coop.h"
#include "gccl_device/gin.h"
#include "gccl_device/impl/barrier_funcs.h"
#include "gccl_device/impl/core_funcs.h"
#include "gccl_device/impl/ll_a2a_funcs.h"
#include "gccl_device/impl/lsa_barrier_funcs.h"
#include "gccl_device/ptr.h"
#include "gccl_device/reduce_copy.h"

#endif
