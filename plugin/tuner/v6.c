/* v6: v5 and getChunkSize, which is not asked: plans divide by what scratch holds. */
#include "adapt.h"

_Static_assert(offsetof(tuner_table_v6, finalize) == offsetof(tuner_table_v5, finalize), "v6 begins as v5");

int tuner_open_v6(const void *table, const tuner_comm *c, tuner *out) { return tuner_open_v5(table, c, out); }
