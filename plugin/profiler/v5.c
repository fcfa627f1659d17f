/* v5: the newest descriptor but for events of copy engines, which this library does not have. */
#include "adapt.h"

static void start(const gccl_profiler *p, void **handle, const gccl_profile_event *e) {
  profiler_descr_v5 d = *e;
  ((const profiler_table_v5 *)p->table)->startEvent(p->context, handle, &d);
}

PROFILER_STOP(5)
PROFILER_NEW_STATE(5, GCCL_PROFILE_GROUP_END_START)

int profiler_open_v5(const void *table, const profiler_comm *c, int *mask, gccl_profiler *out) {
  *out = (gccl_profiler){.table = table, .mask = mask, .start = start, .stop = stop, .state = state};
  return ((const profiler_table_v5 *)table)->init(&out->context, c->hash, mask, c->name, c->nodes, c->ranks, c->rank, c->log);
}
