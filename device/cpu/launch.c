/* Launches: workers take one CTA after another until none is left. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cta.h"

enum { RESIDENT = 256, THREADS = 1024 };

static __thread char last[1024];
const char *gccl_cpu_error(void) { return last; }

void launch_fail(launch *l, int rc, int dead, const char *format, ...) {
  pthread_mutex_lock(&l->lock);
  if (!atomic_load(&l->failed)) {
    va_list args;
    va_start(args, format);
    vsnprintf(l->text, sizeof l->text, format, args);
    va_end(args);
    l->failed_ns = cpu_now();
    atomic_store_explicit(&l->failed, rc, memory_order_release);
  }
  if (dead) atomic_store(&l->dead, 1);
  pthread_mutex_unlock(&l->lock);
}

static void *work(void *arg) {
  launch *l = arg;
  cta_memory m;
  if (!cta_memory_make(&m, l)) {
    launch_fail(l, SYSTEM, 1,
                "no memory for %u threads of a CTA: raise the limit of address space or vm.max_map_count, or lower stackBytes",
                l->nthreads);
    return NULL;
  }
  unsigned i;
  while (!atomic_load(&l->dead) && (i = atomic_fetch_add(&l->next, 1)) < l->nctas) cta_run(l, i, &m);
  cta_memory_free(&m);
  return NULL;
}

static int refuse(const struct gccl_cpu_launch *in, int rc, const char *text) {
  snprintf(last, sizeof last, "launch on the CPU: %s", text);
  if (in->release) in->release(in->arg);
  return rc;
}

static int finish(launch *l) {
  for (unsigned i = 0; i < l->nworkers; i++) pthread_join(l->worker[i], NULL);
  int rc = atomic_load(&l->failed);
  if (rc) snprintf(last, sizeof last, "%s", l->text);
  if (l->in.release) l->in.release(l->in.arg);
  pthread_mutex_destroy(&l->lock);
  free(l->worker);
  free(l);
  return rc;
}

int gccl_cpu_start(const struct gccl_cpu_launch *in, void **handle) {
  *handle = NULL;
  uint64_t ctas = (uint64_t)in->grid.x * in->grid.y * in->grid.z, threads = (uint64_t)in->block.x * in->block.y * in->block.z;
  if (in->size != sizeof *in) return refuse(in, USAGE, "gccl_device/cpu.h and libgccl_cpu are of different versions");
  if (!threads || threads > THREADS) return refuse(in, ARGUMENT, "a CTA has 1 to 1024 threads");
  if (!in->grid.x || !in->grid.y || !in->grid.z || ctas > 0x7fffffffu || in->grid.y > 65535 || in->grid.z > 65535)
    return refuse(in, ARGUMENT, "a grid has 1 to 2^31-1 CTAs, and at most 65535 in y and z");
  launch *l = calloc(1, sizeof *l);
  unsigned want = in->resident ? in->resident : RESIDENT;
  if (want > ctas) want = (unsigned)ctas;
  if (l) l->worker = calloc(want, sizeof *l->worker);
  if (!l || !l->worker) {
    free(l);
    return refuse(in, SYSTEM, "out of memory");
  }
  l->in = *in;
  l->nctas = (unsigned)ctas;
  l->nthreads = (unsigned)threads;
  l->end_ns = in->deadline_ns ? cpu_now() + in->deadline_ns : 0;
  pthread_mutex_init(&l->lock, NULL);
  for (; l->nworkers < want; l->nworkers++) {
    if (pthread_create(&l->worker[l->nworkers], NULL, work, l) == 0) continue;
    /* CTAs may wait for those that cannot run: none does. */
    launch_fail(l, SYSTEM, 1, "launch on the CPU: the system gave %u of %u threads for CTAs: raise the limit (ulimit -u) or set resident",
                l->nworkers, want);
    return finish(l);
  }
  *handle = l;
  return SUCCESS;
}

int gccl_cpu_finish(void *handle) { return finish(handle); }
