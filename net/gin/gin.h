/* One rank's GIN object: its connections, what peers may reach of its memory, its contexts and its port, and the thread that
 * serves them.
 *
 * Everything behind `lock` belongs to whoever holds it: the object's own thread, or a caller that helps. The transports' data
 * path is used under it alone. Producers of rings and readers of signals, counters and done words need no lock.
 */
#ifndef GCCL_GIN_H
#define GCCL_GIN_H

#include <pthread.h>

#include "../../device/layout/comm.h"
#include "../../device/layout/mover.h"
#include "../transport/card.h"
#include "../transport/transport.h"
#include "gfd.h"
#include "nic.h"

enum {
  GIN_ENDPOINTS = 6, /* transports of one object */
  GIN_WORK = 64,     /* work requests of a peer that wait for its connection */
  GIN_WINDOWS = 64,  /* of a communicator: as in struct ncclComm */
  GIN_CONTEXTS = 64, /* guess: a device communicator asks for 4 by default */
  GIN_EVENTS = 64,   /* taken from a transport at a time */
  GIN_TEXT = 256,
  GIN_ANSWERS = GIN_CONTEXTS * (NIC_FETCHES + 1) /* to atomics of a peer, and to a probe of each context */
};

/* Memory that this object has registered with every endpoint. */
typedef struct {
  char *base; /* NULL: unused */
  uint64_t bytes;
  gccl_net_mr *mr[GIN_ENDPOINTS];
} gin_region;

typedef struct {
  uint32_t number; /* 0: unused */
  gin_region local;
  gccl_net_rmr
      *remote;         /* by rank; with a mover bases are addresses here, this rank's too, or 0, and the first key is the window's number */
  gccl_gdaki_mem keys; /* the same for kernels with queues of their own; rkeys by rank */
  gccl_card_mr *mr;    /* with a card */
} gin_window;

typedef struct {
  gccl_net_conn *conn; /* NULL: not reached through the network */
  int32_t rank;
  uint8_t endpoint;
  uint8_t dirty;           /* has work that is not posted */
  uint8_t left;            /* the rank has said that it leaves: its connection may end */
  uint8_t faulted;         /* the connection has failed; fault says why */
  uint32_t sent, received; /* messages: numbers of the last ones */
  uint32_t first, nwork;   /* work [first, first + nwork) */
  uint64_t tracked;        /* tracked commands posted */
  uint64_t faulted_ns;
  char fault[GIN_TEXT];
  struct gin_answer *answers; /* owed to its atomics: a ring of GIN_ANSWERS; NULL before the first */
  uint32_t answer, nanswers;  /* ring [answer, answer + nanswers) */
  gccl_net_rmr area, mirror;  /* of this peer: its area, and its mirrors */
  uint64_t mirror_off;        /* of its mirror of this rank among them */
  uint64_t here_off;          /* of this rank's mirror of it */
  struct gin_lane *lane;      /* with a mover */
  gccl_net_wr work[GIN_WORK];
} gin_peer;

/* An answer to an atomic of a peer that waits for room. */
typedef struct gin_answer {
  uint32_t context, id;
  uint8_t probe, syndrome;
  uint64_t old;
} gin_answer;

typedef struct gin_lane gin_lane;

/* What the agent adds to words that it cannot touch: adds.c. */
typedef struct {
  uint64_t at, value;
  int32_t rank;   /* who has asked */
  uint8_t wanted; /* the old value, as an answer */
  gin_answer answer;
} gin_add_entry;
typedef struct {
  gin_add_entry *add; /* a ring */
  uint32_t room, first, n;
  uint32_t taken; /* the first ones, in the value that is being stored */
  uint32_t mark;
  int state;
  const uint64_t *from;
  uint64_t word;
} gin_adds;

typedef struct gin gin;

/* A context: signals and counters of its own, and one ring of descriptors for each peer. Laid out so that a GPU can be the
 * producer: rings, indices, signals and counters are plain memory of their owner, who may have pinned it. */
