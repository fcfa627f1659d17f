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

/* spin_bench.c: microseconds of one all-reduce (float sum, out of place) by spinning kernels of n ranks on this GPU, best of several
 * graphs; -1 if they were stuck and had to be aborted. Buffers of 2·n·bytes from arena on; at most `most` blocks a rank. */
double time_spinning(const device *d, uint64_t arena, enum gccl_spin_method method, unsigned n, uint64_t bytes, unsigned most);

#endif
