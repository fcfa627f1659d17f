#include <dlfcn.h>
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
                  .finish = cpu_finish};
}
