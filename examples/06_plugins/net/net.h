/* The calls of the example net plugin; tables.c puts them into the tables that are exported. */
#ifndef EXAMPLE_NET_H
#define EXAMPLE_NET_H

#include "../../../plugin/net/abi.h"

#ifndef EXAMPLE_RECVS
#define EXAMPLE_RECVS 8 /* receives that one call can group */
#endif
#ifndef EXAMPLE_P2P
#define EXAMPLE_P2P (1 << 30) /* most bytes of a transfer */
#endif

int example_init(np_logger);
int example_devices(int *n);
int example_properties(int dev, np_props_v12 *);
int example_listen(int dev, void *handle, void **listening);
int example_connect(int dev, void *handle, void **send_comm);
int example_accept(void *listening, void **recv_comm);
int example_reg(void *comm, void *data, size_t bytes, int type, void **mhandle);
int example_reg_dmabuf(void *comm, void *data, size_t bytes, int type, uint64_t offset, int fd, void **mhandle);
int example_dereg(void *comm, void *mhandle);
int example_isend(void *send_comm, void *data, size_t bytes, int tag, void *mhandle, void **request);
int example_irecv(void *recv_comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **request);
int example_flush(void *recv_comm, int n, void **data, int *sizes, void **mhandles, void **request);
int example_test(void *request, int *done, int *sizes);
/* Events for profilers: one for each message of a request that is made for a step of theirs, from its posting to its end. The callback comes
 * with init and may be NULL; steps are as many as the request has messages, NULL where there is none. */
void example_profile(np_profiler);
void example_follow(void *request, void **steps);
int example_close(void *comm);
int example_close_listen(void *listening);

#endif
