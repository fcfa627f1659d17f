/* v6: no device offload, sizes are int, eight requests a connection. */
#define TABLE np_net_v6
#include "adapt.h"

ADAPT_INIT_ONCE(init(m->log))
ADAPT_INT_SIZES

static int a_connect(np_net *m, void *ctx, int dev, void *handle, void **send) {
  (void)ctx;
  return T(m)->connect(dev, handle, send);
}

static int a_accept(np_net *m, void *listen, void **recv) { return T(m)->accept(listen, recv); }

static int a_properties(np_net *m, int dev, np_props_v12 *o) {
  np_props_v6 p = {0};
  int rc = T(m)->getProperties(dev, &p);
  props_defaults(o);
  props_old(o);
  PROPS_ALL(o, &p);
  return rc;
}

void np_net_adapt_v6(np_net *m) {
  m->reg_int = 1;
  m->requests = NP_REQUESTS_V6;
  ADAPT_FILL;
}
