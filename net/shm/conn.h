/* The private side of a connection. */
#ifndef GCCL_SHM_CONN_H
#define GCCL_SHM_CONN_H

#include "segment.h"

enum { SHM_OPS = 256, SHM_ASKS = 16 };

/* A work request that is not finished: a piece of it waits for room, or a GET for its answer. */
typedef struct {
  uint8_t op, signaled, answered;
  uint32_t key, mine; /* registrations: the peer's, and ours for the answer of a GET */
  uint64_t cookie, bytes, off, moved, loff;
  unsigned char *local;
  unsigned char data[GCCL_NET_MSG];
} shm_op;

/* A GET of the peer. */
typedef struct {
  uint32_t key, answer;
  uint64_t off, answer_off, bytes, moved;
} shm_ask;

typedef struct {
  gccl_net_conn base;
  shm_segment *seg;
  shm_way *in, *out;
  int me, socket, told, ended; /* ended: the peer's process has gone */

  uint64_t sent, sent_bytes, free, free_bytes; /* out: written, and what the peer had taken when we last looked */
  uint64_t read, read_bytes;                   /* in */

  uint32_t op_head, op_next, op_tail; /* oldest unfinished, first not wholly in slots, end */
  uint32_t gets;                      /* between op_head and op_next */
  shm_op op[SHM_OPS];
  uint32_t ask_head, ask_tail;
  shm_ask ask[SHM_ASKS];
  uint64_t busy_since;
} shm_conn;

typedef struct {
  gccl_net_ep base;
  gccl_mrt mrs;
  gccl_conns conns;
  gccl_dones dones;
  int epoll, event;
  uint32_t polls;
  uint64_t looked; /* when the sockets of the peers were */
} shm_ep;

/* out.c */
int shm_execute(shm_conn *, const gccl_net_wr *, char *why);
int shm_push(shm_conn *);
void shm_finish(shm_conn *);
int shm_out_blocked(shm_conn *);
/* in.c */
int shm_receive(shm_conn *, gccl_net_event *, int max);
int shm_pending(shm_conn *);

void shm_wake_peer(shm_conn *);
uint64_t shm_now(void);

#endif
