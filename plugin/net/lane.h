/* Frames of bytes between two ends, in order, both ways: what a plugin of any kind is made into, so that one protocol (carry.h) goes over
 * all of them. One thread at a time uses a lane; nothing blocks. */
#ifndef GCCL_PLUGIN_NET_LANE_H
#define GCCL_PLUGIN_NET_LANE_H

#include "../../net/transport/transport.h"

enum { NP_FRAME = 16 << 10, NP_FRAMES = 16 }; /* bytes of a frame, and frames under way in each direction. Guesses. */

typedef struct np_lane np_lane;

typedef struct {
  char *(*room)(np_lane *);                               /* the next frame to fill, NULL while all are under way */
  void (*send)(np_lane *, uint32_t bytes, uint32_t step); /* sends it: 1 to NP_FRAME bytes; step: of the profilers, 0 none */
  void (*progress)(np_lane *);
  const char *(*next)(np_lane *, uint32_t *bytes); /* the oldest frame that has come and was not released, or NULL */
  void (*release)(np_lane *);
  int (*idle)(np_lane *); /* whether everything sent has left this end */
  void (*close)(np_lane *);
} np_lane_ops;

struct np_lane {
  const np_lane_ops *ops;
  gccl_net_fault fault; /* what the plugin said first; frames that came before are still given */
};

#endif
