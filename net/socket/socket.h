/* The transport over TCP. */
#ifndef GCCL_NET_SOCKET_H
#define GCCL_NET_SOCKET_H

#include <sys/socket.h>
#include <sys/uio.h>

#include "../transport/transport.h"

/* The two system calls of the data path, so that tests can put faults into them. */
typedef struct {
  ssize_t (*send)(void *arg, int fd, const struct msghdr *);
  ssize_t (*receive)(void *arg, int fd, const struct iovec *, int n);
} gccl_socket_io;

gccl_net_ep *gccl_socket_open(int32_t rank, char *why);
void gccl_socket_set_io(gccl_net_ep *, const gccl_socket_io *, void *arg);
/* Names a device of the endpoint; its index, or -1 if there are too many. Before the first connection. */
int gccl_socket_add_link(gccl_net_ep *, const char *name);
/* links: the index of each stream's device, or -1. */
gccl_net_conn *gccl_socket_conn(gccl_net_ep *, int32_t peer, const int *fds, const int *links, int n, char *why);
void gccl_socket_start(gccl_net_conn *);
void gccl_socket_seal(void *head);

enum { GCCL_SOCKET_HEAD = 64 };

#endif
