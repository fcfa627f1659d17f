/* The transport over verbs: InfiniBand and RoCE. */
#ifndef GCCL_NET_IB_H
#define GCCL_NET_IB_H

#include "../transport/transport.h"
#include "verbs.h"

enum { GCCL_IB_RAILS = 4, GCCL_IB_PORTS = 64, GCCL_IB_NAME = 64 };

/* A port that is up. */
typedef struct {
  char name[GCCL_IB_NAME]; /* of the device */
  uint8_t port, link, gid[16];
  uint16_t lid;
  uint32_t mbps;
} gccl_ib_port;

/* How queue pairs are made. gid_index: -1 chooses. */
typedef struct {
  int32_t traffic_class, service_level, timeout, retry_count;
} gccl_ib_config;

/* Where the queue pair of a rail is, for the other end. */
typedef struct {
  uint32_t qpn;
  uint16_t lid;
  uint8_t mtu, link, gid[16];
} gccl_ib_address;

int gccl_ib_ports(gccl_ib_port *, int max, char *why);
int gccl_ib_gid(const char *name, int port, int index, uint8_t *gid, char *why);
gccl_net_ep *gccl_ib_open(int32_t rank, const gccl_ib_config *, char *why);
int gccl_ib_add_rail(gccl_net_ep *, const char *name, int port, int gid_index, char *why);
gccl_net_conn *gccl_ib_conn(gccl_net_ep *, int32_t peer, char *why);
int gccl_ib_rails(gccl_net_conn *);
void gccl_ib_address_of(gccl_net_conn *, int rail, gccl_ib_address *);
int gccl_ib_connect(gccl_net_conn *, int rails, const gccl_ib_address *, char *why);
int gccl_ib_say(gccl_net_conn *, int rail, const void *data, int n);
int gccl_ib_hear(gccl_net_conn *, int rail, void *data);
int gccl_ib_again(gccl_net_conn *, int rail);
void gccl_ib_start(gccl_net_conn *);
void gccl_ib_discard(gccl_net_conn *);

#endif
