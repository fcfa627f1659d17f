/* v6: the newest table. A plugin may write into its descriptor, so it gets a copy. */
#include "adapt.h"

static void start(const gccl_profiler *p, void **handle, const gccl_profile_event *e) {
  profiler_descr_v6 d = *e;
  ((const profiler_table_v6 *)p->table)->startEvent(p->context, handle, &d);
}

PROFILER_STOP(6)
PROFILER_NEW_STATE(6, GCCL_PROFILE_GROUP_END_START)

int profiler_open_v6(const void *table, const profiler_comm *c, int *mask, gccl_profiler *out) {
  *out = (gccl_profiler){.table = table, .mask = mask, .start = start, .stop = stop, .state = state};
  return ((const profiler_table_v6 *)table)->init(&out->context, c->hash, mask, c->name, c->nodes, c->ranks, c->rank, c->log);
}
