/* v11: a context for each communicator, and an end of it. */
#define TABLE np_net_v11
#include "adapt.h"

ADAPT_CONTEXT
ADAPT_ACCEPT
ADAPT_PROFILED

static int a_properties(np_net *m, int dev, np_props_v12 *o) {
  np_props_v11 p = {0};
  int rc = T(m)->getProperties(dev, &p);
  props_defaults(o);
  PROPS_ALL(o, &p);
  PROPS_DEVICE(o, &p);
  PROPS_V9(o, &p);
  o->maxMultiRequestSize = p.maxMultiRequestSize;
  return rc;
}

void np_net_adapt_v11(np_net *m) { ADAPT_FILL; }
