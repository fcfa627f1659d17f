#include "np.h"

#include <stdio.h>

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
  pthread_mutex_init(&m->lock, NULL);
  adapters[version](m);
  return NULL;
}

const char *np_result(int rc) {
  static const char *const names[] = {"success",           "ncclUnhandledCudaError", "ncclSystemError",
                                      "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
                                      "ncclRemoteError",   "ncclInProgress"};
  return rc >= 0 && rc < (int)(sizeof names / sizeof *names) ? names[rc] : "an unknown result";
}
