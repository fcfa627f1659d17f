/* Checks and times the kernels: on a GPU (kernels-check FATBIN) or their CPU form (kernels-check --cpu LIBRARY). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

void die(const char *what, const char *why) {
  fprintf(stderr, "kernels-check: %s: %s\n", what, why);
  exit(2);
}

int main(int argc, char **argv) {
  int cpu = argc >= 3 && !strcmp(argv[1], "--cpu");
  if (argc < 2 + cpu) die("usage", "kernels-check FATBIN [seed [rounds [check-only]]] | kernels-check --cpu LIBRARY [seed [rounds]]");
  uint64_t seed = argc > 2 + cpu ? strtoull(argv[2 + cpu], NULL, 0) : 1;
  unsigned rounds = argc > 3 + cpu ? (unsigned)atoi(argv[3 + cpu]) : 20;
  device d = cpu ? device_cpu(argv[2]) : device_cuda(argv[1]);
  static const char *const names[] = {"leader kernels", "direct kernels (ranks wait for each other)",
                                      "LL kernels (ranks wait for each other)", "multimem kernels, emulated"};
  uint64_t failed = 0;
  for (int how = 0; how < EXECUTORS; how++) {
    if (how == MULTIMEM && !cpu) continue; /* never without a proof that multicast is there */
    tally t = check_collectives(&d, (enum executor)how, seed ? seed : 1, how == MULTIMEM ? 20 * rounds : rounds);
    printf("%s: %s: %lu kernels, %lu cases, %lu failed\n", d.name, names[how], t.kernels, t.cases, t.failed);
    fflush(stdout);
    failed += t.failed;
  }
  tally e = check_endings(&d);
  printf("%s: aborts and giving up: %lu cases, %lu failed\n", d.name, e.cases, e.failed);
  failed += e.failed;
  if (!cpu && argc <= 4) bench(&d);
  return failed != 0;
}
