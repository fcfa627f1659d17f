/* The transport inside one process: the poster's thread stores into the receiver's memory. */
#ifndef GCCL_NET_LOOP_H
#define GCCL_NET_LOOP_H

#include "../transport/base.h"

gccl_net_ep *gccl_loop_open(int32_t rank);
gccl_net_conn *gccl_loop_conn(gccl_net_ep *, int32_t peer);
int gccl_loop_join(gccl_net_conn *, gccl_net_conn *);
void gccl_loop_discard(gccl_net_conn *);

#endif
