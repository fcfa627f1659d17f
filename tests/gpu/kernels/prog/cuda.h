/* The driver as the GPU form of the checks and the benchmark use it. */
#ifndef GCCL_TESTS_GPU_CUDA_H
#define GCCL_TESTS_GPU_CUDA_H

#include "../../../../device/cuda/driver.h"
#include "device.h"

extern gccl_cuda_driver cu;
extern CUstream cuda_stream;
extern CUstream cuda_rank_stream[64];                         /* made by launch_all */
extern CUresult (*cuda_elapsed)(float *ms, CUevent, CUevent); /* NULL where libcuda has none: then the host's clock is used */

void must(CUresult rc, const char *what);
CUfunction cuda_function(const char *name);
void cuda_launch(const char *kernel, const void *param, gccl_launch_dims d, CUstream stream);

/* timing.c: microseconds of one run. fn enqueues one operation on cuda_stream. */
typedef void (*operation)(void *arg);
double time_eager(operation fn, void *arg, unsigned runs); /* enqueued one after another, mean */
double time_graph(operation fn, void *arg, unsigned runs); /* `runs` of them in one graph, best mean of several replays */

#endif
