/* Where the checks run kernels: a GPU through libcuda and the fat binary, or the kernels' CPU form. */
#ifndef GCCL_TESTS_GPU_DEVICE_H
#define GCCL_TESTS_GPU_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "../../../../device/cuda/kernels/kernels.h"

typedef struct device {
  char name[128];
  unsigned multiprocessors;
  int major, minor; /* compute capability; 0.0 on the CPU */
  /* All of these end the program with a message when they fail. */
  uint64_t (*alloc)(size_t bytes);
  void (*release)(uint64_t at);
  void (*put)(uint64_t to, const void *from, size_t bytes);
  void (*get)(void *to, uint64_t from, size_t bytes);
  void (*launch)(const char *kernel, const void *param, gccl_launch_dims dims); /* does not wait on a GPU */
  /* The same kernel once for each of n ranks, at the same time; parameters of `bytes` each. Waits for all of them. */
  void (*launch_all)(const char *kernel, const void *params, size_t bytes, unsigned n, gccl_launch_dims dims);
  void (*finish)(void); /* waits; an error of a kernel ends the program */
} device;

void die(const char *what, const char *why);
device device_cpu(const char *library);
device device_cuda(const char *fatbin);

/* Both print the first failures. */
typedef struct {
  uint64_t cases, failed, kernels;
} tally;
enum executor { LEADER, DIRECT, LOW_LATENCY, MULTIMEM, EXECUTORS }; /* MULTIMEM: emulated on the CPU, not tried on a GPU */
tally check_collectives(const device *d, enum executor how, uint64_t seed, unsigned rounds); /* collectives.c */
tally check_endings(const device *d);                                                        /* endings.c: aborts, giving up */

/* areas.c: zeroed sync areas of a communicator of n ranks, made once for each n. */
const uint64_t *areas_of(const device *d, unsigned n);

/* bench.c: only on a GPU. */
void bench(const device *d);

#endif
