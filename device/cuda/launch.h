/* Inside of leader execution: what launch.c, publish.c, execute.c share. */
#ifndef GCCL_CUDA_LAUNCH_H
#define GCCL_CUDA_LAUNCH_H

#include "cuda.h"

enum { PH_NEW, PH_PUBLISH, PH_EXECUTE, PH_FINISH, PH_END }; /* gccl_cuda_batch.phase */

/* gccl_op.phase of an operation on the device. */
enum {
  OP_NEW,
  OP_PUBLISHED, /* its executor is another rank, which has the record */
  OP_LEFT,      /* and this rank does not wait on the host for it */
  OP_ORDERED,   /* and this rank's stream is ordered behind it, or will be by the words of the launch */
  OP_EXECUTED,
  OP_DONE = OP_EXECUTED
};

/* Memory operations for a stream, sent together: 0.7 µs a word, at most 128 at once (tried on driver 580: 129 work, 256 fail). */
enum { MEMOPS = 128 };
typedef struct {
  CUstreamBatchMemOpParams op[MEMOPS];
  unsigned n;
} gccl_cuda_memops;
/* A word of a pair: of a graph (slot > 0) it becomes 1, or is waited for and reset; of eager launches it gets a number or reaches it. */
CUresult gccl_cuda_say(gccl_cuda_memops *, CUstream, CUdeviceptr word, int slot, uint64_t number);
CUresult gccl_cuda_await(gccl_cuda_memops *, CUstream, CUdeviceptr word, int slot, uint64_t number);
/* The word gets a value once it has one of the bits. */
CUresult gccl_cuda_pass(gccl_cuda_memops *, CUstream, CUdeviceptr word, uint32_t bits, uint32_t value);
CUresult gccl_cuda_memops_flush(gccl_cuda_memops *, CUstream);

static inline gccl_cuda_record *record_at(char *shared, uint64_t ring, uint64_t seq, uint64_t size) {
  return (gccl_cuda_record *)(shared + ring) + ((seq - 1) & (size - 1));
}
/* The record of a rank's collective. */
static inline gccl_cuda_record *coll_record(const gccl_cuda_comm *d, int rank, uint64_t seq) {
  return record_at(d->peer[rank].shared, d->layout.colls, seq, GCCL_CUDA_COLLS);
}
/* The record of a message of a rank. */
static inline gccl_cuda_record *message_record(const gccl_cuda_comm *d, int from, int to, uint64_t seq) {
  uint64_t ring = d->layout.messages + (uint64_t)to * GCCL_CUDA_MESSAGES * sizeof(gccl_cuda_record);
  return record_at(d->peer[from].shared, ring, seq, GCCL_CUDA_MESSAGES);
}
/* The record of a rank for an operation: of a collective any rank's, of a message the sender's. */
static inline gccl_cuda_record *gccl_cuda_record_of(const gccl_cuda_comm *d, const gccl_op *x, int rank) {
  if (x->kind == GCCL_DO_COLL) return coll_record(d, rank, x->seq);
  return x->kind == GCCL_DO_SEND ? message_record(d, d->rank, x->root, x->seq) : message_record(d, x->root, d->rank, x->seq);
}
static inline CUdeviceptr words_of(const gccl_cuda_comm *d, int owner, int executor, int slot) {
  return d->peer[owner].words + ((uint64_t)executor * GCCL_CUDA_SLOTS + (uint64_t)slot) * sizeof(gccl_cuda_words);
}
static inline CUdeviceptr ready_word(const gccl_cuda_comm *d, int owner, int executor, int slot) {
  return words_of(d, owner, executor, slot) + offsetof(gccl_cuda_words, ready);
}
static inline CUdeviceptr done_word(const gccl_cuda_comm *d, int owner, int executor, int slot) {
  return words_of(d, owner, executor, slot) + offsetof(gccl_cuda_words, done);
}

/* Its pair for eager launches, for the host. */
static inline gccl_cuda_words *eager_words(const gccl_cuda_comm *d, int owner, int executor) {
  return (gccl_cuda_words *)(d->peer[owner].shared + d->layout.words) + (size_t)executor * GCCL_CUDA_SLOTS;
}
/* Whether the executor's launch with that number has ended. */
static inline int launch_done(const gccl_cuda_comm *d, int executor, uint32_t number) {
  return (int32_t)(__atomic_load_n(&eager_words(d, d->rank, executor)->done, __ATOMIC_ACQUIRE) - number) >= 0;
}

