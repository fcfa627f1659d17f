/* The CUDA device: ranks whose buffers are GPU memory.
 *
 * Owns the driver (driver.c), what a context of the caller needs from us (context.c), how buffers of other ranks are
 * reached (buffer.c), and leader execution (launch.c, publish.c, execute.c): one rank's ordinary kernel does an operation
 * for all ranks, the other ranks' streams are ordered before and behind it. Pure C, part of libgccl.so; no Go in the steady path.
 */
#ifndef GCCL_CUDA_H
#define GCCL_CUDA_H

#include <pthread.h>

#include "../host/exec/exec.h"
#include "../layout/work.h"
#include "driver.h"
#include "shared.h"

enum { GCCL_RC_CUDA = 1 };

/* --- driver.c --- */
extern gccl_cuda_driver gccl_cu;
/* Opens the driver once; library may be NULL. Returns whether it can be used; if not, *text says why. */
int gccl_cuda_open(const char *library, const char **text);
int gccl_cuda_devices(void);
const char *gccl_cuda_text(CUresult);

/* --- context.c: what one context of the caller needs from us --- */
typedef struct gccl_cuda_context gccl_cuda_context;

/* An event of the pool. Everyone who will still wait for it holds a reference; the last one gives it back. */
typedef struct gccl_cuda_event {
  CUevent event;
  _Atomic(int) refs;
  gccl_cuda_context *owner;
  struct gccl_cuda_event *next;
} gccl_cuda_event;

struct gccl_cuda_context {
  gccl_cuda_context *next;
  CUcontext ctx;
  unsigned long long id;
  CUdevice device;
  int ordinal, refs, retained;
  unsigned sms;
  int queues; /* hardware queues that its streams share */
  char uuid[16], name[64];
  CUmodule module;
  CUfunction fold[3][12][GCCL_WORK_OPS]; /* all-reduce, reduce-scatter, reduce; type; operator */
  CUfunction plain[GCCL_NUM_COLLS];
  CUfunction wait;
  struct {                                           /* of a method of kernels.h; loaded for the first lanes */
    CUfunction fold[2][12][GCCL_WORK_OPS], plain[2]; /* all-reduce, reduce-scatter; all-gather, all-to-all */
    int loaded;
  } spin[2];
  pthread_mutex_t lock;
  gccl_cuda_event *free; /* of the pool */
  struct {
    pthread_mutex_t lock;
    CUdeviceptr fresh; /* the first left sets of it are not given out yet */
    unsigned left, nused;
    CUdeviceptr used[256]; /* given back */
  } tickets;               /* ticket.c */
  struct {
    pthread_mutex_t lock;
    CUstream stream;  /* made when it is first needed, as the rest */
    void *room;       /* pinned */
    uint32_t *aborts; /* words of a pinned page that are not given out yet */
    unsigned aborts_left;
  } service; /* service.c, visible.c */
  struct {
    void *free[40]; /* by size, as a power of two */
    char *slab;
    size_t left;
  } pinned; /* pinned.c; under service.lock */
};

/* The context in which a communicator made by this thread works: the current one, else the primary one of device 0. device ≥ 0
 * asks for the primary context of that device. Loads the kernels at the first use. */
gccl_cuda_context *gccl_cuda_context_get(int device, char *text, size_t max);
void gccl_cuda_context_ref(gccl_cuda_context *);
void gccl_cuda_context_put(gccl_cuda_context *);
CUfunction gccl_cuda_kernel(const gccl_cuda_context *, unsigned coll, unsigned dtype, unsigned op);
/* The same of spinning kernels, which have to be loaded before: 0, or an error and a text. method: enum gccl_spin_method, DIRECT or LL.
 * Preconditions: the context is current. */
CUfunction gccl_cuda_spin_kernel(const gccl_cuda_context *, int method, unsigned coll, unsigned dtype, unsigned op);
CUresult gccl_cuda_spin_load(gccl_cuda_context *, int method, char *text, size_t max);
/* Makes the context current in this thread; leave gives back what was before. */
CUresult gccl_cuda_enter(const gccl_cuda_context *, CUcontext *before);
void gccl_cuda_leave(const gccl_cuda_context *, CUcontext before);
gccl_cuda_event *gccl_cuda_event_get(gccl_cuda_context *); /* with no references */
void gccl_cuda_event_unref(gccl_cuda_event *);
/* Pins shared host memory for this process's contexts, once however often asked for. 0: failed, *e says why. */
CUdeviceptr gccl_cuda_pin(void *ptr, size_t bytes, CUresult *e);
void gccl_cuda_unpin(void *ptr);

