/* The trace and the probes of communicators, for the Go core: the front's functions are called through its table. */
#ifndef GCCL_HOST_CONTROL_PROBE_H
#define GCCL_HOST_CONTROL_PROBE_H

#include "control.h"

struct gccl_tracer *gccl_ctl_tracer(const gccl_trace_api *);
int32_t gccl_ctl_trace_take(const gccl_trace_api *, struct gccl_tracer *, int32_t index, gccl_event *, int32_t max, uint64_t *thread);
uint64_t gccl_ctl_trace_dropped(const gccl_trace_api *, struct gccl_tracer *);
void gccl_ctl_at_exit(const gccl_trace_api *, void (*f)(void));
uint64_t gccl_ctl_trace_now(const gccl_trace_api *, struct gccl_tracer *, int32_t bend);
uint64_t gccl_ctl_now(void); /* CLOCK_MONOTONIC */

gccl_probe *gccl_ctl_probe_new(const gccl_trace_api *, struct gccl_tracer *, uint32_t number, int32_t rank);
int32_t gccl_ctl_probe_inside(gccl_probe *); /* calls and groups under way */
void gccl_ctl_probe_set(ncclComm_s *, gccl_probe *);

#endif
