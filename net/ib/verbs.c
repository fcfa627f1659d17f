#define _GNU_SOURCE
#include "verbs.h"

#include <dlfcn.h>
#include <stdio.h>

static vb_library library;
static char failure[256];
static int opened;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *handle;

static int need(void *to, const char *name, const char *version, int optional) {
  void *p = dlvsym(handle, name, version);
  *(void **)to = p;
  if (p || optional) return 1;
  snprintf(failure, sizeof failure, "libibverbs.so.1 has no %s of version %s", name, version);
  return 0;
}

static int load(void) {
  handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *e = dlerror();
    snprintf(failure, sizeof failure, "%s", e ? e : "libibverbs.so.1 cannot be opened");
    return 0;
  }
  vb_library *v = &library;
#define NEED(f) need(&v->f, "ibv_" #f, "IBVERBS_1.1", 0)
  int all = NEED(get_device_list) && NEED(free_device_list) && NEED(get_device_name) && NEED(open_device) && NEED(close_device) &&
            NEED(query_device) && NEED(query_port) && NEED(query_gid) && NEED(alloc_pd) && NEED(dealloc_pd) && NEED(reg_mr) &&
            NEED(dereg_mr) && NEED(create_cq) && NEED(destroy_cq) && NEED(create_qp) && NEED(modify_qp) && NEED(destroy_qp) &&
            NEED(fork_init) && NEED(wc_status_str) && need(&v->reg_dmabuf_mr, "ibv_reg_dmabuf_mr", "IBVERBS_1.12", 1) &&
            need(&v->reg_mr_iova, "ibv_reg_mr_iova", "IBVERBS_1.7", 1);
  if (!all) {
    dlclose(handle);
    return 0;
  }
  v->fork_init(); /* registered pages stay ours when the program forks; costs nothing on kernels that copy them (5.12) */
  return 1;
}

const vb_library *vb_open(char *why) {
  pthread_mutex_lock(&lock);
  if (!opened) opened = load() ? 1 : -1;
  int ok = opened == 1;
  pthread_mutex_unlock(&lock);
  if (!ok && why) snprintf(why, sizeof failure, "%s", failure);
  return ok ? &library : NULL;
}
