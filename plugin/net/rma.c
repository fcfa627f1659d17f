#include "rma.h"

#include "np.h"

const char *np_rma_open(np_rma *m, const void *table, int version, int gin, np_logger log) {
  enum { MEMBERS = 21, DMABUF = 8, IGET = 15, IFLUSH = 16, PROGRESS = 18 };
  if (gin && version != 13) return "a gin table of v14 has no calls for a host: only kernels that are compiled for it could use it";
  if (version != 13 && version != 14) return "a table of a version that is not known";
  void *const *members = table;
  for (int i = 0; i < MEMBERS; i++)
    if (!members[i] && i != DMABUF && i != IGET && i != IFLUSH && i != PROGRESS)
      return "a table without one of the calls that every plugin has";
  *m = (np_rma){.table = table, .version = version, .log = log};
  pthread_mutex_init(&m->lock, NULL);
  (version == 13 ? np_rma_adapt_v13 : np_rma_adapt_v14)(m);
  return NULL;
}

static int failed(char *why, const char *call, int rc) {
  gccl_net_why(why, -1, "%s: %s", call, np_result(rc));
  return -1;
}

int np_rma_context(np_rma *m, uint64_t comm, void **ctx, char *why) {
  static const char *const types[] = {"HOST", "UNPACK", "PROXY", "GDAKI", "GPI"};
  np_props_v12 p = {0};
  int n = 0, rc = m->init(m, ctx, comm);
  if (rc) return failed(why, "init", rc);
  const char *call = "devices";
  if (!(rc = m->devices(m, &n)) && n > 0) {
    call = "getProperties";
    rc = m->properties(m, 0, &p);
  }
  if (!rc && n > 0 && (m->version > 13 || p.netDeviceType == NP_DEVICE_PROXY)) return 0;
  m->finalize(m, *ctx);
  if (rc) return failed(why, call, rc);
  if (n < 1) return gccl_net_why(why, -1, "it has no device");
  return gccl_net_why(why, -1, "its devices are of type %s: they serve kernels that are compiled for them, of which there are none here",
                      p.netDeviceType >= 0 && p.netDeviceType <= NP_DEVICE_GPI ? types[p.netDeviceType] : "unknown");
}

int np_rma_listen(np_rma_pair *p, unsigned char mine[NP_HANDLE], char *why) {
  int rc = p->m->listen(p->m, p->ctx, 0, mine, &p->listen);
  return rc || !p->listen ? failed(why, "listen", rc ? rc : NP_INTERNAL) : 0;
}

void np_rma_pair_close(np_rma_pair *p) {
  if (p->listen) p->m->close_listen(p->m, p->listen);
  p->listen = NULL;
}
