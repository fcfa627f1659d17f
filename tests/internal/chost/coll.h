/* coll.h: one collective as a test case: buffers of four kinds with guards, the call, and the comparison with the
 * oracle. Works for any number of local ranks; all ranks run the same case at the same time. */
#ifndef CONF_COLL_H
#define CONF_COLL_H

#include "conf.h"
#include "mem.h"
#include "oracle.h"

enum coll_kind {
  K_ALLREDUCE,
  K_REDUCE,
  K_REDUCESCATTER,
  K_ALLGATHER,
  K_BROADCAST,
  K_BCAST,
  K_ALLTOALL,
  K_GATHER,
  K_SCATTER,
  K_SENDRECV,
  K_COUNT
};
extern const char *const coll_names[K_COUNT];
static inline int coll_reduces(int kind) { return kind <= K_REDUCESCATTER; }

/* Where buffers live: malloc (cuMemAlloc with CUDA), ncclMemAlloc without a window, a default window, a window with the symmetric flag,
 * and MIXED: rank r uses the kind r mod 3. */
enum buf_kind { BUF_MALLOC, BUF_ALLOC, BUF_WINDOW, BUF_SYMMETRIC, BUF_MIXED, BUF_KINDS };
extern const char *const buf_names[BUF_KINDS];

struct coll_case {
  int kind, op, root; /* root is the distance for K_SENDRECV */
  ncclDataType_t type;
  size_t count;
  int inplace, buf, shift_send, shift_recv; /* shifts in elements from a 64-byte boundary */
  int nulls;                                /* pass NULL where the header allows it */
  int stream;                               /* 0: NULL, 1: the pool's stream */
  enum flavour flavour;
  uint64_t seed;
};

enum { GUARD_ELEMENTS = 64, GUARD_BYTES = GUARD_ELEMENTS * 8 };

/* Buffers of all local ranks. half is the room for one buffer, guards and shift not counted. */
struct pool {
  size_t half;
  int windows; /* whether windows could be made */
  struct buf base[CONF_MAX_RANKS][4];
  struct buf scalar[CONF_MAX_RANKS];
  ncclWindow_t win[CONF_MAX_RANKS][4];
  cudaStream_t stream[CONF_MAX_RANKS];
};
int pool_make(struct pool *, struct team *, const ncclComm_t *comm, size_t half);
void pool_free(struct pool *, struct team *, const ncclComm_t *comm);

/* The state of one running case for one local rank. */
struct coll_run {
  /* Where the call reads and writes, one inside the other when in place; the host copies with CUDA. */
  unsigned char *send, *recv;
  unsigned char *room;   /* the larger of the two when in place, else NULL */
  const struct buf *mem; /* what they are in; NULL: memory of the test's own */
  struct {
    size_t off, n;
  } used[2];       /* the parts of mem with guards */
  void *scalar_at; /* of a scalar that is read when the operation runs */
  ncclRedOp_t op;
  uint64_t scalar;
  int made_op;
};

size_t coll_send_elements(const struct coll_case *, int nranks);
size_t coll_recv_elements(const struct coll_case *, int nranks);
/* Text of the case, for messages. */
const char *coll_text(const struct coll_case *, char *buf, size_t n);

/* The three steps of a case for the local rank i; coll_run_case does them for all and compares results. */
void coll_prepare(const struct coll_case *, const struct team *, const struct pool *, int i, struct coll_run *);
ncclResult_t coll_call(const struct coll_case *, ncclComm_t comm, int nranks, int rank, struct coll_run *, cudaStream_t);
int coll_check(const struct coll_case *, const struct team *, int i, const struct coll_run *);

/* Runs the case on all local ranks and notes the hash of results that must be equal on all ranks. */
int coll_run_case(struct team *, const ncclComm_t *comm, struct pool *, const struct coll_case *);
/* Compares the noted hashes over ranks. Every rank calls it. */
void coll_compare_hashes(struct team *);

/* A plain all-reduce of 17 int32 on ordinary memory: is this communicator alive and right? comm by local index;
 * ranks and size are asked from the communicator. Groups when several. */
int coll_alive(struct team *, const ncclComm_t *comm);

#endif
