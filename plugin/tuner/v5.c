/* v5: init is told of NVLink domains and may change constants of NCCL's model, which this library does not have: they are zero here. */
#include <string.h>

#include "adapt.h"

static int ask(const tuner *t, int coll, size_t bytes, float costs[TUNER_ALGOS][TUNER_PROTOS], int *channels) {
  return ((const tuner_table_v5 *)t->table)
      ->getCollInfo(t->context, coll, bytes, 1, (float **)costs, TUNER_ALGOS, TUNER_PROTOS, 0, channels);
}

static int finish(const tuner *t) { return ((const tuner_table_v5 *)t->table)->finalize(t->context); }

int tuner_open_v5(const void *table, const tuner_comm *c, tuner *out) {
  tuner_nvl_v5 nvl = c->nvl;
  tuner_constants_v5 constants, none;
  memset(&constants, 0, sizeof constants);
  memset(&none, 0, sizeof none);
  *out = (tuner){.table = table, .ask = ask, .close = finish};
  int rc = ((const tuner_table_v5 *)table)->init(&out->context, c->hash, c->ranks, c->nodes, c->log, &nvl, &constants);
  out->constants_changed = memcmp(&constants, &none, sizeof none) != 0;
  return rc;
}
