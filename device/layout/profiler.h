/* A profiler plugin as the data path sees it: the events of NCCL's newest profiler table (v6), whatever the plugin's version.
 * Adapters of older tables are in plugin/profiler.
 *
 * Layout and meaning: NCCL 2.30.7, src/include/plugin/profiler/profiler_v6.h, and the rules in src/misc/profiler.cc.
 */
#ifndef GCCL_LAYOUT_PROFILER_H
#define GCCL_LAYOUT_PROFILER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits of the activation mask, and type of an event. */
enum gccl_profile_type {
  GCCL_PROFILE_GROUP = 1,
  GCCL_PROFILE_COLL = 2,
  GCCL_PROFILE_P2P = 4,
  GCCL_PROFILE_PROXY_OP = 8,
  GCCL_PROFILE_PROXY_STEP = 16,
  GCCL_PROFILE_PROXY_CTRL = 32,
  GCCL_PROFILE_KERNEL_CH = 64,
  GCCL_PROFILE_NET_PLUGIN = 128,
  GCCL_PROFILE_GROUP_API = 256,
  GCCL_PROFILE_COLL_API = 512,
  GCCL_PROFILE_P2P_API = 1024,
  GCCL_PROFILE_KERNEL_LAUNCH = 2048
};

/* States that this library tells. 0..7 belong to tables before v4 (adapters make them), 19 and later to v4 and newer. */
enum gccl_profile_state {
  GCCL_PROFILE_STEP_SEND_GPU_WAIT = 8,
  GCCL_PROFILE_STEP_SEND_WAIT = 9,
  GCCL_PROFILE_STEP_RECV_WAIT = 10,
  GCCL_PROFILE_STEP_RECV_GPU_WAIT = 12,
  GCCL_PROFILE_OP_IN_PROGRESS = 19,
  GCCL_PROFILE_STEP_SEND_PEER_WAIT = 20,
  GCCL_PROFILE_NET_UPDATE = 21,
  GCCL_PROFILE_KERNEL_CH_STOP = 22,
  GCCL_PROFILE_GROUP_START_STOP = 23,
  GCCL_PROFILE_GROUP_END_START = 24
};

/* ncclProfilerEventDescr_v6_t. Strings are static; a descriptor lives only during the call. */
typedef struct {
  uint64_t type;
  void *parent;
  int rank;
  union {
    struct {
      bool captured;
      int depth;
    } group_api;
    struct {
      const char *func;
      size_t count;
      const char *datatype;
      int root;
      void *stream;
      bool captured;
    } coll_api;
    struct {
      const char *func;
      size_t count;
      const char *datatype;
      void *stream;
      bool captured;
    } p2p_api;
    struct {
      void *stream;
    } kernel_launch;
    struct {
      uint64_t number;
      const char *func;
      const void *send;
      void *recv;
      size_t count;
      int root;
      const char *datatype;
      uint8_t nchannels, nwarps;
      const char *algo, *proto;
      void *group;
    } coll;
    struct {
      const char *func;
      void *buff;
      const char *datatype;
      size_t count;
      int peer;
      uint8_t nchannels;
      void *group;
    } p2p;
    struct {
      int32_t pid;
      uint8_t channel;
      int peer, nsteps, chunk_size, is_send;
    } proxy_op;
    struct {
      int step;
    } proxy_step;
    struct {
      uint8_t channel;
      uint64_t timer;
    } kernel_ch;
    struct {
      int64_t id;
      void *data;
    } net_plugin;
    unsigned char room[88]; /* the copy-engine events are the longest */
  } u;
} gccl_profile_event;

/* ncclProfilerEventStateArgs_v6_t. */
typedef union {
  size_t trans_size;
  int appended;
  void *data;
  uint64_t timer;
} gccl_profile_args;

/* One plugin for one communicator. Any thread calls, without a lock. */
typedef struct gccl_profiler gccl_profiler;
struct gccl_profiler {
  const int *mask; /* the plugin's activation mask: of the process, read atomically at each event, it may change it at any time */
  void *context;
  const void *table; /* the plugin's own */
  /* Opens an event; *handle NULL: it is not followed. */
  void (*start)(const gccl_profiler *, void **handle, const gccl_profile_event *);
  void (*stop)(const gccl_profiler *, void *handle);
  void (*state)(const gccl_profiler *, void *handle, int state, const gccl_profile_args *);
};

/* The steps that the network works for, as the adapters of net plugins see them (plugin/net). A step, and an event that a net plugin opens
 * below it, is a number and never an address: one that is over, or was made up, is found to be none. 0 is no step. Any thread. */
typedef struct {
  /* The profiler callback of net plugins: NULL, or what was wrong, and nothing was done. */
  const char *(*event)(void **event, int type, void *step, int64_t plugin, void *data);
  /* A request made for a step keeps it open. */
  void (*hold)(uint32_t step);
  void (*drop)(uint32_t step);
  /* The step that waits for what comes to an address; 0: none. */
  uint32_t (*waiting)(const void *at);
  const _Atomic(int32_t) *waits; /* how many wait so: a look before waiting */
} gccl_step_api;

#endif
