/* The private side: an endpoint, its connections, their streams. */
#ifndef GCCL_SOCKET_CONN_H
#define GCCL_SOCKET_CONN_H

#include <sys/uio.h>

#include "frame.h"
#include "socket.h"

enum {
  SOCK_OPS = 256,        /* work requests of a connection that are not complete */
  SOCK_QUEUE = 64,       /* frames that wait in a stream */
  SOCK_QUEUED = 1 << 20, /* bytes that wait in a stream before others get the next frame */
  SOCK_BATCH = 16,       /* frames of one sendmsg */
  SOCK_BUFFER = 64 << 10,
  SOCK_SMALL = 4 << 10, /* up to here a frame goes the way of messages, the first stream */
  SOCK_BULK = 8 << 10,  /* behind data of more than this the next is expected to be large as well */
  SOCK_HEADS = 512,     /* bytes that are read with it: heads and messages */
  SOCK_ACK_BYTES = 256 << 10,
  SOCK_ACK_FRAMES = 16,
  SOCK_QUIET = 256,    /* polls without anything new before a lazy connection acknowledges */
  SOCK_QUIET_ONE = 32, /* the same over one stream, where only closing waits for it */
  SOCK_DIRECT = 2,     /* up to so many streams are read without asking epoll first */
};

typedef struct conn conn;

/* A frame to send: the head, and the payload where it lies or beside it. */
typedef struct {
  frame head;
  const unsigned char *from; /* NULL: data */
  unsigned char data[GCCL_NET_MSG];
} segment;

/* One TCP connection. */
typedef struct {
  conn *c;
  int fd, index, link; /* link: of its device in the endpoint, or -1 */
  int dead;            /* errno or one of the codes below */
  int armed;           /* for EPOLLOUT */
  const char *wrong;   /* with DEAD_FRAME */
  /* Once it is dead: what the peer is to be told, and whether it has confirmed that it takes nothing from here any more. */
  int tell_reset, tell_reset_ack, confirmed;
  uint64_t waiting_since; /* for an acknowledgement of the peer's kernel */

  /* Output: numbers of frames in the window, then what is being sent: frames built, and how far the first has gone. */
  uint32_t head, tail;
  uint64_t queue[SOCK_QUEUE];
  uint64_t queued;
  uint32_t out_at, out_end;
  uint64_t done;
  segment out[SOCK_BATCH];

  /* Input: buffered bytes, and the payload that is being taken in. */
  uint32_t in_at, in_end;
  frame in;
  int bulk;
  int in_payload;      /* a head was read and its payload is not complete */
  int waits;           /* for the place of the payload: nothing more is read until the caller names it */
  uint64_t need;       /* bytes of it that are missing */
  uint32_t fill;       /* bytes of the filling behind it that are missing */
  unsigned char *into; /* NULL: dropped */
  unsigned char small[GCCL_NET_TEXT];
  unsigned char buffer[SOCK_BUFFER];
} stream;

enum { DEAD_EOF = -1, DEAD_FRAME = -2, DEAD_RESET = -3, DEAD_SILENT = -4 };

typedef struct {
  uint8_t op, signaled, answered, weak;
  uint32_t key, mine, number;
  uint64_t cookie, bytes, off, loff, moved, got, first, last; /* numbers of its frames: [first, last) */
  const unsigned char *local;
  unsigned char data[GCCL_NET_MSG];
} op;

typedef struct {
  uint32_t key, answer;
  uint64_t off, answer_off, bytes, moved;
} ask;

/* A message that has arrived and waits for what it covers. */
typedef struct {
  uint8_t held, weak;
  uint8_t bytes;
  uint32_t after;
  unsigned char data[GCCL_NET_MSG];
} message;

struct conn {
  gccl_net_conn base;
  int told, nstreams, alive, received;
  stream **streams;
  int want_ack, want_bye; /* control frames for the next output of the first stream */
  int byed;               /* the peer has closed, after bye_seq frames */
  uint64_t bye_seq;

  /* Output. Frames [acked, seq) are in the window; each names its stream. */
  uint64_t seq, acked, sent; /* sent: frames that the kernel has taken, some perhaps twice */
  segment window[FRAME_WINDOW];
  int16_t carrier[FRAME_WINDOW]; /* -1: to be given to a stream again */
  uint64_t again;                /* how many of those there are */
  uint32_t op_head, op_next, op_tail, gets;
  uint32_t last_frames; /* of the work request posted last, for weak messages */
  op op[SOCK_OPS];
  uint32_t ask_head, ask_tail;
  ask ask[FRAME_ASKS];
  uint64_t busy_since;
  uint32_t links; /* a bit for each device that its streams use */

  /* Input. Frames before arrived have come and, if messages, were delivered; bits tell of the window behind. */
  uint64_t arrived, ack_sent;
  uint64_t owed_bytes;
  uint32_t owed_frames, quiet;
  uint64_t bits[FRAME_WINDOW / 64];
  message message[FRAME_WINDOW];
  uint32_t weak_held;
};

typedef struct {
  gccl_net_ep base;
  gccl_mrt mrs;
  gccl_conns conns;
  gccl_dones dones;
  int epoll, event;
  uint32_t polls;
  uint64_t looked;
  const gccl_socket_io *io;
  void *io_arg;
  gccl_net_link link[GCCL_NET_LINKS];
  struct {
    uint64_t bytes, since; /* sent and not counted yet; when somebody began to use it, or it was counted */
    uint32_t users;        /* connections with unfinished work */
  } use[GCCL_NET_LINKS];
} endpoint;

static inline endpoint *of(conn *c) { return (endpoint *)c->base.ep; }

/* link.c: what each device carries. */
void link_busy(conn *);
void link_rest(conn *, uint64_t now);

/* out.c: from work requests to frames. */
int out_take(conn *, const gccl_net_wr *, char *why);
void out_frames(conn *);
void out_acked(conn *, uint64_t ack);
void out_lost(conn *, int stream);
void out_complete(conn *);
/* in.c: what arrived. */
void in_begin(stream *);
void in_resume(stream *);
void in_finish(stream *);
int in_deliver(conn *, gccl_net_event *, int max);
void in_acknowledge(conn *, int received);
void in_gave_up(conn *, const char *what);
/* stream.c: bytes. */
void stream_send(stream *);
int stream_receive(stream *);
void stream_died(stream *, int why);
void stream_look(stream *, uint64_t now);

/* The stream of messages, small frames and control frames: the first that lives. */
static inline stream *stream_first(conn *c) {
  for (int i = 0; i < c->nstreams; i++)
    if (!c->streams[i]->dead) return c->streams[i];
  return NULL;
}

uint64_t sock_now(void);

#endif