typedef struct {
  uint8_t used, format; /* enum gfd_format, of rings */
  uint32_t number;      /* in messages, keys and cookies: contexts are numbered in the order of opening, which is the same at all ranks */
  uint32_t nsignals, ncounters, depth;
  uint64_t *signals, *counters;
  char *rings;       /* rank r at r × depth × bytes of a descriptor */
  uint32_t *pis;     /* by rank: descriptors claimed by producers; with a mover kernels have theirs on the device */
  uint32_t *cis;     /* by rank: descriptors completed; stored with release */
  uint32_t *seen;    /* by rank: descriptors taken */
  uint32_t *counter; /* by rank and slot: the counter that a completion raises, plus 1; 0 none */
  /* Signals that need no agent: this rank's sums for each rank are stored there by the mover, behind what they cover. NULL: they go by messages. */
  uint64_t *told; /* by rank and signal */
  uint32_t told_window;
  uint64_t told_off;
  /* Send queues, in place of rings. */
  const struct gin_provider *by; /* who executes them; NULL for descriptors */
  gccl_sendq **queue;            /* by rank */
  uint32_t *signal_rkeys;        /* by rank: of its signals. Host order, as sink_lkey */
  uint32_t sink_lkey;            /* of where the old values of atomics go, at address 0 */
  gccl_gdaki_qp *shown;          /* by rank: what kernels have of the queues; NULL before */
  nic_qp *qp;                    /* by rank: the software NIC's */
  uint64_t sink;
  uint64_t *old_values;      /* a card's sink */
  gccl_card_mr *mr, *old_mr; /* of signals and sink */
  uint64_t looked_ns;        /* a card's: when completions were looked at for errors */
  uint8_t looks, failed;     /* in this turn; an error was told */
} gin_context;

/* Who executes send queues. */
typedef struct gin_provider {
  int (*open)(gin *, gin_context *, char *why);     /* queues of at least x->depth to all ranks, and keys */
  int (*serve)(gin *, gin_context *, int32_t peer); /* 1 if anything moved */
  int (*done)(const gin_context *, int32_t peer);   /* whether all that the device was told of has completed */
  int (*busy)(const gin_context *, int32_t peer);   /* whether the CPU has something under way */
  void (*close)(gin *, gin_context *);
} gin_provider;
extern const gin_provider gin_software_nic, gin_card;

struct gin {
  gccl_port port; /* first: help gets its address */
  int32_t rank, nranks;
  struct ncclComm *comm;          /* whose areas and mirrors the agent writes; NULL for an object of contexts alone */
  gccl_net_ep *ep[GIN_ENDPOINTS]; /* by the place of the transport in the list of candidates; NULL: not used */
  gin_peer *peer;                 /* nranks */
  int32_t *dirty;                 /* peers with work that is not posted */
  int ndirty;
  gin_region area, mirrors;
  gin_window window[GIN_WINDOWS];
  gin_context context[GIN_CONTEXTS];
  gccl_net_event event[GIN_EVENTS];
  /* A mistake that is nobody's connection's: a descriptor that makes no sense. First one; text before code. */
  gccl_net_fault fault;
  nic_orders orders;
  gccl_card *card; /* whose queues kernels get; NULL: the software NIC's */
  /* For windows and kernels of a device whose memory the CPU cannot touch; NULL: the CPU reaches all memory. */
  gccl_mover *mover;
  gin_adds adds;
  uint32_t mover_done; /* how far it was, when it was looked at */
  uint64_t mover_ns;   /* since then; 0: not for long */
  uint32_t opened;     /* contexts so far */
  uint32_t owing;      /* answers of all peers that wait for room */
  uint32_t numbers;    /* of windows: the highest so far */

