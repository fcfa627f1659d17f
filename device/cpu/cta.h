/* cta.h: a launch and its CTAs, as launch.c and cta.c share them. */
#ifndef GCCL_CPU_CTA_H
#define GCCL_CPU_CTA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "../../include/gccl_device/impl/cpu_runtime.h"
#include "fiber.h"

enum { SUCCESS = 0, SYSTEM = 2, ARGUMENT = 4, USAGE = 5, REMOTE = 6, TIMED_OUT = 8 }; /* ncclResult_t */

typedef struct {
  struct gccl_cpu_launch in;
  uint64_t end_ns; /* of a monotonic clock, 0: none */
  unsigned nctas, nthreads, nworkers;
  atomic_uint next;     /* CTA */
  atomic_int failed;    /* SUCCESS, or why waits give up */
  atomic_int dead;      /* threads end at their next call of the runtime */
  uint64_t failed_ns;   /* when; behind failed */
  pthread_mutex_t lock; /* of text */
  char text[1024];
  pthread_t *worker;
} launch;

/* Notes the first failure of a launch. dead: end it at once instead of letting its waits give up. */
void launch_fail(launch *l, int rc, int dead, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Runs CTA number index to its end on the calling thread. memory: stacks and shared memory, made by cta_memory. */
typedef struct {
  char *base;
  size_t bytes, stack, shared; /* of all; of one stack with its guard page; of the shared memory */
  struct thread *thread;
} cta_memory;
int cta_memory_make(cta_memory *m, const launch *l);
void cta_memory_free(cta_memory *m);
void cta_run(launch *l, unsigned index, cta_memory *m);

uint64_t cpu_now(void);

#endif
