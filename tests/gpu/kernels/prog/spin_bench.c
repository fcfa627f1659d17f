/* Spinning kernels of ranks that share the GPU, in a graph: each rank's kernels in a branch of its own, RUNS one after another. A host
 * clock watches, and the abort word ends what is stuck. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cuda.h"

enum { RUNS = 20, SECONDS = 10 };

static uint32_t *abort_host;
static CUdeviceptr abort_device;

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Fork from the first rank's stream, RUNS kernels in each, join. */
static CUgraphExec capture(const char *name, const gccl_spin_work *work, unsigned n, gccl_launch_dims dims) {
  CUevent fork, join[64];
  CUgraph graph;
  CUgraphExec exec;
  CUstream first = cuda_rank_stream[0];
  must(cu.EventCreate(&fork, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  must(cu.StreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  must(cu.EventRecord(fork, first), "cuEventRecord");
  for (unsigned r = 1; r < n; r++) must(cu.StreamWaitEvent(cuda_rank_stream[r], fork, 0), "cuStreamWaitEvent");
  for (unsigned r = 0; r < n; r++)
    for (unsigned i = 0; i < RUNS; i++) cuda_launch(name, &work[r], dims, cuda_rank_stream[r]);
  for (unsigned r = 1; r < n; r++) {
    must(cu.EventCreate(&join[r], CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    must(cu.EventRecord(join[r], cuda_rank_stream[r]), "cuEventRecord");
    must(cu.StreamWaitEvent(first, join[r], 0), "cuStreamWaitEvent");
  }
  must(cu.StreamEndCapture(first, &graph), "cuStreamEndCapture");
  must(cu.GraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
  must(cu.GraphDestroy(graph), "cuGraphDestroy");
  must(cu.EventDestroy(fork), "cuEventDestroy");
  for (unsigned r = 1; r < n; r++) must(cu.EventDestroy(join[r]), "cuEventDestroy");
  return exec;
}

double time_spinning(const device *d, uint64_t arena, enum gccl_spin_method method, unsigned n, uint64_t bytes, unsigned most) {
  static gccl_spin_work work[GCCL_SPIN_RANKS];
  char name[GCCL_KERNEL_NAME];
  const uint64_t *area = areas_of(d, n), each = (bytes + 255) / 256 * 256;
  if (!abort_host) {
    void *p;
    must(cu.MemHostAlloc(&p, 64, CU_MEMHOST_PORTABLE | CU_MEMHOST_DEVICEMAP), "cuMemHostAlloc");
    must(cu.MemHostGetDevicePointer(&abort_device, p, 0), "cuMemHostGetDevicePointer");
    abort_host = p;
  }
  *(volatile uint32_t *)abort_host = 0;
  gccl_spin_kernel_name(name, method, GCCL_ALL_REDUCE, 7, GCCL_WORK_SUM);
  for (unsigned r = 0; r < n; r++) {
    if (!cuda_rank_stream[r]) must(cu.StreamCreate(&cuda_rank_stream[r], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    work[r] = (gccl_spin_work){.op = {.version = GCCL_WORK_VERSION,
                                      .coll = GCCL_ALL_REDUCE,
                                      .dtype = 7,
                                      .op = GCCL_WORK_SUM,
                                      .nranks = (uint16_t)n,
                                      .count = bytes / 4}};
    work[r].rank = r, work[r].abort = abort_device;
    memcpy(work[r].area, area, n * sizeof *area);
    for (unsigned q = 0; q < n; q++) work[r].op.rank[q] = (gccl_leader_rank){.send = arena + q * each, .recv = arena + (n + q) * each};
  }
  gccl_launch_dims dims = gccl_spin_dims(work, method, most);
  cuda_function(name);
  if (cu.FuncLoad) must(cu.FuncLoad(cuda_function(name)), name);
  CUgraphExec exec = capture(name, work, n, dims);
  double best = -1;
  CUevent begin, end;
  must(cu.EventCreate(&begin, 0), "cuEventCreate");
  must(cu.EventCreate(&end, 0), "cuEventCreate");
  for (int k = 0; k < 8; k++) {
    CUresult rc;
    double t = seconds();
    must(cu.EventRecord(begin, cuda_rank_stream[0]), "cuEventRecord");
    must(cu.GraphLaunch(exec, cuda_rank_stream[0]), "cuGraphLaunch");
    must(cu.EventRecord(end, cuda_rank_stream[0]), "cuEventRecord");
    while ((rc = cu.StreamQuery(cuda_rank_stream[0])) == CUDA_ERROR_NOT_READY)
      if (seconds() - t > SECONDS) *(volatile uint32_t *)abort_host = 1;
    must(rc, "spinning kernels");
    double us = (seconds() - t) * 1e6;
    float ms = 0;
    if (*(volatile uint32_t *)abort_host) {
      best = -1;
      break;
    }
    if (cuda_elapsed) must(cuda_elapsed(&ms, begin, end), "cuEventElapsedTime");
    if (cuda_elapsed) us = (double)ms * 1e3;
    if (k > 0 && (best < 0 || us / RUNS < best)) best = us / RUNS;
  }
  must(cu.EventDestroy(begin), "cuEventDestroy");
  must(cu.EventDestroy(end), "cuEventDestroy");
  must(cu.GraphExecDestroy(exec), "cuGraphExecDestroy");
  return best;
}
