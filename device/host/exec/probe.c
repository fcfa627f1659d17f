/* The event points of probe.h: a record for the trace, and what profiler plugins are told.
 *
 * A plugin has a tree of events: group call, call, operation, and below the operation the run of its channel (host plans have one) and, for
 * each remote rank and direction, a proxy operation with a step for each slot (steps.h). A parent is opened before its children and closed
 * after them, but for calls on a stream, which return before their operation has run, and operations whose last slots the network still has:
 * as with NCCL, a plugin keeps what children refer to.
 */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "ring.h"
#include "steps.h"
#include "tick.h"

struct gccl_seen {
  void *api[GCCL_PROFILERS], *group_api[GCCL_PROFILERS], *group[GCCL_PROFILERS], *task[GCCL_PROFILERS], *channel[GCCL_PROFILERS];
  gccl_proxy *proxies, *stepping; /* stepping: whose step is under way */
  uint64_t pieces;                /* of a message that have begun */
  void *stream;
  const char *func;
  uint8_t message, sends; /* as called: a message to the rank itself becomes a copy */
};

/* The group of the calling thread that somebody follows. */
typedef struct {
  gccl_probe *probe; /* of its first communicator; NULL: none */
  uint64_t number;
  int traced;
  void *handle[GCCL_PROFILERS];
} group;
static __thread group open_group __attribute__((tls_model("initial-exec")));
static _Atomic(uint64_t) groups;

/* --- the trace --- */

static gccl_event *begin_record(gccl_probe *p, unsigned kind, int ends, int count) {
  gccl_event *e = p->tracer ? gccl_ring_next(p->tracer, ends, count) : NULL;
  if (!e) return NULL;
  e->ns = gccl_tick();
  e->kind = (uint8_t)kind;
  e->comm = p->number;
  e->peer = -1;
  return e;
}

static uint8_t what_of(const gccl_op *x) { return (uint8_t)(x->kind << 4 | x->coll); }

static int record_op(const gccl_op *x, unsigned kind, int rc) {
  int ends = kind == GCCL_EV_DONE || kind == GCCL_EV_PLANNED;
  gccl_event *e = begin_record(x->comm->probe, kind, ends, !ends);
  if (!e) return 0;
  e->what = what_of(x);
  e->dtype = x->dtype;
  e->red = kind == GCCL_EV_DONE ? x->cut : x->red;
  e->call = x->call;
  e->count = x->count;
  e->peer = x->root;
  e->arg = kind == GCCL_EV_PLAN ? x->cls : (uint32_t)rc;
  e->text[0] = 0;
  if (kind == GCCL_EV_RUN && x->kind == GCCL_DO_COLL)
    snprintf(e->text, sizeof e->text, "%.*s", (int)sizeof e->text - 1, x->plan ? x->plan->method : "leader");
  gccl_ring_publish();
  return 1;
}

/* --- names for plugins --- */

/* NCCL's names, as its profilers know them (src/misc/utils.cc and src/enqueue.cc of 2.30.7). */
static const char *func_of(const gccl_op *x) {
  static const char *const coll[] = {"AllReduce", "ReduceScatter", "AllGather", "Broadcast", "Reduce", "AlltoAll", "Gather", "Scatter"};
  if (x->kind == GCCL_DO_SEND) return "Send";
  if (x->kind == GCCL_DO_RECV) return "Recv";
  return coll[x->coll < 8 ? x->coll : 0];
}

