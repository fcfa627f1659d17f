#define _GNU_SOURCE
#include "conn.h"

/* Takes a work request: 1 taken, 0 no room, otherwise an error. */
int out_take(conn *c, const gccl_net_wr *w, char *why) {
  int rc = gccl_net_check(&c->base, w, why);
  if (rc) return rc;
  if (c->op_tail - c->op_head == SOCK_OPS) return 0;
  if (c->op_head == c->op_tail) {
    c->busy_since = sock_now();
    link_busy(c);
  }
  op *o = &c->op[c->op_tail++ % SOCK_OPS];
  memset(o, 0, offsetof(op, data));
  o->op = w->op;
  o->signaled = (w->flags & GCCL_NET_SIGNALED) != 0;
  o->weak = (w->flags & GCCL_NET_WEAK) != 0;
  o->cookie = w->cookie;
  o->bytes = w->bytes;
  o->off = w->roff;
  o->loff = w->loff;
  if (w->remote) o->key = w->remote->key[0];
  if (w->op == GCCL_NET_PUT || w->op == GCCL_NET_GET || w->op == GCCL_NET_SEND) {
    o->local = w->local ? w->local->addr + w->loff : (const unsigned char *)(uintptr_t)w->loff;
    if (w->local) o->mine = gccl_mrt_key((const gccl_mrt_entry *)w->local);
  } else if (w->op != GCCL_NET_FLUSH) {
    memcpy(o->data, w->data, w->bytes);
  }
  if (w->op == GCCL_NET_SEND) o->number = (uint32_t)w->roff, o->off = o->key = 0;
  if (w->op <= GCCL_NET_PUT_INLINE || w->op == GCCL_NET_SEND) gccl_net_count(&c->base.stats.tx_bytes, w->bytes);
  if (w->op == GCCL_NET_MSGSEND) gccl_net_count(&c->base.stats.tx_msgs, 1);
  gccl_net_count(&c->base.stats.tx_ops, 1);
  return 1;
}

/* The living stream with the least that waits. */
static stream *emptiest(conn *c) {
  stream *best = NULL;
  for (int i = 0; i < c->nstreams; i++) {
    stream *s = c->streams[i];
    if (!s->dead && (!best || s->queued < best->queued)) best = s;
  }
  return best;
}

/* The stream for a frame, or NULL if none has room. Small frames follow each other on one stream, so that a message seldom
 * waits for what it covers. */
static stream *stream_for(conn *c, uint64_t bytes) {
  stream *s = bytes <= SOCK_SMALL ? stream_first(c) : emptiest(c);
  if (!s || s->tail - s->head == SOCK_QUEUE || (s->queued && s->queued + bytes > SOCK_QUEUED)) return NULL;
  return s;
}

static void give(conn *c, stream *s, uint64_t seq) {
  segment *g = &c->window[seq % FRAME_WINDOW];
  c->carrier[seq % FRAME_WINDOW] = (int16_t)s->index;
  s->queue[s->tail++ % SOCK_QUEUE] = seq;
  s->queued += sizeof(frame) + frame_room(g->head.len);
}

/* Makes the next frame. Returns its segment, or NULL when the window or the streams are full. */
static segment *next_frame(conn *c, uint8_t kind, uint32_t len, stream **on) {
  if (c->seq - c->acked == FRAME_WINDOW || !(*on = stream_for(c, len))) return NULL;
  segment *g = &c->window[c->seq % FRAME_WINDOW];
  memset(&g->head, 0, sizeof g->head);
  g->head.magic = FRAME_MAGIC;
  g->head.kind = kind;
  g->head.len = len;
  g->head.seq = c->seq;
  g->from = NULL;
  memset(g->data, 0, sizeof g->data);
  return g;
}

static void queue_frame(conn *c, stream *s) { give(c, s, c->seq++); }

/* Puts a range into frames like this one. Returns whether all of it is. */
static int send_range(conn *c, const frame *like, const unsigned char *from, uint64_t bytes, uint64_t *moved) {
  /* Pieces that keep all streams busy, but not so small that heads and system calls count. */
  uint64_t piece = bytes / (uint64_t)c->alive;
  if (piece < 64 << 10) piece = 64 << 10;
  if (piece > FRAME_MAX) piece = FRAME_MAX;
  do {
    stream *s;
    uint64_t n = bytes - *moved < piece ? bytes - *moved : piece;
    segment *g = next_frame(c, FRAME_DATA, (uint32_t)n, &s);
    if (!g) return 0;
    g->head.flags = like->flags;
    g->head.key = like->key;
    g->head.aux = like->aux;
    g->head.off = like->off + *moved;
    g->from = from + *moved;
    queue_frame(c, s);
    *moved += n;
  } while (*moved < bytes);
  return 1;
}

