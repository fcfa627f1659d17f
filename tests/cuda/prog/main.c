/* cuda: what holds for the CUDA device alone. Runs with --memory cuda. */
#include "gpu.h"

int main(int argc, char **argv) {
  static const struct conf_suite suites[] = {
      {"probe", suite_probe, 1},
      {"fill", suite_fill, 1},
      {"between", suite_between, 1},
      {"manystreams", suite_manystreams, 1},
      {"crossed", suite_crossed, 1},
      {"onequeue", suite_onequeue, 1},
      {"idle", suite_idle, 1},
      {"pool", suite_pool, 1},
      {"capture", suite_capture, 1},
      {"mixing", suite_mixing, 1},
      {"firstcapture", suite_firstcapture, 0},
      {"twocomms", suite_twocomms, 1},
      {"endings", suite_endings, 0},
      {"forkjoin", suite_forkjoin, 1},
      {"replayabort", suite_replayabort, 1},
      {"killed", suite_killed, 1},
      {"bad", suite_bad, 1},
      {"farlimits", suite_farlimits, 1},
      {"farchunks", suite_farchunks, 1},
      {"footprint", suite_footprint, 1},
      {"speed", suite_speed, 1},
      {"later", suite_later, 1},
      {"calls", suite_calls, 1},
      {"poolcapture", suite_poolcapture, 1},
      {"fewqueues", suite_fewqueues, 0},
      {"signals", suite_signals, 1},
      {"signalsapart", suite_signalsapart, 0},
      {"signalabort", suite_signalabort, 0},
      {"zerocta", suite_zerocta, 0},
      {"waits", suite_waits, 0},
      {"tardy", suite_tardy, 1},
      {"killedleader", suite_killedleader, 1},
      {"spin", suite_spin, 1},
      {NULL, NULL, 0},
  };
  mem_mode = MEM_MODE_CUDA;
  return conf_main(argc, argv, suites);
}
