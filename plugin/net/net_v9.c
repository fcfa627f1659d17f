/* v9: sizes are size_t, limits of transfers, virtual devices. */
#define TABLE np_net_v9
#include "adapt.h"

ADAPT_INIT_ONCE(init(m->log))
ADAPT_ACCEPT

static int a_connect(np_net *m, void *ctx, int dev, void *handle, void **send) {
  (void)ctx;
  np_device_handle *device = NULL;
  return T(m)->connect(dev, handle, send, &device);
}

static int a_isend(np_net *m, void *send, void *data, size_t bytes, int tag, void *mhandle, void *step, void **request) {
  (void)step;
  *request = NULL;
  return T(m)->isend(send, data, bytes, tag, mhandle, request);
}

static int a_irecv(np_net *m, void *recv, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **steps, void **request) {
  (void)steps;
  *request = NULL;
  return T(m)->irecv(recv, n, data, sizes, tags, mhandles, request);
}

static int a_properties(np_net *m, int dev, np_props_v12 *o) {
  np_props_v9 p = {0};
  int rc = T(m)->getProperties(dev, &p);
  props_defaults(o);
  PROPS_ALL(o, &p);
  PROPS_DEVICE(o, &p);
  PROPS_V9(o, &p);
  return rc;
}

void np_net_adapt_v9(np_net *m) { ADAPT_FILL; }
