/* v2: the plugin says algorithm and protocol instead of costs; what it chooses costs nothing then, if it can be taken. */
#include "adapt.h"

static int ask(const tuner *t, int coll, size_t bytes, float costs[TUNER_ALGOS][TUNER_PROTOS], int *channels) {
  int algo = -1, proto = -1;
  int rc = ((const tuner_table_v2 *)t->table)->getCollInfo(t->context, coll, bytes, 0, 0, 1, &algo, &proto, channels);
  if (rc || algo < 0 || algo >= TUNER_ALGOS || proto < 0 || proto >= TUNER_PROTOS) return rc;
  if (costs[algo][proto] >= 0) costs[algo][proto] = 0;
  return 0;
}

static int finish(const tuner *t) { return ((const tuner_table_v2 *)t->table)->destroy(t->context); }

int tuner_open_v2(const void *table, const tuner_comm *c, tuner *out) {
  *out = (tuner){.table = table, .ask = ask, .close = finish};
  return ((const tuner_table_v2 *)table)->init(c->ranks, c->nodes, c->log, &out->context);
}