/* The rank that executes an operation of a batch's rank; the rank itself for what needs nobody. */
static inline int executor_of(const gccl_op *x) {
  if (x->kind == GCCL_DO_COLL) return x->spins ? x->comm->rank : gccl_cuda_of(x->comm)->leader;
  return x->kind == GCCL_DO_SEND ? x->root : x->comm->rank;
}

/* launch.c: the first and the last thing that a batch does in its stream: after the communicator's last operation, and known to the
 * next one. 0 or a latched error. */
int gccl_cuda_begin(gccl_cuda_batch *);
int gccl_cuda_end(gccl_cuda_batch *);
/* Makes a stream wait for the executor's launch with that number, however late its call comes. */
CUresult gccl_cuda_wait_launch(const gccl_cuda_comm *, CUstream, int executor, uint32_t number);

/* progress.c: this rank has come to a collective; the end of its last batch, with the event's reference, takes the place of the one
 * before. */
void gccl_cuda_joined(gccl_cuda_comm *, const gccl_op *);
void gccl_cuda_tail_replace(gccl_cuda_comm *, const gccl_cuda_tail *);

/* meet.c: how long a thread waits on the host for another one's call. */
typedef struct gccl_cuda_meeting {
  struct gccl_cuda_meeting *next;
  uint64_t thread;                /* 0: it does not wait */
  const uint64_t *driver;         /* where the thread that it waits for is named; NULL: it is in another process */
  const gccl_cuda_record *record; /* what it waits for: the call with that number, or 0: that the record is taken */
  uint64_t seq;
} gccl_cuda_meeting;
/* This thread makes communicators; NULL without memory. */
gccl_cuda_creator *gccl_cuda_creator_self(void);
/* The thread with that name makes calls for a rank; 0: this thread. */
void gccl_cuda_driven(const gccl_cuda_comm *, uint64_t name);
/* Who executes collectives: the rank of the first thread in an order of threads that is the same in all communicators. */
int gccl_cuda_leader(const gccl_cuda_hello *all, int nranks);
/* Nothing has moved for so long, and b waits for another rank. Whether its wait can have no end or has lasted too long. */
int gccl_cuda_give_up(gccl_cuda_meeting *, const gccl_cuda_batch *b, uint64_t waited_ns);
void gccl_cuda_met(gccl_cuda_meeting *); /* something moved, or all is done */

/* publish.c: which buffers of a rank an operation touches (the others may be anything), and how many parts of count elements they have. */
int gccl_cuda_reads(const gccl_op *);
int gccl_cuda_writes(const gccl_op *);
uint64_t gccl_cuda_parts(const gccl_op *, int receiving);

/* staged.c */
int gccl_cuda_stage_new(gccl_cuda_comm *, char *text, size_t max);
void gccl_cuda_stage_free(gccl_cuda_comm *);

/* graph.c: the pair of words of a batch that is captured; the graph keeps the communicator's state. Negative: a latched error. */
int gccl_cuda_slot(gccl_cuda_batch *b);
/* Whether graphs with operations of the communicator are alive. */
int gccl_cuda_graphs(const gccl_cuda_comm *);

/* publish.c: the batch's operations with another executor. Each returns 0, GCCL_BLOCKED, or an error that is latched. */
int gccl_cuda_publish(gccl_cuda_batch *b, gccl_cuda_batch *all, int n);
int gccl_cuda_finish(gccl_cuda_batch *b);

/* Fills what a record says of this rank's scale and buffers. local: the executor is a thread of this process. */
int gccl_cuda_fill_own(gccl_cuda_batch *b, const gccl_op *x, int local, gccl_cuda_record *r);

/* lend.c: memory that executors in other processes can open, for buffers of the batch that they cannot: 0 or a latched error. Before "ready"
 * and behind "done". */
int gccl_cuda_lend(gccl_cuda_batch *b);
int gccl_cuda_take_back(gccl_cuda_batch *b);
/* Where the executor finds a buffer of an operation: itself, or in the lent memory. which: GCCL_CUDA_HIDDEN_… */
const void *gccl_cuda_lent_at(const gccl_cuda_batch *b, const gccl_op *x, const void *buffer, int which);
void gccl_cuda_lent_free(gccl_cuda_comm *);

