/* The port of a communicator: how its executor reaches ranks whose memory is out of its reach.
 *
 * For each such rank this process has a mirror: memory of the size and layout of that rank's area. Words and pieces that the
 * rank would store in its own area for others to read, its agent stores in the mirrors of those others; what this rank stores in the
 * mirror for that rank, it also sends to that rank's area. So the executor loads and stores as ever, and beside a store that a peer
 * waits for it leaves a command in the port's ring.
 *
 * The ring is memory between the executor (front, one producer: whoever is being served by the issue order) and the port's
 * owner (net/gin: a thread of the core, or a caller that helps). Nobody calls Go.
 */
#ifndef GCCL_LAYOUT_PORT_H
#define GCCL_LAYOUT_PORT_H

#include <stdatomic.h>

#include "shared.h"

/* Where a range or a word is, seen from the rank that owns the memory. */
enum gccl_place {
  GCCL_AT_AREA = 0,   /* offset in the peer's own area */
  GCCL_AT_MIRROR = 1, /* offset in the mirror that the peer has of the sender */
  GCCL_AT_WINDOW = 2, /* offset in the peer's part of a window */
  GCCL_AT_SIGNAL = 3, /* number of a signal of a context; not for puts */
  GCCL_AT_NOTHING = 4 /* of a fetch: only the answer is wanted */
};

/* What a rank's agent does with a message. */
enum gccl_message_kind {
  GCCL_MSG_SIGNAL = 1,  /* changes one word */
  GCCL_MSG_RECORD = 2,  /* an operation record of the sender */
  GCCL_MSG_POST = 3,    /* a point-to-point mailbox of the sender */
  GCCL_MSG_FETCH = 4,   /* adds to a word and wants its old value */
  GCCL_MSG_FETCHED = 5, /* the answer */
  /* To ranks whose windows neither the network nor the mover reaches: net/gin/far.c. number counts pieces, values and asks together; of a
   * credit it is how many messages of the receiver have been obeyed, of all kinds but this one. */
  GCCL_MSG_PIECE = 6,  /* a piece of a put, which is in the receiver's bounce memory */
  GCCL_MSG_ANSWER = 7, /* the same of a get of the receiver */
  GCCL_MSG_VALUE = 8,  /* a put of what is in the message */
  GCCL_MSG_ASK = 9,    /* a get */
  GCCL_MSG_CREDIT = 10,
  GCCL_MSG_COUNT = 11 /* number of kinds */
};

enum gccl_signal_op {
  GCCL_SIGNAL_RAISE = 0, /* the word becomes value, unless it is beyond already (as in a sequence number, wrap-safe) */
  GCCL_SIGNAL_ADD = 1
};

/* Messages between ranks: at most 64 bytes, little-endian as all processors that this library is built for. number counts
 * the messages from one rank to another, from 1, so that nothing is applied twice and a gap is an error. */
typedef struct {
  uint8_t kind, place, op, which; /* which: of a post, 0 the sender's announcement, 1 the receiver's */
  uint32_t number;
} gccl_msg_head;

typedef struct {
  gccl_msg_head head;
  uint64_t off, value;
  uint32_t window, context;
} gccl_msg_signal;

/* which 1: a probe, for place NOTHING. */
typedef struct {
  gccl_msg_head head;
  uint64_t off, value;
  uint32_t window, context, id, pad;
} gccl_msg_fetch;

/* op: 0, or a syndrome of include/gccl_device/impl/mlx5.h. */
typedef struct {
  gccl_msg_head head;
  uint64_t old;
  uint32_t context, id;
} gccl_msg_fetched;

/* off: in a window; in the get for an ANSWER. id: of a get. data: of a VALUE; other kinds end before it. */
typedef struct {
  gccl_msg_head head;
  uint64_t off, bytes;
  uint32_t window, id;
  unsigned char data[32];
} gccl_msg_piece;
typedef struct {
  gccl_msg_head head;
  uint32_t slots, pad;
} gccl_msg_credit; /* slots: of bounce memory that are free again, since the beginning */
enum { GCCL_MSG_PIECE_BYTES = offsetof(gccl_msg_piece, data) };

/* data: the payload, if it is that short. Otherwise it has been put before. */
typedef struct {
  gccl_msg_head head;
  uint64_t seq;
  uint32_t hash;
  uint8_t send_kind, recv_kind, scaled, n;
  uint64_t count;
  uint8_t coll, dtype, op, cls;
  int32_t root;
  uint64_t scale;
  unsigned char data[16];
} gccl_msg_record;

typedef struct {
  gccl_msg_head head;
  uint64_t seq, bytes;
  uint32_t hash;
  uint8_t kind, pad[3];
  unsigned char data[24];
} gccl_msg_post;

enum gccl_cmd_kind { GCCL_CMD_MESSAGE, GCCL_CMD_PUT };
enum { GCCL_CMD_TRACKED = 1 }; /* flags: gccl_port.done of the peer counts its completion */

/* A command: a put, if there is one, and then a message that is delivered when the put and all earlier ones to that peer are
 * in place. kind PUT without a message has message_bytes 0. */
typedef struct {
  uint8_t kind, flags, place, message_bytes;
  int32_t peer;
  const void *src; /* in this rank's area, in a mirror, or in a registered window; where port.anywhere says so, in any memory */
  uint64_t bytes, off;
  uint32_t window;
  uint32_t put;  /* number in the trace; 0: not traced */
  uint32_t step; /* of the profilers that this put is for (gccl_step_api); 0: none */
  uint32_t unused[5];
  unsigned char message[64];
} gccl_cmd;

typedef struct gccl_port gccl_port;
struct gccl_port {
  gccl_cmd *ring;
  uint32_t mask, nremote;
  uint64_t *done;                                 /* by rank: tracked commands that have completed; agent writes */
  uint8_t *anywhere;                              /* by rank: whether the source of a put may be any memory of this process */
  int (*help)(gccl_port *);                       /* runs the port in the caller; 1 if anything moved. Any thread */
  _Alignas(2 * GCCL_LINE) _Atomic(uint64_t) head; /* commands stored; the executor's */
  _Alignas(2 * GCCL_LINE) _Atomic(uint64_t) tail; /* commands taken */
  _Alignas(2 * GCCL_LINE) gccl_cmd nowhere;       /* where an aborted executor writes */
};

GCCL_LAYOUT_ASSERT(sizeof(gccl_msg_head) == 8 && sizeof(gccl_msg_signal) == 32, "gccl_msg_signal");
GCCL_LAYOUT_ASSERT(sizeof(gccl_msg_fetch) == 40 && sizeof(gccl_msg_fetched) == 24, "gccl_msg_fetch");
GCCL_LAYOUT_ASSERT(sizeof(gccl_msg_record) == 64 && sizeof(gccl_msg_post) == 56, "messages fit 64 bytes");
GCCL_LAYOUT_ASSERT(sizeof(gccl_msg_piece) == 64 && GCCL_MSG_PIECE_BYTES == 32, "gccl_msg_piece");
GCCL_LAYOUT_ASSERT(sizeof(gccl_cmd) == 128, "a command is two lines");
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "messages between ranks are little-endian"
#endif

#endif
