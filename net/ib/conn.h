/* The private side: an endpoint with its rails (ports), connections with a lane (queue pair) on each. */
#ifndef GCCL_IB_CONN_H
#define GCCL_IB_CONN_H

#include "../transport/base.h"
#include "ib.h"

enum {
  IB_SQ = 256,      /* send queue of a lane */
  IB_RQ = 256,      /* messages that may be on their way */
  IB_CONTROLS = 16, /* places of both queues that are kept for control messages */
  IB_BATCH = 32,    /* work requests of one doorbell */
  IB_OPS = 256,
  IB_STRIPE = 128 << 10, /* from here on a transfer goes over all rails */
  IB_SLOT = 128,         /* of the buffers for messages */
};

enum { WIRE_MSG = 1, WIRE_MARK, WIRE_CREDIT, WIRE_BYE, WIRE_AUTH };

/* A SEND. Before a message that covers puts of other rails, a mark was sent behind them there: the receiver waits until it has
 * as many marks of each rail as the message says. taken tells how many of the peer's messages and marks of each rail were taken. */
typedef struct {
  uint8_t kind, bytes, pad[2];
  uint32_t marks[GCCL_IB_RAILS], taken[GCCL_IB_RAILS];
  unsigned char data[GCCL_NET_MSG];
} wire;

_Static_assert(sizeof(wire) <= IB_SLOT, "a message fits its buffer");

/* A port in use. */
typedef struct {
  char name[GCCL_IB_NAME];
  vb_context *context;
  vb_pd *pd;
  uint8_t port, link, mtu, reads, atomics;
  uint16_t lid;
  uint32_t max_bytes;
  int gid_index;
  vb_gid gid;
} rail;

typedef struct mr {
  gccl_net_mr base; /* first */
  vb_mr *v[GCCL_IB_RAILS];
  struct mr *next;
} mr;

typedef struct {
  vb_qp *qp;
  vb_cq *cq;
  unsigned char *buffers; /* IB_RQ + IB_CONTROLS to receive, IB_SQ to send what is not inline */
  vb_mr *v;
  uint32_t max_inline;
  uint64_t posted, completed; /* work requests; a completion speaks for all before it */
  uint32_t sent, credited;    /* messages and marks, and how many of them the peer has taken */
  uint32_t taken, told;       /* of the peer's, and how many it knows of */
  uint32_t marks_sent, marks_got;
  int dirty; /* puts since the last mark */
  int nauth;
  unsigned char auth[4][GCCL_NET_MSG];
  int failed; /* status of the first work completion in error, while connecting */

  int nbatch;
  vb_send_wr batch[IB_BATCH];
  vb_sge sge[IB_BATCH];
} lane;

typedef struct {
  uint8_t op, signaled;
  uint64_t cookie, bytes, moved, roff;
  uint64_t until[GCCL_IB_RAILS]; /* complete when the lanes have completed as much */
  const mr *local;
  uint64_t loff;
  gccl_net_rmr remote;
  unsigned char data[GCCL_NET_MSG];
} op;

typedef struct {
  gccl_net_conn base;
  int nlanes, told, started, byed;
  lane lane[GCCL_IB_RAILS];
  uint32_t op_head, op_next, op_tail;
  op op[IB_OPS];
  uint32_t held_head, held_tail; /* messages that wait for marks, or for room among the events */
  wire held[IB_RQ];
  uint64_t busy_since, last_sent;
} conn;

typedef struct {
  gccl_net_ep base;
  const vb_library *vb;
  gccl_ib_config config;
  int nrails;
  rail rail[GCCL_IB_RAILS];
  pthread_mutex_t lock; /* of mrs */
  mr *mrs;
  gccl_conns conns;
  gccl_dones dones;
  uint32_t polls;
  uint64_t looked;
} endpoint;

static inline endpoint *of(conn *c) { return (endpoint *)c->base.ep; }

/* qp.c: ports and queue pairs, whoever drives them. connect: to RTR, and from there to RTS. */
int rail_open(const vb_library *, rail *, const char *name, int port, int gid_index, char *why);
void rail_close(const vb_library *, rail *);
void rail_address(const rail *, const vb_qp *, gccl_ib_address *);
int qp_init(const vb_library *, const rail *, vb_qp *, unsigned access);
int qp_ready_to_receive(const vb_library *, const rail *, const gccl_ib_config *, vb_qp *, const gccl_ib_address *to, char *why);
int qp_ready_to_send(const vb_library *, const rail *, const gccl_ib_config *, vb_qp *, char *why);
/* lane.c */
int lane_open(conn *, int rail, char *why);
int lane_connect(conn *, int rail, const gccl_ib_address *, char *why);
int lane_reset(conn *, int rail);
void lane_close(conn *, int rail);
void lane_flush(conn *, int rail);
vb_send_wr *lane_next(conn *, int rail, int control);
int lane_send(conn *, int rail, uint8_t kind, const void *data, int n);
void lane_poll(conn *, int rail);
/* data.c */
int data_take(conn *, const gccl_net_wr *, char *why);
void data_push(conn *);
int data_deliver(conn *, gccl_net_event *, int max);
void data_complete(conn *);

uint64_t ib_now(void);

#endif
