#include <stdlib.h>
#include <time.h>

#include "cuda.h"

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

enum { REPEATS = 7 };

/* Median over REPEATS of the time between two events around what `enqueue` enqueues, divided by runs. */
static double median(void (*enqueue)(void *), void *arg, unsigned runs) {
  double us[REPEATS];
  CUevent begin, end;
  must(cu.EventCreate(&begin, 0), "cuEventCreate");
  must(cu.EventCreate(&end, 0), "cuEventCreate");
  for (int k = -1; k < REPEATS; k++) { /* the first one warms up */
    must(cu.StreamSynchronize(cuda_stream), "timing");
    double t = now_us();
    must(cu.EventRecord(begin, cuda_stream), "cuEventRecord");
    enqueue(arg);
    must(cu.EventRecord(end, cuda_stream), "cuEventRecord");
    must(cu.StreamSynchronize(cuda_stream), "timing");
    double host = now_us() - t;
    float ms = 0;
    if (cuda_elapsed) must(cuda_elapsed(&ms, begin, end), "cuEventElapsedTime");
    if (k >= 0) us[k] = (cuda_elapsed ? (double)ms * 1e3 : host) / runs;
  }
  must(cu.EventDestroy(begin), "cuEventDestroy");
  must(cu.EventDestroy(end), "cuEventDestroy");
  qsort(us, REPEATS, sizeof *us, ascending);
  return us[REPEATS / 2];
}

typedef struct {
  operation fn;
  void *arg;
  unsigned runs;
} loop;
static void run_loop(void *p) {
  loop *l = p;
  for (unsigned i = 0; i < l->runs; i++) l->fn(l->arg);
}
double time_eager(operation fn, void *arg, unsigned runs) {
  loop l = {fn, arg, runs};
  return median(run_loop, &l, runs);
}

static void run_graph(void *p) { must(cu.GraphLaunch(p, cuda_stream), "cuGraphLaunch"); }
double time_graph(operation fn, void *arg, unsigned runs) {
  CUgraph graph;
  CUgraphExec exec;
  must(cu.StreamBeginCapture(cuda_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  for (unsigned i = 0; i < runs; i++) fn(arg);
  must(cu.StreamEndCapture(cuda_stream, &graph), "cuStreamEndCapture");
  must(cu.GraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
  double us = median(run_graph, exec, runs);
  must(cu.GraphExecDestroy(exec), "cuGraphExecDestroy");
  must(cu.GraphDestroy(graph), "cuGraphDestroy");
  return us;
}