  /* The thread. */
  pthread_t thread;
  int running;
  uint64_t spin_ns, nap_ns;                         /* silence before it naps (UINT64_MAX: never); length of a nap */
  int cpu;                                          /* to run on; -1 any */
  _Atomic(uint32_t) stop, lock, deep, wanted;       /* wanted: who wait for the lock and must get it */
  _Atomic(uint64_t) helped, naps, served, first_ns; /* first_ns: from a nap's end to the first thing that moved, the last time */
};

/* core.c */
gin *gin_new(int32_t rank, int32_t nranks, struct ncclComm *comm);
void gin_free(gin *); /* Preconditions: stopped; endpoints are closed */
void gin_endpoint(gin *, int slot, gccl_net_ep *);
void gin_connect(gin *, int32_t rank, int slot, gccl_net_conn *); /* NULL: not any more */
void gin_acquire(gin *);                                          /* the lock, whatever the thread does */
void gin_release(gin *);
int gin_try(gin *);
void gin_rouse(gin *);             /* makes a sleeping thread give the lock up */
int gin_serve(gin *);              /* under the lock: moves whatever can be moved; 1 if anything did */
int gin_help(gin *);               /* the same for a caller without the lock: 0 if somebody else is at it */
int gin_drain(gin *, uint64_t ns); /* until all commands and work are posted; 1 if that came in time */

/* Room for n work requests of a peer; 0 if its connection does not take more now. */
int gin_room(gin *, gin_peer *, uint32_t n);
/* The next work request of a peer. Preconditions: gin_room. */
gccl_net_wr *gin_work(gin *, gin_peer *, uint8_t op);
/* A message of at most 64 bytes that begins with a gccl_msg_head, whose number is filled in. */
gccl_net_wr *gin_message(gin *, gin_peer *, const void *message, uint32_t bytes, int weak);
/* Fills the local end of a put or get; 0 if the range is registered nowhere. */
int gin_local(gin *, gin_peer *, gccl_net_wr *, const void *at, uint64_t bytes);
gin_window *gin_window_of(gin *, uint32_t number);
/* Raises or adds to a word as its owner's agent. Readers acquire. */
void gin_signal(uint64_t *word, unsigned op, uint64_t value);
void gin_peer_failed(gin *, gin_peer *, const char *text);
/* A message has come; a work request has completed. */
void gin_received(gin *, gin_peer *, const unsigned char *data, uint32_t bytes);
void gin_completed(gin *, gin_peer *, uint64_t cookie);
/* Whether a rank is this one and its memory the CPU's: then things are done at once. Otherwise it is reached through work requests, if it is. */
static inline int gin_at_once(const gin *g, int32_t rank) { return rank == g->rank && !g->mover; }
static inline int gin_reached(const gin *g, const gin_peer *p) { return p->conn || p->rank == g->rank; }
uint64_t gin_now(void);

/* lane.c, with a mover. why has GCCL_NET_TEXT bytes */
int gin_lanes_open(gin *, const gccl_mover_ops *, struct ncclComm *, int on_device, char *why); /* before there are windows and contexts */
void gin_lanes_close(gin *);
int gin_lane_serve(gin *, gin_peer *); /* moves on what is for a peer; 1 if anything did */
int gin_lanes_turn(gin *);             /* the rest of a turn */
int gin_lane_busy(const gin_peer *);
void gin_lanes_settle(gin *, uint64_t ns); /* until nothing is under way */

/* far.c, with a mover: ranks whose windows it does not reach. Preconditions of open: lanes; the rank is connected, and all ranks open alike. Each imports
 * (join) the registration (memory) that the other has for it. why has GCCL_NET_TEXT bytes */
int gin_far_open(gin *, int32_t rank, char *why);
const gccl_net_mr *gin_far_memory(const gin *, int32_t rank); /* NULL: the rank is none of them */
int gin_far_join(gin *, int32_t rank, const void *blob, uint32_t bytes, char *why);
void gin_far_deregister(gin *); /* Preconditions: no connection */
void gin_far_close(gin *, gin_peer *);
int gin_far_turn(gin *);
void gin_far_carried(gin_peer *, uint64_t cookie);
/* A message has come: of far.c's own, which have no number of the peer's other messages, or such another one. 1 if it is taken, to be obeyed later. */
int gin_far_heard(gin *, gin_peer *, const unsigned char *data, uint32_t bytes);
int gin_far_hold(gin *, gin_peer *, const unsigned char *data, uint32_t bytes);

