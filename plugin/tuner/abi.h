/* NCCL's tuner tables v2..v6. Layouts: NCCL 2.30.7, src/include/plugin/tuner/tuner_v*.h; the test of this package compares each member with a
 * table of offsets. */
#ifndef GCCL_PLUGIN_TUNER_ABI_H
#define GCCL_PLUGIN_TUNER_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { TUNER_ALGOS = 7, TUNER_PROTOS = 3 };

typedef struct {
  int nNvlDomains, minRanksPerNvlDomain, maxRanksPerNvlDomain;
} tuner_nvl_v5;

typedef struct {
  double baseLatencies[7][3], hwLatencies[3][7][3];
  double llMaxBws[4][3], perChMaxRingLL128Bws[4][3], perChMaxTreeLL128Bws[4][3], perChMaxTreeBws[4][3], perChMaxNVLSTreeBws[4][3];
} tuner_constants_v5;

typedef struct {
  const char *name;
  int (*init)(size_t nRanks, size_t nNodes, void *logFunction, void **context);
  int (*getCollInfo)(void *context, int collType, size_t nBytes, int collNetSupport, int nvlsSupport, int numPipeOps, int *algorithm,
                     int *protocol, int *nChannels);
  int (*destroy)(void *context);
} tuner_table_v2;

typedef struct {
  const char *name;
  int (*init)(size_t nRanks, size_t nNodes, void *logFunction, void **context);
  int (*getCollInfo)(void *context, int collType, size_t nBytes, int numPipeOps, float **collCostTable, int numAlgo, int numProto,
                     int *nChannels);
  int (*destroy)(void *context);
} tuner_table_v3;

typedef struct {
  const char *name;
  int (*init)(size_t nRanks, size_t nNodes, void *logFunction, void **context);
  int (*getCollInfo)(void *context, int collType, size_t nBytes, int numPipeOps, float **collCostTable, int numAlgo, int numProto,
                     int regBuff, int *nChannels);
  int (*destroy)(void *context);
} tuner_table_v4;

typedef struct {
  const char *name;
  int (*init)(void **ctx, uint64_t commId, size_t nRanks, size_t nNodes, void *logFunction, tuner_nvl_v5 *nvlDomainInfo,
              tuner_constants_v5 *constants);
  int (*getCollInfo)(void *context, int collType, size_t nBytes, int numPipeOps, float **collCostTable, int numAlgo, int numProto,
                     int regBuff, int *nChannels);
  int (*finalize)(void *context);
} tuner_table_v5;

typedef struct {
  const char *name;
  int (*init)(void **ctx, uint64_t commId, size_t nRanks, size_t nNodes, void *logFunction, tuner_nvl_v5 *nvlDomainInfo,
              tuner_constants_v5 *constants);
  int (*getCollInfo)(void *context, int collType, size_t nBytes, int numPipeOps, float **collCostTable, int numAlgo, int numProto,
                     int regBuff, int *nChannels);
  int (*finalize)(void *context);
  int (*getChunkSize)(void *context, int collType, size_t nBytes, int algo, int proto, int nChannels, size_t *chunkSize);
} tuner_table_v6;

#endif