static int op_frames(conn *c, op *o) {
  stream *s;
  segment *g;
  switch (o->op) {
  case GCCL_NET_PUT:
  case GCCL_NET_SEND: return send_range(c, &(frame){.key = o->key, .off = o->off, .aux = o->number}, o->local, o->bytes, &o->moved);
  case GCCL_NET_PUT_INLINE:
    if (!(g = next_frame(c, FRAME_DATA, (uint32_t)o->bytes, &s))) return 0;
    g->head.key = o->key;
    g->head.off = o->off;
    memcpy(g->data, o->data, o->bytes);
    break;
  case GCCL_NET_MSGSEND:
    if (!(g = next_frame(c, FRAME_MSG, (uint32_t)o->bytes, &s))) return 0;
    g->head.after = o->weak ? c->last_frames : FRAME_ALL;
    memcpy(g->data, o->data, o->bytes);
    break;
  case GCCL_NET_GET: {
    if (c->gets == FRAME_ASKS || !(g = next_frame(c, FRAME_ASK, sizeof(frame_ask), &s))) return 0;
    frame_ask a = {.bytes = o->bytes, .off = o->loff, .key = o->mine};
    g->head.key = o->key;
    g->head.off = o->off;
    memcpy(g->data, &a, sizeof a);
    c->gets++;
    break;
  }
  default: return 1;
  }
  queue_frame(c, s);
  return 1;
}

/* Frames of a dead stream, once the peer has confirmed that it takes nothing from there any more. */
static void frames_again(conn *c) {
  for (uint64_t n = c->acked; c->again && n < c->seq; n++) {
    if (c->carrier[n % FRAME_WINDOW] >= 0) continue;
    stream *s = stream_for(c, c->window[n % FRAME_WINDOW].head.len);
    if (!s) return;
    give(c, s, n);
    c->again--;
    gccl_net_count(&c->base.stats.retries, 1);
  }
}

/* Turns work into frames as far as there is room. */
void out_frames(conn *c) {
  if (!c->alive) return;
  if (c->again) frames_again(c);
  for (; c->ask_head != c->ask_tail; c->ask_head++) {
    ask *a = &c->ask[c->ask_head % FRAME_ASKS];
    gccl_net_mr *m = gccl_mrt_find(&of(c)->mrs, a->key);
    if (!m || !gccl_net_within(m->bytes, a->off, a->bytes)) {
      in_gave_up(c, "reads memory that is not registered");
      return;
    }
    frame like = {.flags = FRAME_GOT, .key = a->answer, .off = a->answer_off};
    if (!send_range(c, &like, m->addr + a->off, a->bytes, &a->moved)) break;
  }
  for (; c->op_next != c->op_tail; c->op_next++) {
    op *o = &c->op[c->op_next % SOCK_OPS];
    if (!o->moved) o->first = c->seq;
    if (!op_frames(c, o)) return;
    o->last = c->seq;
    c->last_frames = (uint32_t)(o->last - o->first);
  }
}

void out_acked(conn *c, uint64_t ack) {
  if (ack <= c->acked || ack > c->seq) return;
  for (; c->acked < ack; c->acked++)
    if (c->carrier[c->acked % FRAME_WINDOW] < 0) c->again--; /* it had arrived before its stream died */
}

/* The peer takes nothing from a stream any more: what it carried and nobody acknowledged goes elsewhere. Frames that did arrive
 * behind a gap are sent twice; the receiver drops them by their number. */
void out_lost(conn *c, int index) {
  for (uint64_t n = c->acked; n < c->seq; n++)
    if (c->carrier[n % FRAME_WINDOW] == index) {
      c->carrier[n % FRAME_WINDOW] = -1;
      c->again++;
    }
}

/* Reports what is complete, in order. Nothing is sent again where there is one stream: sources are free when the kernel has their bytes. */
void out_complete(conn *c) {
  if (c->op_head == c->op_next) return;
  uint64_t gone = c->nstreams == 1 ? c->sent : c->acked;
  gccl_dones *d = &of(c)->dones;
  for (; c->op_head != c->op_next; c->op_head++) {
    op *o = &c->op[c->op_head % SOCK_OPS];
    if (o->last > gone || (o->op == GCCL_NET_GET && !o->answered)) return;
    if (o->signaled) {
      if (!gccl_dones_room(d)) return;
      gccl_dones_add(d, &c->base, o->cookie);
    }
  }
  if (c->op_head != c->op_tail) return;
  uint64_t now = sock_now();
  gccl_net_count(&c->base.stats.busy_ns, now - c->busy_since);
  link_rest(c, now);
}
