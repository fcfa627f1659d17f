#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

void *gccl_plugin_open(const char *name, char *path, char *why) {
  path[0] = why[0] = 0;
  void *h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!h) {
    const char *e = dlerror();
    snprintf(why, GCCL_PLUGIN_TEXT, "%s", e ? e : "dlopen failed without a reason");
    return NULL;
  }
  struct link_map *map;
  if (dlinfo(h, RTLD_DI_LINKMAP, &map) == 0 && map->l_name) snprintf(path, GCCL_PLUGIN_TEXT, "%s", map->l_name);
  return h;
}
