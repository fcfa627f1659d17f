/* fault: ranks that die, stop, run out of descriptors or fork; what the others see, and how fast. */
#include "faults.h"

int main(int argc, char **argv) {
  static const struct conf_suite suites[] = {
      {"init-kill", fault_init_kill, 0},
      {"init-kill-root", fault_init_kill_root, 0},
      {"missing", fault_missing, 0},
      {"coll-kill", fault_coll_kill, 1},
      {"coll-kill-stream", fault_coll_kill_stream, 1},
      {"coll-stop", fault_coll_stop, 1},
      {"abort-waiting", fault_abort_waiting, 1},
      {"abort-init", fault_abort_init, 0},
      {"abort-recv", fault_abort_recv, 1},
      {"descriptors", fault_descriptors, 0},
      {"fork-after", fault_fork_after, 1},
      {"fork-before", fault_fork_before, 0},
      {"abort-alone", fault_abort_alone, 1},
      {"abort-busy", fault_abort_busy, 0},
      {"abort-queued", fault_abort_queued, 1},
      {NULL, NULL, 0},
  };
  return conf_main(argc, argv, suites);
}
