/* speed.c: times of all-reduce beside the floors of the same run: an empty launch and a copy on the device. One line of JSON a
 * measurement, on standard output behind "SPEED ". No time is asserted here; tests/gpu/run.py compares. */
#include "gpu.h"

static void say(const char *what, const struct team *t, size_t bytes, double us, const char *more) {
  printf("SPEED {\"what\": \"%s\", \"ranks\": %d, \"launch\": \"%s\", \"bytes\": %zu, \"us\": %.3f%s}\n", what, t->nranks,
         conf_launch_name(), bytes, us, more);
  fflush(stdout);
}

static void settle(struct team *t, void **s) {
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    CU(t->first + i, cu.StreamSynchronize(s[i]));
  }
}

/* Host time of an empty launch, time of one in a row, and the rate of a copy on the device (bytes read and written). */
static void floors(struct team *t, void *s) {
  enum { LAUNCHES = 2000, COPIES = 10 };
  struct gpu_busy none = {.ns = 0};
  void *params[] = {&none};
  cu_ptr a = 0, b = 0;
  size_t bytes = (size_t)1 << 30;
  char more[64];
  void *f = gpu_function(t->first);
  for (int k = 0; k < 100; k++) CU(t->first, cu.LaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
  CU(t->first, cu.StreamSynchronize(s));
  double start = conf_now();
  for (int k = 0; k < LAUNCHES; k++) cu.LaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, params, NULL);
  double host = conf_now() - start;
  CU(t->first, cu.StreamSynchronize(s));
  say("floor: empty launch, host time", t, 0, host / LAUNCHES * 1e6, "");
  say("floor: empty launch, in a row", t, 0, (conf_now() - start) / LAUNCHES * 1e6, "");
  if (getenv("GCCL_TEST_SMALL")) bytes = 1 << 20;
  if (!CU(t->first, cu.MemAlloc(&a, bytes)) || !CU(t->first, cu.MemAlloc(&b, bytes))) return;
  CU(t->first, cu.MemcpyAsync(b, a, bytes, s));
  CU(t->first, cu.StreamSynchronize(s));
  start = conf_now();
  for (int k = 0; k < COPIES; k++) CU(t->first, cu.MemcpyAsync(b, a, bytes, s));
  CU(t->first, cu.StreamSynchronize(s));
  double us = (conf_now() - start) / COPIES * 1e6;
  snprintf(more, sizeof more, ", \"gbs\": %.1f", 2 * (double)bytes / us * 1e-3);
  say("floor: copy on the device", t, bytes, us, more);
  CU(t->first, cu.MemFree(a));
  CU(t->first, cu.MemFree(b));
}

enum { WARM = 20 };

static int iterations(size_t bytes) { return bytes <= 1 << 20 ? 1000 : bytes <= 64 << 20 ? 100 : 10; }

/* Batched: calls in a row, then one wait; and the host time of a call alone, in bursts that the stream's queue holds. */
static void eager(struct team *t, void **s, unsigned char **send, unsigned char **recv, size_t bytes) {
  int n = iterations(bytes), burst = 50, bursts = n / burst ? n / burst : 1;
  size_t count = bytes / 4;
  for (int k = 0; k < WARM; k++) EACH(t, "warm", ncclAllReduce(send[i], recv[i], count, ncclFloat32, ncclSum, t->comm[i], s[i]));
  settle(t, s);
  conf_barrier(t);
  double start = conf_now();
  for (int k = 0; k < n; k++) {
    if (t->nlocal > 1) ncclGroupStart();
    for (int i = 0; i < t->nlocal; i++) ncclAllReduce(send[i], recv[i], count, ncclFloat32, ncclSum, t->comm[i], s[i]);
    if (t->nlocal > 1) ncclGroupEnd();
  }
  settle(t, s);
  if (t->first == 0) say("all_reduce eager", t, bytes, (conf_now() - start) / n * 1e6, "");
  double host = 0;
  for (int b = 0; b < bursts; b++) {
    conf_barrier(t);
    double from = conf_now();
    for (int k = 0; k < burst; k++) {
      if (t->nlocal > 1) ncclGroupStart();
      for (int i = 0; i < t->nlocal; i++) ncclAllReduce(send[i], recv[i], count, ncclFloat32, ncclSum, t->comm[i], s[i]);
      if (t->nlocal > 1) ncclGroupEnd();
    }
    host += conf_now() - from;
    settle(t, s);
  }
  if (t->first == 0) say("all_reduce host time of a call", t, bytes, host / bursts / burst / t->nlocal * 1e6, "");
}

