/* The core's side of the seam: the table is filled with cgo's exported functions, the front's functions are called
 * through pointers, which Go cannot do. */
#ifndef GCCL_CAPI_BRIDGE_H
#define GCCL_CAPI_BRIDGE_H

#include "core.h"

void gccl_bridge_fill(gccl_core_api *core);
void gccl_bridge_leave(void); /* for the end of the process */
void gccl_bridge_done(const gccl_front_api *f, gccl_job *jobs, int32_t n, void *cookie);
int32_t gccl_bridge_quiesce(const gccl_front_api *f, struct ncclComm *c, uint64_t timeout_ns);
void gccl_bridge_retire(const gccl_front_api *f, struct ncclComm *c);
int32_t gccl_bridge_interrupted(const gccl_front_api *f);
uint64_t gccl_bridge_device_section(const gccl_device_api *d, uint32_t nranks);
int32_t gccl_bridge_device_hello(const gccl_device_api *d, struct ncclComm *c, void *out, int32_t max);
int32_t gccl_bridge_device_meet(const gccl_device_api *d, struct ncclComm *c, const void *hellos, char *text);
int32_t gccl_bridge_device_link(const gccl_device_api *d, struct ncclComm *c, char *text);
void gccl_bridge_device_unlink(const gccl_device_api *d, struct ncclComm *c);
uint64_t gccl_bridge_device_progress(const gccl_device_api *d, struct ncclComm *c, uint64_t *called);
int32_t gccl_bridge_device_leave(const gccl_device_api *d, struct ncclComm *c);
int32_t gccl_bridge_window_offer(const gccl_device_api *d, struct ncclComm *c, uintptr_t ptr, uint64_t size, void *out, int32_t max,
                                 int32_t *rc, char *text);
int32_t gccl_bridge_window_map(const gccl_device_api *d, struct ncclComm *c, gccl_window *w, const void *parts, char *text);
int32_t gccl_bridge_window_show(const gccl_device_api *d, struct ncclComm *c, gccl_window *w, char *text);
void gccl_bridge_look(const gccl_device_api *d, struct ncclComm *c);
void gccl_bridge_window_hide(const gccl_device_api *d, struct ncclComm *c, const gccl_window *w);
void gccl_bridge_window_release(const gccl_device_api *d, struct ncclComm *c, gccl_window *w, const void *part);
int32_t gccl_bridge_memory_new(const gccl_device_api *d, struct ncclComm *c, uint64_t bytes, void **out, char *text);
void gccl_bridge_memory_free(const gccl_device_api *d, uintptr_t p);
int32_t gccl_bridge_export_memory(const gccl_device_api *d, uint64_t id, uint64_t *size);

#endif
