/* A CUDA runtime over host memory and host streams, for programs that run collectives without a GPU.
 *
 * Not NVIDIA's headers: what this library needs of the interface stands here, with the numbers of driver_types.h of the
 * CUDA 12.8 and 13 runtime wheels; tests/cudart compiles against both and compares. Devices are names only: all memory
 * is the process's own, and a stream is a worker thread of libgccl (gcclStreamCreate).
 */
#ifndef GCCL_CUDART_H
#define GCCL_CUDART_H

#include <stddef.h>
#include <stdint.h>

#define CUDART_API __attribute__((visibility("default")))

typedef int cudaError_t; /* an enum there: same size and passing */
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

/* Of libgccl, as in gccl.h. That is not included: where CUDA's headers are installed it includes them, and they declare what is
 * defined here in their own types. */
typedef int ncclResult_t;
enum { ncclSuccess = 0, ncclInvalidArgument = 4, ncclInProgress = 7 };
ncclResult_t gcclStreamCreate(cudaStream_t *stream);
ncclResult_t gcclStreamSynchronize(cudaStream_t stream);
ncclResult_t gcclStreamQuery(cudaStream_t stream);
ncclResult_t gcclStreamDestroy(cudaStream_t stream);
ncclResult_t gcclStreamLaunchHostFunc(cudaStream_t stream, void (*fn)(void *), void *arg);

enum {
  OK = 0,
  ERR_INVALID_VALUE = 1,
  ERR_MEMORY = 2,
  ERR_DIRECTION = 21,
  ERR_DEVICE = 101,
  ERR_SYSTEM = 304,
  ERR_HANDLE = 400,
  ERR_NOT_READY = 600,
  ERR_PEER_ON = 704,
  ERR_PEER_OFF = 705,
  ERR_REGISTERED = 712,
  ERR_NOT_REGISTERED = 713,
  ERR_NOT_SUPPORTED = 801
};

enum copy_kind { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };
enum memory_type { MEM_UNKNOWN, MEM_HOST, MEM_DEVICE, MEM_MANAGED };

/* error.c: remembers the error of the calling thread and returns it. */
cudaError_t cudart_set(cudaError_t e);
/* What a result of libgccl's stream calls is here. */
cudaError_t cudart_of(ncclResult_t rc);

/* device.c */
int cudart_devices(void);
int cudart_current(void);     /* device of the calling thread */
uint64_t cudart_memory(void); /* bytes of one device */

/* memory.c: what an address is; the device it belongs to, or -1. */
enum memory_type cudart_memory_at(const void *p, int *device, void **base);
uint64_t cudart_memory_used(int device);

/* stream.c */
/* Waits for the streams of a device that the NULL stream waits for: those not made with cudaStreamNonBlocking. all: for every stream. */
void cudart_drain(int device, int all);
int cudart_is_null(cudaStream_t s); /* NULL, legacy, per-thread: work is done by the caller */
/* Runs fn(arg) in stream order; at once, after the device's blocking streams, on the NULL stream. */
cudaError_t cudart_enqueue(cudaStream_t s, void (*fn)(void *), void *arg);

#endif
