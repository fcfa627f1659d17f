/* The seam between whoever moves data (net/gin's proxy, a C thread) and what carries it (loop, shm, socket, ib).
 *
 * Objects. An endpoint is one rank's use of a transport: all its connections, one event queue. A connection leads to one
 * endpoint of a peer and carries both directions. Endpoints and connections are made and connected by Go (package transport);
 * the data path below is C.
 *
 * Threads. post, poll, wait and close_conn belong to ONE thread at a time per endpoint (its data-path thread). reg and import
 * may be called from any thread; dereg by the data-path thread, or while there is none. wake: any thread. Connections may be
 * added by other threads while poll runs. fault and stats may be read by any thread.
 *
 * Ownership. A source of PUT and a destination of GET belong to the transport from post until a completion of the
 * connection that covers it (see SIGNALED). The caller keeps a registration until no peer uses it any more: after a dereg a
 * peer's access is that connection's fault, never a store.
 *
 * Order.
 * - PUTs, PUT_INLINEs and GETs of a connection are unordered among each other.
 * - A message is returned by the receiver's poll once. All bytes of what it covers are in the receiver's memory before and
 *   happen-before the return of that poll in its thread (an acquire; a GPU or another thread needs a release of the
 *   receiver's). A strong message covers everything put before it on its connection, and strong messages arrive in the order
 *   of posting. A weak one covers the work request posted immediately before it (which may be in an earlier batch), and may overtake.
 * - A SEND is unordered like a PUT. One whose place is not there yet may hold up all that was posted behind it.
 * - Completions of a connection come in the order of posting; a completion covers all work before it. It says: sources may be
 *   used again, destinations of GETs are filled. It says nothing of memory at the peer: only messages do.
 *
 * Errors. The first failure of a connection is latched in its fault, with a text that names transport, peer and cause, and
 * poll reports it once as GCCL_NET_EV_FAULT. After that post answers GCCL_NET_EFAULT, no event of that connection comes, and
 * sources and destinations are free after close_conn only. Other connections go on. Nothing here blocks, except wait for at most the time given,
 * and close for at most the endpoint's linger time.
 */
#ifndef GCCL_NET_TRANSPORT_H
#define GCCL_NET_TRANSPORT_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define GCCL_NET_VERSION 1u

enum {
  GCCL_NET_TEXT = 256,      /* bytes of an error text with its zero */
  GCCL_NET_CONN_BLOB = 256, /* most bytes of a connection's blob */
  GCCL_NET_MEM_BLOB = 64,   /* most bytes of a registration's blob */
  GCCL_NET_MSG = 64,        /* most bytes of a message, and of PUT_INLINE */
};

/* Results of the calls; 0 and positive numbers are success. */
enum {
  GCCL_NET_EINVAL = -1,   /* a mistake of the caller, nothing is latched */
  GCCL_NET_EFAULT = -2,   /* the connection or the endpoint has failed: see fault */
  GCCL_NET_ENOMEM = -3,   /* out of memory or of a resource with a limit */
  GCCL_NET_ENOTSUP = -4,  /* this transport cannot do that with this memory */
  GCCL_NET_ESYSTEM = -5,  /* a system call or a library failed */
  GCCL_NET_ETIMEOUT = -6, /* only while connecting: the peer did not answer in time */
  GCCL_NET_EREMOTE = -7,  /* only in faults: the peer has ended, does not answer, or broke the protocol */
};

typedef struct gccl_net_ops gccl_net_ops;
typedef struct gccl_net_ep gccl_net_ep;
typedef struct gccl_net_conn gccl_net_conn;

/* First failure. code is stored last (release; acquired by gccl_net_faulted); 1 while the text is being written. */
typedef struct {
  _Atomic int32_t code;
  char text[GCCL_NET_TEXT];
} gccl_net_fault;

/* What a connection has carried. Written by the data-path thread, in the way of gccl_net_count; readers may see a mixture of moments. */
typedef struct {
  _Atomic uint64_t tx_bytes, rx_bytes; /* payload; rx where a receiver's CPU sees it, otherwise 0 */
  _Atomic uint64_t tx_ops, tx_msgs, rx_msgs;
  _Atomic uint64_t busy_ns; /* time during which there was unfinished work: tx_bytes / busy_ns is the rate that the link gave */
  _Atomic uint64_t retries; /* work sent again after a path was lost */
  _Atomic uint32_t paths;   /* streams or queue pairs that still carry */
} gccl_net_stats;

/* A device that an endpoint sends over, and what it has carried: payload and heads, and the time during which connections over it had
 * unfinished work. Both grow when a connection comes to rest, so that their growth between two looks gives the rate of the device under
 * load. Written by the data-path thread. */
typedef struct {
  char name[32];
  int32_t port;
  _Atomic uint64_t bytes, busy_ns;
} gccl_net_link;

