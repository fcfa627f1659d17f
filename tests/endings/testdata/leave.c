/* leave destroy|abort: rank 1 of 3 leaves while the others begin another all-reduce: they must get an error, not hang. */
#include "common.h"

static ncclUniqueId id;
static int aborts;

static void *rank(void *p) {
  int r = (int)(long)p;
  ncclComm_t c;
  float a[4096] = {0}, b[4096];
  if (ncclCommInitRank(&c, 3, id, r)) {
    printf("rank %d: init: %s\n", r, ncclGetLastError(NULL));
    return NULL;
  }
  for (int i = 0; i < 10; i++) ncclAllReduce(a, b, (size_t)(1 + i * 400), ncclFloat, ncclSum, c, NULL);
  if (r == 1) {
    printf("rank 1: leaves %d\n", aborts ? ncclCommAbort(c) : ncclCommDestroy(c));
    return NULL;
  }
  ncclResult_t e = ncclAllReduce(a, b, 4096, ncclFloat, ncclSum, c, NULL);
  printf("rank %d: code %d: %s\n", r, e, ncclGetLastError(c));
  printf("rank %d: abort %d\n", r, ncclCommAbort(c));
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 2 || ncclGetUniqueId(&id)) return 2;
  aborts = strcmp(argv[1], "abort") == 0;
  pthread_t t[3];
  for (long r = 0; r < 3; r++) pthread_create(&t[r], NULL, rank, (void *)r);
  for (int r = 0; r < 3; r++) pthread_join(t[r], NULL);
  return 0;
}
