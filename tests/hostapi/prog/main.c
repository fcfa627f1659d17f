/* hostapi: the public host API against an oracle, on any number of ranks as threads, processes or one group. */
#include "suites.h"

int main(int argc, char **argv) {
  static const struct conf_suite suites[] = {
      {"matrix", suite_matrix, 1},
      {"pairs", suite_pairs, 1},
      {"large", suite_large, 1},
      {"numbers", suite_numbers, 1},
      {"groups", suite_groups, 1},
      {"streams", suite_streams, 1},
      {"nonblocking", suite_nonblocking, 0},
      {"making", suite_making, 0},
      {"children", suite_children, 1},
      {"ending", suite_ending, 0},
      {"windows", suite_windows, 1},
      {"onesided", suite_onesided, 1},
      {"memory", suite_memory, 1},
      {"library", suite_library, 1},
      {"params", suite_params, 0},
      {"badargs", suite_badargs, 1},
      {"deviceapi", suite_deviceapi, 1},
      {"interrupt", suite_interrupt, 0},
      {NULL, NULL, 0},
  };
  return conf_main(argc, argv, suites);
}
