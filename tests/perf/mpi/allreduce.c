/* The MPI peer: float32 sum all-reduce, each call timed on its own.
 *
 *   allreduce BARRIER_FILE PIN SPEC...
 *
 * BARRIER_FILE is a zeroed file of at least nranks lines (shbarrier.h), PIN is 1
 * to pin rank r to core r, SPEC is bytes:warmup:iterations. One JSON line a SPEC
 * goes to standard output, each figure the mean over ranks of that rank's figure:
 * the same rule as the rank program of gccl-perf. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "pin.h"
#include "samples.h"
#include "shbarrier.h"

#define BARRIER_TIMEOUT_S 60

static int fail(const char *what) {
  fprintf(stderr, "allreduce: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
  return 1;
}

/* Fill byte of one iteration: a small normal float, never a denormal or infinity. */
static int fill_byte(int iteration) { return 1 + iteration % 60; }

static int measure(struct perf_barrier *barrier, long bytes, int warmup, int iterations) {
  float *in = NULL, *out = NULL;
  size_t count = (size_t)bytes / sizeof(float);
  uint64_t *ns = calloc((size_t)iterations, sizeof *ns);
  if (posix_memalign((void **)&in, 4096, (size_t)bytes) || posix_memalign((void **)&out, 4096, (size_t)bytes) || !ns)
    return fail("out of memory");
  memset(out, 0, (size_t)bytes);
  long wrong = 0;
  for (int it = -warmup; it < iterations; it++) {
    memset(in, fill_byte(it + warmup), (size_t)bytes);
    if (perf_barrier_wait(barrier) >= 0) return fail("barrier timed out");
    uint64_t t0 = perf_now_ns();
    MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    uint64_t t1 = perf_now_ns();
    if (it >= 0) ns[it] = t1 - t0;
    float want = in[0] * (float)barrier->nranks;
    /* repeated addition of one value rounds; allow a few ulp */
    for (size_t i = 0; i<count; i += count> 1 ? count - 1 : 1) wrong += !(out[i] > want * 0.999f && out[i] < want * 1.001f);
  }
  struct perf_summary s = perf_summarise(ns, (size_t)iterations);
  double mine[3] = {s.p50_us, s.mean_us, s.p99_us}, sum[3];
  long all_wrong = 0;
  MPI_Reduce(mine, sum, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (barrier->rank == 0) {
    double n = barrier->nranks;
    printf("{\"what\":\"allreduce\",\"bytes\":%ld,\"p50\":%.4f,\"mean\":%.4f,\"p99\":%.4f,\"wrong\":%ld}\n", bytes, sum[0] / n, sum[1] / n,
           sum[2] / n, all_wrong);
    fflush(stdout);
  }
  free(in);
  free(out);
  free(ns);
  return 0;
}

int main(int argc, char **argv) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int rank, nranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &nranks);
  if (argc < 4) return fail("usage: allreduce BARRIER_FILE PIN bytes:warmup:iterations...");
  if (argv[2][0] == '1' && perf_pin(&allowed, rank) < 0) return fail("cannot pin");
  int fd = open(argv[1], O_RDWR | O_CLOEXEC);
  void *lines = fd < 0 ? NULL : perf_barrier_map(fd, nranks);
  if (!lines) return fail("cannot map the barrier file");
  struct perf_barrier barrier;
  perf_barrier_init(&barrier, lines, rank, nranks, CPU_COUNT(&allowed), BARRIER_TIMEOUT_S);
  for (int i = 3; i < argc; i++) {
    long bytes;
    int warmup, iterations;
    if (sscanf(argv[i], "%ld:%d:%d", &bytes, &warmup, &iterations) != 3 || bytes < 4 || iterations < 1)
      return fail("bad bytes:warmup:iterations");
    measure(&barrier, bytes, warmup, iterations);
  }
  MPI_Finalize();
  return 0;
}
