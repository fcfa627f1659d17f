/* NVRTC has no C library: the types that our shared headers use. LP64, as on every host that CUDA runs on. */
#ifndef GCCL_NVRTC_STDINT_H
#define GCCL_NVRTC_STDINT_H
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;
#endif
