/* Memory of ncclMemAlloc on GPUs, and mappings of handles. */
#ifndef GCCL_CUDA_MEMORY_H
#define GCCL_CUDA_MEMORY_H

#include "cuda.h"

typedef struct {
  CUdeviceptr base;
  uint64_t size, id;
  int ordinal;
} gccl_cuda_span;

/* On the calling thread's device. Returns 0 or a result code and a text. */
int gccl_cuda_mem_alloc(void **out, size_t bytes, char *text, size_t max);
/* Whether ptr was such memory; under a window it goes with the window. */
int gccl_cuda_mem_free(void *ptr);
/* The allocation that ptr lies in, kept until unpin if bytes from ptr are inside. 0: ptr is no such memory. */
int gccl_cuda_mem_pin(const void *ptr, uint64_t bytes, gccl_cuda_span *out);
void gccl_cuda_mem_unpin(CUdeviceptr base);
int gccl_cuda_mem_owns(uint64_t id);
/* A file descriptor of the allocation for another process, and its size; -1: no such allocation. */
int gccl_cuda_mem_export(uint64_t id, uint64_t *size);

/* Maps a handle for all GPUs that reach the memory of device ordinal. */
CUresult gccl_cuda_map_handle(CUmemGenericAllocationHandle, size_t size, int ordinal, CUdeviceptr *out);
void gccl_cuda_unmap(CUdeviceptr, size_t size);

/* --- window.c: the device's part of ncclCommWindowRegister --- */
/* Describes this rank's part for the others; 0 or a result code and a text. The memory is pinned until release. */
int gccl_cuda_window_offer(gccl_cuda_comm *, const void *ptr, uint64_t size, gccl_cuda_ref *out, char *text, size_t max);
/* Maps the parts of all ranks into the window (peer_offset becomes an address). */
int gccl_cuda_window_map(gccl_cuda_comm *, gccl_window *, const gccl_cuda_ref *all, char *text, size_t max);
void gccl_cuda_window_release(const gccl_cuda_ref *own);

#endif