enum { GCCL_NET_LINKS = 32 };

/* Transports begin their own structures with these. */
struct gccl_net_ep {
  const gccl_net_ops *ops;
  int32_t rank;         /* of the owner, for texts */
  gccl_net_fault fault; /* of the endpoint: device gone. Connections fail for themselves. */
  int32_t nlinks;       /* 0 where the transport does not count them */
  gccl_net_link *link;  /* in place before the first connection */
};

struct gccl_net_conn {
  const gccl_net_ops *ops;
  gccl_net_ep *ep;
  int32_t peer;                  /* rank at the other end */
  void *user;                    /* the caller's */
  _Atomic(gccl_net_conn *) next; /* of the endpoint, for its transport */
  gccl_net_fault fault;
  gccl_net_stats stats;
  int lazy; /* set by the caller before anything arrives: nobody waits for the completions of the peer's work, so acknowledge late (socket) */
  /* Set by the transport (socket): it carries GCCL_NET_SEND, which asks for no registration of the receiver and no news of it, and the
   * source of a PUT or a SEND may be any memory of this process: local is NULL then, and loff its address. */
  int sends;
  /* For them, set by the caller before anything arrives: the place of this part of the SEND with that number, which stays
   * until all of it is covered by a message. NULL: there is none yet, poll asks again, and wait may return at once meanwhile.
   * GCCL_NET_NOWHERE: there will be none, and the connection fails. */
  unsigned char *(*land)(void *user, uint32_t number, uint64_t off, uint64_t bytes);
  _Atomic uint32_t unsent; /* of socket and ib: whether posted work waits for another call before it is the kernel's or the NIC's */
};

/* Memory to register. dmabuf is -1, or a descriptor whose byte dmabuf_offset is addr (which need not be mapped then). */
typedef struct {
  void *addr;
  uint64_t bytes;
  int32_t dmabuf;
  uint64_t dmabuf_offset;
} gccl_net_mem;

#define GCCL_NET_NOWHERE ((unsigned char *)-1)

/* A registration. blob goes to the peers, who import it. Transports append their own. */
typedef struct {
  gccl_net_ep *ep;
  unsigned char *addr;
  uint64_t bytes;
  uint32_t blob_bytes;
  unsigned char blob[GCCL_NET_MEM_BLOB];
} gccl_net_mr;

/* A peer's registration, imported: plain data, may be copied. Belongs to the connections between these two endpoints. */
typedef struct {
  uint64_t base, bytes;
  uint32_t key[12];
} gccl_net_rmr;

enum gccl_net_op {
  GCCL_NET_PUT = 1,        /* local + loff → remote + roff, bytes (any number, also 0) */
  GCCL_NET_PUT_INLINE = 2, /* data → remote + roff, bytes ≤ GCCL_NET_MSG; 8 aligned bytes to an aligned place are stored as one */
  GCCL_NET_GET = 3,        /* remote + roff → local + loff, bytes */
  GCCL_NET_MSGSEND = 4,    /* data, bytes ≤ GCCL_NET_MSG, to the receiver's poll */
  GCCL_NET_FLUSH =
      5, /* moves nothing; its completion covers all before it, and what GETs brought is visible to devices that read this memory */
  GCCL_NET_SEND = 6, /* where conn->sends: local + loff → the place that the receiver names for the number roff, bytes */
};

enum {
  GCCL_NET_WEAK = 1,     /* of a message: covers only the work request before it */
  GCCL_NET_SIGNALED = 2, /* report completion with the cookie. Work without it completes silently */
};

/* A work request: two lines. Ranges are checked against both registrations when posted. */
typedef struct {
  uint8_t op, flags;
  uint8_t pad[2];
  uint32_t step; /* of the profilers that this is for (device/layout/profiler.h), for transports with events of their own; 0: none */
  uint64_t cookie;
  uint64_t bytes;
  const gccl_net_mr *local;
  uint64_t loff;
  const gccl_net_rmr *remote; /* read during post only */
  uint64_t roff;
  uint64_t reserved;
  unsigned char data[GCCL_NET_MSG];
} gccl_net_wr;

_Static_assert(sizeof(gccl_net_wr) == 128, "a work request is two lines");

enum gccl_net_event_kind {
  GCCL_NET_EV_DONE = 1,  /* cookie of a signalled work request */
  GCCL_NET_EV_MSG = 2,   /* data, bytes */
  GCCL_NET_EV_FAULT = 3, /* conn has failed, conn->fault says why */
};

typedef struct {
  gccl_net_conn *conn;
  uint32_t kind, bytes;
  uint64_t cookie;
  unsigned char data[GCCL_NET_MSG];
} gccl_net_event;

/* The table of a transport. why, where given, receives a text of at most GCCL_NET_TEXT bytes when the result is negative. */
struct gccl_net_ops {
  uint32_t version, size; /* GCCL_NET_VERSION, sizeof(gccl_net_ops) */
  const char *name;

