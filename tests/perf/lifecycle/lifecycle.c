/* What making and ending communicators costs: time, descriptors, threads, memory.
 *
 *   lifecycle threads N    N ranks as threads of this process: time from the first call of
 *                          ncclCommInitRank to the last return
 *   lifecycle cycles N     N times a communicator of one rank is made and destroyed, after a few
 *                          that warm up: descriptors, threads and resident memory before and after
 *   lifecycle one N        resident memory added by each of N communicators of one rank that live together
 *
 * One JSON line on standard output. Uses the public C ABI and /proc/self only. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "nccl.h"

#pragma weak gcclCommGetStats

#define WARMUP 10

static void check(ncclResult_t r, const char *call) {
  if (r == ncclSuccess) return;
  fprintf(stderr, "lifecycle: %s: result %d: %s\n", call, (int)r, ncclGetLastError(NULL));
  exit(1);
}

struct usage {
  long fds, threads, rss_kb;
};

static long status_field(const char *name) {
  FILE *f = fopen("/proc/self/status", "re");
  char line[256];
  long value = -1;
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, name, strlen(name)) == 0) value = atol(line + strlen(name) + 1);
  if (f) fclose(f);
  return value;
}

static struct usage usage_now(void) {
  struct usage u = {0, status_field("Threads:"), status_field("VmRSS:")};
  DIR *d = opendir("/proc/self/fd");
  while (d && readdir(d)) u.fds++;
  if (d) closedir(d);
  u.fds -= 3; /* ".", ".." and the directory itself */
  return u;
}

static ncclComm_t make_one(void) {
  ncclUniqueId id;
  ncclComm_t comm;
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  check(ncclCommInitRank(&comm, 1, id, 0), "ncclCommInitRank");
  return comm;
}

struct rank {
  pthread_t thread;
  ncclUniqueId id;
  int rank, nranks;
  ncclComm_t comm;
  uint64_t begin, end;
};

static pthread_barrier_t line_up;

static void *init_rank(void *arg) {
  struct rank *r = arg;
  pthread_barrier_wait(&line_up);
  r->begin = perf_now_ns();
  check(ncclCommInitRank(&r->comm, r->nranks, r->id, r->rank), "ncclCommInitRank");
  r->end = perf_now_ns();
  pthread_barrier_wait(&line_up);
  check(ncclCommDestroy(r->comm), "ncclCommDestroy");
  return NULL;
}

static void threads(int n) {
  struct rank *ranks = calloc((size_t)n, sizeof *ranks);
  ncclUniqueId id;
  uint64_t begin = UINT64_MAX, end = 0;
  if (!ranks) exit(1);
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  pthread_barrier_init(&line_up, NULL, (unsigned)n);
  for (int i = 0; i < n; i++) {
    ranks[i].id = id;
    ranks[i].rank = i;
    ranks[i].nranks = n;
    if (pthread_create(&ranks[i].thread, NULL, init_rank, &ranks[i])) exit(1);
  }
  for (int i = 0; i < n; i++) {
    pthread_join(ranks[i].thread, NULL);
    if (ranks[i].begin < begin) begin = ranks[i].begin;
    if (ranks[i].end > end) end = ranks[i].end;
  }
  printf("{\"what\":\"threads\",\"ranks\":%d,\"us\":%.1f}\n", n, (double)(end - begin) / 1e3);
  free(ranks);
}

static void cycles(int n) {
  for (int i = 0; i < WARMUP; i++) check(ncclCommDestroy(make_one()), "ncclCommDestroy");
  struct usage before = usage_now();
  uint64_t begin = perf_now_ns();
  for (int i = 0; i < n; i++) check(ncclCommDestroy(make_one()), "ncclCommDestroy");
  double us = (double)(perf_now_ns() - begin) / 1e3 / n;
  struct usage after = usage_now();
  printf("{\"what\":\"cycles\",\"cycles\":%d,\"us\":%.1f,\"fds\":[%ld,%ld],\"threads\":[%ld,%ld],\"rss_kb\":[%ld,%ld]}\n", n, us,
         before.fds, after.fds, before.threads, after.threads, before.rss_kb, after.rss_kb);
}

static void one(int n) {
  ncclComm_t *comms = calloc((size_t)n, sizeof *comms);
  if (!comms) exit(1);
  long empty = status_field("VmRSS:");
  check(ncclCommDestroy(make_one()), "ncclCommDestroy"); /* what the process pays once */
  long before = status_field("VmRSS:");
  for (int i = 0; i < n; i++) comms[i] = make_one();
  long after = status_field("VmRSS:");
  long long own = -1;
  if (gcclCommGetStats) {
    gcclCommStats_t stats = GCCL_COMM_STATS_INITIALIZER;
    check(gcclCommGetStats(comms[0], &stats), "gcclCommGetStats");
    own = (long long)(stats.sharedBytes + stats.privateBytes);
  }
  printf("{\"what\":\"one\",\"comms\":%d,\"kb_each\":%.1f,\"own_bytes\":%lld,\"once_kb\":%ld}\n", n, (double)(after - before) / n, own,
         before - empty);
  for (int i = 0; i < n; i++) check(ncclCommDestroy(comms[i]), "ncclCommDestroy");
  free(comms);
}

int main(int argc, char **argv) {
  int n = argc == 3 ? atoi(argv[2]) : 0;
  if (n > 0 && strcmp(argv[1], "threads") == 0)
    threads(n);
  else if (n > 0 && strcmp(argv[1], "cycles") == 0)
    cycles(n);
  else if (n > 0 && strcmp(argv[1], "one") == 0)
    one(n);
  else {
    fprintf(stderr, "usage: lifecycle threads|cycles|one N\n");
    return 2;
  }
  return 0;
}
