/* kill N VICTIM: rank VICTIM dies by SIGKILL between two all-reduces. The others must get an error that names it, shrink,
 * abort the old communicator, and go on in the new one. */
#include "common.h"

static int survivor(int r, int victim, ncclComm_t c, shared *s, float *a, float *b) {
  ncclResult_t e = ncclSuccess;
  for (int i = 0; i < 1000000 && !e; i++) {
    if (r == victim && i == 50) {
      s->killed = now();
      kill(getpid(), SIGKILL);
    }
    e = ncclAllReduce(a, b, i & 1 ? 1 << 16 : 16, ncclFloat, ncclSum, c, NULL);
  }
  printf("rank %d: code %d, %d s late: %s\n", r, e, (int)(now() - s->killed), ncclGetLastError(c));
  ncclComm_t small = NULL;
  e = ncclCommShrink(c, &victim, 1, &small, NULL, NCCL_SHRINK_ABORT);
  if (e) printf("rank %d: shrink: %d %s\n", r, e, ncclGetLastError(NULL));
  double t = now();
  ncclResult_t d = ncclCommAbort(c);
  printf("rank %d: abort %d, %d s\n", r, d, (int)(now() - t));
  if (e) return 1;
  int n = 0;
  ncclCommCount(small, &n);
  for (size_t i = 0; i < 100; i++) a[i] = 1;
  for (int i = 0; i < 100 && !e; i++) e = ncclAllReduce(a, b, 100, ncclFloat, ncclSum, small, NULL);
  printf("rank %d: child %d of %d ranks, sum %d, destroy %d\n", r, e, n, (int)b[99], ncclCommDestroy(small));
  fflush(stdout);
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  int n = atoi(argv[1]), victim = atoi(argv[2]);
  shared *s = share();
  if (!s) return 2;
  for (int r = 0; r < n; r++) {
    if (fork()) continue;
    ncclComm_t c;
    float *a = calloc(1 << 16, sizeof *a), *b = calloc(1 << 16, sizeof *b);
    if (!a || !b || meet(s, r, 1) || ncclCommInitRank(&c, n, s->id, r)) {
      printf("rank %d: init: %s\n", r, ncclGetLastError(NULL));
      fflush(stdout);
      _exit(1);
    }
    int bad = survivor(r, victim, c, s, a, b);
    fflush(stdout);
    _exit(bad);
  }
  for (int r = 0; r < n; r++) wait(NULL);
  return 0;
}
