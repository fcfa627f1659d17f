#include "bridge.h"

#include "_cgo_export.h"

void gccl_bridge_fill(gccl_core_api *core) {
  core->get_unique_id = gcclgo_get_unique_id;
  core->comm_get_unique_id = gcclgo_comm_get_unique_id;
  core->config_resolve = (int32_t(*)(gccl_config *, const struct ncclComm *, char *))gcclgo_config_resolve;
  core->run = gcclgo_run;
  core->plan = gcclgo_plan;
  core->mem_alloc = gcclgo_mem_alloc;
  core->mem_free = gcclgo_mem_free;
  core->window_deregister = gcclgo_window_deregister;
  core->devcomm_refuse = (int32_t(*)(struct ncclComm *, int32_t, const char *, char *))gcclgo_devcomm_refuse;
  core->fetch_memory = gcclgo_fetch_memory;
  core->mem_stats = gcclgo_mem_stats;
  core->stats_bytes = gcclgo_stats_bytes;
  core->estimate = gcclgo_estimate;
  core->param_find = (int32_t(*)(const char *, int32_t *, char *))gcclgo_param_find;
  core->param_get = gcclgo_param_get;
  core->param_key = gcclgo_param_key;
  core->param_dump = gcclgo_param_dump;
  core->log_reset = gcclgo_log_reset;
  core->late = (void (*)(struct ncclComm *, uint64_t, int32_t, const char *, uint64_t))gcclgo_late;
  core->log = (void (*)(int32_t, int32_t, const char *))gcclgo_log;
}

void gccl_bridge_leave(void) { gcclgo_leave(); }

void gccl_bridge_done(const gccl_front_api *f, gccl_job *jobs, int32_t n, void *cookie) { f->done(jobs, n, cookie); }

int32_t gccl_bridge_quiesce(const gccl_front_api *f, struct ncclComm *c, uint64_t timeout_ns) { return f->quiesce(c, timeout_ns); }

void gccl_bridge_retire(const gccl_front_api *f, struct ncclComm *c) { f->retire(c); }

int32_t gccl_bridge_interrupted(const gccl_front_api *f) { return f->interrupted(); }

uint64_t gccl_bridge_device_section(const gccl_device_api *d, uint32_t nranks) { return d->section(nranks); }

int32_t gccl_bridge_device_hello(const gccl_device_api *d, struct ncclComm *c, void *out, int32_t max) { return d->hello(c, out, max); }

int32_t gccl_bridge_device_meet(const gccl_device_api *d, struct ncclComm *c, const void *hellos, char *text) {
  return d->meet(c, hellos, text);
}

int32_t gccl_bridge_device_link(const gccl_device_api *d, struct ncclComm *c, char *text) { return d->link(c, text); }
void gccl_bridge_device_unlink(const gccl_device_api *d, struct ncclComm *c) { d->unlink(c); }

uint64_t gccl_bridge_device_progress(const gccl_device_api *d, struct ncclComm *c, uint64_t *called) { return d->progress(c, called); }

int32_t gccl_bridge_device_leave(const gccl_device_api *d, struct ncclComm *c) { return d->leave(c); }

int32_t gccl_bridge_window_offer(const gccl_device_api *d, struct ncclComm *c, uintptr_t ptr, uint64_t size, void *out, int32_t max,
                                 int32_t *rc, char *text) {
  return d->window_offer(c, (void *)ptr, size, out, max, rc, text);
}

int32_t gccl_bridge_window_map(const gccl_device_api *d, struct ncclComm *c, gccl_window *w, const void *parts, char *text) {
  return d->window_map(c, w, parts, text);
}

int32_t gccl_bridge_window_show(const gccl_device_api *d, struct ncclComm *c, gccl_window *w, char *text) {
  return d->window_show(c, w, text);
}

void gccl_bridge_look(const gccl_device_api *d, struct ncclComm *c) { d->look(c); }
void gccl_bridge_window_hide(const gccl_device_api *d, struct ncclComm *c, const gccl_window *w) { d->window_hide(c, w); }

void gccl_bridge_window_release(const gccl_device_api *d, struct ncclComm *c, gccl_window *w, const void *part) {
  d->window_release(c, w, part);
}

int32_t gccl_bridge_memory_new(const gccl_device_api *d, struct ncclComm *c, uint64_t bytes, void **out, char *text) {
  return d->memory_new(c, bytes, out, text);
}

void gccl_bridge_memory_free(const gccl_device_api *d, uintptr_t p) { d->memory_free((void *)p); }

int32_t gccl_bridge_export_memory(const gccl_device_api *d, uint64_t id, uint64_t *size) { return d->export_memory(id, size); }
