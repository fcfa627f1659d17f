/* A wrapper that writes down what passes. */
#ifndef GCCL_NET_TRACE_H
#define GCCL_NET_TRACE_H

#include "../transport/transport.h"

enum { GCCL_TRACE_LINES = 4096 };

/* A work request that was taken, or an event. */
typedef struct {
  uint64_t ns; /* since the endpoint was opened */
  int32_t peer;
  uint8_t is_event, what, flags; /* what: operation or kind of event */
  uint64_t bytes, off, cookie;
} gccl_trace_line;

gccl_net_ep *gccl_trace_open(gccl_net_ep *inner);
gccl_net_conn *gccl_trace_conn(gccl_net_ep *, gccl_net_conn *inner);
void gccl_trace_close(gccl_net_ep *);
uint64_t gccl_trace_read(gccl_net_ep *, gccl_trace_line *);

#endif
