/* The example net plugin with the table of version V (10 … 12) alone. Writes into $NETEVENTS_FILE.PID how many of its messages were made for
 * a step of profilers: sent, and received. $NETEVENTS_DOES says how it tells them of itself: by default as the example does, or as below. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/06_plugins/net/net.h"

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define PROPS CAT(np_props_v, V)

enum { START, STOP, UPDATE, UPDATE_AND_STOP, MINE = 9 << 16 | 7 };
static np_profiler profiler;
static long counts[2];

static int does(const char *what) {
  const char *d = getenv("NETEVENTS_DOES");
  return d && !strcmp(d, what);
}

__attribute__((destructor)) static void end(void) {
  char path[512];
  if (!getenv("NETEVENTS_FILE")) return;
  snprintf(path, sizeof path, "%s.%d", getenv("NETEVENTS_FILE"), (int)getpid());
  FILE *f = fopen(path, "w");
  if (!f) abort();
  fprintf(f, "%ld %ld\n", counts[0], counts[1]);
  fclose(f);
}

/* thread: a thread of its own opens, changes and ends the events: in time where test waits for it (an odd number of them was asked for), or not. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *queue[64];
static unsigned head, tail;

static void *tell(void *arg) {
  for (;; usleep(20)) {
    void *step = NULL, *event = NULL;
    pthread_mutex_lock(&lock);
    if (tail != head) step = queue[tail % 64];
    pthread_mutex_unlock(&lock);
    if (!step) continue;
    if (profiler(&event, START, step, MINE, &arg)) abort();
    if (profiler(&event, UPDATE, NULL, MINE, &arg)) abort();
    if (profiler(&event, UPDATE_AND_STOP, NULL, MINE, &arg)) abort();
    pthread_mutex_lock(&lock);
    tail++;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static int told_later(void) {
  pthread_mutex_lock(&lock);
  int later = head % 2 && head != tail;
  pthread_mutex_unlock(&lock);
  return later;
}

/* late: ends no event before its request has ended, speaks of old ones and of some that never were, and of steps likewise. */
static void *events[256], *steps_of[256];
static unsigned told;

static void late(void *step) {
  void *made_up[] = {(void *)1, (void *)0x7fff, &told, (void *)-1, step}, *event;
  unsigned at = told++ % 256;
  if (events[at]) {
    for (int type = -1; type < 5; type++) {
      void *place = events[at];
      if (profiler(&place, type, steps_of[at], MINE, NULL)) abort();
    }
    if (profiler(NULL, START, steps_of[at], MINE, NULL)) abort();
  }
  for (unsigned i = 0; i < sizeof made_up / sizeof *made_up; i++) {
    event = made_up[i];
    if (profiler(&event, STOP, NULL, MINE, NULL)) abort();
    if (made_up[i] != step && (profiler(&event, START, made_up[i], MINE, NULL) || event)) abort();
  }
  steps_of[at] = step;
  if (profiler(&events[at], START, step, MINE, &told)) abort();
}

/* lazy: in the second process a send moves at its 40th test only. */
static uint8_t tests[1 << 12]; /* of requests, from 1; 0: it is not lazy */

static uint8_t *tests_of(void *request) { return &tests[(uintptr_t)request / 16 % sizeof tests]; }

static int too_early(void *request) {
  static int prompt = -1;
  if (prompt < 0) {
    int fd = open(getenv("NETEVENTS_ALONE"), O_CREAT | O_EXCL, 0600);
    if ((prompt = fd >= 0)) close(fd);
  }
  uint8_t *n = tests_of(request);
  if (prompt || *n >= 40) *n = 0;
  if (*n) ++*n;
  return *n != 0;
}

/* slow: of four calls of test three say "not yet", not in turns, in whose rhythm a request might never have its own. stuck: what was sent for a step is never done. */
static void *stuck[64];

