/* nvtx.h: ranges for profilers (Nsight Systems and others) around the public calls. */
#ifndef GCCL_FRONT_NVTX_H
#define GCCL_FRONT_NVTX_H

#include <stdint.h>

enum gccl_nvtx { GCCL_NVTX_OFF, GCCL_NVTX_UNKNOWN, GCCL_NVTX_ON };
extern int gccl_nvtx_state;

/* Begins a range of the calling thread; 0 if there is no tool. dtype -1: without a payload, else that is the bytes of count elements. */
int gccl_nvtx_push(const char *name, uint64_t count, int dtype);
void gccl_nvtx_pop(void);

static inline int gccl_nvtx_begin(const char *name, uint64_t count, int dtype) {
  if (__builtin_expect(__atomic_load_n(&gccl_nvtx_state, __ATOMIC_RELAXED) == GCCL_NVTX_OFF, 1)) return 0;
  return gccl_nvtx_push(name, count, dtype);
}
static inline void gccl_nvtx_end(const int *pushed) {
  if (__builtin_expect(*pushed, 0)) gccl_nvtx_pop();
}

/* From here to the end of the block. */
#define GCCL_RANGE(name, count, dtype) \
  __attribute__((cleanup(gccl_nvtx_end), unused)) const int range_ = gccl_nvtx_begin((name), (count), (dtype))
#define GCCL_RANGE_OF(name) GCCL_RANGE(name, 0, -1)

#endif
