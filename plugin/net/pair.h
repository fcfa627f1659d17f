/* Making the two one-way connections between two ends, without ever blocking. */
#ifndef GCCL_PLUGIN_NET_PAIR_H
#define GCCL_PLUGIN_NET_PAIR_H

#include "carry.h"

enum { NP_TOKEN = 32 };

typedef struct {
  np_net *m;
  void *ctx;
  int dev;
  unsigned char mine[NP_HANDLE], peer[NP_HANDLE]; /* the plugin may keep state in the peer's while it connects */
  void *listen, *send, *recv;
  unsigned char *token; /* two of them: sent and received */
  void *token_send, *token_recv, *sending, *receiving;
  int sent, received, registered; /* registered: how many of the tokens' ends */
} np_pair;

/* why has GCCL_NET_TEXT bytes. Results of step: 1 done, 0 call again, -1 failed. */
int np_pair_listen(np_pair *, char *why);  /* fills mine. 0 or -1 */
int np_pair_connect(np_pair *, char *why); /* a step, once peer is filled */
/* A step of sending what the peer said we shall send on the new connection, and of receiving what it sends. */
int np_pair_token(np_pair *, const unsigned char send[NP_TOKEN], unsigned char received[NP_TOKEN], char *why);
void np_pair_deregister(np_pair *); /* the tokens */
void np_pair_close(np_pair *);      /* what is left of it; connections that were taken away are NULL */

/* What a device can do; 0, or the plugin's result. */
int np_open_context(np_net *, uint64_t comm, void **ctx, int *ndev, char *why);

#endif
