/* An env plugin with a table of v2, which gets a log function. It has two settings and nothing else. */
#include <stdlib.h>
#include <string.h>

#include "plugin/env/abi.h"

static int init(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix, void *log) {
  void (*say)(int level, unsigned long flags, const char *file, int line, const char *format, ...) = log;
  say(2 /* WARN */, 128 /* ENV */, __FILE__, __LINE__, "for version %d.%d.%d%s", major, minor, patch, suffix);
  return 0;
}

static int finalize(void) { return 0; }

static const char *get_env(const char *name) {
  if (!strcmp(name, "NCCL_ALGO")) return "ring";
  return !strcmp(name, "GCCL_TRACE") ? getenv("ENV2_TRACE") : NULL;
}

env_table_v2 ncclEnvPlugin_v2 = {"two-settings", init, finalize, get_env};
