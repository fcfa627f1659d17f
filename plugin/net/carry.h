/* A transport over a plugin: puts, gets and messages become records in the frames of a lane. Large transfers, and all of memory that
 * the CPU does not reach, go beside it (bulk), from registered memory into registered memory, where the plugin is a net plugin.
 *
 * Records are taken in the order of their sending. A message waits for the bulk transfers that were announced before it, so every
 * message is a strong one. */
#ifndef GCCL_PLUGIN_NET_CARRY_H
#define GCCL_PLUGIN_NET_CARRY_H

#include "../../net/transport/base.h"
#include "lane.h"
#include "np.h"

enum {
  NP_OPS = 128,         /* work of a connection that is not finished */
  NP_ASKS = 16,         /* GETs of a connection that are not answered */
  NP_MSGS = 64,         /* messages that wait for bulk transfers, or for somebody to poll */
  NP_BULK = 64,         /* announced transfers that have not arrived */
  NP_EAGER = 8 << 10,   /* what is copied through frames though there is bulk: a guess */
  NP_BULK_MAX = 1 << 30 /* bytes of one transfer: sizes that plugins report are int */
};

enum np_kind { NP_PUT = 1, NP_BULKPUT, NP_MSG, NP_ASK, NP_GOT, NP_BULKGOT, NP_GAVEUP, NP_BYE, NP_SEEN };

/* In a frame, at a multiple of 8; the bytes of NP_PUT, NP_MSG, NP_GOT, NP_GAVEUP follow. */
typedef struct {
  uint8_t kind, pad[3];
  uint32_t id;   /* of a GET: at the end that asked */
  uint32_t key;  /* registration at the receiver */
  uint32_t mine; /* of NP_ASK: registration at the sender, for the answer */
  uint64_t off, bytes, back;
} np_record;

/* Work that is not finished: of this end, or the answer to a GET of the other. */
typedef struct {
  uint8_t op, signaled, sent, answered, plain; /* plain: both ends' memory can be loaded and stored */
  uint32_t id, key, mine, pending, step;       /* pending: bulk transfers under way; step: of the profilers */
  uint64_t cookie, bytes, moved, off, loff;
  gccl_mrt_entry *local;
  unsigned char data[GCCL_NET_MSG];
} np_op;
enum { NP_ANSWER = 100 }; /* op of an answer */

/* The bulk transfers of a connection. */
typedef struct {
  np_net *m;
  void *send, *recv; /* the plugin's connections */
  int recvs, dmabuf; /* receives of one request; whether memory can be registered by dma-buf */
  uint64_t most;     /* bytes of one transfer */
  struct {
    np_op *op;
    void *data, *mhandle, *request;
    uint64_t bytes;
    uint32_t step;
  } tx[NP_REQUESTS];
  uint32_t tx_announced, tx_started, tx_finished;
  struct {
    gccl_mrt_entry *mr;
    void *data, *mhandle;
    uint64_t bytes;
    uint32_t id;
    uint8_t got;
  } rx[NP_BULK];
  uint32_t rx_announced, rx_posted, rx_done;
  struct {
    void *request;
    int n, flushing;
  } group[NP_REQUESTS];
  uint32_t group_first, group_last;
  struct np_handles { /* the plugin's handles of our registrations, by index. NULL is one, too */
    void *send, *recv;
    uint8_t has_send, has_recv;
  } * handles;
  uint32_t nhandles;
} np_bulk;

typedef struct {
  gccl_net_conn base;
  np_lane *lane;
  np_bulk *bulk;                            /* NULL: all goes through frames */
  uint8_t told, telling, bye, answer, seen; /* answer: a BYE of the peer; seen: it has answered ours */
  char *out;                                /* frame that is being filled */
  uint32_t out_bytes, out_step;             /* of several puts in it, the first one's */
  const char *in;                           /* frame that is being read */
  uint32_t in_at, in_bytes;
  uint32_t op_head, op_next, op_tail, gets;
  np_op op[NP_OPS];
  uint32_t ask_head, ask_next, ask_tail;
  np_op ask[NP_ASKS];
  struct {
    uint32_t needs, bytes; /* needs: bulk transfers that must have arrived */
    unsigned char data[GCCL_NET_MSG];
  } msg[NP_MSGS];
  uint32_t msg_head, msg_tail;
  uint64_t busy_since;
} np_conn;

typedef struct {
  gccl_net_ep base;
  const char *name; /* of the plugin, for texts */
  int device;       /* whether memory of devices can be registered: every connection has bulk with dma-buf */
  gccl_mrt mrs;
  gccl_conns conns;
  gccl_dones dones;
  struct np_dmabuf { /* by index of registrations: what each connection registers when it first uses it */
    int fd;          /* 0: ordinary memory; otherwise ours, plus 1 */
    uint64_t offset;
  } * dmabuf;
} np_ep;

/* carry.c */
gccl_net_ep *np_ep_open(int32_t rank, const char *name, int device);
np_conn *np_conn_new(gccl_net_ep *, int32_t peer);
void np_conn_start(np_conn *); /* its lane, and bulk if any, are connected: it becomes part of poll */
void np_conn_discard(np_conn *);
uint64_t np_now(void);
int np_is_device(const np_ep *, const gccl_mrt_entry *);
__attribute__((format(printf, 2, 3))) void np_fail(np_conn *, const char *format, ...); /* what the peer did wrong, or its plugin */

/* out.c */
int np_take(np_conn *, const gccl_net_wr *, char *why); /* 1: taken, 0: no room, otherwise an error */
void np_push(np_conn *);
void np_finish(np_conn *);
int np_tell(np_conn *, uint8_t kind, const char *text); /* 1: sent */

/* in.c */
int np_receive(np_conn *, gccl_net_event *, int max);
void np_got(np_conn *, uint32_t id, uint64_t bytes);

/* bulk.c */
int np_bulk_room(const np_bulk *);
int np_bulk_send(np_conn *, np_op *, uint64_t at, uint64_t bytes); /* after np_bulk_room. 0, or the connection has failed */
int np_bulk_expect(np_conn *, const np_record *);                  /* 1: taken, 0: no room, -1: the connection has failed */
void np_bulk_progress(np_conn *);
void np_bulk_forget(np_conn *, gccl_mrt_entry *); /* a registration goes */
void np_bulk_close(np_bulk *);

/* lane_net.c: over a pair of a net plugin's connections, which it owns from then on. NULL with why, and they are closed. */
np_lane *np_lane_net(np_net *, void *send, void *recv, char *why);

#endif
