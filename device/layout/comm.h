/* The communicator as the C front and the executors see it. Process-private; made and filled by the Go core
 * (gcclgo_*), read on every call by C. A steady call touches nothing else: no Go, no lock that Go may hold.
 *
 * Writers: fields above "launch table" are written by the core before state becomes GCCL_COMM_READY and constant
 * afterwards, unless a comment says otherwise.
 */
#ifndef GCCL_LAYOUT_COMM_H
#define GCCL_LAYOUT_COMM_H

#include <stdatomic.h>

#include "../../include/gccl_device/impl/core_types.h"
#include "port.h"
#include "probe.h"
#include "shared.h"

/* NCCL's guard word: programs and tools never look at it, but it makes a stray pointer evident in a debugger. */
#define GCCL_COMM_MAGIC 0x0280028002800280ull
#define GCCL_COMM_VERSION 3u

enum gccl_comm_state {
  GCCL_COMM_FREE = 0, /* slot of the handle slab without a communicator */
  GCCL_COMM_INIT = 1, /* handed out, init still running (nonblocking) */
  GCCL_COMM_READY = 2,
  GCCL_COMM_FAILED = 3, /* init failed: may only be aborted or destroyed */
  GCCL_COMM_FINALIZED = 4,
  GCCL_COMM_REVOKED = 5,
  GCCL_COMM_DEAD = 6 /* destroyed or aborted: recognisable until the slot is used again */
};

/* A peer as this process reaches it. */
typedef struct {
  char *area;           /* its gccl_area, mapped here, or this process's mirror of it */
  char *arena;          /* base of its process's arena, mapped here; GCCL_BUF_ARENA offsets count from it. NULL if remote */
  uint8_t same_process; /* GCCL_BUF_LOCAL addresses are valid here */
  uint8_t remote;       /* reached through the port: area is a mirror */
  uint8_t pad[6];
} gccl_peer;

/* A registered window: a range of this process's arena, known to all ranks of the communicator. */
typedef struct gccl_window {
  struct gcclWindow_device dev; /* first: kernels on the CPU read it here, those of a GPU a copy in its memory */
  void *handle;                 /* the program's ncclWindow_t: this structure, or that copy */
  uint64_t magic;
  struct ncclComm *comm;
  char *user; /* the caller's pointer */
  uint64_t size;
  uint64_t arena_offset; /* of user */
  int32_t flags, id;
  uint64_t *peer_offset; /* nranks: arena offset of the window at each rank; on CUDA its address in this process */
  uint32_t number;       /* of this registration, the same at all ranks */
  uint32_t resource;     /* it belongs to a device communicator: not a window of the program */
  uint64_t *peer_size;   /* nranks */
  char *flat;            /* this window's place in the team's flat range: rank p at flat + p·stride; NULL: kernels cannot use it */
  uint64_t stride;
  void *mapping; /* a device's, of flat */
} gccl_window;

/* A user's reduction operator (ncclRedOpCreatePreMulSum). */
typedef struct {
  int32_t handle; /* ncclRedOp_t; 0 = free slot */
  int32_t dtype;
  uint64_t scalar;    /* gccl_scalar bits of the accumulator type, for host-immediate */
  const void *device; /* read when the collective runs, for device residence; NULL otherwise */
} gccl_user_op;

/* What the tuner decided: count class k is used up to limit[k] bytes (whole buffer of a split collective, one part
 * otherwise). Classes in order; the last limit is UINT64_MAX. */
enum { GCCL_CLASSES = 8 };

typedef struct {
  _Atomic(uint64_t) key; /* 0 = empty; gccl_table_key */
  _Atomic(const gccl_lowered *) plan;
} gccl_table_entry;

/* A launch table: a block that never changes its size. The core publishes a larger one, with all entries, before it is
 * more than half full; blocks that were in use stay until the communicator goes, because a reader may still look at one. */
typedef struct gccl_table {
  struct gccl_table *older;
  uint32_t mask, used; /* size - 1, size a power of two; used is the core's */
  gccl_table_entry entry[];
} gccl_table;

/* Key of the launch table: only what all ranks know alike. Never 0. */
static inline uint64_t gccl_table_key(unsigned coll, unsigned cls, unsigned root) {
  return 1ull | (uint64_t)coll << 1 | (uint64_t)cls << 8 | (uint64_t)root << 16;
}

typedef struct {
  _Atomic(uint64_t) calls, hits, misses, bytes;
  _Atomic(uint64_t) front_ns, samples; /* call entry to first shared store: sum over sampled calls, and how many */
} gccl_counters;

/* Where the search for a key starts, before the mask; collisions go to the next entries. */
static inline uint32_t gccl_table_start(uint64_t key) { return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32); }

struct gccl_op;

/* Kernels of all ranks that wait for each other, in place of one rank's for all: never; where every rank has a GPU and a process of its own; wherever it can be. */
enum gccl_spin_wish { GCCL_SPIN_NEVER, GCCL_SPIN_ALONE, GCCL_SPIN_ALWAYS };

struct ncclComm {
  uint64_t magic;
  uint32_t version;
  _Atomic(uint32_t) state; /* enum gccl_comm_state */
  uint64_t core;           /* the core's handle of this communicator (table index and generation) */
  int32_t rank, nranks, device;
  uint8_t crowded; /* ranks share CPUs: agreed by all ranks */
  uint8_t blocking;
  uint8_t check;       /* look at the buffers of each collective */
  uint8_t no_onesided; /* numRmaCtx is 0 */
  uint8_t device_api;  /* ncclDevCommCreate works */
  uint8_t copies;      /* a GPU: what only moves data is done by copies of the driver, without a kernel */
  uint8_t spin;        /* a GPU: whether this rank wants kernels that wait for each other (enum gccl_spin_wish) */
  uint8_t one_process; /* all ranks are threads of this process: GCCL_BUF_LOCAL reaches everybody */