/* onesided.c: ncclPutSignal, ncclSignal, ncclWaitSignal as operations of this rank's stream. */
int gccl_cuda_onesided(gccl_cuda_batch *b, gccl_op *x);
/* Whether the signals that x waits for are in the sender's stream; always, where streams wait by a word. */
int gccl_cuda_signalled(const gccl_cuda_batch *b, const gccl_op *x);
void gccl_cuda_signals_drop(gccl_cuda_comm *, int from);
static inline gccl_cuda_signal *gccl_cuda_signal_at(const gccl_cuda_comm *d, int from, int to) {
  return (gccl_cuda_signal *)(d->peer[to].shared + d->layout.signals) + from;
}

static inline void gccl_cuda_taken(gccl_cuda_record *r) { __atomic_store_n(&r->taken, GCCL_CUDA_TAKEN, __ATOMIC_RELEASE); }
static inline int gccl_cuda_is_taken(const gccl_cuda_record *r) { return __atomic_load_n(&r->taken, __ATOMIC_ACQUIRE) == GCCL_CUDA_TAKEN; }
/* One of executor and owner gets the record, and the other one sees that. */
static inline int gccl_cuda_claim(gccl_cuda_record *r, uint32_t as) {
  uint32_t offered = GCCL_CUDA_OFFERED;
  return __atomic_compare_exchange_n(&r->taken, &offered, as, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* left.c: names the ranks that an operation waits for on the host; latches a failure if one of them has left. */
void gccl_cuda_absent(const gccl_op *, char *text, size_t max);
void gccl_cuda_left(const gccl_op *);

/* ticket.c: for launches of several blocks, one for each pair of words; 0, or a result code and a text. Given back without a call of the driver. */
int gccl_cuda_tickets_get(gccl_cuda_comm *, char *text, size_t max);
void gccl_cuda_tickets_put(gccl_cuda_comm *);

/* copies.c: whether a collective is done by copies of the driver (enum gccl_coll); one that is; one copy, if there is anything to do. */
int gccl_cuda_copies_do(const gccl_cuda_comm *, unsigned coll);
int gccl_cuda_copies(const gccl_cuda_batch *, const gccl_leader_work *);
CUresult gccl_cuda_copy(CUstream, CUdeviceptr from, CUdeviceptr to, uint64_t bytes);

/* lanes.c: where kernels of all ranks of a communicator meet. */
typedef struct gccl_cuda_lanes {
  unsigned blocks;                        /* most of an LL kernel; 0: there are no lanes, as all ranks find alike */
  unsigned direct;                        /* most of a direct kernel; 0: they are not asked for */
  char why[256];                          /* there are none, or no memory for them */
  unsigned n;                             /* lanes: one for eager launches, the others for graphs in turn */
  uint64_t bytes;                         /* of a lane */
  void *own;                              /* this rank's areas of all lanes */
  uint64_t area[GCCL_SPIN_RANKS], pinned; /* the first lane's area of each rank as mapped here; bit: it is memory of this process, kept */
  gccl_spin_work work;                    /* what all launches have in common, and what the last one had */
  unsigned lane;                          /* that it is for */
  struct {
    uint64_t id;
    unsigned lane;
  } capture[32];     /* the last ones with spinning kernels */
  uint64_t captures; /* so far */
  struct {
    uint32_t number; /* the last eager launch that had ended */
    int turn;        /* reports so far */
    uint64_t since;  /* when that was first seen, with more under way; 0: nothing was */
  } looked;          /* left.c */
} gccl_cuda_lanes;
/* Decides whether there will be lanes, and offers this rank's memory to the others; 0 or a result code. */
int gccl_cuda_lanes_offer(gccl_cuda_comm *, const gccl_cuda_hello *all);
/* The common work, for the lane of a capture (0: eager launches). Valid until the next call. */
gccl_spin_work *gccl_cuda_lane_work(gccl_cuda_comm *, uint64_t capture);

/* spin.c: marks the operations of a batch that every rank's own kernel does; launches them. The first returns how many, the second 0 or a
 * latched error. */
int gccl_cuda_spin_choose(gccl_cuda_batch *);
int gccl_cuda_spin(gccl_cuda_batch *);

/* execute.c: an average is a scaled or divided sum; enum gccl_work_op, and its factors for n ranks. */
unsigned gccl_cuda_work_op(uint8_t red, uint8_t dtype);
void gccl_cuda_average(gccl_leader_work *, unsigned n);
/* execute.c: those that this rank executes. */
int gccl_cuda_execute(gccl_cuda_batch *b);

#endif
