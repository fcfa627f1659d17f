/* A wrapper that makes trouble by a fixed seed. */
#ifndef GCCL_NET_FAULTY_H
#define GCCL_NET_FAULTY_H

#include "../transport/transport.h"

/* Per 1000 calls: post takes nothing, or only some; poll brings nothing, or one event. After drop_after work requests of a
 * connection (0: never) it is dropped. With links, work goes over one of them, whichever is free first, and takes the time that it takes there:
 * the events wait for that, and the endpoint counts what each link has carried. */
typedef struct {
  uint64_t seed;
  uint32_t busy, partial, late, single;
  uint64_t drop_after;
  int nlinks;
  struct {
    char name[32];
    int32_t port;
    double bytes_per_second;
  } link[GCCL_NET_LINKS];
} gccl_faulty_want;

gccl_net_ep *gccl_faulty_open(gccl_net_ep *inner, const gccl_faulty_want *);
gccl_net_conn *gccl_faulty_conn(gccl_net_ep *, gccl_net_conn *inner);
void gccl_faulty_close(gccl_net_ep *);
uint64_t gccl_faulty_count(gccl_net_ep *);

#endif
