/* An ordinary NCCL host program: devices, streams, events and copies of the CUDA runtime around collectives, messages and windows.
 * argv[1]: how ranks are made: one (a thread with all devices), threads, processes. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { RANKS = 4, N = 10000, BYTES = N * sizeof(float) };

/* One rank's part, between creation and destruction of its communicator: all-reduce, ring, all-gather over a window. */
typedef struct {
  int rank;
  ncclComm_t comm;
  cudaStream_t stream;
  float *in, *out, *host;
  ncclWindow_t window;
  void *symmetric;
} part;

static void begin(part *p) {
  CUDA(cudaSetDevice(p->rank));
  CUDA(cudaStreamCreate(&p->stream));
  CUDA(cudaMalloc((void **)&p->in, BYTES));
  CUDA(cudaMalloc((void **)&p->out, BYTES));
  CUDA(cudaMallocHost((void **)&p->host, BYTES));
  for (int i = 0; i < N; i++) p->host[i] = (float)(p->rank + i % 7);
  CUDA(cudaMemcpyAsync(p->in, p->host, BYTES, cudaMemcpyHostToDevice, p->stream));
}

static void all_reduce(part *p) { NCCL(ncclAllReduce(p->in, p->out, N, ncclFloat, ncclSum, p->comm, p->stream)); }

static void ring(part *p) {
  NCCL(ncclSend(p->in, N, ncclFloat, (p->rank + 1) % RANKS, p->comm, p->stream));
  NCCL(ncclRecv(p->out, N, ncclFloat, (p->rank + RANKS - 1) % RANKS, p->comm, p->stream));
}

static void expect(part *p, int all) {
  CUDA(cudaSetDevice(p->rank));
  CUDA(cudaMemcpyAsync(p->host, p->out, BYTES, cudaMemcpyDeviceToHost, p->stream));
  CUDA(cudaStreamSynchronize(p->stream));
  int from = (p->rank + RANKS - 1) % RANKS, bad = 0;
  for (int i = 0; i < N; i++) bad += p->host[i] != (all ? (float)(RANKS * (RANKS - 1) / 2 + RANKS * (i % 7)) : (float)(from + i % 7));
  TRUE(bad == 0);
}

static void register_window(part *p) {
  NCCL(ncclMemAlloc(&p->symmetric, BYTES));
  CUDA(cudaMemcpy(p->symmetric, p->in, BYTES, cudaMemcpyDeviceToDevice));
  NCCL(ncclCommWindowRegister(p->comm, p->symmetric, BYTES, &p->window, NCCL_WIN_COLL_SYMMETRIC));
}

static void window_all_reduce(part *p) {
  NCCL(ncclAllReduce(p->symmetric, p->symmetric, N, ncclFloat, ncclSum, p->comm, p->stream));
  CUDA(cudaMemcpyAsync(p->out, p->symmetric, BYTES, cudaMemcpyDeviceToDevice, p->stream));
}

static void end(part *p) {
  CUDA(cudaSetDevice(p->rank));
  NCCL(ncclCommWindowDeregister(p->comm, p->window));
  NCCL(ncclMemFree(p->symmetric));
  NCCL(ncclCommDestroy(p->comm));
  CUDA(cudaStreamDestroy(p->stream));
  CUDA(cudaFree(p->in));
  CUDA(cudaFree(p->out));
  CUDA(cudaFreeHost(p->host));
}

/* All ranks of one thread: every step in a group. */
static void one_thread(void) {
  part p[RANKS];
  ncclComm_t comm[RANKS];
  NCCL(ncclCommInitAll(comm, RANKS, NULL));
  memset(p, 0, sizeof p);
  for (int r = 0; r < RANKS; r++) p[r].rank = r, p[r].comm = comm[r], begin(&p[r]);
  static void (*const steps[])(part *) = {all_reduce, ring, register_window, window_all_reduce};
  for (int s = 0; s < 4; s++) {
    NCCL(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
      CUDA(cudaSetDevice(r));
      if (s != 3) {
        steps[s](&p[r]);
      } else {
        NCCL(ncclAllReduce(p[r].symmetric, p[r].symmetric, N, ncclFloat, ncclSum, p[r].comm, p[r].stream));
      }
    }
    NCCL(ncclGroupEnd());
    if (s == 3)
      for (int r = 0; r < RANKS; r++) CUDA(cudaMemcpyAsync(p[r].out, p[r].symmetric, BYTES, cudaMemcpyDeviceToDevice, p[r].stream));
    for (int r = 0; r < RANKS && s != 2; r++) expect(&p[r], s != 1);
  }
  for (int r = 0; r < RANKS; r++) end(&p[r]);
}

static ncclUniqueId id;

static void *rank_main(void *arg) {
  part p;
  cudaEvent_t from, to;
  memset(&p, 0, sizeof p);
  p.rank = (int)(intptr_t)arg;
  begin(&p);
  CUDA(cudaEventCreate(&from));
  CUDA(cudaEventCreate(&to));
  NCCL(ncclCommInitRank(&p.comm, RANKS, id, p.rank));
  int device = -1;
  NCCL(ncclCommCuDevice(p.comm, &device));
  CUDA(cudaEventRecord(from, p.stream));
  all_reduce(&p);
  CUDA(cudaEventRecord(to, p.stream));
  expect(&p, 1);
  float ms = -1;
  CUDA(cudaEventElapsedTime(&ms, from, to));
  TRUE(ms >= 0);
  NCCL(ncclGroupStart());
  ring(&p);
  NCCL(ncclGroupEnd());
  expect(&p, 0);
  register_window(&p);
  window_all_reduce(&p);
  expect(&p, 1);
  end(&p);
  CUDA(cudaEventDestroy(from));
  CUDA(cudaEventDestroy(to));
  return NULL;
}

static void threads(void) {
  pthread_t t[RANKS];
  NCCL(ncclGetUniqueId(&id));
  for (int r = 0; r < RANKS; r++) TRUE(pthread_create(&t[r], NULL, rank_main, (void *)(intptr_t)r) == 0);
  for (int r = 0; r < RANKS; r++) pthread_join(t[r], NULL);
}

/* Rank 0 makes the id after the forks and sends it by pipes. */
static void processes(void) {
  int ends[RANKS][2];
  for (int r = 1; r < RANKS; r++) {
    TRUE(pipe(ends[r]) == 0);
    if (fork() == 0) {
      TRUE(read(ends[r][0], &id, sizeof id) == (ssize_t)sizeof id);
      rank_main((void *)(intptr_t)r);
      fflush(stdout);
      _exit(failures != 0);
    }
  }
  NCCL(ncclGetUniqueId(&id));
  for (int r = 1; r < RANKS; r++) TRUE(write(ends[r][1], &id, sizeof id) == (ssize_t)sizeof id);
  rank_main(NULL);
  for (int r = 1; r < RANKS; r++) {
    int status = -1;
    TRUE(wait(&status) > 0 && status == 0);
  }
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "one";
  int n = 0;
  CUDA(cudaGetDeviceCount(&n));
  TRUE(n >= RANKS);
  if (!strcmp(how, "one")) one_thread();
  if (!strcmp(how, "threads")) threads();
  if (!strcmp(how, "processes")) processes();
  puts(failures ? "failed" : "passed");
  return failures != 0;
}
