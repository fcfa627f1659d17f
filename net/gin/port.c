/* The backend `host`: the executor's commands become work requests; the agent applies what peers say to areas and mirrors. */
#include <stdlib.h>

#include "gin.h"

static int help(gccl_port *p) { return gin_help((gin *)p); }

int gin_port_open(gin *g, uint32_t depth) {
  gccl_port *p = &g->port;
  p->ring = aligned_alloc(2 * GCCL_LINE, depth * sizeof *p->ring);
  if (!p->ring) return 0;
  p->mask = depth - 1;
  p->help = help;
  return 1;
}

/* The destination of a put at a peer. */
static const gccl_net_rmr *remote_of(gin *g, gin_peer *p, const gccl_cmd *d) {
  switch (d->place) {
  case GCCL_AT_AREA: return &p->area;
  case GCCL_AT_MIRROR: return &p->mirror;
  case GCCL_AT_WINDOW: {
    gin_window *w = gin_window_of(g, d->window);
    return w ? &w->remote[p->rank] : NULL;
  }
  default: return NULL;
  }
}

/* 0 if there is no room for it now. */
static int issue(gin *g, const gccl_cmd *d) {
  gin_peer *p = &g->peer[d->peer];
  if (p->faulted || !p->conn) return 1; /* told elsewhere; nothing is owed to a rank that is gone */
  if (!gin_room(g, p, 2)) return 0;
  gccl_net_wr *w = NULL;
  if (d->kind == GCCL_CMD_PUT) {
    const gccl_net_rmr *r = remote_of(g, p, d);
    w = gin_work(g, p, GCCL_NET_PUT);
    w->remote = r;
    w->step = d->step;
    w->roff = d->off + (d->place == GCCL_AT_MIRROR ? p->mirror_off : 0);
    if (!r || !gin_local(g, p, w, d->src, d->bytes)) {
      char text[GIN_TEXT];
      snprintf(text, sizeof text, "a put of %llu bytes to rank %d: %s is not registered", (unsigned long long)d->bytes, p->rank,
               r ? "its source" : "its destination");
      gin_peer_failed(g, p, text);
      return 1;
    }
  }
  if (d->message_bytes) w = gin_message(g, p, d->message, d->message_bytes, 0);
  if (w && (d->flags & GCCL_CMD_TRACKED || d->put || d->step)) {
    w->flags |= GCCL_NET_SIGNALED;
    w->cookie = gin_cookie(d->flags & GCCL_CMD_TRACKED ? GIN_COOKIE_TRACKED : GIN_COOKIE_TRACED, d->step, d->put);
  }
  return 1;
}

int gin_port_serve(gin *g) {
  gccl_port *p = &g->port;
  uint64_t tail = atomic_load_explicit(&p->tail, memory_order_relaxed);
  uint64_t head = atomic_load_explicit(&p->head, memory_order_acquire), from = tail;
  while (tail != head && issue(g, &p->ring[tail & p->mask])) tail++;
  atomic_store_explicit(&p->tail, tail, memory_order_release); /* acquired by the executor that fills the slot again */
  return tail != from;
}

static void raise_at(gin *g, gin_peer *p, uint8_t place, uint64_t off, uint64_t value) {
  gccl_msg_signal m = {.head = {.kind = GCCL_MSG_SIGNAL, .place = place, .op = GCCL_SIGNAL_RAISE}, .off = off, .value = value};
  gin_message(g, p, &m, sizeof m, 0);
}

void gin_leave(gin *g) {
  if (!g->comm || !g->comm->self.area) return;
  uint64_t progress = __atomic_load_n(&((gccl_area *)g->comm->self.area)->progress, __ATOMIC_ACQUIRE);
  for (int i = 0; i < 100 && g->port.ring && gin_port_serve(g); i++) gin_serve(g);
  for (int32_t q = 0; q < g->nranks; q++) {
    gin_peer *p = &g->peer[q];
    if (!p->conn || p->faulted || !gin_room(g, p, 2)) continue;
    raise_at(g, p, GCCL_AT_MIRROR, offsetof(gccl_area, progress), progress);
    raise_at(g, p, GCCL_AT_AREA, g->comm->geo.signals + (uint64_t)g->rank * GCCL_LINE + 8, 1);
  }
}

/* ---- The agent ---- */

static void wrong(gin *g, gin_peer *p, const char *what) {
  char text[GIN_TEXT];
  snprintf(text, sizeof text, "rank %d sent a message that makes no sense: %s", p->rank, what);
  gin_peer_failed(g, p, text);
}

