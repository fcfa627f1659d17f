/* Lanes: the way of work requests where windows lie in memory that the CPU cannot touch, one for each peer, this rank included. The mover copies what
 * a put or a get moves, where the peer's window is mapped here too (device/cuda/window.c; far.c has the others); messages go over the connection when all before them
 * is done, so that they cover it as transport.h promises; this rank's own come back to itself. Weak messages are as strong ones here.
 */
#include <stdlib.h>

#include "lane.h"

static const uint64_t ASK_NS = 100000000; /* silence of the mover before it is asked for its reasons */

int gin_lanes_open(gin *g, const gccl_mover_ops *ops, struct ncclComm *comm, int on_device, char *why) {
  char text[GCCL_MOVER_TEXT] = "";
  for (int32_t r = 0; r < g->nranks; r++)
    if (!(g->peer[r].lane = calloc(1, sizeof *g->peer[r].lane))) return gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
  g->mover = ops->open(comm, on_device, text);
  return g->mover ? 0 : gccl_net_why(why, GCCL_NET_ESYSTEM, "%s", text);
}

void gin_lanes_close(gin *g) {
  for (int32_t r = 0; g->peer && r < g->nranks; r++) {
    gin_far_close(g, &g->peer[r]);
    free(g->peer[r].lane);
  }
  if (g->mover) g->mover->ops->close(g->mover);
  free(g->adds.add);
}

int gin_lane_busy(const gin_peer *p) { return p->lane && (p->lane->head != p->lane->tail || (p->lane->far && gin_far_busy(p->lane->far))); }

/* ---- Into the lane, and into the mover ---- */

static void take(gin_peer *p, gin_lane *l) {
  while (p->nwork && l->head - l->tail < LANE) {
    l->wr[l->head++ & (LANE - 1)] = p->work[p->first++];
    p->nwork--;
  }
  if (p->nwork == 0) p->first = 0;
}

/* 1 if all of it is the mover's, or there is nothing to move. */
static int give(gccl_mover *m, gin_lane *l, const gccl_net_wr *w) {
  uint64_t there = (w->remote ? w->remote->base : 0) + w->roff + l->part, here = w->loff + l->part;
  switch (w->op) {
  case GCCL_NET_PUT_INLINE: return m->ops->value(m, there, w->data, (uint32_t)w->bytes);
  case GCCL_NET_PUT: l->part += m->ops->copy(m, there, here, w->bytes - l->part); break;
  case GCCL_NET_GET: l->part += m->ops->copy(m, here, there, w->bytes - l->part); break;
  default: return 1;
  }
  if (l->part < w->bytes) return 0;
  l->part = 0;
  return 1;
}

static int submit(gin *g, gin_lane *l) {
  gccl_mover *m = g->mover;
  uint32_t from = l->sent, marks = m->marks;
  uint64_t part = l->part;
  if (from == l->head || gccl_net_faulted(&g->fault) == GCCL_NET_ESYSTEM) return 0;
  m->ops->begin(m);
  while (l->sent != l->head && give(m, l, &l->wr[l->sent & (LANE - 1)])) l->sent++;
  m->ops->end(m);
  if (m->marks != marks) l->last = m->marks;
  for (uint32_t i = from; i != l->sent; i++) l->mark[i & (LANE - 1)] = l->last;
  return l->sent != from || l->part != part;
}

/* ---- Out of it ---- */

/* Messages from tail on that may go, and lie side by side; posts them. 0: the connection takes none now. */
static uint32_t post(gin *g, gin_peer *p, gin_lane *l) {
  uint32_t n = 0, at = l->tail & (LANE - 1);
  char why[GCCL_NET_TEXT] = "";
  while (l->tail + n != l->sent && at + n < LANE && l->wr[at + n].op == GCCL_NET_MSGSEND && gccl_mover_reached(g->mover, l->mark[at + n])) {
    l->wr[at + n].reserved = l->wr[at + n].flags & GCCL_NET_SIGNALED; /* completed when it is posted: nobody has to tell */
    l->wr[at + n++].flags &= (uint8_t)~GCCL_NET_SIGNALED;
  }
  int taken = p->conn->ops->post(p->conn, &l->wr[at], (int)n, why);
  if (taken < 0) gin_peer_failed(g, p, taken == GCCL_NET_EFAULT ? p->conn->fault.text : why);
  for (uint32_t i = taken < 0 ? 0 : (uint32_t)taken; i < n; i++) l->wr[at + i].flags |= (uint8_t)l->wr[at + i].reserved;
  return taken < 0 ? 0 : (uint32_t)taken;
}

