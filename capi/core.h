/* The seam between the C front (libgccl.so) and the Go core (libgccl_core.so).
 *
 * The front opens the core at the first call that needs it, calls gcclgo_open once, and from then on only through
 * the table it filled. Everything here is plain C memory; the core keeps no pointer past the return of a call
 * except to struct ncclComm, gccl_window and gccl_lowered blocks, which are C memory too.
 */
#ifndef GCCL_CAPI_CORE_H
#define GCCL_CAPI_CORE_H

#include "../device/layout/comm.h"

#define GCCL_CORE_ABI 10u
enum { GCCL_TEXT = 512 };

/* ncclConfig_t of any version, copied over defaults by the front (capi/front/config.c); INT32_MIN and NULL mean
 * "not set". The core resolves what is not set from the parent, the environment and the defaults. */
typedef struct {
  int32_t blocking, cga_cluster_size, min_ctas, max_ctas;
  int32_t split_share, shrink_share, traffic_class, collnet_enable;
  int32_t cta_policy, nvls_ctas, nchannels_per_net_peer, nvlink_centric_sched;
  int32_t graph_usage_mode, num_rma_ctx, max_p2p_peers, graph_stream_ordering;
  char net_name[64], comm_name[128];
  int32_t device_kind; /* gcclDeviceKind_t of the calling thread */
  char simd[8];        /* from the core: name of the kernel set to use; empty for the best */
  int32_t pad;
} gccl_config;

enum gccl_job_kind {
  GCCL_JOB_INIT,
  GCCL_JOB_SPLIT,
  GCCL_JOB_SHRINK,
  GCCL_JOB_GROW,
  GCCL_JOB_FINALIZE,
  GCCL_JOB_DESTROY,
  GCCL_JOB_ABORT,
  GCCL_JOB_REVOKE,
  GCCL_JOB_WINDOW,
  GCCL_JOB_SUSPEND,
  GCCL_JOB_RESUME,
  GCCL_JOB_DEVCOMM
};

/* GIN of a device communicator: what the front asks for, and what the core has made. */
typedef struct {
  int32_t contexts; /* 0: no GIN is wanted */
  int32_t signals, counters, depth;
  int32_t own_header;    /* the kernels know the backends direct and gdaki */
  int32_t format;        /* GCCL_GFD_FORMAT_*: of their descriptors */
  int32_t context_bytes; /* of a gccl_proxy_context as their header has it */
  int32_t type;          /* out: ncclGinType_t of the contexts; NONE: all peers are direct */
  int32_t direct;        /* out: peers of the LSA team are */
  int32_t told;          /* where in the resource window ranks tell their signals: a handle; 0: nowhere */
  void *handles;         /* out: the contexts as kernels see them; NULL without a type */
} gccl_devgin;

/* One unit of slow work. The front owns the job and everything it points to until run returns, or, for a job that
 * goes on in the background, until the core calls done. */
typedef struct gccl_job {
  int32_t kind;
  int32_t rc;              /* out: ncclResult_t */
  struct ncclComm *comm;   /* the communicator worked on: INIT, SPLIT, SHRINK, GROW fill this fresh one (state
                                    GCCL_COMM_INIT); NULL only for a split with no colour */
  struct ncclComm *parent; /* SPLIT, SHRINK, GROW by a member; NULL otherwise */
  gccl_config config;      /* resolved: INIT, SPLIT, SHRINK, GROW */
  int32_t nranks, rank;    /* INIT, GROW */
  int32_t nids;
  int32_t color, key; /* SPLIT */
  int32_t flags;      /* SHRINK, REVOKE, SUSPEND, WINDOW */
  int32_t nexclude;
  int32_t pad;
  const unsigned char *ids; /* nids × 128 bytes; NULL in GROW when a member passes none */
  const int32_t *exclude;   /* SHRINK */
  void *buff;               /* WINDOW */
  uint64_t size;            /* WINDOW; DEVCOMM: bytes of its resources */
  uint64_t digest;          /* DEVCOMM: of what is asked for, the same on all ranks */
  gccl_devgin *gin;         /* DEVCOMM: in devcomm */
  void *devcomm;            /* DEVCOMM: the front's gccl_devcomm (malloc), which goes with the job */
  void **out;               /* WINDOW, DEVCOMM: receives gccl_window* (or NULL); SPLIT, SHRINK, GROW: receives comm when complete */
  char text[GCCL_TEXT];     /* out: what went wrong; empty on success */
} gccl_job;

