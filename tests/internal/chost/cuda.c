/* cuda.c: see cuda.h. */
#include "cuda.h"

#include <dlfcn.h>

#include "conf.h"

struct cu_table cu;

static int devices = 1;
static void *context[CONF_MAX_RANKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int cu_check(int rank, int got, int want, const char *call, const char *file, int line) {
  atomic_fetch_add(&W->checks, 1);
  if (got == want) return 1;
  const char *name = NULL, *base = strrchr(file, '/');
  if (cu.GetErrorName) cu.GetErrorName(got, &name);
  return conf_fail(rank, "%s:%d: %s: want %d, got %d (%s)", base ? base + 1 : file, line, call, want, got, name ? name : "?");
}

static int load(int rank) {
  static int state; /* 0 not yet, 1 open, -1 failed */
  if (state) return state;
  state = -1;
  void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!lib) return conf_fail(rank, "no CUDA driver: %s", dlerror()), -1;
#define LOAD(member, symbol, parameters) \
  if (!(*(void **)&cu.member = dlsym(lib, symbol))) return conf_fail(rank, "the CUDA driver has no %s", symbol), -1;
  CONF_CUDA(LOAD)
  int n = 0;
  const char *wanted = getenv("GCCL_TEST_DEVICES");
  if (!CU(rank, cu.Init(0)) || !CU(rank, cu.DeviceGetCount(&n))) return -1;
  if (wanted) devices = atoi(wanted);
  if (devices < 1 || devices > n) return conf_fail(rank, "GCCL_TEST_DEVICES is %d and there are %d devices", devices, n), -1;
  return state = 1;
}

int cu_open(int rank) {
  pthread_mutex_lock(&lock);
  int ok = load(rank);
  pthread_mutex_unlock(&lock);
  return ok == 1 ? 0 : -1;
}

int cu_use_device(int rank) {
  if (cu_open(rank)) return -1;
  int d = rank % devices, ok = 1;
  pthread_mutex_lock(&lock);
  if (!context[d]) ok = CU(rank, cu.DevicePrimaryCtxRetain(&context[d], d));
  pthread_mutex_unlock(&lock);
  return ok && CU(rank, cu.CtxSetCurrent(context[d])) ? 0 : -1;
}
