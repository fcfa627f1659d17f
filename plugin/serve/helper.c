#define _GNU_SOURCE
#include "helper.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { AWAKE_NS = 200000, TURNS = 64 }; /* without work before it sleeps; between looks at the clock */
enum { ASLEEP, CALLED, RUNNING, STOP };

struct helper {
  pthread_t thread;
  int (*work)(void *);
  void *arg;
  _Atomic uint32_t state;
};

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *run(void *arg) {
  helper *h = arg;
  for (;;) {
    uint32_t state = atomic_load(&h->state);
    if (state == STOP) return NULL;
    if (state == ASLEEP) {
      syscall(SYS_futex, &h->state, FUTEX_WAIT_PRIVATE, ASLEEP, NULL, NULL, 0);
      continue;
    }
    uint32_t called = CALLED;
    atomic_compare_exchange_strong(&h->state, &called, RUNNING);
    uint64_t since = now_ns();
    int idle = 0;
    do {
      for (int i = 0; i < TURNS; i++) idle = h->work(h->arg) ? 0 : idle + 1;
      if (!idle) since = now_ns();
      sched_yield();
    } while (atomic_load(&h->state) == RUNNING && now_ns() - since < AWAKE_NS);
    uint32_t running = RUNNING;
    atomic_compare_exchange_strong(&h->state, &running, ASLEEP); /* who posts now finds it asleep, and works itself */
  }
}

helper *helper_start(int (*work)(void *), void *arg) {
  helper *h = calloc(1, sizeof *h);
  if (!h) return NULL;
  h->work = work;
  h->arg = arg;
  sigset_t all, before; /* signals are for the program's threads */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int rc = pthread_create(&h->thread, NULL, run, h);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!rc) {
    pthread_setname_np(h->thread, "gccl-net");
    return h;
  }
  free(h);
  return NULL;
}

void helper_wake(helper *h) {
  uint32_t asleep = ASLEEP;
  if (atomic_load_explicit(&h->state, memory_order_relaxed) == ASLEEP && atomic_compare_exchange_strong(&h->state, &asleep, CALLED))
    syscall(SYS_futex, &h->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int helper_runs(helper *h) { return atomic_load_explicit(&h->state, memory_order_relaxed) == RUNNING; }

void helper_stop(helper *h) {
  atomic_store(&h->state, STOP);
  syscall(SYS_futex, &h->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  pthread_join(h->thread, NULL);
  free(h);
}