/* --- comm.c: the device's state of a communicator --- */
/* What this rank knows about how far it has served a peer's launches. */
typedef struct {
  uint64_t launch; /* the peer's launch towards this rank that is under way or was last */
  uint32_t left;   /* its operations that are still to be executed here */
  uint8_t away;    /* it waits by its word for some of them */
} gccl_cuda_served;

typedef struct {
  char *shared;      /* its section in its area, as mapped here */
  CUdeviceptr words; /* its sync words, for streams; 0 where streams never use them */
  uint64_t owner;    /* its process: a number of its own */
  uint8_t same_process, same_gpu;
  uint8_t near; /* of this rank's host: its memory can be mapped here */
} gccl_cuda_peer;

typedef struct gccl_cuda_import gccl_cuda_import;

/* A thread that makes communicators; stays, because it names the thread. */
typedef struct gccl_cuda_creator {
  struct gccl_cuda_creator *next;
  uint64_t number, name; /* name: as in gccl_cuda_layout.driver */
  _Atomic(int) first;    /* its rank in the first communicator that was made; -1: none yet */
} gccl_cuda_creator;

/* How the end of an operation is known: an event behind it, or the executor's word for the launch with that number. */
typedef struct {
  gccl_cuda_event *event; /* NULL: by the word, or there was no operation */
  int executor;           /* -1: not by a word */
  uint32_t number;
  CUstream stream;
  uint64_t capture;
  uint64_t seq; /* the last collective up to there */
} gccl_cuda_tail;

/* Ends of earlier operations, oldest first: progress.c. */
enum { GCCL_CUDA_MARKS = 16 };
typedef struct {
  gccl_cuda_tail at[GCCL_CUDA_MARKS];
  int n;
  uint64_t stride, skipped; /* one end of so many is kept */
} gccl_cuda_marks;

typedef struct gccl_cuda_comm {
  struct ncclComm *comm;
  gccl_cuda_context *cx;
  _Atomic(int) refs;        /* the communicator, and graphs that use it */
  int nranks, rank, leader; /* leader: who executes collectives */
  _Atomic(int) meets;       /* gcclCommMeetOnHost */
  gccl_cuda_creator *creator;
  gccl_cuda_layout layout;
  gccl_cuda_peer *peer;
  gccl_cuda_served *served;
  uint64_t *launches; /* towards each executor: launches published */
  uint64_t *sent, *received;
  uint64_t *taken; /* captured signals of each rank of this process for which captured waits stand */
  uint64_t colls;
  /* The end of the last operation, for the next one if that is on another stream. */
  gccl_cuda_tail tail;
  gccl_cuda_marks marks;
  uint64_t finished;     /* the last collective that is known to have ended */
  pthread_mutex_t guard; /* these three, against whoever waits for the end of all work or looks */
  gccl_cuda_import *imports;
  CUdeviceptr tickets;                          /* ticket.c; 0: kernels of several blocks leave the ends of launches to the stream */
  int left;                                     /* nothing of it is in any stream, but for graphs */
  struct gccl_cuda_lanes *lanes;                /* lanes.c */
  uint64_t ll_bytes;                            /* what spinning kernels take, of a rank for another one; 0: there are none */
  CUdeviceptr view;                             /* visible.c; 0 before the first window */
  struct gccl_cuda_lent *lent[GCCL_CUDA_SLOTS]; /* lend.c */
  _Atomic(uint64_t) slot[GCCL_CUDA_SLOTS];      /* the capture that has a pair of words; 0: free */
  /* Ranks on several hosts: staged.c. */
  struct gccl_cuda_stage *stage; /* NULL: one host */
  CUdeviceptr stage_words;
  struct gccl_cuda_stage_buffer *buffers;
  char *unreached;       /* why kernels cannot load and store the memory of all ranks of this host; NULL: they can */
  uint32_t staged;       /* the last number of the last launch */
  pthread_mutex_t order; /* the same order in streams and in the worker */
  /* After a failure a thread frees streams that wait for words: release.c. */
  _Atomic(int) met, releasing, stop;
} gccl_cuda_comm;

