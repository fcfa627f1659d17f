/* A net plugin as the rest of this package sees it: the calls of the newest table, with the module as first argument, because tables
 * before v11 have no context of their own. net_vN.c has what is different in a version, adapt.h what is not.
 *
 * All calls return a result of NCCL. Requests are NULL after a success that means "try again". */
#ifndef GCCL_PLUGIN_NET_NP_H
#define GCCL_PLUGIN_NET_NP_H

#include <pthread.h>

#include "../../device/layout/profiler.h"
#include "abi.h"

typedef struct np_net np_net;

struct np_net {
  const void *table; /* of the plugin; never written to */
  int version;
  const char *name;
  int requests;         /* unfinished ones that a connection may have */
  int reg_int;          /* a registration's size is an int */
  np_logger log;        /* for init */
  pthread_mutex_t lock; /* init, devices and finalize come one at a time */
  int users;            /* communicators with a context; before v11 the plugin itself is initialised while there are any */

  int (*init)(np_net *, void **ctx, uint64_t comm);
  int (*finalize)(np_net *, void *ctx);
  int (*devices)(np_net *, int *ndev);
  int (*properties)(np_net *, int dev, np_props_v12 *);
  int (*listen)(np_net *, void *ctx, int dev, void *handle, void **listen);
  int (*connect)(np_net *, void *ctx, int dev, void *handle, void **send);
  int (*accept)(np_net *, void *listen, void **recv);
  int (*reg)(np_net *, void *comm, void *data, size_t bytes, int type, void **mhandle);
  int (*reg_dmabuf)(np_net *, void *comm, void *data, size_t bytes, int type, uint64_t offset, int fd, void **mhandle);
  int (*dereg)(np_net *, void *comm, void *mhandle);
  int (*isend)(np_net *, void *send, void *data, size_t bytes, int tag, void *mhandle, void *step, void **request);
  int (*irecv)(np_net *, void *recv, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **steps, void **request);
  int (*flush)(np_net *, void *recv, int n, void **data, int *sizes, void **mhandles, void **request);
  int (*test)(np_net *, void *request, int *done, int *sizes);
  int (*close_send)(np_net *, void *);
  int (*close_recv)(np_net *, void *);
  int (*close_listen)(np_net *, void *);
};

/* Fills a module of a table. 0, or a text of what is wrong with it. */
const char *np_net_open(np_net *, const void *table, int version, np_logger log);

/* Of each version. */
void np_net_adapt_v6(np_net *);
void np_net_adapt_v7(np_net *);
void np_net_adapt_v8(np_net *);
void np_net_adapt_v9(np_net *);
void np_net_adapt_v10(np_net *);
void np_net_adapt_v11(np_net *);
void np_net_adapt_v12(np_net *);

const char *np_result(int rc); /* its name */

/* ---- Steps of the profilers, which requests are made for. Tables before v10 are told of none. ---- */

/* Where steps live, before the first plugin is opened; NULL: nowhere, and there are none. */
extern const gccl_step_api *np_steps;
/* The profiler callback for plugins. What a plugin does wrong with it is said once, and is no failure of its own call. */
int np_profile(void **event, int type, void *step, int64_t plugin, void *data);
static inline void *np_step(uint32_t step) { return (void *)(uintptr_t)step; }
static inline void np_step_hold(uint32_t step) {
  if (step) np_steps->hold(step);
}
static inline void np_step_drop(uint32_t step) {
  if (step) np_steps->drop(step);
}
static inline uint32_t np_step_waiting(const void *at) {
  return np_steps && atomic_load_explicit(np_steps->waits, memory_order_relaxed) ? np_steps->waiting(at) : 0;
}

#endif
