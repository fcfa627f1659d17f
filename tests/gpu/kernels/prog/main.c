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
  if (argc < 2 + cpu) die("usage", "kernels-check FATBIN [seed] | kernels-check --cpu LIBRARY [seed [rounds]]");
  uint64_t seed = argc > 2 + cpu ? strtoull(argv[2 + cpu], NULL, 0) : 1;
  unsigned rounds = argc > 3 + cpu ? (unsigned)atoi(argv[3 + cpu]) : 20;
  device d = cpu ? device_cpu(argv[2]) : device_cuda(argv[1]);
  tally leader = check_leader(&d, seed ? seed : 1, rounds);
  printf("%s: leader kernels: %lu kernels, %lu cases, %lu failed\n", d.name, leader.kernels, leader.cases, leader.failed);
  if (!cpu) bench(&d);
  return leader.failed != 0;
}