/* What a rank tells the others at creation. */
typedef struct {
  uint32_t magic, bytes;
  char uuid[16];
  int32_t ordinal;
  int32_t first;    /* gccl_cuda_creator.first of the thread that makes it */
  uint64_t process; /* a random number of the process: ids of processes are used again */
  uint64_t thread;  /* gccl_cuda_creator.number */
  int32_t spin;     /* enum gccl_spin_wish */
  uint32_t sms, queues;
} gccl_cuda_hello;

/* left.c: latches a failure if a rank has left that this one's streams wait for. Any thread, now and then. */
void gccl_cuda_look(struct ncclComm *);

/* Makes the state of a communicator of this thread, in its parent's context if it has one; NULL and a text on failure. device as in
 * gccl_cuda_context_get. */
struct gccl_cuda_comm *gccl_cuda_comm_new(struct ncclComm *, const struct gccl_cuda_comm *parent, int device, char *text, size_t max);
void gccl_cuda_comm_hello(const gccl_cuda_comm *, gccl_cuda_hello *out);
/* Once the areas of all ranks are mapped. Returns 0 or a result code and a text. */
int gccl_cuda_comm_meet(gccl_cuda_comm *, const gccl_cuda_hello *all, char *text, size_t max);
/* After all ranks have met, and after link has failed on one of them: lanes.c, as in gccl_device_api. */
int gccl_cuda_link(gccl_cuda_comm *, char *text, size_t max);
void gccl_cuda_unlink(gccl_cuda_comm *);
/* Before the areas go. Preconditions: quiesced. Returns 1 if they must stay: streams may still wait for words in them. */
int gccl_cuda_comm_leave(gccl_cuda_comm *);
/* The last use; after leave, or for a communicator that never came to be. */
void gccl_cuda_comm_unref(gccl_cuda_comm *);
uint64_t gccl_cuda_section_bytes(uint32_t nranks);

static inline gccl_cuda_comm *gccl_cuda_of(const struct ncclComm *c) { return (gccl_cuda_comm *)c->cuda; }

/* Latches what the driver said; returns the result code. */
int gccl_cuda_failed(struct ncclComm *c, CUresult e, const char *what);

/* --- buffer.c --- */
/* Whether a buffer can be used by this rank: 0, or a result code and a text, in which what names it. *hidden: other processes cannot
 * open it. */
int gccl_cuda_check_buffer(const gccl_cuda_comm *, const void *ptr, uint64_t bytes, const char *what, int *hidden, char *text, size_t max);
/* The same for all buffers of an operation, which is told which of them are hidden. */
int gccl_cuda_check(gccl_op *, char *text, size_t max);
/* What this thread's checks have found is of no use any more: not for the call that it is about to launch. */
void gccl_cuda_forget(void);
enum { GCCL_CUDA_HIDDEN_SEND = 1, GCCL_CUDA_HIDDEN_RECV = 2, GCCL_CUDA_HIDDEN_SCALAR = 4 }; /* gccl_op.hidden */
/* Says where a buffer is, for a rank of the same process (local) or another one; 0 or a latched error. Preconditions: checked. */
int gccl_cuda_describe(gccl_cuda_comm *, const void *ptr, int local, gccl_cuda_ref *out);
/* The address of a peer's buffer in this process; 0 and a latched error if it cannot be mapped. */
CUdeviceptr gccl_cuda_reach(gccl_cuda_comm *, int peer, const gccl_cuda_ref *);
/* The same for any kind, with a text instead of a latched error. */
CUdeviceptr gccl_cuda_import_ref(gccl_cuda_comm *, int peer, const gccl_cuda_ref *, char *text, size_t max);
/* Asks the process of a rank for a file descriptor of its allocation id: the core does it. Set by the front. -1 and a text on failure. */
extern int (*gccl_cuda_fetch)(struct ncclComm *, int rank, uint64_t id, uint64_t *size, char *text);
void gccl_cuda_imports_drop(gccl_cuda_comm *);

/* --- service.c --- */
/* Stores n bytes, or zeros where from is NULL, into memory of the context's device, and waits until they are there, at most 10 s. 0, or
 * a result code and a text. Any thread; needs no SM. */
int gccl_cuda_write(gccl_cuda_context *, CUdeviceptr to, const void *from, uint64_t n, char *text, size_t max);
void gccl_cuda_service_drop(gccl_cuda_context *);