  int (*reg)(gccl_net_ep *, const gccl_net_mem *, gccl_net_mr **, char *why);
  void (*dereg)(gccl_net_mr *);
  /* Decodes and checks a peer's blob, which is foreign data. */
  int (*import)(gccl_net_conn *, const void *blob, uint32_t bytes, gccl_net_rmr *, char *why);

  /* Takes the first n of the work requests and returns how many: fewer, also 0, when queues are full (poll, then retry).
   * A mistake in the first one is GCCL_NET_EINVAL with a text in why; one further on ends the batch before it. */
  int (*post)(gccl_net_conn *, const gccl_net_wr *, int n, char *why);

  /* Makes progress without blocking and returns the number of events stored, at most max. */
  int (*poll)(gccl_net_ep *, gccl_net_event *, int max);

  /* Sleeps until something may have arrived, wake was called, or ns have passed. NULL: the transport cannot; nap instead. */
  void (*wait)(gccl_net_ep *, uint64_t ns);
  void (*wake)(gccl_net_ep *); /* NULL with wait */

  void (*close_conn)(gccl_net_conn *); /* frees it */
  void (*close)(gccl_net_ep *);        /* closes remaining connections, frees it. Registrations must be gone or are freed */
};

/* ---- For transports and their callers ------------------------------------------------------------------------------- */

/* Latches a failure: the first one wins. Returns 1 if this was it. */
__attribute__((format(printf, 3, 4), unused)) static int gccl_net_fail(gccl_net_fault *f, int code, const char *format, ...) {
  int32_t none = 0;
  if (!atomic_compare_exchange_strong_explicit(&f->code, &none, 1, memory_order_acquire, memory_order_relaxed)) return 0;
  va_list args;
  va_start(args, format);
  vsnprintf(f->text, sizeof f->text, format, args);
  va_end(args);
  atomic_store_explicit(&f->code, code, memory_order_release);
  return 1;
}

/* 0, or the negative code of a failure whose text is complete. */
static inline int gccl_net_faulted(const gccl_net_fault *f) {
  int32_t code = atomic_load_explicit((_Atomic int32_t *)&f->code, memory_order_acquire);
  return code < 0 ? code : 0;
}

__attribute__((format(printf, 3, 4), unused)) static int gccl_net_why(char *why, int code, const char *format, ...) {
  if (why) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, GCCL_NET_TEXT, format, args);
    va_end(args);
  }
  return code;
}

/* Counters have one writer: a plain add would be a data race with readers, an atomic add a locked instruction. */
static inline void gccl_net_count(_Atomic uint64_t *c, uint64_t n) {
  atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Whether [off, off + bytes) lies in a range of size bytes. */
static inline int gccl_net_within(uint64_t size, uint64_t off, uint64_t bytes) { return off <= size && bytes <= size - off; }

/* Checks a work request against both registrations: 0 or GCCL_NET_EINVAL with a text. */
__attribute__((unused)) static int gccl_net_check(const gccl_net_conn *c, const gccl_net_wr *w, char *why) {
  int moves = w->op == GCCL_NET_PUT || w->op == GCCL_NET_GET;
  if (w->op < GCCL_NET_PUT || w->op > (c->sends ? GCCL_NET_SEND : GCCL_NET_FLUSH))
    return gccl_net_why(why, GCCL_NET_EINVAL, "%s: work request has operation %u", c->ops->name, w->op);
  int anywhere = c->sends && !w->local && w->op != GCCL_NET_GET;
  if ((moves || w->op == GCCL_NET_SEND) && !anywhere && (!w->local || !gccl_net_within(w->local->bytes, w->loff, w->bytes)))
    return gccl_net_why(why, GCCL_NET_EINVAL, "%llu bytes at offset %llu are not inside the local registration of %llu bytes",
                        (unsigned long long)w->bytes, (unsigned long long)w->loff, (unsigned long long)(w->local ? w->local->bytes : 0));
  if ((moves || w->op == GCCL_NET_PUT_INLINE) && (!w->remote || !gccl_net_within(w->remote->bytes, w->roff, w->bytes)))
    return gccl_net_why(why, GCCL_NET_EINVAL, "%llu bytes at offset %llu are not inside the peer's registration of %llu bytes",
                        (unsigned long long)w->bytes, (unsigned long long)w->roff, (unsigned long long)(w->remote ? w->remote->bytes : 0));
  if ((w->op == GCCL_NET_PUT_INLINE || w->op == GCCL_NET_MSGSEND) && w->bytes > GCCL_NET_MSG)
    return gccl_net_why(why, GCCL_NET_EINVAL, "%llu bytes in a work request that carries %d", (unsigned long long)w->bytes, GCCL_NET_MSG);
  return 0;
}

#endif
