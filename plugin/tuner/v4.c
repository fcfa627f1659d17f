/* v4: costs, and whether buffers are registered: no, because one decision holds for all buffers. */
#include "adapt.h"

static int ask(const tuner *t, int coll, size_t bytes, float costs[TUNER_ALGOS][TUNER_PROTOS], int *channels) {
  return ((const tuner_table_v4 *)t->table)
      ->getCollInfo(t->context, coll, bytes, 1, (float **)costs, TUNER_ALGOS, TUNER_PROTOS, 0, channels);
}

static int finish(const tuner *t) { return ((const tuner_table_v4 *)t->table)->destroy(t->context); }

int tuner_open_v4(const void *table, const tuner_comm *c, tuner *out) {
  *out = (tuner){.table = table, .ask = ask, .close = finish};
  return ((const tuner_table_v4 *)table)->init(c->ranks, c->nodes, c->log, &out->context);
}
