/* multimem.h: packs of elements, and how they are loaded and stored: plainly, or through a multicast address, where one load combines the
 * memory of all ranks of a team and one store reaches all (PTX ISA 8.7, multimem.ld_reduce and multimem.st; sm_90). Multicast addresses are
 * for these instructions alone, which have 4 bytes at least. */
#ifndef GCCL_DEVICE_IMPL_MULTIMEM_H
#define GCCL_DEVICE_IMPL_MULTIMEM_H

#include "core_funcs.h"

#if GCCL_DEVICE_KERNELS
namespace gccl {
namespace device {

template <typename T, int n> struct alignas(sizeof(T) * n) Pack { T v[n]; };

/* Stops the kernel: what was asked for has no instruction, and the memory would be garbage. */
NCCL_DEVICE_INLINE void noMultimem(void const *address) {
  fail("gccl_device/reduce_copy.h", 0, "multimem of this type or size, or on a device without multicast", nullptr,
       (unsigned long long)reinterpret_cast<uintptr_t>(address), -1);
}

template <typename T, int n, bool multimem> struct Access;

template <typename T, int n> struct Access<T, n, false> {
  static NCCL_DEVICE_INLINE Pack<T, n> load(T const *p) { return *reinterpret_cast<Pack<T, n> const *>(p); }
  static NCCL_DEVICE_INLINE void store(T *p, Pack<T, n> const &v) { *reinterpret_cast<Pack<T, n> *>(p) = v; }
};

/* The sum over a team, of one 4- or 8-byte unit and of 16 bytes; false where the type has no instruction. */
template <typename T> struct MultimemSum {
  static NCCL_DEVICE_INLINE bool unit(void const *, void *) { return false; }
  static NCCL_DEVICE_INLINE bool four(void const *, void *) { return false; }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

#define GCCL_MULTIMEM_32(T, ACC, PTX, BITS, REG)                                                     \
  template <> struct MultimemSum<T> {                                                                \
    static NCCL_DEVICE_INLINE bool unit(void const *p, void *to) {                                   \
      asm volatile("multimem.ld_reduce.relaxed.sys.global.add" ACC "." PTX " %0,[%1];"               \
                   : "=" REG(*static_cast<BITS *>(to))                                               \
                   : "l"(__cvta_generic_to_global(p))                                                \
                   : "memory");                                                                      \
      return true;                                                                                   \
    }                                                                                                \
    static NCCL_DEVICE_INLINE bool four(void const *p, void *to) {                                   \
      BITS *v = static_cast<BITS *>(to);                                                             \
      asm volatile("multimem.ld_reduce.relaxed.sys.global.add" ACC ".v4." PTX " {%0,%1,%2,%3},[%4];" \
                   : "=" REG(v[0]), "=" REG(v[1]), "=" REG(v[2]), "=" REG(v[3])                      \
                   : "l"(__cvta_generic_to_global(p))                                                \
                   : "memory");                                                                      \
      return true;                                                                                   \
    }                                                                                                \
  };
#define GCCL_MULTIMEM_SCALAR(T, PTX, BITS, REG)                                                      \
  template <> struct MultimemSum<T> {                                                                \
    static NCCL_DEVICE_INLINE bool unit(void const *p, void *to) {                                   \
      asm volatile("multimem.ld_reduce.relaxed.sys.global.add." PTX " %0,[%1];"                      \
                   : "=" REG(*static_cast<BITS *>(to))                                               \
                   : "l"(__cvta_generic_to_global(p))                                                \
                   : "memory");                                                                      \
      return true;                                                                                   \
    }                                                                                                \
    static NCCL_DEVICE_INLINE bool four(void const *p, void *to) {                                   \
      for (int i = 0; i < 16 / (int)sizeof(T); i++)                                                  \
        unit(static_cast<char const *>(p) + i * sizeof(T), static_cast<char *>(to) + i * sizeof(T)); \
      return true;                                                                                   \
    }                                                                                                \
  };
GCCL_MULTIMEM_32(float, "", "f32", float, "f")
GCCL_MULTIMEM_SCALAR(double, "f64", double, "d")
GCCL_MULTIMEM_SCALAR(int, "s32", int, "r")
GCCL_MULTIMEM_SCALAR(unsigned, "u32", unsigned, "r")
GCCL_MULTIMEM_SCALAR(long, "u64", long, "l")
GCCL_MULTIMEM_SCALAR(unsigned long, "u64", unsigned long, "l")
GCCL_MULTIMEM_SCALAR(long long, "u64", long long, "l")
GCCL_MULTIMEM_SCALAR(unsigned long long, "u64", unsigned long long, "l")
#if defined(__CUDA_FP16_TYPES_EXIST__)
GCCL_MULTIMEM_32(__half, ".acc::f32", "f16x2", uint32_t, "r")
#endif
#if defined(__CUDA_BF16_TYPES_EXIST__)
GCCL_MULTIMEM_32(__nv_bfloat16, ".acc::f32", "bf16x2", uint32_t, "r")
#endif
#undef GCCL_MULTIMEM_32
#undef GCCL_MULTIMEM_SCALAR

/* Bytes as they are, to all ranks. */
NCCL_DEVICE_INLINE void multimemStore(void *p, void const *from, int bytes) {
  uint64_t at = __cvta_generic_to_global(p);
  uint32_t const *w = static_cast<uint32_t const *>(from);
  if (bytes == 16)
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0],{%1,%2,%3,%4};" ::"l"(at), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                 : "memory");
  else if (bytes == 8)
    asm volatile("multimem.st.relaxed.sys.global.u64 [%0],%1;" ::"l"(at), "l"(*static_cast<uint64_t const *>(from)) : "memory");
  else
    asm volatile("multimem.st.relaxed.sys.global.u32 [%0],%1;" ::"l"(at), "r"(w[0]) : "memory");
}
#else
NCCL_DEVICE_INLINE void multimemStore(void *p, void const *, int) { noMultimem(p); }
#endif

template <typename T, int n> struct Access<T, n, true> {
  static constexpr int bytes = n * (int)sizeof(T);
  static NCCL_DEVICE_INLINE Pack<T, n> load(T const *p) {
    Pack<T, n> v;
    bool ok = false;
    if (bytes == 16)
      ok = MultimemSum<T>::four(p, &v);
    else if (bytes == 4 || bytes == 8)
      ok = MultimemSum<T>::unit(p, &v);
    if (!ok) noMultimem(p);
    return v;
  }
  static NCCL_DEVICE_INLINE void store(T *p, Pack<T, n> const &v) {
    if (bytes == 4 || bytes == 8 || bytes == 16)
      multimemStore(p, &v, bytes);
    else
      noMultimem(p);
  }
};

} // namespace device
} // namespace gccl
#endif
#endif
