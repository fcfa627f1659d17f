/* The log function of plugins: C, for its variable arguments. Lines leave through the exported Go function. */
#include "log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "_cgo_export.h"

static _Atomic int limit;

void gccl_plugin_log_limit(int level) { atomic_store_explicit(&limit, level, memory_order_relaxed); }

static void say(int level, unsigned long flags, const char *file, int line, const char *format, ...) {
  if (level > atomic_load_explicit(&limit, memory_order_relaxed) || !format) return;
  char text[1024];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (n < 0) return;
  if (level == 2 && file) { /* NCCL adds the place to warnings, too */
    const char *base = strrchr(file, '/');
    size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, " (%s:%d)", base ? base + 1 : file, line);
  }
  gcclPluginSay(level, flags, text);
}

void *gccl_plugin_log_function(void) { return (void *)say; }
