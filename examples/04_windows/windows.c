/* Windows: memory that peers reach directly. Collectives on it need no copy through scratch, and a rank can write into a
 * peer's window without the peer taking part. */
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 1 << 16 };

#define CHECK(call)                                                                            \
  do {                                                                                         \
    ncclResult_t rc_ = (call);                                                                 \
    if (rc_ != ncclSuccess) {                                                                  \
      fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(rc_), ncclGetLastError(NULL)); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

static void expect(int64_t is, int64_t want, int rank, const char *what) {
  if (is == want) return;
  fprintf(stderr, "%s: rank %d has %lld, expected %lld\n", what, rank, (long long)is, (long long)want);
  exit(1);
}

static void run(int me, const int ends[2]) {
  ncclUniqueId id;
  if (me == 0) {
    CHECK(ncclGetUniqueId(&id));
    for (int i = 1; i < RANKS; i++)
      if (write(ends[1], &id, sizeof id) != sizeof id) exit(1);
  } else if (read(ends[0], &id, sizeof id) != sizeof id) {
    exit(1);
  }
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, RANKS, id, me));

  /* A window is memory of the library's allocator, registered by all ranks together. */
  int64_t *x;
  size_t bytes = COUNT * sizeof *x;
  ncclWindow_t win = NULL;
  CHECK(ncclMemAlloc((void **)&x, bytes));
  CHECK(ncclCommWindowRegister(comm, x, bytes, &win, NCCL_WIN_COLL_SYMMETRIC));
  if (!win) {
    fprintf(stderr, "rank %d: no window: %s\n", me, ncclGetLastError(NULL));
    exit(1);
  }

  for (int i = 0; i < COUNT; i++) x[i] = me + i;
  CHECK(ncclAllReduce(x, x, COUNT, ncclInt64, ncclSum, comm, NULL));
  for (int i = 0; i < COUNT; i++) expect(x[i], RANKS * (RANKS - 1) / 2 + (int64_t)RANKS * i, me, "all-reduce in a window");
  if (me == 0) printf("all-reduce in a window: ok\n");

  /* Each rank writes its own quarter of the right neighbour's window and signals; the wait makes the data visible. */
  int right = (me + 1) % RANKS, left = (me + RANKS - 1) % RANKS, part = COUNT / RANKS;
  int64_t *mine = x + (size_t)me * part;
  int token = 0; /* a barrier, away from the window: when it returns, every rank has stopped looking at the old contents */
  CHECK(ncclAllReduce(&token, &token, 1, ncclInt32, ncclSum, comm, NULL));
  for (int i = 0; i < part; i++) mine[i] = 1000 * me + i;
  CHECK(ncclPutSignal(mine, part, ncclInt64, right, win, (size_t)me * part * sizeof *x, 0, 0, 0, comm, NULL));
  ncclWaitSignalDesc_t wait_for = {.opCnt = 1, .peer = left, .sigIdx = 0, .ctx = 0};
  CHECK(ncclWaitSignal(1, &wait_for, comm, NULL));
  for (int i = 0; i < part; i++) expect(x[left * part + i], 1000 * left + i, me, "put and signal");
  if (me == 0) printf("put and signal: ok\n");

  CHECK(ncclCommWindowDeregister(comm, win));
  CHECK(ncclMemFree(x));
  CHECK(ncclCommDestroy(comm));
  exit(0);
}

int main(void) {
  int ends[2], failed = 0;
  if (pipe(ends) != 0) return 1;
  for (int r = 0; r < RANKS; r++)
    if (fork() == 0) run(r, ends);
  for (int r = 0; r < RANKS; r++) {
    int status;
    wait(&status);
    failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  }
  return failed;
}