static void signal_word(gin *g, gin_peer *p, const gccl_msg_signal *m) {
  struct ncclComm *c = g->comm;
  char *base = NULL;
  uint64_t bytes = 0;
  if (m->head.op > GCCL_SIGNAL_ADD) {
    wrong(g, p, "unknown operation on a signal");
    return;
  }
  switch (m->head.place) {
  case GCCL_AT_SIGNAL: gin_context_signal(g, p, m); return;
  case GCCL_AT_AREA: /* sync words stand before the eager slots */ base = g->area.base, bytes = c ? c->geo.eager : g->area.bytes; break;
  case GCCL_AT_MIRROR:
    if (c) base = c->peers[p->rank].area, bytes = c->geo.eager;
    break;
  case GCCL_AT_WINDOW: {
    gin_window *w = gin_window_of(g, m->window);
    if (w) base = w->local.base, bytes = w->local.bytes;
    break;
  }
  default: break;
  }
  if (!base || m->off % 8 || !gccl_net_within(bytes, m->off, 8)) {
    wrong(g, p, "a signal outside of what it may signal");
    return;
  }
  if (g->mover && m->head.place == GCCL_AT_WINDOW) {
    if (!gin_add(g, p, base + m->off, m->value, NULL)) gin_peer_failed(g, p, "out of memory for a signal");
    return;
  }
  gin_signal((uint64_t *)(base + m->off), m->head.op, m->value);
  if (c && m->head.place == GCCL_AT_AREA && m->off == c->geo.signals + (uint64_t)p->rank * GCCL_LINE + 8) p->left = 1;
}

/* The mirror gets what the sender has in its own area: the call, the record, and that all operations before have ended there. */
static void record(gin *g, gin_peer *p, const gccl_msg_record *m) {
  struct ncclComm *c = g->comm;
  if (!c || m->n > sizeof m->data) {
    wrong(g, p, "a record");
    return;
  }
  char *mirror = c->peers[p->rank].area;
  uint64_t slot = m->seq & (GCCL_RECORDS - 1);
  gccl_call *d = (gccl_call *)(mirror + c->geo.calls) + slot;
  gccl_record *r = (gccl_record *)(mirror + c->geo.records) + slot;
  d->count = m->count;
  d->coll = m->coll;
  d->dtype = m->dtype;
  d->op = m->op;
  d->cls = m->cls;
  d->root = m->root;
  d->scale = m->scale;
  r->hash = m->hash;
  r->send_kind = m->send_kind;
  r->recv_kind = m->recv_kind;
  r->scaled = m->scaled;
  memcpy(r->u.data, m->data, m->n);
  gin_signal(&((gccl_area *)mirror)->progress, GCCL_SIGNAL_RAISE, m->seq << GCCL_STEP_BITS);
  __atomic_store_n(&r->seq, m->seq, __ATOMIC_RELEASE); /* acquired in record_seen */
}

static void post(gin *g, gin_peer *p, const gccl_msg_post *m) {
  struct ncclComm *c = g->comm;
  if (!c || m->head.which > 1) {
    wrong(g, p, "a mailbox");
    return;
  }
  char *mirror = c->peers[p->rank].area;
  gccl_post *d = (gccl_post *)(mirror + (m->head.which ? c->geo.recv_posts : c->geo.send_posts)) + c->rank;
  d->bytes = m->bytes;
  d->hash = m->hash;
  d->kind = m->kind;
  memcpy(d->pad, m->data, sizeof m->data);
  __atomic_store_n(&d->seq, m->seq, __ATOMIC_RELEASE); /* acquired in send_step, recv_step */
}

void gin_agent(gin *g, gin_peer *p, const unsigned char *message, uint32_t bytes) {
  static const uint32_t size[GCCL_MSG_COUNT] = {[GCCL_MSG_SIGNAL] = sizeof(gccl_msg_signal),
                                                [GCCL_MSG_RECORD] = sizeof(gccl_msg_record),
                                                [GCCL_MSG_POST] = sizeof(gccl_msg_post),
                                                [GCCL_MSG_FETCH] = sizeof(gccl_msg_fetch),
                                                [GCCL_MSG_FETCHED] = sizeof(gccl_msg_fetched)};
  union {
    gccl_msg_head head;
    gccl_msg_signal signal;
    gccl_msg_record record;
    gccl_msg_post post;
    gccl_msg_fetch fetch;
    gccl_msg_fetched fetched;
    unsigned char bytes[64];
  } m;
  if (bytes > sizeof m || message[0] >= GCCL_MSG_COUNT || size[message[0]] != bytes) {
    wrong(g, p, "its kind or its length");
    return;
  }
  memcpy(m.bytes, message, bytes);
  switch (m.head.kind) {
  case GCCL_MSG_SIGNAL: signal_word(g, p, &m.signal); break;
  case GCCL_MSG_RECORD: record(g, p, &m.record); break;
  case GCCL_MSG_POST: post(g, p, &m.post); break;
  case GCCL_MSG_FETCH: gin_nic_fetch(g, p, &m.fetch); break;
  case GCCL_MSG_FETCHED: gin_nic_fetched(g, p, &m.fetched); break;
  default: wrong(g, p, "kind 0");
  }
}
