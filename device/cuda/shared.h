/* What the ranks of a CUDA communicator share in host memory: a section of each rank's area.
 *
 * Sync words first, on pages of their own that every process pins for its streams; then the records of operations. A word or
 * a record has one writer for each transition, named beside it.
 */
#ifndef GCCL_CUDA_SHARED_H
#define GCCL_CUDA_SHARED_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { GCCL_CUDA_COLLS = 16, GCCL_CUDA_MESSAGES = 16 }; /* records of a ring; powers of two */

/* The words of a rank towards one executor. Slot 0 is for eager launches and has the numbers of launches, which only grow (compared by
 * their difference). Each graph has a slot of its own, because replays and eager calls may be under way at the same time, with 0/1,
 * because a captured wait compares a constant; who waits for a 1 resets it. */
typedef struct {
  uint32_t ready; /* this rank's stream; in a graph the executor's stream resets it */
  uint32_t pad0[7];
  uint32_t done; /* the executor's stream; in a graph this rank's stream resets it */
  uint32_t pad1[7];
} gccl_cuda_words;

enum { GCCL_CUDA_SLOTS = 128 }; /* the last one is shared by the graphs that are too many */

enum gccl_cuda_ref_kind {
  GCCL_CUDA_NONE,  /* nobody but the owner touches it */
  GCCL_CUDA_LOCAL, /* an address of the owner's process */
  GCCL_CUDA_IPC,   /* legacy IPC: handle is that of the allocation at base */
  GCCL_CUDA_HANDLE /* memory of ncclMemAlloc: the owner's process gives a file descriptor for id */
};

/* Where a buffer is. id is the driver's BUFFER_ID: addresses are used again, ids are not. */
typedef struct {
  uint64_t addr, base, size, id;
  int32_t kind, device;
  char handle[64];
} gccl_cuda_ref;

/* gccl_cuda_record.taken */
enum {
  GCCL_CUDA_OFFERED,
  GCCL_CUDA_TAKEN, /* by the executor: its launch is in its stream */
  GCCL_CUDA_LEFT   /* by the owner, which no longer waits on the host: its stream waits by the word */
};

/* How two ranks order their streams in one launch. */
enum gccl_cuda_sync { GCCL_CUDA_EVENT, GCCL_CUDA_WORD };

/* One operation of a rank, for its executor. The owner fills it and stores seq last (release); the executor answers in taken. */
typedef struct {
  uint64_t seq;
  uint32_t taken; /* owner: offered, or left if the executor has not come; executor: taken (release) */
  uint32_t hash;
  uint64_t launch;    /* the owner's launch towards this executor, from 1 */
  uint32_t in_launch; /* operations in it */
  uint8_t sync;
  uint8_t kind, coll, dtype, red, scaled, scale_device;
  uint8_t pad0;
  int32_t root, slot; /* slot: the pair of words */
  uint64_t count, scale;
  uint64_t capture;                 /* of the owner's stream; 0: none */
  uint64_t stream;                  /* the owner's, as a number: same process only */
  uint64_t ready, done;             /* gccl_cuda_event of the owner, of the executor: same process only */
  gccl_cuda_ref send, recv, scalar; /* scalar: a factor that is read when the operation runs */
} gccl_cuda_record;

/* gccl_cuda_signal.graph: one of them. Each end waits for a bit, so that a CPU can let the streams of one go and not the other's. */
enum { GCCL_CUDA_SIGNAL_FULL = 1, GCCL_CUDA_SIGNAL_EMPTY = 2 };

/* Signals of one rank to another, at the receiver; a line each. Ranks of other processes use count and graph, those of one process the rest. */
typedef struct {
  uint32_t count;  /* eager signals so far: the sender's stream */
  uint32_t graph;  /* captured ones: empty, the sender's stream fills it; full, the receiver's stream empties it. At first the receiver */
  uint64_t issued; /* the sender, on the host: signals that are in its stream */
  uint64_t event;  /* gccl_cuda_event behind the last of them; under a lock of the process, as what follows */
  uint64_t captured, capture, captured_event; /* captured signals so far; of the last one its capture and the event behind it */
  unsigned char pad1[16];
} gccl_cuda_signal;

/* Offsets in a rank's section. */
typedef struct {
  uint64_t lanes;              /* gccl_cuda_ref of this rank's sync areas for spinning kernels: lanes.c */
  uint64_t driver;             /* the thread that last made calls for this rank, as a number: same process only */
  uint64_t words, words_bytes; /* nranks × slots × gccl_cuda_words, then signals; whole pages */
  uint64_t signals;            /* nranks × a line: how many signals a rank has sent here (ncclSignal); the sender's stream writes */
  uint64_t colls;              /* GCCL_CUDA_COLLS records */
  uint64_t messages;           /* nranks × GCCL_CUDA_MESSAGES records, by receiver */
  uint64_t bytes;
} gccl_cuda_layout;

static inline void gccl_cuda_layout_init(gccl_cuda_layout *l, uint32_t nranks) {
  uint64_t record = sizeof(gccl_cuda_record), page = 4096;
  l->words = 0;
  l->signals = (uint64_t)nranks * GCCL_CUDA_SLOTS * sizeof(gccl_cuda_words);
  l->words_bytes = (l->signals + (uint64_t)nranks * sizeof(gccl_cuda_signal) + page - 1) / page * page;
  l->colls = l->words_bytes;
  l->messages = l->colls + GCCL_CUDA_COLLS * record;
  l->lanes = l->messages + (uint64_t)nranks * GCCL_CUDA_MESSAGES * record;
  l->driver = l->lanes + sizeof(gccl_cuda_ref);
  l->bytes = (l->driver + sizeof(uint64_t) + page - 1) / page * page;
}

_Static_assert(sizeof(gccl_cuda_signal) == 64, "a line");
_Static_assert(sizeof(gccl_cuda_words) == 64, "a line");

#endif
