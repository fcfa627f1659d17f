/* The thread of a GIN object: it spins while something moves, naps when nothing has for a while, and sleeps in the transport
 * when that has lasted. Where a caller helps (an executor that waits), it leaves the work to the caller.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "gin.h"

enum { DEEP_AFTER_NS = 20000000, DEEP_NS = 50000000, SHORT_NAP_NS = 50000 };

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

/* Whether the one endpoint can be slept on: rings that a GPU or another process fills wake nobody. */
static gccl_net_ep *may_sleep(const gin *g) {
  gccl_net_ep *one = NULL;
  for (int i = 0; i < GIN_CONTEXTS; i++)
    if (g->context[i].used) return NULL;
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
  if (g->cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)g->cpu, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set); /* a wish: a CPU that may not be used is nothing to fail for */
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
      continue;
    }
    uint64_t quiet = now - quiet_since;
    if (quiet < g->spin_ns) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
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
