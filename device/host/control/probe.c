#include "probe.h"

#include <stdlib.h>
#include <time.h>

struct gccl_tracer *gccl_ctl_tracer(const gccl_trace_api *t) {
  return t->open();
}

int32_t gccl_ctl_trace_take(const gccl_trace_api *t, struct gccl_tracer *tracer, int32_t index, gccl_event *out, int32_t max,
                            uint64_t *thread) {
  return t->take(tracer, index, out, max, thread);
}

uint64_t gccl_ctl_trace_dropped(const gccl_trace_api *t, struct gccl_tracer *tracer) { return t->dropped(tracer); }

void gccl_ctl_at_exit(const gccl_trace_api *t, void (*f)(void)) { t->at_exit(f); }

uint64_t gccl_ctl_trace_now(const gccl_trace_api *t, struct gccl_tracer *tracer, int32_t bend) { return t->now(tracer, bend); }

uint64_t gccl_ctl_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

gccl_probe *gccl_ctl_probe_new(const gccl_trace_api *t, struct gccl_tracer *tracer, uint32_t number, int32_t rank) {
  gccl_probe *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->tracer = tracer;
  p->number = number;
  p->rank = rank;
  p->net_done = t->net_done;
  p->settle = t->settle;
  return p;
}

int32_t gccl_ctl_probe_inside(gccl_probe *p) { return atomic_load(&p->inside); }

void gccl_ctl_probe_set(ncclComm_s *c, gccl_probe *p) { c->probe = p; }
