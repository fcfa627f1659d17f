/* What the programs of these tests share. Results go to standard output, one line each. */
#ifndef ENDINGS_COMMON_H
#define ENDINGS_COMMON_H

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <nccl.h>

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Memory that forked ranks share: the id travels here. */
typedef struct {
  _Atomic(int) have, step[64];
  ncclUniqueId id;
  double killed;
} shared;

static inline shared *share(void) {
  shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return s == MAP_FAILED ? NULL : s;
}

/* The id of round k: rank 0 makes it, the others take it. */
static inline ncclResult_t meet(shared *s, int rank, int k) {
  if (rank == 0) {
    ncclResult_t e = ncclGetUniqueId(&s->id);
    s->have = e ? -1 : k;
    return e;
  }
  while (s->have < k && s->have != -1) usleep(50);
  return s->have == -1 ? ncclSystemError : ncclSuccess;
}

static inline int entries(const char *path) {
  DIR *d = opendir(path);
  int n = 0;
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}

#endif
