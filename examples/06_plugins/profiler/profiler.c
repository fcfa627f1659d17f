/* A profiler plugin that counts events and adds up their times, and prints a line for each type when a communicator ends.
 *
 * It needs no header of NCCL: the table below is ncclProfiler_v5. An event may end before events that name it as
 * their parent begin, so each is kept until its last child has ended.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void (*logger)(int level, unsigned long flags, const char *file, int line, const char *format, ...);

/* The members that this plugin reads; what follows depends on the type. */
typedef struct {
  uint64_t type;
  void *parent;
  int rank;
  union {
    struct {
      uint64_t number;
      const char *func;
    } coll;
    unsigned char all[88];
  } u;
} descriptor;

typedef struct {
  const char *name;
  int (*init)(void **context, uint64_t commId, int *mask, const char *commName, int nNodes, int nranks, int rank, logger log);
  int (*startEvent)(void *context, void **handle, descriptor *);
  int (*stopEvent)(void *handle);
  int (*recordEventState)(void *handle, int state, void *args);
  int (*finalize)(void *context);
} profiler_v5;

enum { TYPES = 12 };
static const char *const type_names[TYPES] = {"group",   "collective", "message",    "proxy operation", "proxy step",   "proxy control",
                                              "channel", "network",    "group call", "collective call", "message call", "launch"};

typedef struct {
  uint64_t comm;
  int rank, nranks;
  _Atomic(uint64_t) count[TYPES], ns[TYPES], states;
} counts;

typedef struct event event;
struct event {
  counts *of;
  event *parent;
  int type;
  uint64_t since;
  _Atomic(int) refs; /* itself while it is open, and its children */
};

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void release(event *e) {
  while (e && atomic_fetch_sub(&e->refs, 1) == 1) {
    event *parent = e->parent;
    free(e);
    e = parent;
  }
}

static int init(void **context, uint64_t comm, int *mask, const char *name, int nodes, int nranks, int rank, logger log) {
  const char *wanted = getenv("EXAMPLE_PROFILER_MASK");
  counts *c = calloc(1, sizeof *c);
  (void)name, (void)nodes, (void)log;
  if (!c) return 2;
  c->comm = comm;
  c->rank = rank;
  c->nranks = nranks;
  *mask = wanted ? (int)strtol(wanted, NULL, 0) : 0xfff & ~32;
  *context = c;
  return 0;
}

static int start_event(void *context, void **handle, descriptor *d) {
  event *e = calloc(1, sizeof *e);
  *handle = e;
  if (!e) return 0;
  e->of = context;
  e->type = __builtin_ctzll(d->type);
  e->parent = d->parent;
  if (e->parent) atomic_fetch_add(&e->parent->refs, 1);
  atomic_store(&e->refs, 1);
  e->since = now();
  return 0;
}

static int stop_event(void *handle) {
  event *e = handle;
  if (e->type < TYPES) {
    atomic_fetch_add(&e->of->count[e->type], 1);
    atomic_fetch_add(&e->of->ns[e->type], now() - e->since);
  }
  release(e);
  return 0;
}

static int record_state(void *handle, int state, void *args) {
  (void)state, (void)args;
  atomic_fetch_add(&((event *)handle)->of->states, 1);
  return 0;
}

static int finalize(void *context) {
  counts *c = context;
  const char *path = getenv("EXAMPLE_PROFILER_FILE");
  FILE *f = path ? fopen(path, "a") : stderr;
  for (int t = 0; f && t < TYPES; t++)
    if (c->count[t])
      fprintf(f, "communicator %016llx rank %d of %d: %s %llu times, %.1f us\n", (unsigned long long)c->comm, c->rank, c->nranks,
              type_names[t], (unsigned long long)c->count[t], (double)c->ns[t] / 1000.0);
  if (f && path) fclose(f);
  free(c);
  return 0;
}

profiler_v5 ncclProfiler_v5 = {"counting-example", init, start_event, stop_event, record_state, finalize};
