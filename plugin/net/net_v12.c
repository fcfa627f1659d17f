/* v12: the newest. Virtual devices of up to eight, rails and planes. */
#define TABLE np_net_v12
#include "adapt.h"

ADAPT_CONTEXT
ADAPT_ACCEPT
ADAPT_PROFILED

static int a_properties(np_net *m, int dev, np_props_v12 *o) {
  props_defaults(o);
  return T(m)->getProperties(dev, o);
}

void np_net_adapt_v12(np_net *m) { ADAPT_FILL; }
