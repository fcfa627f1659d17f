/* Making communicators in the three ways a program may be built: a rank per process, a rank per thread, and all ranks in
 * one thread.
 *
 * Processes come first: a process may fork before its first call into the library, not after it. */
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4 };

#define CHECK(call)                                                                            \
  do {                                                                                         \
    ncclResult_t rc_ = (call);                                                                 \
    if (rc_ != ncclSuccess) {                                                                  \
      fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(rc_), ncclGetLastError(NULL)); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

static void expect(int is, int want, const char *what) {
  if (is == want) return;
  fprintf(stderr, "%s is %d, expected %d\n", what, is, want);
  exit(1);
}

static void look_at(ncclComm_t comm, int rank) {
  int n, r;
  CHECK(ncclCommCount(comm, &n));
  CHECK(ncclCommUserRank(comm, &r));
  expect(n, RANKS, "number of ranks");
  expect(r, rank, "rank");
}

/* Every rank needs the same id. Here it travels through a pipe; a launcher, a file or MPI would do as well. */
static void one_process(int rank, const int pipe_ends[2]) {
  ncclUniqueId id;
  if (rank == 0) {
    CHECK(ncclGetUniqueId(&id));
    for (int i = 1; i < RANKS; i++)
      if (write(pipe_ends[1], &id, sizeof id) != sizeof id) exit(1);
  } else if (read(pipe_ends[0], &id, sizeof id) != sizeof id) {
    exit(1);
  }
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, RANKS, id, rank));
  look_at(comm, rank);
  CHECK(ncclCommFinalize(comm));
  CHECK(ncclCommDestroy(comm));
  exit(0);
}

static void processes(void) {
  int ends[2];
  if (pipe(ends) != 0) exit(1);
  for (int r = 0; r < RANKS; r++)
    if (fork() == 0) one_process(r, ends);
  for (int r = 0; r < RANKS; r++) {
    int status;
    wait(&status);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, 1, "a rank's success");
  }
  printf("%d processes: ok\n", RANKS);
}

static ncclUniqueId shared_id;

static void *one_thread(void *arg) {
  int rank = *(int *)arg;
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, RANKS, shared_id, rank));
  look_at(comm, rank);
  CHECK(ncclCommDestroy(comm));
  return NULL;
}

static void threads(void) {
  pthread_t t[RANKS];
  int rank[RANKS];
  CHECK(ncclGetUniqueId(&shared_id));
  for (int r = 0; r < RANKS; r++) {
    rank[r] = r;
    if (pthread_create(&t[r], NULL, one_thread, &rank[r]) != 0) exit(1);
  }
  for (int r = 0; r < RANKS; r++) pthread_join(t[r], NULL);
  printf("%d threads: ok\n", RANKS);
}

/* Several ranks in one thread: each call would wait for the others, so they go into a group. ncclCommInitAll is this loop
 * with an id of its own. */
static void one_group(void) {
  ncclComm_t comm[RANKS];
  CHECK(ncclGetUniqueId(&shared_id));
  CHECK(ncclGroupStart());
  for (int r = 0; r < RANKS; r++) CHECK(ncclCommInitRank(&comm[r], RANKS, shared_id, r));
  CHECK(ncclGroupEnd());
  for (int r = 0; r < RANKS; r++) look_at(comm[r], r);
  CHECK(ncclGroupStart());
  for (int r = 0; r < RANKS; r++) CHECK(ncclCommDestroy(comm[r]));
  CHECK(ncclGroupEnd());
  printf("%d ranks of one thread: ok\n", RANKS);
}

int main(void) {
  processes();
  threads();
  one_group();
  return 0;
}
