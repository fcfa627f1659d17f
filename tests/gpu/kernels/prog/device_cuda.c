#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

gccl_cuda_driver cu;
CUstream cuda_stream;
CUresult (*cuda_elapsed)(float *ms, CUevent, CUevent);
static CUmodule module;

void must(CUresult rc, const char *what) {
  const char *text = NULL;
  if (rc == CUDA_SUCCESS) return;
  if (cu.GetErrorName) cu.GetErrorName(rc, &text);
  die(what, text ? text : "error");
}

static void *entry(void *lib, const char *name, int needed) {
  void *f = dlsym(lib, name);
  if (!f && needed) die(name, "not in libcuda.so.1");
  return f;
}

CUfunction cuda_function(const char *name) {
  static struct {
    char name[GCCL_KERNEL_NAME];
    CUfunction f;
  } known[1024];
  static unsigned n;
  for (unsigned i = 0; i < n; i++)
    if (!strcmp(known[i].name, name)) return known[i].f;
  CUfunction f;
  must(cu.ModuleGetFunction(&f, module, name), name);
  if (n < 1024) {
    snprintf(known[n].name, sizeof known[n].name, "%s", name);
    known[n++].f = f;
  }
  return f;
}

void cuda_launch(const char *kernel, const void *param, gccl_launch_dims d, CUstream stream) {
  void *params[] = {(void *)(uintptr_t)param};
  must(cu.LaunchKernel(cuda_function(kernel), d.grid, 1, 1, d.block, 1, 1, 0, stream, params, NULL), kernel);
}

static uint64_t gpu_alloc(size_t bytes) {
  CUdeviceptr p;
  must(cu.MemAlloc(&p, bytes ? bytes : 1), "cuMemAlloc");
  return p;
}
static void gpu_release(uint64_t at) { must(cu.MemFree(at), "cuMemFree"); }
static void gpu_put(uint64_t to, const void *from, size_t bytes) {
  must(cu.MemcpyAsync(to, (CUdeviceptr)(uintptr_t)from, bytes, cuda_stream), "cuMemcpyAsync");
  must(cu.StreamSynchronize(cuda_stream), "copy to the device");
}
static void gpu_get(void *to, uint64_t from, size_t bytes) {
  must(cu.MemcpyAsync((CUdeviceptr)(uintptr_t)to, from, bytes, cuda_stream), "cuMemcpyAsync");
  must(cu.StreamSynchronize(cuda_stream), "copy from the device");
}
static void gpu_launch(const char *kernel, const void *param, gccl_launch_dims dims) { cuda_launch(kernel, param, dims, cuda_stream); }
CUstream cuda_rank_stream[64];
static void gpu_launch_all(const char *kernel, const void *params, size_t bytes, unsigned n, gccl_launch_dims dims) {
  for (unsigned r = 0; r < n; r++)
    if (!cuda_rank_stream[r]) must(cu.StreamCreate(&cuda_rank_stream[r], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  if (cu.FuncLoad) must(cu.FuncLoad(cuda_function(kernel)), kernel); /* not while a kernel waits */
  for (unsigned r = 0; r < n; r++) cuda_launch(kernel, (const char *)params + r * bytes, dims, cuda_rank_stream[r]);
  for (unsigned r = 0; r < n; r++) must(cu.StreamSynchronize(cuda_rank_stream[r]), kernel);
}
static void gpu_finish(void) { must(cu.StreamSynchronize(cuda_stream), "a kernel"); }

static void *load_file(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) die(path, "cannot be read");
  fseek(f, 0, SEEK_END);
  long n = ftell(f);
  rewind(f);
  void *data = aligned_alloc(64, ((size_t)n + 64) / 64 * 64);
  if (!data || fread(data, 1, (size_t)n, f) != (size_t)n) die(path, "cannot be read");
  fclose(f);
  return data;
}

device device_cuda(const char *fatbin) {
  const char *path = getenv("GCCL_CUDA_LIBRARY");
  void *lib = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!lib) die("libcuda.so.1", dlerror());
#define NEEDED(member, symbol, parameters) *(void **)&cu.member = entry(lib, symbol, 1);
#define OPTIONAL(member, symbol, parameters) *(void **)&cu.member = entry(lib, symbol, 0);
  GCCL_CUDA_FUNCTIONS(NEEDED)
  GCCL_CUDA_OPTIONAL(OPTIONAL)
  *(void **)&cuda_elapsed = entry(lib, "cuEventElapsedTime", 0);
  device d = {.alloc = gpu_alloc,
              .release = gpu_release,
              .put = gpu_put,
              .get = gpu_get,
              .launch = gpu_launch,
              .launch_all = gpu_launch_all,
              .finish = gpu_finish};
  CUdevice dev;
  CUcontext ctx;
  int driver = 0, n = 0;
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); /* streams of ranks that wait for each other must not share a queue */
  must(cu.Init(0), "cuInit");
  must(cu.DriverGetVersion(&driver), "cuDriverGetVersion");
  must(cu.DeviceGet(&dev, 0), "cuDeviceGet");
  must(cu.DevicePrimaryCtxRetain(&ctx, dev), "cuDevicePrimaryCtxRetain");
  must(cu.CtxSetCurrent(ctx), "cuCtxSetCurrent");
  must(cu.DeviceGetName(d.name, sizeof d.name - 32, dev), "cuDeviceGetName");
  must(cu.DeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev), "cuDeviceGetAttribute");
  must(cu.DeviceGetAttribute(&d.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev), "cuDeviceGetAttribute");
  must(cu.DeviceGetAttribute(&d.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev), "cuDeviceGetAttribute");
  d.multiprocessors = (unsigned)n;
  must(cu.StreamCreate(&cuda_stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  must(cu.ModuleLoadData(&module, load_file(fatbin)), "cuModuleLoadData of the fat binary");
  printf("device %s, compute capability %d.%d, %d multiprocessors, driver %d.%d\n", d.name, d.major, d.minor, n, driver / 1000,
         driver % 1000 / 10);
  return d;
}
