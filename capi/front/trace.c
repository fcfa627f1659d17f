/* The trace, for the core: the process has one tracer, made when the first communicator is traced. */
#include <pthread.h>
#include <stdlib.h>

#include "../../device/host/exec/probe.h"
#include "../../device/host/exec/ring.h"
#include "../../device/host/exec/steps.h"
#include "front.h"

static struct gccl_tracer *tracer;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make(void) { tracer = gccl_tracer_new(); }

static struct gccl_tracer *open_tracer(void) {
  pthread_once(&once, make);
  return tracer;
}

/* --- what the core does when the process ends in order --- */

enum { LEAVERS = 4 };
static void (*leaver[LEAVERS])(void);
static _Atomic(int) nleavers;

/* In a child of a fork the core is not there. */
static void leave(void) {
  for (int i = atomic_load(&nleavers); i-- > 0 && !gccl_forked;) leaver[i]();
}

static pthread_once_t leave_once = PTHREAD_ONCE_INIT;
static void register_leave(void) { atexit(leave); }

static void at_exit(void (*f)(void)) {
  int n = atomic_load(&nleavers);
  if (n == LEAVERS) return;
  leaver[n] = f;
  atomic_store(&nleavers, n + 1);
  pthread_once(&leave_once, register_leave);
}

const gccl_trace_api gccl_front_trace = {.size = sizeof(gccl_trace_api),
                                         .event_size = sizeof(gccl_event),
                                         .open = open_tracer,
                                         .net_done = gccl_probe_put_done,
                                         .settle = gccl_steps_settle,
                                         .steps = &gccl_steps,
                                         .take = gccl_ring_take,
                                         .dropped = gccl_ring_dropped,
                                         .now = gccl_ring_now,
                                         .at_exit = at_exit};
