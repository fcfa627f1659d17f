/* NCCL's env tables v1 and v2. Layouts: NCCL 2.30.7, src/include/plugin/env/env_v*.h; the test of this package compares each member with a table of
 * offsets. */
#ifndef GCCL_PLUGIN_ENV_ABI_H
#define GCCL_PLUGIN_ENV_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  const char *name;
  int (*init)(uint8_t ncclMajor, uint8_t ncclMinor, uint8_t ncclPatch, const char *suffix);
  int (*finalize)(void);
  const char *(*getEnv)(const char *name);
} env_table_v1;

typedef struct {
  const char *name;
  int (*init)(uint8_t ncclMajor, uint8_t ncclMinor, uint8_t ncclPatch, const char *suffix, void *logFunction);
  int (*finalize)(void);
  const char *(*getEnv)(const char *name);
} env_table_v2;

#endif
