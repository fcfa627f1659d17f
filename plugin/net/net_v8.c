/* v8: registrations of any size, regIsGlobal; sizes of transfers are int. */
#define TABLE np_net_v8
#include "adapt.h"

ADAPT_INIT_ONCE(init(m->log))
ADAPT_INT_SIZES
ADAPT_ACCEPT

static int a_connect(np_net *m, void *ctx, int dev, void *handle, void **send) {
  (void)ctx;
  np_device_handle *device = NULL;
  return T(m)->connect(dev, handle, send, &device);
}

static int a_properties(np_net *m, int dev, np_props_v12 *o) {
  np_props_v8 p = {0};
  int rc = T(m)->getProperties(dev, &p);
  props_defaults(o);
  props_old(o);
  PROPS_ALL(o, &p);
  PROPS_DEVICE(o, &p);
  o->regIsGlobal = p.regIsGlobal;
  return rc;
}

void np_net_adapt_v8(np_net *m) { ADAPT_FILL; }