  /* Faults. abort and error are written by anyone once: the first cause wins (gccl_comm_latch). */
  _Atomic(uint32_t) abort; /* non-zero ends every wait of this communicator in this process */
  _Atomic(int32_t) error;  /* ncclResult_t latched: the cause */
  _Atomic(int32_t) async;  /* what ncclCommGetAsyncError answers: success, in progress, or error */
  char cause[512];         /* text of the latched error; written before error is set */

  /* Issue order: a call takes next, runs when serving equals it, then advances serving. Beside abort, in the head that
   * stays when a communicator is retired: a call that comes too late still gets its turn and finds the abort word. */
  _Atomic(uint64_t) next, serving;
  _Atomic(uint32_t) kernel_abort; /* raised with abort, and never lowered: nobody knows which kernels still wait */
  _Atomic(uint32_t *) gpu_abort;  /* the same for kernels of a GPU, in pinned memory; NULL before the first device communicator */

  gccl_geometry geo;
  gccl_peer *peers;            /* nranks */
  gccl_peer self;              /* this rank */
  gccl_port *port;             /* NULL: all ranks are in this rank's clique */
  _Atomic(uint32_t) *sleepers; /* in the area of the first rank of this rank's clique; NULL with one rank */
  char *arena;                 /* of this process */
  uint64_t arena_size;         /* reserved range: [arena, arena + arena_size) may be in windows */
  uint32_t spin_ns, yield_ns;  /* wait policy: spin, then yield, then sleep */
  uint64_t late_ns;            /* a wait is reported after this, 6 and 30 times this; 0 never */
  const void *simd;            /* gccl_reduce_isa of the front; set by the front, not by the core */
  gccl_probe *probe;           /* NULL: nobody looks at what this communicator does */

  /* Launch table; entries are added by the core at any time, never changed or removed. NULL before the first. */
  uint64_t limit[GCCL_NUM_COLLS][GCCL_CLASSES];
  _Atomic(gccl_table *) table;

  /* The plan of the smallest all-reduce class, if it is eager: with it a call may take the fused path (exec/small.h). Set once. */
  _Atomic(const gccl_lowered *) small;

  uint64_t seq;                            /* last operation number used; whoever is being served owns it */
  uint64_t done_seen;                      /* all peers have finished operations up to this; same owner */
  uint64_t staged_seq;                     /* last operation in which this rank's stage or out was used; same owner */
  uint64_t *p2p_sent, *p2p_received;       /* nranks each: last message number to and from peer; same owner */
  uint64_t *signals_sent, *signals_waited; /* nranks each: one-sided signals; same owner */
  uint64_t *puts_tracked;                  /* nranks: one-sided puts to remote ranks; same owner */

  int32_t lsa_size;                              /* ranks of an LSA team: equal runs of consecutive ranks, each inside a clique */
  int32_t gin_type;                              /* ncclGinType_t: how kernels of this header reach other LSA teams; NONE: switched off */
  _Atomic(gccl_window *) windows[64];            /* NULL = free slot */
  _Atomic(void *) handles[64];                   /* theirs, so that whoever looks for one follows no pointer of another rank's */
  struct ncclDevCommWindowTable window_table[2]; /* the same for kernels: entry i of both blocks is windows[i] */
  gccl_user_op user_ops[256];
  _Atomic(uint32_t) nuser_ops;

  gccl_counters count;
  void *worker; /* host stream on which a nonblocking communicator works; front's */
  /* Tells the log, at warning level, what the executor has to say (late operations). The front's; NULL says nothing. */
  void (*report)(const struct ncclComm *, const char *text);
  /* Tells the core that a collective of this rank has waited for waited ns, for the turn-th time. The front's; NULL says nothing. */
  void (*late)(const struct ncclComm *, uint64_t seq, int32_t turn, const char *what, uint64_t waited);
  /* A GPU: names the ranks for whose calls an operation waits; NULL in host mode. */
  void (*absent)(const struct gccl_op *, char *text, size_t max);
  void *exec;                         /* the front's executor state of this communicator */
  void (*release)(struct ncclComm *); /* called when abort is set by a failure, from any thread; may be NULL */
  void *cuda;                         /* its state on the CUDA device; NULL in host mode */
  uint64_t p2p_owner;                 /* the message that holds this rank's p2p scratch, 0 = free; same owner */
};

/* Ends every wait of the communicator in this process. */
static inline void gccl_abort_raise(struct ncclComm *c) {
  atomic_store(&c->abort, 1);
  atomic_store(&c->kernel_abort, 1);
  uint32_t *gpu = atomic_load(&c->gpu_abort);
  if (gpu) __atomic_store_n(gpu, 1, __ATOMIC_RELEASE);
}

/* The plan of a key, or NULL. Entries are only ever added: plan first, then key (release). At least half of a table is
 * empty, so the search ends. */
static inline const gccl_lowered *gccl_table_find(const struct ncclComm *c, uint64_t key) {
  const gccl_table *t = atomic_load_explicit(&c->table, memory_order_acquire);
  if (!t) return NULL;
  for (uint32_t at = gccl_table_start(key);; at++) {
    const gccl_table_entry *e = &t->entry[at & t->mask];
    uint64_t k = atomic_load_explicit(&e->key, memory_order_acquire);
    if (k == key) return atomic_load_explicit(&e->plan, memory_order_acquire);
    if (!k) return NULL;
  }
}

#endif
