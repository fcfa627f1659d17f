/* Rings of trace records: one for each thread that has something to tell, of fixed size, between that thread and the core's writer.
 * A record that finds no room is counted and lost; nothing ever waits. */
#ifndef GCCL_HOST_EXEC_RING_H
#define GCCL_HOST_EXEC_RING_H

#include "../../layout/probe.h"

/* Room that beginnings leave for the ends of what is open, so that a full ring loses whole operations rather than their ends. */
enum { GCCL_RING_EVENTS = 16384, GCCL_RING_SPARE = 256 };

/* The next record of the calling thread, to be filled and then published; NULL if there is no room, which is counted if count. ends: it ends
 * what another record has begun, or reports on it. */
gccl_event *gccl_ring_next(struct gccl_tracer *, int ends, int count);
void gccl_ring_publish(void);

struct gccl_tracer *gccl_tracer_new(void);
int32_t gccl_ring_take(struct gccl_tracer *, int32_t index, gccl_event *out, int32_t max, uint64_t *thread);
uint64_t gccl_ring_dropped(struct gccl_tracer *);
/* The time on the scale of records. bend: before a round of takes, so that the scale follows CLOCK_MONOTONIC. The writer's. */
uint64_t gccl_ring_now(struct gccl_tracer *, int32_t bend);

#endif
