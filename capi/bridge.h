/* The core's side of the seam: the table is filled with cgo's exported functions, the front's functions are called
 * through pointers, which Go cannot do. */
#ifndef GCCL_CAPI_BRIDGE_H
#define GCCL_CAPI_BRIDGE_H

#include "core.h"

void gccl_bridge_fill(gccl_core_api *core);
void gccl_bridge_done(const gccl_front_api *f, gccl_job *jobs, int32_t n, void *cookie);
int32_t gccl_bridge_quiesce(const gccl_front_api *f, struct ncclComm *c, uint64_t timeout_ns);
void gccl_bridge_retire(const gccl_front_api *f, struct ncclComm *c);
uint64_t gccl_bridge_device_section(const gccl_device_api *d, uint32_t nranks);
int32_t gccl_bridge_device_hello(const gccl_device_api *d, struct ncclComm *c, void *out, int32_t max);
int32_t gccl_bridge_device_meet(const gccl_device_api *d, struct ncclComm *c, const void *hellos, char *text);
void gccl_bridge_device_leave(const gccl_device_api *d, struct ncclComm *c);

#endif
