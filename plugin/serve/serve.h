/* The data path of the plugin that gives this library's network to NCCL. Small messages leave at once, in a message of the transport or
 * through a slot that the receiver keeps for them; for a large one the receiver says where its buffer is, and the bytes go there. Each of
 * NCCL's one-way connections is an endpoint of its own, so that any thread may use it as long as only one does at a time. */
#ifndef GCCL_PLUGIN_SERVE_H
#define GCCL_PLUGIN_SERVE_H

#include "../../net/transport/transport.h"
#include "../net/abi.h"

enum {
  SV_REQUESTS = 2 * NP_REQUESTS, /* of a connection; NCCL has no more than half of them under way */
  SV_SMALL = 8 << 10,            /* up to here a message is small */
  SV_SLOTS = 32,                 /* small messages that the receiver has not taken */
  SV_HELP = 64 << 10,            /* from here on a thread of its own is worth its wake-up */
};

typedef struct sv_comm sv_comm;

/* A connection of a connected endpoint, both of which it owns; with a thread for large messages if helped. go_ is the caller's, for
 * closing. NULL: out of memory. */
sv_comm *sv_comm_new(gccl_net_ep *, gccl_net_conn *, int sends, int helped, uint64_t go_);
uint64_t sv_comm_go(const sv_comm *);
void sv_comm_stop(sv_comm *); /* nothing happens any more: then its endpoint is closed by whoever opened it, and after that */
void sv_comm_free(sv_comm *);
void sv_log(np_logger);     /* where faults are told */
void sv_warn(const char *); /* one of them */
void sv_info(const char *); /* what NCCL can do without */

int sv_reg(void *comm, void *data, size_t bytes, int type, void **mhandle);
int sv_dereg(void *comm, void *mhandle);
int sv_isend(void *comm, void *data, size_t bytes, int tag, void *mhandle, void **request);
int sv_irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **request);
int sv_test(void *request, int *done, int *sizes);

#endif
