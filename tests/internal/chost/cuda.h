/* cuda.h: the CUDA driver as a foreign program sees it: libcuda.so.1 by dlopen, no headers of CUDA. Names and numbers are those of
 * cuda.h 12.8. */
#ifndef CONF_CUDA_H
#define CONF_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned long long cu_ptr;

/* F(member, exported name, parameters); all return a CUresult. */
#define CONF_CUDA(F)                                                                                                              \
  F(Init, "cuInit", (unsigned))                                                                                                   \
  F(GetErrorName, "cuGetErrorName", (int, const char **))                                                                         \
  F(DeviceGetCount, "cuDeviceGetCount", (int *))                                                                                  \
  F(DeviceGetName, "cuDeviceGetName", (char *, int, int device))                                                                  \
  F(DeviceGetAttribute, "cuDeviceGetAttribute", (int *, int attribute, int device))                                               \
  F(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **ctx, int device))                                                 \
  F(CtxSetCurrent, "cuCtxSetCurrent", (void *ctx))                                                                                \
  F(CtxSynchronize, "cuCtxSynchronize", (void))                                                                                   \
  F(MemGetInfo, "cuMemGetInfo_v2", (size_t *, size_t *))                                                                          \
  F(MemAlloc, "cuMemAlloc_v2", (cu_ptr *, size_t))                                                                                \
  F(MemFree, "cuMemFree_v2", (cu_ptr))                                                                                            \
  F(MemAllocAsync, "cuMemAllocAsync", (cu_ptr *, size_t, void *stream))                                                           \
  F(MemFreeAsync, "cuMemFreeAsync", (cu_ptr, void *stream))                                                                       \
  F(MemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned flags))                                                            \
  F(MemFreeHost, "cuMemFreeHost", (void *))                                                                                       \
  F(MemcpyAsync, "cuMemcpyAsync", (cu_ptr, cu_ptr, size_t, void *stream))                                                         \
  F(MemsetD8Async, "cuMemsetD8Async", (cu_ptr, unsigned char, size_t, void *stream))                                              \
  F(StreamCreate, "cuStreamCreate", (void **, unsigned flags))                                                                    \
  F(StreamDestroy, "cuStreamDestroy_v2", (void *))                                                                                \
  F(StreamSynchronize, "cuStreamSynchronize", (void *))                                                                           \
  F(StreamQuery, "cuStreamQuery", (void *))                                                                                       \
  F(StreamWaitEvent, "cuStreamWaitEvent", (void *, void *event, unsigned flags))                                                  \
  F(StreamWaitValue32, "cuStreamWaitValue32_v2", (void *, cu_ptr, uint32_t, unsigned flags))                                      \
  F(StreamWriteValue32, "cuStreamWriteValue32_v2", (void *, cu_ptr, uint32_t, unsigned flags))                                    \
  F(EventCreate, "cuEventCreate", (void **, unsigned flags))                                                                      \
  F(EventDestroy, "cuEventDestroy_v2", (void *))                                                                                  \
  F(EventRecord, "cuEventRecord", (void *event, void *stream))                                                                    \
  F(StreamBeginCapture, "cuStreamBeginCapture_v2", (void *, int mode))                                                            \
  F(StreamEndCapture, "cuStreamEndCapture", (void *, void **graph))                                                               \
  F(GraphInstantiate, "cuGraphInstantiateWithFlags", (void **exec, void *graph, unsigned long long flags))                        \
  F(GraphLaunch, "cuGraphLaunch", (void *exec, void *stream))                                                                     \
  F(GraphExecDestroy, "cuGraphExecDestroy", (void *))                                                                             \
  F(GraphDestroy, "cuGraphDestroy", (void *))                                                                                     \
  F(ModuleLoadData, "cuModuleLoadData", (void **, const void *image))                                                             \
  F(ModuleGetFunction, "cuModuleGetFunction", (void **, void *module, const char *name))                                          \
  F(FuncGetAttribute, "cuFuncGetAttribute", (int *, int attribute, void *function))                                               \
  F(LaunchKernel, "cuLaunchKernel",                                                                                               \
    (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, \
     void **params, void **extra))                                                                                                \
  F(LaunchCooperativeKernel, "cuLaunchCooperativeKernel",                                                                         \
    (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, \
     void **params))

struct cu_table {
#define CONF_CUDA_MEMBER(member, symbol, parameters) int(*member) parameters;
  CONF_CUDA(CONF_CUDA_MEMBER)
#undef CONF_CUDA_MEMBER
};
extern struct cu_table cu;

enum { CU_SUCCESS = 0, CU_NOT_READY = 600, CU_NON_BLOCKING = 1, CU_NO_TIMING = 2 };
enum { CU_CAPTURE_GLOBAL, CU_CAPTURE_THREAD_LOCAL, CU_CAPTURE_RELAXED };

/* Opens the driver, once a process. Returns 0, or -1 with a failure reported for the rank. */
int cu_open(int rank);
/* Makes the rank's device current in this thread: rank modulo the number of devices in GCCL_TEST_DEVICES (1 when unset). */
int cu_use_device(int rank);

int cu_check(int rank, int got, int want, const char *call, const char *file, int line);
#define CU(rank, call) cu_check(rank, (call), CU_SUCCESS, #call, __FILE__, __LINE__)

#endif