/* adds.c, with a mover: adds to a word of a window of this rank, and answers with its old value if answer is not NULL. 0: out of memory */
int gin_add(gin *, gin_peer *, char *at, uint64_t value, const gin_answer *answer);
int gin_adds_serve(gin *);

/* memory.c. why has GCCL_NET_TEXT bytes. */
int gin_register(gin *, gin_region *, void *base, uint64_t bytes, char *why); /* with the endpoints that have it not yet */
void gin_deregister(gin_region *);
int gin_import(gin *, int32_t rank, const void *blob, uint32_t bytes, gccl_net_rmr *, char *why);
int gin_window_add(gin *, uint32_t number, void *base, uint64_t bytes, gin_window **, char *why);
/* The same with a mover: a window of the communicator, which has the addresses of all ranks' parts. */
int gin_window_mapped(gin *, const gccl_window *, gin_window **, char *why);
void gin_window_drop(gin *, uint32_t number);
/* Zeros for kernels and the CPU, at the beginning of two lines. */
void *gin_alloc(gin *, uint64_t bytes);
void gin_give(gin *, void *);
void gin_window_end(gin_window *);
char *gin_mirror(uint64_t bytes);  /* memory for mirrors: pages come when they are touched */
void gin_unmirror(gin *);          /* gives it back, and the area of an object without a communicator. Preconditions: no connection */
void gin_dismiss(gin *, int slot); /* ends the connections and registrations of an endpoint, before it is closed */

/* prove.c: a put and a signal behind it, to show that a connection carries both. Preconditions: area and mirrors are registered.
 * gin_prove is 0 without room. gin_proved is 1 if a peer's have come, 0 if not yet, -1 if the signal came and the bytes did not. */
enum { GIN_PROOF = 64 };
uint64_t gin_proof_area(int32_t nranks); /* bytes of the area of an object without a communicator; its mirrors have GIN_PROOF each */
int gin_prove(gin *, int32_t rank, const unsigned char pattern[GIN_PROOF]);
int gin_proved(gin *, int32_t rank, const unsigned char pattern[GIN_PROOF]);

/* port.c: the executor's commands, and the agent of areas and mirrors. */
int gin_port_open(gin *, uint32_t depth);
int gin_port_serve(gin *);
void gin_leave(gin *); /* this rank's progress, and that it leaves, to all peers */
void gin_agent(gin *, gin_peer *, const unsigned char *message, uint32_t bytes);

/* context.c: descriptors. */
gin_context *gin_context_new(gin *, int *slot);      /* marked as used, with its number; NULL: there is no room */
gin_context *gin_context_of(gin *, uint32_t number); /* NULL: not open */
static inline int gin_context_was(const gin *g, uint32_t number) { return number < g->opened; } /* open, or it has been */
int gin_context_open(gin *, int format, uint32_t nsignals, uint32_t ncounters, uint32_t depth);
void gin_context_close(gin *, int context);                 /* its slot; also after a failed opening */
void gin_context_start(gin *, int context, uint32_t index); /* of all rings, before their first use */
int gin_context_serve(gin *);
int gin_context_pending(const gin_context *, int32_t peer); /* the same of one ring, but for what has been claimed alone */
int gin_context_busy(gin *); /* under the lock: whether something that kernels have asked for has not completed */
void gin_context_done(gin *, gin_peer *, uint64_t cookie);
/* What a kernel does, by a CPU: claims an index, waits for room as long as *abort is 0, stores the words of the descriptor; rouses the thread.
 * Returns the index plus 1, 0 after an abort or for a descriptor that the format cannot say. Any number of threads. */
