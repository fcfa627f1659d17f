/* Tuners for tests, of any version (-DV=2 … 6): ring for everything, or what $TUNER_DOES says: fail_init, fail_ask, or differ, which is
 * tree on the second host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/tuner/abi.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define TABLE PASTE(tuner_table_v, V)

static int does(const char *what) {
  const char *d = getenv("TUNER_DOES");
  return d && !strcmp(d, what);
}

static int algorithm(void) {
  const char *host = getenv("NCCL_HOSTID");
  return does("differ") && host && !strcmp(host, "host1") ? 0 : 1;
}

#if V < 5
static int init(size_t ranks, size_t nodes, void *log, void **context) {
  (void)nodes, (void)log;
  *context = malloc(ranks ? 1 : 0);
  return does("fail_init") ? 3 : 0;
}
#else
static int init(void **context, uint64_t hash, size_t ranks, size_t nodes, void *log, tuner_nvl_v5 *nvl, tuner_constants_v5 *constants) {
  (void)log;
  *context = malloc(1);
  if (!hash || ranks < 2 || nodes < 1 || nvl->nNvlDomains < 1 || (size_t)nvl->maxRanksPerNvlDomain > ranks) return 4;
  constants->baseLatencies[0][0] = 3;
  return does("fail_init") ? 3 : 0;
}
#endif

#if V == 2
static int ask(void *context, int coll, size_t bytes, int collnet, int nvls, int pipe, int *algo, int *proto, int *channels) {
  (void)context, (void)coll, (void)bytes, (void)collnet, (void)nvls, (void)pipe;
  if (does("fail_ask")) return 3;
  *algo = algorithm();
  *proto = 2;
  *channels = 2;
  return 0;
}
#else
#if V == 3
static int ask(void *context, int coll, size_t bytes, int pipe, float **table, int algos, int protos, int *channels) {
#else
static int ask(void *context, int coll, size_t bytes, int pipe, float **table, int algos, int protos, int registered, int *channels) {
  (void)registered;
#endif
  (void)context, (void)coll, (void)bytes, (void)pipe;
  if (does("fail_ask")) return 3;
  if (algos != 7 || protos != 3) return 4;
  float *cost = (float *)table;
  if (cost[algorithm() * 3 + 2] >= 0) {
    cost[algorithm() * 3 + 2] = 0;
    *channels = 2;
  }
  return 0;
}
#endif

static int finish(void *context) {
  free(context);
  return 0;
}

TABLE PASTE(ncclTunerPlugin_v, V) = {
  .name = "test-tuner",
  .init = init,
  .getCollInfo = ask,
#if V < 5
  .destroy = finish
#else
  .finalize = finish
#endif
};
