#include "adapt.h"

#include <stdlib.h>

profiler_named *profiler_named_new(const profiler_comm *comm) {
  profiler_named *n = calloc(1, sizeof *n);
  if (n) n->comm = *comm;
  return n;
}

int profiler_open_named(const void *table, profiler_init_v1 init, const profiler_comm *comm, int *mask, gccl_profiler *out) {
  enum { SYSTEM_ERROR = 2 };
  profiler_named *n = profiler_named_new(comm);
  if (!n) return SYSTEM_ERROR;
  int rc = init(&n->context, mask);
  if (rc) {
    free(n);
    return rc;
  }
  out->table = table;
  out->context = n;
  out->mask = mask;
  return 0;
}

/* A plugin without a context is not told of the end, as NCCL's core does it (2.30.7, src/plugin/profiler.cc): some follow their NULL. */
void profiler_close(int version, gccl_profiler *p) {
  profiler_named *n = p->context;
  switch (version) {
  case 1:
  case 2:
  case 3: /* the six members are the same */
    if (n->context) ((const profiler_table_v1 *)p->table)->finalize(n->context);
    free(n);
    break;
  default:
    if (p->context) ((const profiler_table_v6 *)p->table)->finalize(p->context);
  }
}
