/* cycles keep|destroy N: two processes make N communicators, one after the other, with an all-reduce in each. Prints what
 * each process holds after cycle 10 and at the end, or why it could not go on. */
#include "common.h"

static long resident(void) {
  FILE *f = fopen("/proc/self/statm", "r");
  long all = 0, rss = 0;
  if (f) {
    if (fscanf(f, "%ld %ld", &all, &rss) != 2) rss = 0;
    fclose(f);
  }
  return rss * 4;
}

static void be(int r, shared *s, int keep, int cycles) {
  float a[256] = {1}, b[256];
  for (int i = 1; i <= cycles; i++) {
    ncclComm_t c;
    ncclResult_t e = meet(s, r, i);
    if (!e) e = ncclCommInitRank(&c, 2, s->id, r);
    if (!e) e = ncclAllReduce(a, b, 256, ncclFloat, ncclSum, c, NULL);
    if (!e && !keep) e = ncclCommDestroy(c);
    if (e) {
      printf("rank %d: cycle %d: code %d: %s\n", r, i, e, ncclGetLastError(NULL));
      s->have = -1;
      return;
    }
    s->step[r] = i;
    while (s->step[1 - r] < i && s->have != -1) usleep(20);
    if (i == 10 || i == cycles)
      printf("rank %d: cycle %d: files %d threads %d KiB %ld\n", r, i, entries("/proc/self/fd"), entries("/proc/self/task"), resident());
  }
}

int main(int argc, char **argv) {
  shared *s = share();
  if (argc != 3 || !s) return 2;
  for (int r = 0; r < 2; r++) {
    if (fork()) continue;
    be(r, s, strcmp(argv[1], "keep") == 0, atoi(argv[2]));
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
  wait(NULL);
  return 0;
}
