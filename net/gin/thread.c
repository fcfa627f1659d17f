/* The thread of a GIN object: it spins while something moves, naps when nothing has for a while, and sleeps in the transport
 * when that has lasted. Where a caller helps (an executor that waits), it leaves the work to the caller.
 *
 * Nobody helps where kernels are served, and nobody wakes it: who waits for room in a queue of 16 would wait for a nap for each 16
 * entries. So it does not nap while something of theirs is under way, nor in the first millisecond behind; it gives its processor to others instead,
 * because kernels on the CPU are more threads than ranks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "gin.h"

enum {
  DEEP_AFTER_NS = 20000000,
  DEEP_NS = 50000000,
  SHORT_NAP_NS = 50000,
  AWAKE_NS = 1000000,       /* behind the last thing that moved for kernels */
  UNDER_WAY_NS = 200000000, /* a peer that does not answer for so long is waited for with naps */
  SPINS = 64                /* looks of kernels' queues before others get the processor */
};

static void nap(gin *g, uint64_t ns) {
  struct timespec t = {.tv_nsec = (long)ns};
  atomic_store_explicit(&g->naps, atomic_load_explicit(&g->naps, memory_order_relaxed) + 1, memory_order_relaxed);
  nanosleep(&t, NULL);
}

/* How long to nap after so much silence: a nap that ends costs several microseconds of a processor, most of them in the kernel,
 * so that naps of one length would use percents of it for ever. They grow with the silence, to a fraction of it and eight times
 * the setting. */
static uint64_t nap_of(const gin *g, uint64_t quiet) {
  uint64_t ns = quiet / 256, most = 8 * g->nap_ns;
  return ns < g->nap_ns ? g->nap_ns : ns < most ? ns : most;
}

static int serves_kernels(const gin *g) {
  for (int i = 0; i < GIN_CONTEXTS; i++)
    if (g->context[i].used) return 1;
  return 0;
}

/* Whether this is no time for a nap. */
static int awake(gin *g, uint64_t quiet) {
  if (!serves_kernels(g)) return 0;
  if (quiet < AWAKE_NS || quiet > UNDER_WAY_NS || !gin_try(g)) return quiet < AWAKE_NS;
  int busy = gin_context_busy(g);
  gin_release(g);
  return busy;
}

/* Whether the one endpoint can be slept on: rings that a GPU or another process fills wake nobody. */
static gccl_net_ep *may_sleep(const gin *g) {
  gccl_net_ep *one = NULL;
  if (serves_kernels(g)) return NULL;
  for (int i = 0; i < GIN_ENDPOINTS; i++) {
    if (!g->ep[i]) continue;
    if (one || !g->ep[i]->ops->wait) return NULL;
    one = g->ep[i];
  }
  return one;
}

static void *run(void *arg) {
  gin *g = arg;
  uint64_t quiet_since = gin_now(), helped = 0;
  unsigned looks = 0; /* in vain, one after another */
  if (g->cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)g->cpu, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set); /* a wish: a CPU that may not be used is nothing to fail for */
  }
  if (g->mover) {
    gin_acquire(g);
    g->mover->ops->adopt(g->mover);
    gin_release(g);
  }
  while (!atomic_load_explicit(&g->stop, memory_order_acquire)) {
    uint64_t h = atomic_load_explicit(&g->helped, memory_order_relaxed);
    if (atomic_load_explicit(&g->wanted, memory_order_relaxed)) {
      sched_yield();
      continue;
    }
    if (h != helped && g->spin_ns != UINT64_MAX) { /* somebody helps, and has a CPU for it */
      helped = h;
      quiet_since = gin_now();
      nap(g, g->nap_ns < SHORT_NAP_NS ? g->nap_ns : SHORT_NAP_NS);
      continue;
    }
    int moved = 0;
    if (gin_try(g)) {
      moved = gin_serve(g);
      gin_release(g);
    }
    uint64_t now = gin_now();
    if (moved) {
      quiet_since = now;
      looks = 0;
      continue;
    }
    uint64_t quiet = now - quiet_since;
    looks++;
    if (quiet < g->spin_ns && (looks < SPINS || !serves_kernels(g))) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      continue;
    }
    if (quiet < g->spin_ns || awake(g, quiet)) {
      sched_yield();
      continue;
    }
    gccl_net_ep *ep = quiet < DEEP_AFTER_NS ? NULL : may_sleep(g);
    if (!ep) {
      nap(g, nap_of(g, quiet));
      continue;
    }
    atomic_store_explicit(&g->deep, 1, memory_order_seq_cst);
    if (gin_try(g)) {
      /* A command that was stored before `deep` could be seen is found here; a later one comes with a wake. */
      if (!gin_serve(g) && !atomic_load_explicit(&g->stop, memory_order_acquire)) ep->ops->wait(ep, DEEP_NS);
      gin_release(g);
    }
    atomic_store_explicit(&g->deep, 0, memory_order_seq_cst);
  }
  return NULL;
}

int gin_start(gin *g) {
  sigset_t all, old;
  sigfillset(&all); /* the program's signals are for its own threads */
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int rc = pthread_create(&g->thread, NULL, run, g);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (rc) return rc;
  pthread_setname_np(g->thread, "gccl-gin");
  g->running = 1;
  return 0;
}

void gin_stop(gin *g) {
  if (!g->running) return;
  atomic_store_explicit(&g->stop, 1, memory_order_release);
  gin_rouse(g);
  pthread_join(g->thread, NULL);
  g->running = 0;
}
