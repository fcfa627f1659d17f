/* nvshmem_speed.cu: what NVSHMEM takes for what the "speed" suites of tests/device and tests/devgin time, in their way: a launch with many
 * rounds less one with none, the median of seven. Two PEs as processes. Links NVSHMEM, which is not part of this repository. */
#include <nvshmem.h>
#include <nvshmemx.h>

#include <algorithm>
#include <cuda_runtime.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct Common {
  pthread_barrier_t meet;
  nvshmemx_uniqueid_t id;
};

#define CUDA(CALL)                                                                \
  do {                                                                            \
    cudaError_t rc = (CALL);                                                      \
    if (rc != cudaSuccess) {                                                      \
      printf("not ok: PE %d: %s gives %s\n", gPe, #CALL, cudaGetErrorString(rc)); \
      fflush(stdout);                                                             \
      _exit(1);                                                                   \
    }                                                                             \
  } while (0)

static int gPe;
static Common *gAll;

/* A put and a signal there, and the same back. */
__global__ void pingPong(char *to, char *from, size_t bytes, uint64_t *signal, uint64_t before, int rounds) {
  int me = nvshmem_my_pe();
  for (int i = 1; i <= rounds; i++) {
    uint64_t turn = before + (uint64_t)i;
    if (me) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, turn);
    __syncthreads();
    if (blockDim.x == 1)
      nvshmem_putmem_signal(to, from, bytes, signal, turn, NVSHMEM_SIGNAL_SET, 1 - me);
    else
      nvshmemx_putmem_signal_block(to, from, bytes, signal, turn, NVSHMEM_SIGNAL_SET, 1 - me);
    if (!me) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, turn);
    __syncthreads();
  }
}
__global__ void values(uint64_t *to, int rounds) {
  int me = nvshmem_my_pe();
  for (int i = 0; i < rounds; i++) nvshmem_uint64_p(to, (uint64_t)i, 1 - me);
  nvshmem_quiet();
}
__global__ void barriers(int rounds) {
  for (int i = 0; i < rounds; i++) {
    if (blockDim.x == 1)
      nvshmem_barrier_all();
    else
      nvshmemx_barrier_all_block();
  }
}

template <typename Run> static void report(char const *what, int rounds, Run run) {
  double us[7];
  run(1); /* kernels are loaded */
  for (double &x : us) {
    double t[2];
    for (int k = 0; k < 2; k++) {
      timespec a, b;
      pthread_barrier_wait(&gAll->meet);
      clock_gettime(CLOCK_MONOTONIC, &a);
      run(k ? rounds : 0);
      CUDA(cudaDeviceSynchronize());
      clock_gettime(CLOCK_MONOTONIC, &b);
      t[k] = (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3;
    }
    x = (t[1] - t[0]) / rounds;
  }
  std::sort(us, us + 7);
  if (gPe == 0) printf("speed %-34s %2d ranks %9.3f us (%.3f to %.3f)\n", what, 2, us[3], us[0], us[6]);
  fflush(stdout);
}

static void pe() {
  CUDA(cudaSetDevice(0));
  if (gPe == 0 && nvshmemx_get_uniqueid(&gAll->id)) exit(1);
  pthread_barrier_wait(&gAll->meet);
  nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
  nvshmemx_set_attr_uniqueid_args(gPe, 2, &gAll->id, &attr);
  if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr)) {
    printf("not ok: PE %d: nvshmemx_init_attr fails\n", gPe);
    fflush(stdout);
    _exit(1);
  }
  size_t const most = 1 << 20;
  char *to = (char *)nvshmem_malloc(most), *from = (char *)nvshmem_malloc(most);
  uint64_t *signal = (uint64_t *)nvshmem_calloc(2, sizeof(uint64_t));
  if (!to || !from || !signal) exit(1);
  CUDA(cudaMemset(from, 1 + gPe, most));
  uint64_t before = 0;
  nvshmem_barrier_all();
  for (size_t bytes : {(size_t)8, (size_t)4096, (size_t)65536, most}) {
    char what[64];
    snprintf(what, sizeof what, "put %zu B and signal, round trip", bytes);
    report(what, 2000, [&](int n) {
      pingPong < < <1, bytes> 8 ? 256 : 1 >>> (to, from, bytes, signal, before, n);
      before += (uint64_t)n;
    });
  }
  CUDA(cudaDeviceSynchronize());
  unsigned char last = 0; /* what came is the other's */
  CUDA(cudaMemcpy(&last, to + most - 1, 1, cudaMemcpyDeviceToHost));
  if (last != 2 - gPe) {
    printf("not ok: PE %d: the last byte is %d, not %d\n", gPe, last, 2 - gPe);
    fflush(stdout);
    _exit(1);
  }
  report("put 8 B by a thread", 2000, [&](int n) { values<<<1, 1>>>(signal + 1, n); });
  report("barrier of a thread", 2000, [&](int n) { barriers<<<1, 1>>>(n); });
  report("barrier of a CTA", 2000, [&](int n) { barriers<<<1, 256>>>(n); });
  nvshmem_barrier_all();
  fflush(stdout);
  _exit(0); /* nvshmem_finalize has nothing to add */
}

int main() {
  gAll = (Common *)mmap(nullptr, sizeof *gAll, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&gAll->meet, &shared, 2);
  gAll->id = NVSHMEMX_UNIQUEID_INITIALIZER;
  pid_t child[2];
  for (gPe = 0; gPe < 2; gPe++) {
    child[gPe] = fork();
    if (!child[gPe]) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      pe();
    }
  }
  int bad = 0, status;
  for (int i = 0; i < 2; i++) {
    wait(&status);
    if (!status) continue;
    bad = 1;
    for (pid_t c : child) kill(c, SIGKILL); /* the other would wait for it */
  }
  return bad;
}