static void graphed(struct team *t, void **s, unsigned char **send, unsigned char **recv, size_t bytes) {
  enum { IN_GRAPH = 10 };
  int n = iterations(bytes) / IN_GRAPH;
  size_t count = bytes / 4;
  void *exec[CONF_MAX_RANKS] = {0};
  if (n < 2) n = 2;
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    if (!CU(t->first + i, cu.StreamBeginCapture(s[i], CU_CAPTURE_THREAD_LOCAL))) return;
  }
  for (int k = 0; k < IN_GRAPH; k++) EACH(t, "captured", ncclAllReduce(send[i], recv[i], count, ncclFloat32, ncclSum, t->comm[i], s[i]));
  void *graph[CONF_MAX_RANKS] = {0}; /* no graph is made while a capture goes on */
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    if (!CU(t->first + i, cu.StreamEndCapture(s[i], &graph[i]))) return;
  }
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    if (!CU(t->first + i, cu.GraphInstantiate(&exec[i], graph[i], 0))) return;
    CU(t->first + i, cu.GraphDestroy(graph[i]));
  }
  double start = 0;
  for (int k = -3; k < n; k++) {
    if (k == 0) {
      settle(t, s);
      conf_barrier(t);
      start = conf_now();
    }
    for (int i = 0; i < t->nlocal; i++) {
      mem_rank(t->first + i);
      CU(t->first + i, cu.GraphLaunch(exec[i], s[i]));
    }
  }
  settle(t, s);
  if (t->first == 0) say("all_reduce graph", t, bytes, (conf_now() - start) / n / IN_GRAPH * 1e6, "");
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++) CU(t->first + i, cu.GraphExecDestroy(exec[i]));
}

/* All ranks put their number: the sum is looked at once for each size. */
static int correct(struct team *t, void **s, struct buf *b, size_t half, size_t bytes) {
  float want = (float)(t->nranks * (t->nranks + 1) / 2);
  size_t look = bytes < 4096 ? bytes : 4096;
  for (int i = 0; i < t->nlocal; i++) {
    for (size_t j = 0; j < bytes / 4 && j < half / 4; j++) ((float *)b[i].copy)[j] = (float)(t->first + i + 1);
    buf_put(&b[i], 0, bytes);
  }
  conf_barrier(t);
  EACH(t, "checked", ncclAllReduce(b[i].at, b[i].at + half, bytes / 4, ncclFloat32, ncclSum, t->comm[i], s[i]));
  settle(t, s);
  for (int i = 0; i < t->nlocal; i++) {
    buf_get(&b[i], half + bytes - look, look);
    const float *at = (const float *)(b[i].copy + half + bytes - look);
    for (size_t j = 0; j < look / 4; j++)
      if (at[j] != want) return conf_fail(t->first + i, "all_reduce of %zu bytes: want %g, got %g", bytes, (double)want, (double)at[j]);
  }
  return 1;
}

/* GCCL_TEST_WINDOW=1: memory of ncclMemAlloc in a window. GCCL_TEST_MAX: the largest size. */
void suite_speed(struct team *t) {
  static const size_t sizes[] = {8, 2048, 32 << 10, 512 << 10, 2 << 20, 16 << 20, 128 << 20, 1 << 30};
  const char *most = getenv("GCCL_TEST_MAX");
  size_t half = most ? strtoull(most, NULL, 0) : (size_t)1 << 30;
  int window = getenv("GCCL_TEST_WINDOW") != NULL;
  struct buf b[CONF_MAX_RANKS];
  unsigned char *send[CONF_MAX_RANKS], *recv[CONF_MAX_RANKS];
  ncclWindow_t win[CONF_MAX_RANKS];
  void *s[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    if (!gpu_load(r) || !(window ? buf_nccl(&b[i], r, 2 * half) : buf_new(&b[i], r, 2 * half))) return;
    if (!CU(r, cu.StreamCreate(&s[i], CU_NON_BLOCKING))) return;
    send[i] = b[i].at;
    recv[i] = b[i].at + half;
  }
  if (window) EACH(t, "ncclCommWindowRegister", ncclCommWindowRegister(t->comm[i], b[i].at, 2 * half, &win[i], NCCL_WIN_COLL_SYMMETRIC));
  if (t->first == 0) floors(t, s[0]);
  conf_barrier(t);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes && sizes[k] <= half; k++) {
    conf_at(t->first, "speed of %zu bytes", sizes[k]);
    if (!correct(t, s, b, half, sizes[k])) break;
    eager(t, s, send, recv, sizes[k]);
    /* Graphs of ranks of one process wait in hardware queues, of which there are eight. */
    int queues = t->nlocal <= 4 || getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    if (sizes[k] <= 64 << 20 && queues) graphed(t, s, send, recv, sizes[k]);
  }
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    if (window) OK(t->first + i, ncclCommWindowDeregister(t->comm[i], win[i]));
    CU(t->first + i, cu.StreamDestroy(s[i]));
  }
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++) buf_free(&b[i], t->first + i);
}
