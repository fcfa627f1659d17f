#include "np.h"

#include <stdio.h>

static _Atomic(np_logger) logger; /* of the process: plugins that call the profiler do not say who they are */

static void (*const adapters[])(np_net *) = {
    [6] = np_net_adapt_v6,   [7] = np_net_adapt_v7,   [8] = np_net_adapt_v8,   [9] = np_net_adapt_v9,
    [10] = np_net_adapt_v10, [11] = np_net_adapt_v11, [12] = np_net_adapt_v12,
};

const char *np_net_open(np_net *m, const void *table, int version, np_logger log) {
  /* The first 17 members are the same calls in every version; registration of dma-bufs and flush may be missing. */
  enum { MEMBERS = 17, REG_DMABUF = 8, IFLUSH = 12 };
  if (version < 6 || version > 12) return "a table of a version that is not known";
  void *const *members = table;
  for (int i = 0; i < MEMBERS; i++)
    if (!members[i] && i != REG_DMABUF && i != IFLUSH) return "a table without one of the calls that every plugin has";
  *m = (np_net){.table = table, .version = version, .requests = NP_REQUESTS, .log = log};
  atomic_store_explicit(&logger, log, memory_order_relaxed);
  pthread_mutex_init(&m->lock, NULL);
  adapters[version](m);
  return NULL;
}

const gccl_step_api *np_steps;

int np_profile(void **event, int type, void *step, int64_t plugin, void *data) {
  static _Atomic(int) said;
  if (!np_steps) {
    if (event && type == 0) *event = NULL;
    return NP_OK;
  }
  const char *wrong = np_steps->event(event, type, step, plugin, data);
  np_logger log = atomic_load_explicit(&logger, memory_order_relaxed);
  if (wrong && log && !atomic_exchange(&said, 1))
    log(2, 16, NULL, 0, "a net plugin (id 0x%llx) called the profiler %s: it is ignored, and so is what more of that comes",
        (long long)plugin, wrong);
  return NP_OK;
}

const char *np_result(int rc) {
  static const char *const names[] = {"success",           "ncclUnhandledCudaError", "ncclSystemError",
                                      "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
                                      "ncclRemoteError",   "ncclInProgress"};
  return rc >= 0 && rc < (int)(sizeof names / sizeof *names) ? names[rc] : "an unknown result";
}
