/* mem.h: where the buffers and streams of a test are. Host: ordinary memory, host streams. CUDA: device memory and streams of the
 * driver. A test fills and reads host copies; with the host device they are the buffers themselves. */
#ifndef CONF_MEM_H
#define CONF_MEM_H

#include "conf.h"

/* Set by --memory before ranks start. */
enum mem_mode { MEM_MODE_HOST, MEM_MODE_CUDA };
extern enum mem_mode mem_mode;
static inline int mem_cuda(void) { return mem_mode == MEM_MODE_CUDA; }
/* What is passed where a test means "no stream": NULL, or with --null thread the per-thread default stream of CUDA. */
extern cudaStream_t mem_null;

/* In each thread that drives ranks, before it calls the library: the device kind, and the CUDA context of the rank. */
int mem_start(int rank);
/* Makes the device of a rank current: a thread that drives several ranks has to before it makes or frees something of one. */
void mem_rank(int rank);

/* A buffer with a host copy. at: what calls get; copy: what the test fills and reads, the same memory in host mode. */
struct buf {
  unsigned char *at, *copy;
  size_t bytes;
  int nccl; /* of ncclMemAlloc */
};
int buf_new(struct buf *, int rank, size_t bytes);  /* memory that is not of ncclMemAlloc */
int buf_nccl(struct buf *, int rank, size_t bytes); /* ncclMemAlloc */
void buf_free(struct buf *, int rank);              /* either */
/* Copies and waits; nothing in host mode. Work that writes the buffer must be over. */
void buf_put(const struct buf *, size_t off, size_t n);
void buf_get(const struct buf *, size_t off, size_t n);

/* Streams of the mode, as the library's calls take them. Codes are ncclSuccess, ncclInProgress, or an error. */
ncclResult_t mem_stream_create(cudaStream_t *);
ncclResult_t mem_stream_sync(cudaStream_t);
ncclResult_t mem_stream_query(cudaStream_t);
ncclResult_t mem_stream_destroy(cudaStream_t); /* after its work */

#endif
