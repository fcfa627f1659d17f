/* A tuner of any version as the newest one: asked with a table of costs. */
#ifndef GCCL_PLUGIN_TUNER_ADAPT_H
#define GCCL_PLUGIN_TUNER_ADAPT_H

#include "abi.h"

/* What a tuner is told of a communicator. */
typedef struct {
  uint64_t hash;
  size_t ranks, nodes;
  tuner_nvl_v5 nvl;
  void *log; /* ncclDebugLogger_t */
} tuner_comm;

/* One tuner for one communicator. Calls return 0 or what the plugin has returned. */
typedef struct tuner tuner;
struct tuner {
  const void *table;
  void *context;
  /* coll: ncclFunc_t; bytes: of the operation. costs: µs, -1 where a way cannot be taken; channels: 0 in, and out where there is no wish. */
  int (*ask)(const tuner *, int coll, size_t bytes, float costs[TUNER_ALGOS][TUNER_PROTOS], int *channels);
  int (*close)(const tuner *);
  int constants_changed; /* which has no effect */
};

typedef int tuner_open(const void *table, const tuner_comm *, tuner *);
tuner_open tuner_open_v2, tuner_open_v3, tuner_open_v4, tuner_open_v5, tuner_open_v6;

#endif