static const char *type_of(int dtype) {
  static const char *const name[] = {"ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",   "ncclInt64",      "ncclUint64",
                                     "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
  return name[dtype < 12 ? dtype : 0];
}

/* Methods that are NCCL's algorithms under their names, the others under ours. */
static const char *algo_of(const gccl_lowered *plan) {
  static const char *const name[][2] = {{"ring", "RING"},         {"tree", "TREE"},   {"pat", "PAT"},          {"direct", "DIRECT"},
                                        {"eager", "EAGER"},       {"rd", "RD"},       {"rhd", "RHD"},          {"hier", "HIER"},
                                        {"binomial", "BINOMIAL"}, {"relay", "RELAY"}, {"pairwise", "PAIRWISE"}};
  for (unsigned i = 0; plan && i < sizeof name / sizeof *name; i++)
    if (!strcmp(plan->method, name[i][0])) return name[i][1];
  return plan ? "OTHER" : "LEADER"; /* on CUDA one rank does the work of all */
}

static int is_message(const gccl_op *x) { return x->kind == GCCL_DO_SEND || x->kind == GCCL_DO_RECV; }

/* What plugins know operations as; NCCL has no events for one-sided ones and for copies on one rank. */
static int is_task(const gccl_op *x) { return x->kind == GCCL_DO_COLL || is_message(x); }

/* --- calls and groups --- */

static void open_group_of(gccl_probe *p, int depth) {
  group *g = &open_group;
  memset(g, 0, sizeof *g);
  g->probe = p;
  atomic_fetch_add(&p->inside, 1);
  g->number = atomic_fetch_add_explicit(&groups, 1, memory_order_relaxed) + 1;
  if (depth) { /* an implicit group is nothing to see: its call is */
    gccl_event *e = begin_record(p, GCCL_EV_GROUP, 0, 1);
    if (e) {
      e->call = g->number;
      gccl_ring_publish();
      g->traced = 1;
    }
  }
  gccl_profile_event d = {.type = GCCL_PROFILE_GROUP_API, .u.group_api = {.depth = depth ? depth : 1}};
  gccl_profile_start(p, &d, NULL, g->handle);
  gccl_profile_state(p, g->handle, GCCL_PROFILE_GROUP_START_STOP, NULL);
}

void gccl_probe_grouping(void) {
  if (open_group.probe) gccl_profile_state(open_group.probe, open_group.handle, GCCL_PROFILE_GROUP_END_START, NULL);
}

void gccl_probe_grouped(int rc) {
  group *g = &open_group;
  if (!g->probe) return;
  gccl_event *e = g->traced ? begin_record(g->probe, GCCL_EV_GROUPED, 1, 0) : NULL;
  if (e) {
    e->call = g->number;
    e->arg = (uint32_t)rc;
    gccl_ring_publish();
  }
  gccl_profile_stop(g->probe, g->handle);
  atomic_fetch_sub(&g->probe->inside, 1);
  g->probe = NULL;
}

void gccl_probe_call(gccl_probe_call_state *s, gccl_op *x, void *stream, int depth) {
  gccl_probe *p = x->comm->probe;
  memset(s, 0, sizeof *s);
  s->probe = p;
  atomic_fetch_add(&p->inside, 1);
  s->what = what_of(x);
  s->call = x->call = atomic_fetch_add_explicit(&p->calls, 1, memory_order_relaxed) + 1;
  if (!open_group.probe && (depth || p->nprofilers)) open_group_of(p, depth);
  gccl_event *e = begin_record(p, GCCL_EV_CALL, 0, 1);
  if (e) {
    e->what = s->what;
    e->dtype = x->dtype;
    e->red = x->red;
    e->call = x->call;
    e->count = x->count;
    e->peer = x->root;
    e->arg = depth ? (uint32_t)open_group.number : 0;
    gccl_ring_publish();
    s->traced = 1;
  }
  if (!p->nprofilers || !is_task(x) || !(x->seen = calloc(1, sizeof *x->seen))) return;
  gccl_profile_event d = {.type = is_message(x) ? GCCL_PROFILE_P2P_API : GCCL_PROFILE_COLL_API};
  if (is_message(x)) {
    d.u.p2p_api.func = func_of(x);
    d.u.p2p_api.count = x->count;
    d.u.p2p_api.datatype = type_of(x->dtype);
    d.u.p2p_api.stream = stream;
  } else {
    d.u.coll_api.func = func_of(x);
    d.u.coll_api.count = x->count;
    d.u.coll_api.datatype = type_of(x->dtype);
    d.u.coll_api.root = x->root;
    d.u.coll_api.stream = stream;
  }
  gccl_profile_start(p, &d, open_group.handle, s->handle);
  memcpy(x->seen->api, s->handle, sizeof s->handle);
  memcpy(x->seen->group_api, open_group.handle, sizeof open_group.handle);
  x->seen->stream = stream;
  x->seen->func = func_of(x);
  x->seen->message = (uint8_t)is_message(x);
  x->seen->sends = x->kind == GCCL_DO_SEND;
}

void gccl_probe_called(gccl_probe_call_state *s, int rc, int depth) {
  gccl_event *e = s->traced ? begin_record(s->probe, GCCL_EV_CALLED, 1, 0) : NULL;
  if (e) {
    e->what = s->what;
    e->call = s->call;
    e->arg = (uint32_t)rc;
    gccl_ring_publish();
  }
  gccl_profile_stop(s->probe, s->handle);
  if (!depth) gccl_probe_grouped(rc);
  atomic_fetch_sub(&s->probe->inside, 1); /* the last look */
}

void gccl_probe_plan(const gccl_op *x) { record_op(x, GCCL_EV_PLAN, 0); }
void gccl_probe_planned(const gccl_op *x, int rc) { record_op(x, GCCL_EV_PLANNED, rc); }

/* --- operations --- */

void gccl_probe_issue(gccl_op *x) {
  struct gccl_seen *s = x->seen;
  const gccl_probe *p = x->comm->probe;
  if (!s) return;
  gccl_profile_event g = {.type = GCCL_PROFILE_GROUP}, d = {.type = s->message ? GCCL_PROFILE_P2P : GCCL_PROFILE_COLL};
  gccl_profile_start(p, &g, NULL, s->group);
  if (s->message) {
    d.u.p2p.func = s->func;
    d.u.p2p.buff = s->sends ? (void *)(uintptr_t)x->send : x->recv;
    d.u.p2p.datatype = type_of(x->dtype);
    d.u.p2p.count = x->count;
    d.u.p2p.peer = x->root;
    d.u.p2p.nchannels = 1;
  } else {
    d.u.coll.number = x->call;
    d.u.coll.func = s->func;
    d.u.coll.send = x->send;
    d.u.coll.recv = x->recv;
    d.u.coll.count = x->count;
    d.u.coll.root = x->root;
    d.u.coll.datatype = type_of(x->dtype);
    d.u.coll.nchannels = d.u.coll.nwarps = 1;
    d.u.coll.algo = algo_of(x->plan);
    d.u.coll.proto = "SIMPLE";
  }
  for (int i = 0; i < p->nprofilers; i++) { /* as start, but the group's handle is in the descriptor, and the plugin's own */
    const gccl_profiler *f = &p->profiler[i];
    s->task[i] = NULL;
    if (!gccl_profile_wanted(f, (int)d.type)) continue;
    d.rank = p->rank;
    d.parent = s->api[i];
    *(s->message ? &d.u.p2p.group : &d.u.coll.group) = s->group[i];
    f->start(f, &s->task[i], &d);
  }
  void *launch[GCCL_PROFILERS] = {NULL};
  gccl_profile_event l = {.type = GCCL_PROFILE_KERNEL_LAUNCH, .u.kernel_launch.stream = s->stream};
  gccl_profile_start(p, &l, s->group_api, launch);
  gccl_profile_stop(p, launch);
}

void gccl_probe_run(gccl_op *x) {
  struct gccl_seen *s = x->seen;
  x->traced = (uint8_t)record_op(x, GCCL_EV_RUN, 0);
  if (!s) return;
  gccl_profile_event d = {.type = GCCL_PROFILE_KERNEL_CH, .u.kernel_ch.timer = gccl_now_ns()};
  gccl_profile_start(x->comm->probe, &d, s->task, s->channel);
}

/* How many slots a plan passes through an edge in one round. */
static int passes(const gccl_lowered *p, unsigned edge, unsigned kind) {
  const gccl_lop *op = gccl_lowered_ops(p);
  int n = 0, times = 1;
  for (uint32_t k = 0; k < p->nops; k++) {
    if (op[k].kind == GCCL_OP_LOOP) times = (int)op[k].n;
    if (op[k].kind == GCCL_OP_END) times = 1;
    if (op[k].kind == kind && op[k].sync == GCCL_SYNC_DATA && op[k].edge == edge) n += times;
  }
  return n;
}

static gccl_proxy *proxy_of(gccl_op *x, int32_t peer, int send, int nsteps, uint64_t chunk) {
  struct gccl_seen *s = x->seen;
  for (gccl_proxy *p = s->proxies; p; p = p->next)
    if (p->peer == peer && p->send == send) return p;
  gccl_proxy *p = gccl_proxy_open(x->comm->probe, s->task, peer, send, nsteps, chunk);
  if (!p) return NULL;
  p->next = s->proxies;
  return s->proxies = p;
}

static void step_ends(gccl_op *x) {
  if (x->seen->stepping) gccl_step_end(x->seen->stepping);
  x->seen->stepping = NULL;
}

/* A slot that goes to a remote rank, or is expected from one. */
static void network_step(gccl_op *x, const gccl_lop *op, const void *slot) {
  const gccl_edge *e = gccl_lowered_edges(x->plan) + op->edge;
  int send = op->kind == GCCL_OP_SIGNAL;
  uint64_t bytes = x->piece * x->esize;
  gccl_proxy *p = proxy_of(x, e->peer, send, (int)x->rounds * passes(x->plan, op->edge, op->kind), bytes);
  if (p) gccl_step_begin(p, slot, bytes);
  x->seen->stepping = p;
}

void gccl_probe_step(gccl_op *x, unsigned what, const gccl_lop *op, int32_t peer, const void *slot) {
  if (x->traced) {
    gccl_event *e = begin_record(x->comm->probe, GCCL_EV_STEP, 0, !x->cut);
    if (e) {
      e->what = (uint8_t)what;
      e->call = x->call;
      e->count = op ? (uint64_t)x->round << 32 | x->pc : 0;
      e->peer = peer;
      e->arg = op ? (uint32_t)op->sync << 16 | (op->step & 0xffff) : 0;
      gccl_ring_publish();
    }
    x->cut |= !e;
  }
  if (!x->seen || what == GCCL_WAIT_MESSAGE) return;
  step_ends(x);
  if (op && (op->kind == GCCL_OP_SIGNAL || op->kind == GCCL_OP_WAIT) && op->sync == GCCL_SYNC_DATA &&
      x->comm->peers[gccl_lowered_edges(x->plan)[op->edge].peer].remote)
    network_step(x, op, slot);
}

void gccl_probe_piece(gccl_op *x, int32_t peer, int send, const void *at, uint64_t bytes) {
  struct gccl_seen *s = x->seen;
  if (!s || s->pieces > x->done) return;
  uint64_t chunk = x->comm->geo.p2p_bytes / 2, all = x->count * gccl_dtype_size(x->dtype);
  s->pieces = x->done + 1;
  s->stepping = proxy_of(x, peer, send, (int)((all + chunk - 1) / chunk), chunk);
  if (s->stepping) gccl_step_begin(s->stepping, at, bytes);
}

void gccl_probe_pieced(gccl_op *x) {
  if (x->seen) step_ends(x);
}

void gccl_probe_end(gccl_op *x, int rc) {
  struct gccl_seen *s = x->seen;
  const gccl_probe *p = x->comm->probe;
  if (x->traced) record_op(x, GCCL_EV_DONE, rc);
  x->traced = 0;
  if (!s) return;
  step_ends(x);
  for (gccl_proxy *q = s->proxies; q;) {
    gccl_proxy *next = q->next;
    gccl_proxy_end(q);
    q = next;
  }
  gccl_profile_args timer = {.timer = gccl_now_ns()};
  gccl_profile_state(p, s->channel, GCCL_PROFILE_KERNEL_CH_STOP, &timer);
  gccl_profile_stop(p, s->channel);
  gccl_profile_stop(p, s->task);
  gccl_profile_stop(p, s->group);
  free(s);
  x->seen = NULL;
}

/* --- the network --- */

uint32_t gccl_probe_put(struct ncclComm *c, int32_t peer, uint64_t bytes, uint32_t *step) {
  gccl_probe *p = c->probe;
  *step = gccl_step_put(p);
  gccl_event *e = begin_record(p, GCCL_EV_PUT, 0, 1);
  if (!e) return 0;
  uint32_t n = atomic_fetch_add_explicit(&p->puts, 1, memory_order_relaxed) + 1;
  if (!n) n = atomic_fetch_add_explicit(&p->puts, 1, memory_order_relaxed) + 1; /* 0 is none */
  e->peer = peer;
  e->count = bytes;
  e->arg = n;
  gccl_ring_publish();
  return n;
}

void gccl_probe_put_done(gccl_probe *p, uint32_t put, uint32_t step, int32_t peer) {
  if (step) gccl_steps.drop(step);
  gccl_event *e = put ? begin_record(p, GCCL_EV_PUT_DONE, 1, 0) : NULL;
  if (!e) return;
  e->arg = put;
  e->peer = peer;
  gccl_ring_publish();
}