/* --- pinned.c --- */
/* Zeros, at one address for kernels and the CPU; NULL: there is none. Given back it is kept for the next one. Any thread. */
void *gccl_cuda_pinned(gccl_cuda_context *, uint64_t bytes);
void gccl_cuda_pinned_free(gccl_cuda_context *, void *);

/* --- mover.c: net/gin's bytes --- */
extern const struct gccl_mover_ops gccl_cuda_mover;

/* --- visible.c: what kernels see of a communicator --- */
/* A window that is in its slot: its handle becomes the address of the GPU's structure. 0, or a result code and a text. */
int gccl_cuda_show(gccl_cuda_comm *, gccl_window *, char *text, size_t max);
void gccl_cuda_hide(gccl_cuda_comm *, const gccl_window *);
/* What a device communicator refers to, as addresses for kernels; 0, or a result code and a text. */
int gccl_cuda_kernel_view(gccl_cuda_comm *, struct ncclDevCommWindowTable **, uint32_t **abort_flag, char *text, size_t max);
void gccl_cuda_view_drop(gccl_cuda_comm *);
/* The word that is not 0 once the communicator is aborted or has failed, at one address for kernels and the CPU; NULL: there is none. It
 * outlives the communicator. */
uint32_t *gccl_cuda_abort_word(gccl_cuda_comm *, CUresult *);

/* --- launch.c: batches --- */
typedef struct gccl_cuda_batch {
  struct ncclComm *comm;
  gccl_op *ops;
  CUstream *streams; /* of each operation */
  int nops;
  uint64_t ticket;
  /* State. */
  int phase, announced, rc, blocked_on, told_on;
  int spins; /* operations that every rank's own kernel does: spin.c */
  int lends; /* memory for buffers that the executors cannot open */
  int leave; /* the executor's call is not to be waited for any longer */
  int late;  /* "ready" goes into the stream together with the wait for "done" */
  int meets; /* the host waits for the words of other ranks' streams, not the stream: gcclCommMeetOnHost */
  /* What says that all of the batch is done, if nothing has to be put into the stream for that: the event behind the executor's launch,
   * or the word of an executor (-1: none). */
  gccl_cuda_event *end;
  int executor;
  gccl_op *blocked, *told; /* told: the probe knows that it waits for rank told_on */
  CUstream stream;         /* all of it runs here */
  uint64_t capture;
  int slot;
  CUgraph graph;
  gccl_cuda_event *ready;
} gccl_cuda_batch;

/* --- staged.c: ranks on several hosts --- */
/* Enqueues a batch in its streams: copies to host memory, a wait for the launch's end, copies back. host gets the operations that the
 * host executor is to do meanwhile. Returns 0, a latched error, or GCCL_RC_USAGE and a text. Preconditions: the communicator's order
 * is held until the launch has its ticket. */
typedef struct gccl_cuda_staging gccl_cuda_staging;
int gccl_cuda_stage(gccl_cuda_batch *, gccl_op *host, gccl_cuda_staging **, char *text, size_t max);
/* Around the host's part, in the worker: the buffers of operations without a flow are in host memory (or the communicator is aborted);
 * all results are. Done frees it. */
void gccl_cuda_stage_await(gccl_cuda_staging *);
void gccl_cuda_stage_done(gccl_cuda_staging *);

/* release.c: after a failure or an abort. */
void gccl_cuda_release(struct ncclComm *comm);
void gccl_cuda_free_waits(gccl_cuda_comm *);
int gccl_cuda_idle(gccl_cuda_comm *);
/* Returns 1 if the thread goes on, for graphs that are alive. */
int gccl_cuda_release_end(gccl_cuda_comm *);

/* --- progress.c --- */
/* The last collective of this rank that has ended in its stream, and the last that it has called. From any thread; asks the driver. */
uint64_t gccl_cuda_progress(gccl_cuda_comm *, uint64_t *called);
void gccl_cuda_marks_drop(gccl_cuda_comm *);

/* Runs the host's part of all batches in this thread; returns the last error. Work goes on in the streams. */
int gccl_cuda_drive(gccl_cuda_batch *batches, int n);
/* Waits until nothing of comm is left in any stream, or the deadline. */
int gccl_cuda_quiesce(struct ncclComm *comm, uint64_t timeout_ns);

#endif
