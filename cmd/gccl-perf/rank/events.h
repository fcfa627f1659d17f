/* Reports to the front-end: one JSON object a line, each written with one call so that
 * the lines of several threads do not mix. */
#ifndef GCCL_PERF_EVENTS_H
#define GCCL_PERF_EVENTS_H

#include "nccl.h"
#include "samples.h"

void perf_events_open(int fd);
void perf_event_id(const ncclUniqueId *id);
void perf_event_init(int rank, int core, double init_us);
/* front_ns: mean time of the library before the first operation of a call was started; negative where unknown. */
void perf_event_result(int rank, int index, int place, const struct perf_summary *s, long wrong, double front_ns);
void perf_event_error(int rank, const char *call, int code, const char *text);
void perf_event_done(int rank);

#endif
