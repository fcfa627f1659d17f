/* v3: costs, and nothing of registered buffers. */
#include "adapt.h"

static int ask(const tuner *t, int coll, size_t bytes, float costs[TUNER_ALGOS][TUNER_PROTOS], int *channels) {
  return ((const tuner_table_v3 *)t->table)->getCollInfo(t->context, coll, bytes, 1, (float **)costs, TUNER_ALGOS, TUNER_PROTOS, channels);
}

static int finish(const tuner *t) { return ((const tuner_table_v3 *)t->table)->destroy(t->context); }

int tuner_open_v3(const void *table, const tuner_comm *c, tuner *out) {
  *out = (tuner){.table = table, .ask = ask, .close = finish};
  return ((const tuner_table_v3 *)table)->init(c->ranks, c->nodes, c->log, &out->context);
}
