/* Inside of leader execution: what launch.c, publish.c, execute.c share. */
#ifndef GCCL_CUDA_LAUNCH_H
#define GCCL_CUDA_LAUNCH_H

#include "cuda.h"

/* gccl_op.phase of an operation on the device. */
enum {
  OP_NEW,
  OP_PUBLISHED, /* its executor is another rank, which has the record */
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
CUresult gccl_cuda_memop(gccl_cuda_memops *, CUstream, int operation, CUdeviceptr, uint32_t value);
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
static inline CUdeviceptr words_of(const gccl_cuda_comm *d, int owner, int executor, int slot) {
  return d->peer[owner].words + ((uint64_t)executor * GCCL_CUDA_SLOTS + (uint64_t)slot) * sizeof(gccl_cuda_words);
}
static inline CUdeviceptr ready_word(const gccl_cuda_comm *d, int owner, int executor, int slot) {
  return words_of(d, owner, executor, slot) + offsetof(gccl_cuda_words, ready);
}
static inline CUdeviceptr done_word(const gccl_cuda_comm *d, int owner, int executor, int slot) {
  return words_of(d, owner, executor, slot) + offsetof(gccl_cuda_words, done);
}

/* The rank that executes an operation of a batch's rank; the rank itself for what needs nobody. */
static inline int executor_of(const gccl_op *x) {
  if (x->kind == GCCL_DO_COLL) return 0;
  return x->kind == GCCL_DO_SEND ? x->root : x->comm->rank;
}

/* launch.c: the first and the last thing that a batch does in its stream: after the communicator's last operation, and known to the
 * next one. 0 or a latched error. */
int gccl_cuda_begin(gccl_cuda_batch *);
int gccl_cuda_end(gccl_cuda_batch *);

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

/* onesided.c: ncclPutSignal, ncclSignal, ncclWaitSignal as operations of this rank's stream. */
int gccl_cuda_onesided(gccl_cuda_batch *b, gccl_op *x);
/* Whether the signals that x waits for are in the sender's stream; always, where streams wait by a word. */
int gccl_cuda_signalled(const gccl_cuda_comm *, const gccl_op *x);
void gccl_cuda_signals_drop(gccl_cuda_comm *, int from);
static inline gccl_cuda_signal *gccl_cuda_signal_at(const gccl_cuda_comm *d, int from, int to) {
  return (gccl_cuda_signal *)(d->peer[to].shared + d->layout.signals) + from;
}

static inline void gccl_cuda_taken(gccl_cuda_record *r) { __atomic_store_n(&r->taken, 1, __ATOMIC_RELEASE); }

/* execute.c: those that this rank executes. */
int gccl_cuda_execute(gccl_cuda_batch *b);

#endif
