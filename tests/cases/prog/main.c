/* cases: see cases.h. */
#include "cases.h"

int main(int argc, char** argv) {
#define MADE(f) {#f, f, 1}
#define BARE(f) {#f, f, 0}
  static const struct conf_suite suites[] = {
      BARE(c02), BARE(c03_own_id), BARE(c03_twice), BARE(c03_again), BARE(c03_gone), BARE(c03_zeros), BARE(c04_arguments),
      BARE(c04_duplicate), BARE(c04_sizes), MADE(alive), BARE(refused_filter), BARE(refused_setting), MADE(no_windows), BARE(c08),
      BARE(c09_cycles), BARE(c09_subsets), BARE(c09_footprint), MADE(c11), MADE(c13), MADE(disagree), MADE(disagree_root),
      MADE(disagree_message), MADE(c13_lone), MADE(c14), MADE(c15), MADE(c15_near), MADE(c16), MADE(c16_overflow), MADE(c17),
      MADE(c19), MADE(c20), BARE(c22_copy), BARE(c22_local), BARE(c23), MADE(c25), BARE(c27), BARE(c29_seccomp),
      BARE(c29_affinity), BARE(c29_stack), MADE(c31_idle), MADE(c31_late), MADE(c31_crowd), BARE(c33_exit), BARE(c33_late),
      BARE(c33_atexit), BARE(c33_nodestroy), MADE(c34), MADE(c34_parallel), MADE(c35_exited), MADE(c35_stuck), MADE(c35_grow),
      MADE(c37_many), MADE(c37_threads), BARE(c37_init), MADE(c38_crossed), MADE(c38_grid), MADE(c38_shared), MADE(c43),
      MADE(c46_other), MADE(c46_used), {NULL, NULL, 0},
  };
  return conf_main(argc, argv, suites);
}
