/* How what a communicator does is seen from outside: by the trace (GCCL_TRACE) and by profiler plugins.
 *
 * ncclComm.probe is NULL while nobody looks, and every event point of the data path is one test of it. The points are calls of
 * device/host/exec/probe.h in the front; the network of the core tells the end of a put through net_done. Both the trace and the
 * plugins are served by them: there are no other points.
 */
#ifndef GCCL_LAYOUT_PROBE_H
#define GCCL_LAYOUT_PROBE_H

#include <stdatomic.h>

#include "lowered.h"
#include "profiler.h"

/* What a record of the trace says. Pairs: CALL and CALLED, GROUP and GROUPED, PLAN and PLANNED, RUN and DONE, PUT and PUT_DONE. A STEP
 * ends with the next STEP or the DONE of its operation. */
enum gccl_event_kind {
  GCCL_EV_CALL = 1,
  GCCL_EV_CALLED = 2,   /* arg: result */
  GCCL_EV_GROUP = 3,    /* call: number of the group, unique in the process */
  GCCL_EV_GROUPED = 4,  /* arg: result */
  GCCL_EV_PLAN = 5,     /* the launch table has no plan: the core makes one. what: collective, arg: class */
  GCCL_EV_PLANNED = 6,  /* arg: result */
  GCCL_EV_RUN = 7,      /* the operation has its turn. text: method of its plan */
  GCCL_EV_STEP = 8,     /* what: enum gccl_kind or gccl_trace_wait; arg: sync << 16 | step; count: round << 32 | index of the op */
  GCCL_EV_DONE = 9,     /* arg: result */
  GCCL_EV_PUT = 10,     /* a command of the executor for the network. arg: its number, count: bytes */
  GCCL_EV_PUT_DONE = 11 /* the transport has completed it. arg: the same number */
};

/* Waits of an operation that are not ops of its plan, and on CUDA the launch of its kernel; beside enum gccl_kind. */
enum gccl_trace_wait { GCCL_WAIT_GUARD = 16, GCCL_WAIT_PEERS = 17, GCCL_WAIT_MESSAGE = 18, GCCL_STEP_LAUNCH = 19 };

/* One record: a line, so that a ring's producer and its reader share no line of a record that is being written. Times are
 * CLOCK_MONOTONIC, which all processes of a host share; inside a ring they are counts of exec/tick.h. */
typedef struct {
  uint64_t ns;
  uint8_t kind, what; /* what: enum gccl_op_kind << 4 | collective, where a kind says nothing else */
  uint8_t dtype, red;
  uint32_t comm;  /* gccl_probe.number */
  uint64_t call;  /* of the communicator, from 1 */
  uint64_t count; /* elements */
  int32_t peer;   /* root, peer, or rank waited for; -1 none */
  uint32_t arg;
  char text[24];
} gccl_event;

struct gccl_tracer;
struct ncclComm;

enum { GCCL_PROFILERS = 4 }; /* plugins at once */

/* The probe of a communicator. Made by the core before the communicator is ready; gone when nothing is in flight any more. */
typedef struct gccl_probe {
  struct gccl_tracer *tracer; /* NULL: no trace */
  uint32_t number;            /* of the communicator among the traced ones of the process, from 1 */
  int32_t rank;
  _Atomic(uint64_t) calls;
  _Atomic(uint32_t) puts;
  uint32_t sending;        /* the step whose put comes next; the executor's */
  _Atomic(int32_t) inside; /* calls and groups under way, which still look at it: an operation may end before its call returns */
  int32_t nprofilers;
  gccl_profiler profiler[GCCL_PROFILERS];
  /* The front's: a put has completed. From the thread that serves the network. */
  void (*net_done)(struct gccl_probe *, uint32_t put, uint32_t step, int32_t peer);
  /* The front's: ends the steps that the network still has, before the plugins go. Preconditions: nothing is in flight. */
  void (*settle)(struct gccl_probe *);
} gccl_probe;

/* What the front gives the core: the rings of the trace. A ring is one thread's: it stores, the core takes. */
typedef struct {
  uint32_t size, event_size; /* sizeof(gccl_trace_api), sizeof(gccl_event) */
  /* The tracer of the process, made at the first call; NULL without memory. */
  struct gccl_tracer *(*open)(void);
  void (*net_done)(gccl_probe *, uint32_t put, uint32_t step, int32_t peer);
  void (*settle)(gccl_probe *);
  const gccl_step_api *steps;
  /* Takes up to max records of ring index (from 0) and returns how many; -1: there is no such ring. thread: of the records. One caller at a
   * time. */
  int32_t (*take)(struct gccl_tracer *, int32_t index, gccl_event *out, int32_t max, uint64_t *thread);
  /* Operations, groups and puts that found no room so far. */
  uint64_t (*dropped)(struct gccl_tracer *);
  /* The time on the scale of records. bend: before a round of takes. The same caller as take. */
  uint64_t (*now)(struct gccl_tracer *, int32_t bend);
  /* Calls f when the process ends in order, once. */
  void (*at_exit)(void (*f)(void));
} gccl_trace_api;

GCCL_LAYOUT_ASSERT(sizeof(gccl_event) == 64 && offsetof(gccl_event, text) == 40, "gccl_event");

#endif
