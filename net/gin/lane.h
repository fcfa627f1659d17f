/* A lane: work requests of a peer between its work queue and whoever moves them. lane.c serves it; far.c where the peer's windows are not mapped here. */
#ifndef GCCL_GIN_LANE_H
#define GCCL_GIN_LANE_H

#include "gin.h"

enum { LANE = 128 }; /* work requests of a peer under way; a power of two */

struct gin_lane {
  uint32_t head, sent, tail; /* entries [tail, sent) are under way, [sent, head) wait for room */
  uint32_t last;             /* mark behind the last thing that this lane has moved */
  uint64_t part;             /* of the entry `sent`: bytes that the mover has taken */
  struct gin_far *far;       /* NULL: the mover reaches the peer's windows */
  uint32_t mark[LANE];       /* an entry is done at */
  gccl_net_wr wr[LANE];
};

/* far.c. Moves entries on towards the peer; 1 if anything moved. */
int gin_far_submit(gin *, gin_lane *);
int gin_far_got(const struct gin_far *, uint32_t entry); /* whether all that a get has asked for has been given to the mover */
int gin_far_busy(const struct gin_far *);
void gin_far_drop(struct gin_far *); /* all that is under way: the connection has failed */

#endif