/* What the core asks of the device of a communicator that is not a host one. */
typedef struct {
  int32_t (*hello)(struct ncclComm *, void *out, int32_t max);        /* what all ranks must know: returns its bytes, at most max */
  int32_t (*meet)(struct ncclComm *, const void *hellos, char *text); /* areas are mapped; hellos of all ranks, one after the other */
  /* Kernels of all ranks that wait for each other, after all ranks have met: 1: this rank has mapped what they need of all, 0: there are
   * none; the text says why. Negative: it cannot, and why. unlink: some rank cannot. */
  int32_t (*link)(struct ncclComm *, char *text);
  void (*unlink)(struct ncclComm *);
  int32_t (*leave)(struct ncclComm *);                       /* quiesced; the areas go next, unless it returns 1 */
  uint64_t (*section)(uint32_t nranks);                      /* bytes of its section in a rank's area */
  uint64_t (*progress)(struct ncclComm *, uint64_t *called); /* last collective that has ended, last one called; any thread */
  /* Windows: what the other ranks must know of this rank's part (returns its bytes, or -1 and a code and a text); all parts mapped into
   * the window; the window, which is in a slot of the communicator, made known to kernels, and that taken back; the mappings and the
   * memory of this rank's part given back (the window may be NULL). */
  int32_t (*window_offer)(struct ncclComm *, void *ptr, uint64_t size, void *out, int32_t max, int32_t *rc, char *text);
  int32_t (*window_map)(struct ncclComm *, gccl_window *, const void *parts, char *text);
  int32_t (*window_show)(struct ncclComm *, gccl_window *, char *text);
  void (*window_hide)(struct ncclComm *, const gccl_window *);
  void (*window_release)(struct ncclComm *, gccl_window *, const void *part);
  /* Zeroed memory of the kind that windows can lie in, on the communicator's device; given back. */
  int32_t (*memory_new)(struct ncclComm *, uint64_t bytes, void **out, char *text);
  void (*memory_free)(void *);
  /* Latches a failure if this rank waits for one that has left the communicator. Any thread; the areas are mapped. */
  void (*look)(struct ncclComm *);
  /* A file descriptor of an allocation of this process that a peer has named, and its size; -1: there is none. Any thread. */
  int32_t (*export_memory)(uint64_t id, uint64_t *size);
  const struct gccl_mover_ops *mover; /* what net/gin asks for (device/layout/mover.h) */
} gccl_device_api;

/* What the front gives to the core. */
typedef struct {
  uint32_t abi, size;
  /* A background run has ended: the front publishes the result and frees the jobs. Called from a core thread. */
  void (*done)(gccl_job *jobs, int32_t n, void *cookie);
  /* Waits until comm has no operation in flight (its abort word ends operations, not this wait), or timeout_ns is over
   * (0 = for ever). Returns 0 or ncclTimeout. */
  int32_t (*quiesce)(struct ncclComm *comm, uint64_t timeout_ns);
  /* The communicator is gone: the front recycles its slot. */
  void (*retire)(struct ncclComm *comm);
  /* Asks the function that the calling thread has set for its waits: 1 if the wait is to end, -1 if it has set none. */
  int32_t (*interrupted)(void);
  const char *path;            /* of libgccl.so */
  const gccl_device_api *cuda; /* NULL: this build has no CUDA device */
  const char *simd;            /* kernel sets that this CPU runs, best first, with commas */
  const gccl_trace_api *trace; /* NULL: this front cannot be traced or profiled */
} gccl_front_api;

/* What the core offers to the front. Every function returns an ncclResult_t and writes a text of at most GCCL_TEXT
 * bytes when it is not ncclSuccess. None of them panics. */
typedef struct {
  uint32_t abi, size;
  int32_t (*get_unique_id)(unsigned char id[128], char *text);
  int32_t (*comm_get_unique_id)(struct ncclComm *, unsigned char id[128], char *text);
  /* Fills what the caller left open (environment over config over parent over default) and checks ranges. parent may be NULL. */
  int32_t (*config_resolve)(gccl_config *, const struct ncclComm *parent, char *text);
  /* Runs all jobs side by side. blocking: returns when the last has ended (jobs[i].rc each; returns the last error).
   * Otherwise starts them, returns ncclInProgress, and calls front.done(jobs, n, cookie) later. */
  int32_t (*run)(gccl_job *jobs, int32_t n, int32_t blocking, void *cookie);
  /* A launch table miss: plans (coll, cls, root), lowers it and adds it to comm->table. */
  int32_t (*plan)(struct ncclComm *, uint32_t coll, uint32_t cls, uint32_t root, char *text);
  int32_t (*mem_alloc)(void **ptr, uint64_t size, char *text);
  int32_t (*mem_free)(void *ptr, char *text);
  int32_t (*window_deregister)(struct ncclComm *, gccl_window *, char *text);
  /* In place of a GCCL_JOB_DEVCOMM whose requirements this rank refuses: the others hear why. Does not wait. */
  int32_t (*devcomm_refuse)(struct ncclComm *, int32_t rc, const char *why, char *text);
  /* A file descriptor of an allocation of the process of a rank: for a device's imports. */
  int32_t (*fetch_memory)(struct ncclComm *, int32_t rank, uint64_t id, int32_t *fd, uint64_t *size, char *text);
  int32_t (*mem_stats)(struct ncclComm *, int32_t stat, uint64_t *value, char *text);
  int32_t (*stats_bytes)(struct ncclComm *, uint64_t *shared, uint64_t *priv, char *text);
  /* Predicted time of a collective, µs (ncclGroupSimulateEnd). */
  int32_t (*estimate)(struct ncclComm *, uint32_t coll, uint64_t bytes, float *us, char *text);
  /* ncclParam*: key → text and type; see param.c. type is ncclParamTypeId_t of abi/enums.tsv. */
  int32_t (*param_find)(const char *key, int32_t *index, char *text);
  int32_t (*param_get)(int32_t index, int32_t *type, int64_t *integer, char *value, int32_t max, int32_t *len, char *text);
  int32_t (*param_key)(int32_t index, char *key, int32_t max, int32_t *count); /* index from 0; count of all */
  int32_t (*param_dump)(char *out, int64_t max, int64_t *len);
  void (*log_reset)(void);                                    /* ncclResetDebugInit */
  void (*log)(int32_t level, int32_t rank, const char *text); /* level: ncclDebugLogLevel */
  /* Collective seq (what it is, in words) of this rank has waited for waited ns, for the turn-th time: one rank of all tells the log. */
  void (*late)(struct ncclComm *, uint64_t seq, int32_t turn, const char *what, uint64_t waited);
} gccl_core_api;

/* The core's only exported symbol besides the Go runtime's needs. */
typedef int32_t (*gcclgo_open_fn)(const gccl_front_api *front, gccl_core_api *core);

#endif
