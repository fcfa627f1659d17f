/* The data path of the plugin that gives this library's network to NCCL. A receive tells the sender where its buffers are; a send puts the
 * bytes there and says so. Each of NCCL's one-way connections is an endpoint of its own, so that any thread may use it as long as only
 * one does at a time. */
#ifndef GCCL_PLUGIN_SERVE_H
#define GCCL_PLUGIN_SERVE_H

#include "../../net/transport/transport.h"
#include "../net/abi.h"

enum {
  SV_RECVS = 8,                         /* receives of one request */
  SV_REQUESTS = NP_REQUESTS * SV_RECVS, /* of a connection: what NCCL may have under way on the sending side */
  SV_GROUPS = 64,                       /* receives that the sender knows of and has not filled: more than NP_REQUESTS */
  SV_SAYS = 1024,                       /* messages that wait for room; they take one of the transport's at a time */
};

typedef struct sv_comm sv_comm;

/* A connection of a connected endpoint, both of which it owns. go_ is the caller's, for closing. NULL: out of memory. */
sv_comm *sv_comm_new(gccl_net_ep *, gccl_net_conn *, int sends, uint64_t go_);
uint64_t sv_comm_go(const sv_comm *);
void sv_comm_free(sv_comm *); /* its endpoint is closed by whoever opened it, afterwards */
void sv_log(np_logger);       /* where faults are told */
void sv_warn(const char *);   /* one of them */

int sv_reg(void *comm, void *data, size_t bytes, int type, void **mhandle);
int sv_dereg(void *comm, void *mhandle);
int sv_isend(void *comm, void *data, size_t bytes, int tag, void *mhandle, void **request);
int sv_irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **request);
int sv_test(void *request, int *done, int *sizes);

#endif
