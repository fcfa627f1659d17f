/* rtc.h: NVRTC has no C library: the integer types, from wherever the program's include path has them. LP64, as on every host of CUDA. */
#ifndef GCCL_DEVICE_IMPL_RTC_H
#define GCCL_DEVICE_IMPL_RTC_H

#if __has_include(<cuda/std/cstdint>)
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#elif __has_include(<stdint.h>)
#include <stdint.h>
#else
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;
typedef long ptrdiff_t;
#endif

#ifndef NULL
#define NULL 0
#endif

#endif
