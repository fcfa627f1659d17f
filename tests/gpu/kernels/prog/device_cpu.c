#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

static void *library;

static uint64_t cpu_alloc(size_t bytes) {
  void *p = NULL;
  if (posix_memalign(&p, 256, bytes ? bytes : 1)) die("alloc", "out of memory");
  return (uint64_t)p;
}
static void cpu_release(uint64_t at) { free((void *)at); }
static void cpu_put(uint64_t to, const void *from, size_t bytes) { memcpy((void *)to, from, bytes); }
static void cpu_get(void *to, uint64_t from, size_t bytes) { memcpy(to, (const void *)from, bytes); }
static void cpu_launch(const char *kernel, const void *param, gccl_launch_dims dims) {
  gccl_cpu_kernel f;
  *(void **)&f = dlsym(library, kernel);
  if (!f) die(kernel, "not in the library");
  f(param, dims.grid, dims.block);
}
typedef struct {
  gccl_cpu_kernel f;
  const void *param;
  gccl_launch_dims dims;
} rank_run;
static void *run_rank(void *p) {
  rank_run *r = p;
  r->f(r->param, r->dims.grid, r->dims.block);
  return NULL;
}
static void cpu_launch_all(const char *kernel, const void *params, size_t bytes, unsigned n, gccl_launch_dims dims) {
  pthread_t thread[64];
  rank_run run[64];
  for (unsigned r = 0; r < n; r++) {
    run[r] = (rank_run){.param = (const char *)params + r * bytes, .dims = dims};
    *(void **)&run[r].f = dlsym(library, kernel);
    if (!run[r].f) die(kernel, "not in the library");
    if (pthread_create(&thread[r], NULL, run_rank, &run[r])) die(kernel, "no thread");
  }
  for (unsigned r = 0; r < n; r++) pthread_join(thread[r], NULL);
}
static void cpu_finish(void) {}

device device_cpu(const char *path) {
  library = dlopen(path, RTLD_NOW);
  if (!library) die(path, dlerror());
  return (device){.name = "CPU form",
                  .multiprocessors = 4,
                  .alloc = cpu_alloc,
                  .release = cpu_release,
                  .put = cpu_put,
                  .get = cpu_get,
                  .launch = cpu_launch,
                  .launch_all = cpu_launch_all,
                  .finish = cpu_finish};
}
