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
/* The same, zeroed, on the communicator's device, from any thread. */
int gccl_cuda_memory_new(gccl_cuda_comm *, uint64_t bytes, void **out, char *text, size_t max);
/* Whether ptr was such memory; under a window it goes with the window. */
int gccl_cuda_mem_free(void *ptr);
/* The allocation that ptr lies in, kept until unpin if bytes from ptr are inside. 0: ptr is no such memory. */
int gccl_cuda_mem_pin(const void *ptr, uint64_t bytes, gccl_cuda_span *out);
void gccl_cuda_mem_unpin(CUdeviceptr base);
int gccl_cuda_mem_owns(uint64_t id);
/* A file descriptor of the allocation for another process, and its size; -1: no such allocation. */
int gccl_cuda_mem_export(uint64_t id, uint64_t *size);

/* What addresses and sizes of such memory of a device are multiples of. */
CUresult gccl_cuda_mem_grain(int ordinal, size_t *grain);
/* A handle of the allocation, if it is of this process; kept by the caller until gccl_cuda_drop_handle. 0: it is not. */
CUmemGenericAllocationHandle gccl_cuda_mem_handle(uint64_t id, size_t *size);
/* A handle of a peer's allocation, from its process. */
CUresult gccl_cuda_import_handle(gccl_cuda_comm *, int peer, uint64_t id, CUmemGenericAllocationHandle *, size_t *size, char *text);

/* Maps a handle for all GPUs that reach the memory of device ordinal: somewhere, or at a reserved place. */
CUresult gccl_cuda_map_handle(CUmemGenericAllocationHandle, size_t size, int ordinal, CUdeviceptr *out);
CUresult gccl_cuda_map_at(CUdeviceptr at, CUmemGenericAllocationHandle, size_t size, int ordinal);
void gccl_cuda_unmap_at(CUdeviceptr at, size_t size);
void gccl_cuda_drop_handle(CUmemGenericAllocationHandle);
void gccl_cuda_unmap(CUdeviceptr, size_t size);

/* --- window.c: the device's part of ncclCommWindowRegister --- */
/* Describes this rank's part for the others; 0 or a result code and a text. The memory is pinned until release. */
int gccl_cuda_window_offer(gccl_cuda_comm *, const void *ptr, uint64_t size, gccl_cuda_ref *out, char *text, size_t max);
/* Maps the parts of all ranks into the window: peer_offset becomes an address, and flat and stride are set where all parts begin at
 * the same place of their allocations' pages, so that they fit in one range for kernels. */
int gccl_cuda_window_map(gccl_cuda_comm *, gccl_window *, const gccl_cuda_ref *all, char *text, size_t max);
void gccl_cuda_window_release(gccl_cuda_comm *, gccl_window *, const gccl_cuda_ref *own);

#endif
