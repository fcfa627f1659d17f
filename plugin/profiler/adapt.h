/* One plugin for one communicator, whatever its version. */
#ifndef GCCL_PLUGIN_PROFILER_ADAPT_H
#define GCCL_PLUGIN_PROFILER_ADAPT_H

#include "abi.h"

/* What a plugin is told of a communicator. */
typedef struct {
  const char *name; /* NULL: none */
  uint64_t hash;
  int nodes, ranks, rank;
  void *log; /* ncclDebugLogger_t */
} profiler_comm;

/* Opens the plugin of a table for a communicator; 0, or what its init has returned. mask: of the plugin, for the whole process. comm->name
 * must live as long as the result. */
typedef int profiler_open(const void *table, const profiler_comm *, int *mask, gccl_profiler *);
profiler_open profiler_open_v1, profiler_open_v2, profiler_open_v3, profiler_open_v4, profiler_open_v5, profiler_open_v6;
/* Ends what profiler_open began. */
void profiler_close(int version, gccl_profiler *);

/* For adapters of v1..v3, whose descriptors name the communicator: what their context points to. */
typedef struct {
  void *context; /* the plugin's */
  profiler_comm comm;
} profiler_named;
profiler_named *profiler_named_new(const profiler_comm *);
/* The common part of opening v1..v3. */
int profiler_open_named(const void *table, profiler_init_v1 init, const profiler_comm *, int *mask, gccl_profiler *);

/* Fills the members that all old descriptors have under the same names. */
#define PROFILER_FILL_HEAD(d, e, parent_of) \
  do {                                      \
    (d)->type = (uint8_t)(e)->type;         \
    (d)->parentObj = (parent_of);           \
    (d)->rank = (e)->rank;                  \
  } while (0)

#define PROFILER_FILL_PROXY(d, e)                        \
  do {                                                   \
    (d)->proxyOp.pid = (e)->u.proxy_op.pid;              \
    (d)->proxyOp.channelId = (e)->u.proxy_op.channel;    \
    (d)->proxyOp.peer = (e)->u.proxy_op.peer;            \
    (d)->proxyOp.nSteps = (e)->u.proxy_op.nsteps;        \
    (d)->proxyOp.chunkSize = (e)->u.proxy_op.chunk_size; \
    (d)->proxyOp.isSend = (e)->u.proxy_op.is_send;       \
  } while (0)

/* The parent in tables without events of API calls: an operation's is its group. */
static inline void *profiler_old_parent(const gccl_profile_event *e) {
  if (e->type == GCCL_PROFILE_COLL) return e->u.coll.group;
  if (e->type == GCCL_PROFILE_P2P) return e->u.p2p.group;
  return e->parent;
}

/* Which states tables before v4 know of those that come here: of steps, but not the wait for a peer. */
static inline int profiler_old_state(int state) {
  return state >= GCCL_PROFILE_STEP_SEND_GPU_WAIT && state <= GCCL_PROFILE_STEP_RECV_GPU_WAIT;
}

/* Tables that differ only in their descriptor stop and record alike. */
#define PROFILER_STOP(version) \
  static void stop(const gccl_profiler *p, void *handle) { ((const profiler_table_v##version *)p->table)->stopEvent(handle); }

#define PROFILER_OLD_STATE(version)                                                                  \
  static void state(const gccl_profiler *p, void *handle, int what, const gccl_profile_args *args) { \
    if (!profiler_old_state(what)) return;                                                           \
    profiler_args_v1 a = {.proxyOp = {.transSize = args->trans_size}};                               \
    ((const profiler_table_v##version *)p->table)->recordEventState(handle, what, &a);               \
  }

#define PROFILER_NEW_STATE(version, last)                                                            \
  static void state(const gccl_profiler *p, void *handle, int what, const gccl_profile_args *args) { \
    if (what > (last)) return;                                                                       \
    gccl_profile_args a = *args;                                                                     \
    ((const profiler_table_v##version *)p->table)->recordEventState(handle, what, &a);               \
  }

#endif