static int test(void *request, int *done, int *sizes) {
  static _Atomic(unsigned) random;
  *done = 0;
  random = random * 1664525u + 1013904223u;
  if (does("lazy") && too_early(request)) return NP_OK;
  if (does("thread") && told_later()) return NP_OK;
  if (does("slow") && (random >> 16) % 4) return NP_OK;
  int rc = example_test(request, done, sizes);
  for (unsigned i = 0; i < 64; i++)
    if (request == stuck[i]) *done = 0;
  return rc;
}

static void follow(int recv, int n, void *request, void **steps) {
  if (!request) return;
  for (int i = 0; i < n; i++)
    if (steps[i]) {
      counts[recv]++;
      pthread_mutex_lock(&lock);
      if (does("thread") && head - tail < 64) queue[head++ % 64] = steps[i];
      if (does("late")) late(steps[i]);
      if (does("stuck") && !recv) stuck[counts[0] % 64] = request;
      pthread_mutex_unlock(&lock);
    }
  example_follow(request, steps);
}

static int begin(np_logger log, np_profiler f) {
  static pthread_t thread;
  profiler = f;
  if (!does("thread") && !does("late")) example_profile(f);
  if (does("thread") && !thread && pthread_create(&thread, NULL, tell, NULL)) return NP_SYSTEM;
  return f ? example_init(log) : NP_INTERNAL;
}

static int isends(void *comm, void *data, size_t bytes, int tag, void *mhandle, void *step, void **request) {
  int rc = example_isend(comm, data, bytes, tag, mhandle, request);
  if (!rc && *request && does("lazy")) *tests_of(*request) = 1;
  if (!rc) follow(0, 1, *request, &step);
  return rc;
}

static int irecvs(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **steps, void **request) {
  int rc = example_irecv(comm, n, data, sizes, tags, mhandles, request);
  if (!rc && *request) *tests_of(*request) = 0;
  if (!rc) follow(1, n, *request, steps);
  return rc;
}

#if V == 10
static int init(np_logger log, np_profiler f) { return begin(log, f); }
#define CTX
static int connects(int dev, np_net_config *config, void *handle, void **send, np_device_handle **device) {
  (void)config, (void)device;
  return example_connect(dev, handle, send);
}
#else
static int init(void **ctx, uint64_t comm, np_net_config *config, np_logger log, np_profiler f) {
  (void)comm, (void)config;
  *ctx = &told;
  return begin(log, f);
}
#define CTX void *ctx __attribute__((unused)),
static int connects(CTX int dev, void *handle, void **send, np_device_handle **device) {
  (void)device;
  return example_connect(dev, handle, send);
}
static int finalize(void *ctx) {
  (void)ctx;
  return NP_OK;
}
#endif
static int listens(CTX int dev, void *handle, void **listening) { return example_listen(dev, handle, listening); }
static int accepts(void *listening, void **recv, np_device_handle **device) {
  (void)device;
  return example_accept(listening, recv);
}

static int properties(int dev, PROPS *p) {
  np_props_v12 q;
  int rc = example_properties(dev, &q);
  *p = (PROPS){.name = q.name,
               .ptrSupport = NP_PTR_HOST,
               .regIsGlobal = 1,
               .speed = q.speed,
               .maxComms = q.maxComms,
               .maxRecvs = q.maxRecvs,
               .maxP2pBytes = q.maxP2pBytes,
               .maxCollBytes = q.maxCollBytes};
  return rc;
}

const CAT(np_net_v, V) CAT(ncclNetPlugin_v, V) = {
    .name = "Events",
    .init = init,
    .devices = example_devices,
    .getProperties = properties,
    .listen = listens,
    .connect = connects,
    .accept = accepts,
    .regMr = example_reg,
    .deregMr = example_dereg,
    .isend = isends,
    .irecv = irecvs,
    .iflush = example_flush,
    .test = test,
    .closeSend = example_close,
    .closeRecv = example_close,
    .closeListen = example_close_listen,
#if V >= 11
    .finalize = finalize,
#endif
};
