#define _GNU_SOURCE
#include "mlx5dv.h"

#include <dlfcn.h>
#include <stdio.h>

static dv_library library;
static char failure[256];
static int opened;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int load(void) {
  void *handle = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *e = dlerror();
    snprintf(failure, sizeof failure, "%s", e ? e : "libmlx5.so.1 cannot be opened");
    return 0;
  }
  /* init_obj of MLX5_1.2 gives the newest structures; that of MLX5_1.0 fewer fields. */
  *(void **)&library.init_obj = dlvsym(handle, "mlx5dv_init_obj", "MLX5_1.2");
  *(void **)&library.is_supported = dlvsym(handle, "mlx5dv_is_supported", "MLX5_1.8");
  if (library.init_obj && library.is_supported) return 1;
  snprintf(failure, sizeof failure,
           "libmlx5.so.1 has no mlx5dv_init_obj of MLX5_1.2 or no mlx5dv_is_supported of MLX5_1.8: rdma-core 18 has them");
  dlclose(handle);
  return 0;
}

const dv_library *dv_open(char *why) {
  pthread_mutex_lock(&lock);
  if (!opened) opened = load() ? 1 : -1;
  int ok = opened == 1;
  pthread_mutex_unlock(&lock);
  if (!ok) snprintf(why, sizeof failure, "%s", failure);
  return ok ? &library : NULL;
}