/* Whether the entry at the tail is. */
static int done(const gin *g, const gin_lane *l) {
  uint32_t at = l->tail & (LANE - 1);
  if (l->far && l->wr[at].op == GCCL_NET_GET && !gin_far_got(l->far, l->tail)) return 0;
  return gccl_mover_reached(g->mover, l->mark[at]);
}

/* Completes what is done. deliver: also messages to this rank itself. */
static int retire(gin *g, gin_peer *p, gin_lane *l, int deliver) {
  uint32_t from = l->tail;
  while (l->tail != l->sent && !p->faulted && done(g, l)) {
    uint32_t n = 1, message = l->wr[l->tail & (LANE - 1)].op == GCCL_NET_MSGSEND && !l->far; /* which far.c sends */
    if (message && p->conn) n = post(g, p, l);
    if (n == 0 || (message && !p->conn && !deliver)) break;
    while (n-- > 0) {
      gccl_net_wr w = l->wr[l->tail++ & (LANE - 1)]; /* a copy: what it leads to may fill the slot */
      if (message && !p->conn) gin_received(g, p, w.data, (uint32_t)w.bytes);
      if ((w.flags | (message ? w.reserved : 0)) & GCCL_NET_SIGNALED) gin_completed(g, p, w.cookie);
    }
  }
  return l->tail != from;
}

int gin_lane_serve(gin *g, gin_peer *p) {
  gin_lane *l = p->lane;
  uint32_t waiting = p->nwork;
  if (p->faulted) { /* what the mover has goes on, and nobody waits for it */
    p->nwork = p->first = 0;
    l->tail = l->sent = l->head;
    l->part = 0;
    if (l->far) gin_far_drop(l->far);
    return 1;
  }
  take(p, l);
  int moved = waiting != p->nwork;
  moved |= l->far ? gin_far_submit(g, l) : submit(g, l);
  return retire(g, p, l, 0) || moved;
}

int gin_lanes_turn(gin *g) {
  gin_peer *self = &g->peer[g->rank];
  int moved = retire(g, self, self->lane, 1) | gin_adds_serve(g) | gin_far_turn(g);
  uint32_t done = __atomic_load_n(g->mover->done, __ATOMIC_RELAXED);
  if ((done == g->mover->marks && g->ndirty == 0 && g->adds.n == 0) || done != g->mover_done) { /* nothing waits, or it comes on */
    g->mover_done = done;
    g->mover_ns = 0;
    return moved;
  }
  uint64_t now = gin_now();
  if (!g->mover_ns) g->mover_ns = now;
  if (now - g->mover_ns < ASK_NS) return moved;
  g->mover_ns = now;
  const char *why = g->mover->ops->trouble(g->mover);
  if (why) gccl_net_fail(&g->fault, GCCL_NET_ESYSTEM, "%s", why);
  return moved;
}

/* Whether nothing is under way that touches windows. */
static int settled(const gin *g) {
  for (int32_t r = 0; r < g->nranks; r++)
    if (g->peer[r].nwork || gin_lane_busy(&g->peer[r])) return 0;
  return g->adds.n == 0 && gccl_mover_reached(g->mover, g->mover->marks);
}

void gin_lanes_settle(gin *g, uint64_t ns) {
  uint64_t start = gin_now();
  int broken = gccl_net_faulted(&g->fault) == GCCL_NET_ESYSTEM; /* nothing new is begun; what is under way ends soon or never */
  while (!settled(g) && !(broken && gccl_mover_reached(g->mover, g->mover->marks)) && gin_now() - start < (broken ? ns / 8 : ns))
    gin_serve(g);
}