uint64_t gin_context_post(gin *, int context, int32_t peer, const gfd *, const uint32_t *abort);
/* Whether the descriptors of a ring up to an index plus 1 have completed. Wrap-safe. */
int gin_context_reached(gin *, int context, int32_t peer, uint32_t next);
void gin_context_signal(gin *, gin_peer *, const gccl_msg_signal *);

/* device.c: contexts as kernels see them. */
typedef struct {
  int nic;                                /* send queues, of the card or the software NIC; otherwise descriptors */
  int format;                             /* of descriptors */
  uint32_t context_bytes;                 /* of a gccl_proxy_context as the kernels' header has it */
  uint32_t n, nsignals, ncounters, depth; /* contexts, and of each */
  uint32_t window;                        /* with a mover, and descriptors: that has the words in which ranks tell their signals */
  uint64_t told;                          /* where in it, by context, rank and signal; 0: nowhere */
} gin_want;
typedef struct {
  int n, first[GIN_CONTEXTS]; /* numbers of the contexts */
  /* n × gccl_proxy_context (context_bytes apart) or gccl_gdaki_context, where kernels see them; one block with all they point to, but the
   * contexts' own memory */
  void *contexts;
} gin_device;
/* NULL with a text. All ranks open the same in the same order. */
gin_device *gin_device_open(gin *, const gin_want *, char *why);
/* With a card each rank has an address for each of its queues, and a key of its signals: this rank's for a peer, and a peer's for this rank, before
 * any kernel starts. */
enum { GIN_ADDRESS = GCCL_CARD_ADDRESS + 4 };
void gin_device_address(gin *, const gin_device *, int context, int32_t peer, unsigned char out[GIN_ADDRESS]);
int gin_device_join(gin *, gin_device *, int context, int32_t peer, const unsigned char in[GIN_ADDRESS], char *why);
int gin_device_idle(gin *, const gin_device *); /* whether all that kernels have asked for is done */
/* Preconditions: no kernel uses it, here or at a peer. keep leaves the memory that kernels know where it is, for ever: a kernel may still run. */
void gin_device_close(gin *, gin_device *, int keep);

/* queues.c: contexts with send queues. -1 with a text. depth: a power of two */
int gin_queues_open(gin *, uint32_t nsignals, uint32_t ncounters, uint32_t depth, char *why);

/* nic.c: the software NIC. */
void gin_nic_start(nic_qp *, uint32_t index); /* before its first use */
int32_t gin_nic_first(gin *);                 /* rank whose queue is served first in this turn */
int gin_nic_answer(gin *);                    /* what is owed to peers' atomics */
void gin_nic_done(gin *, gin_peer *, uint64_t cookie);
void gin_nic_fetch(gin *, gin_peer *, const gccl_msg_fetch *);
void gin_nic_fetched(gin *, gin_peer *, const gccl_msg_fetched *);
void gin_nic_owe(gin *, gin_peer *, const gin_answer *); /* an answer that is to be given when there is room */
/* Tells of entries up to a number: what a kernel does by record and doorbell, behind the entries themselves. */
void gin_nic_ring(gin *, int context, int32_t peer, uint32_t next);

/* thread.c */
int gin_start(gin *);
void gin_stop(gin *);

/* Cookies: what a completion is about, in the top byte. Commands of the executor have their number in the trace as index, and their step in
 * place of a context. */
enum { GIN_COOKIE_TRACKED = 1, GIN_COOKIE_CONTEXT = 2, GIN_COOKIE_NIC = 3, GIN_COOKIE_TRACED = 4, GIN_COOKIE_FAR = 5 };
static inline uint64_t gin_cookie(unsigned kind, uint32_t context, uint32_t index) {
  return (uint64_t)kind << 56 | (uint64_t)(context & 0xffffff) << 32 | index;
}
static inline uint32_t gin_cookie_context(uint64_t cookie) { return (uint32_t)(cookie >> 32) & 0xffffff; }

#endif
