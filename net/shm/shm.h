/* The transport between processes of one host that cannot map each other's windows. */
#ifndef GCCL_NET_SHM_H
#define GCCL_NET_SHM_H

#include "../transport/transport.h"

gccl_net_ep *gccl_shm_open(int32_t rank, char *why);
gccl_net_conn *gccl_shm_conn(gccl_net_ep *, int32_t peer);
uint64_t gccl_shm_segment_bytes(void);
int gccl_shm_map(gccl_net_conn *, int segment, int side, char *why);
void gccl_shm_prove(gccl_net_conn *, uint64_t pattern);
uint64_t gccl_shm_proof(gccl_net_conn *);
int gccl_shm_start(gccl_net_conn *, int socket, char *why);
void gccl_shm_discard(gccl_net_conn *);

#endif
