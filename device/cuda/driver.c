/* Opening the driver. Nothing of it is touched before the first communicator or allocation on a CUDA device. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cuda.h"

gccl_cuda_driver gccl_cu;

/* The oldest driver whose entry points and fat binaries we need: CUDA 12.0 (cuStreamBatchMemOp_v2 and cuStreamWaitValue32_v2 work
 * without a module parameter from there on). */
enum { OLDEST_DRIVER = 12000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(int) state; /* 0 not tried, 1 open, -1 failed: the text says why */
static char why[512];
static int devices;

static int find(void *lib, const char *path) {
#define FIND(member, symbol, parameters)                                                                                       \
  *(void **)&gccl_cu.member = dlsym(lib, symbol);                                                                              \
  if (!gccl_cu.member) {                                                                                                       \
    snprintf(why, sizeof why, "%s has no %s: the driver is too old, CUDA 12.0 (driver 525) or newer is needed", path, symbol); \
    return 0;                                                                                                                  \
  }
  GCCL_CUDA_FUNCTIONS(FIND)
#undef FIND
#define FIND(member, symbol, parameters) *(void **)&gccl_cu.member = dlsym(lib, symbol);
  GCCL_CUDA_OPTIONAL(FIND)
#undef FIND
  return 1;
}

static int try_open(const char *path) {
  if (!path || !path[0]) path = "libcuda.so.1";
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!lib) {
    const char *e = dlerror();
    snprintf(why, sizeof why, "the CUDA driver cannot be loaded: %s", e ? e : path);
    return 0;
  }
  if (!find(lib, path)) return 0;
  CUresult e = gccl_cu.Init(0);
  if (e) {
    snprintf(why, sizeof why, "cuInit: error %d (%s): is there a GPU, and is it visible (CUDA_VISIBLE_DEVICES)?", e, gccl_cuda_text(e));
    return 0;
  }
  int version = 0;
  if ((e = gccl_cu.DriverGetVersion(&version)) || version < OLDEST_DRIVER) {
    snprintf(why, sizeof why, "the driver supports CUDA %d.%d: CUDA %d.%d (driver 525) or newer is needed: update the driver",
             version / 1000, version % 1000 / 10, OLDEST_DRIVER / 1000, OLDEST_DRIVER % 1000 / 10);
    return 0;
  }
  if ((e = gccl_cu.DeviceGetCount(&devices)) || devices < 1) {
    snprintf(why, sizeof why, "the driver offers no device: %d (%s): is one visible (CUDA_VISIBLE_DEVICES)?", e, gccl_cuda_text(e));
    return 0;
  }
  return 1;
}

int gccl_cuda_open(const char *library, const char **text) {
  int s = atomic_load_explicit(&state, memory_order_acquire);
  if (s == 0) {
    pthread_mutex_lock(&lock);
    if ((s = atomic_load(&state)) == 0) {
      s = try_open(library) ? 1 : -1;
      atomic_store_explicit(&state, s, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
  }
  if (text) *text = why;
  return s == 1;
}

int gccl_cuda_devices(void) { return devices; }

const char *gccl_cuda_text(CUresult e) {
  const char *t = NULL;
  if (!gccl_cu.GetErrorString || gccl_cu.GetErrorString(e, &t) || !t) t = "unknown error";
  return t;
}
