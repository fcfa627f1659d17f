/* v10: handles for the profiler, a configuration for connections. */
#define TABLE np_net_v10
#include "adapt.h"

ADAPT_INIT_ONCE(init(m->log, np_profile))
ADAPT_ACCEPT
ADAPT_PROFILED

static int a_connect(np_net *m, void *ctx, int dev, void *handle, void **send) {
  (void)ctx;
  np_device_handle *device = NULL;
  np_net_config config = {.trafficClass = -1};
  return T(m)->connect(dev, &config, handle, send, &device);
}

static int a_properties(np_net *m, int dev, np_props_v12 *o) {
  np_props_v10 p = {0};
  int rc = T(m)->getProperties(dev, &p);
  props_defaults(o);
  PROPS_ALL(o, &p);
  PROPS_DEVICE(o, &p);
  PROPS_V9(o, &p);
  return rc;
}

void np_net_adapt_v10(np_net *m) { ADAPT_FILL; }
