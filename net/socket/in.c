#define _GNU_SOURCE
#include "conn.h"

static int bit(const conn *c, uint64_t seq) { return (int)(c->bits[seq % FRAME_WINDOW / 64] >> seq % 64 & 1); }

/* The peer breaks the protocol, or uses memory that is gone: the connection ends, and the peer is told why. */
void in_gave_up(conn *c, const char *what) {
  if (gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "socket: rank %d %s", c->base.peer, what)) {
    c->want_bye = 1;
    stream *s = stream_first(c);
    if (s) stream_send(s);
  }
}

static gccl_net_mr *target(conn *c, const frame *f) {
  gccl_net_mr *m = gccl_mrt_find(&of(c)->mrs, f->key);
  if (!m)
    in_gave_up(c, "sent data for memory that is not registered");
  else if (!gccl_net_within(m->bytes, f->off, f->len))
    in_gave_up(c, "sent data beyond the end of a registration");
  else
    return m;
  return NULL;
}

/* Whether a frame is part of a SEND, whose place the caller names. */
static int lands(const conn *c, const frame *f) { return f->kind == FRAME_DATA && !f->key && c->base.land; }

/* Asks for the place of a payload that has none yet. */
static void land(stream *s) {
  conn *c = s->c;
  frame *f = &s->in;
  s->into = f->flags ? GCCL_NET_NOWHERE : c->base.land(c->base.user, f->aux, f->off, f->len);
  s->waits = !s->into;
  if (s->into == GCCL_NET_NOWHERE) in_gave_up(c, "sent data that has no place");
}

/* A head has come and is believable: where does its payload go? */
void in_begin(stream *s) {
  conn *c = s->c;
  frame *f = &s->in;
  s->need = f->len;
  s->fill = (uint32_t)(frame_room(f->len) - f->len);
  s->waits = 0;
  s->into = s->small; /* frame_wrong has checked that all but DATA fit */
  if (!frame_numbered(f)) return;
  if (f->seq >= c->arrived + FRAME_WINDOW) {
    in_gave_up(c, "sent more than the window allows");
    return;
  }
  if (f->seq < c->arrived || bit(c, f->seq) || c->message[f->seq % FRAME_WINDOW].held) {
    s->into = NULL; /* it came before, on a stream that died */
    return;
  }
  if (f->kind != FRAME_DATA) return;
  if (lands(c, f)) {
    land(s);
    return;
  }
  gccl_net_mr *m = target(c, f);
  if (m && f->len > GCCL_NET_MSG) s->into = m->addr + f->off;
}

/* Before more of a payload is taken in: its memory may be gone by now, or there. */
void in_resume(stream *s) {
  conn *c = s->c;
  const frame *f = &s->in;
  if (s->waits)
    land(s);
  else if (s->into && lands(c, f)) {
    if (c->base.land(c->base.user, f->aux, f->off, f->len) != s->into - (f->len - s->need))
      in_gave_up(c, "sent the end of something before all of it");
  } else if (s->into && s->in.kind == FRAME_DATA && s->in.len > GCCL_NET_MSG)
    (void)target(s->c, &s->in);
}

static void advance(conn *c) {
  while (bit(c, c->arrived)) {
    c->bits[c->arrived % FRAME_WINDOW / 64] &= ~(1ull << c->arrived % 64);
    c->arrived++;
  }
}

static void has_arrived(conn *c, uint64_t seq, uint64_t bytes) {
  c->bits[seq % FRAME_WINDOW / 64] |= 1ull << seq % 64;
  c->owed_frames++;
  c->owed_bytes += bytes;
  if (seq == c->arrived) advance(c);
}

/* Answers of one stream may overtake those of another, so an answer counts for whichever GET its place belongs to. */
static void answered(conn *c, const frame *f) {
  for (uint32_t i = c->op_head; i != c->op_next; i++) {
    op *o = &c->op[i % SOCK_OPS];
    if (o->op != GCCL_NET_GET || o->answered || o->mine != f->key) continue;
    if (!gccl_net_within(o->bytes, f->off - o->loff, f->len) || f->off < o->loff || f->len > o->bytes - o->got) continue;
    o->got += f->len;
    if (o->got == o->bytes) {
      o->answered = 1;
      c->gets--;
    }
    return;
  }
  in_gave_up(c, "answered what nobody asked");
}

static void asked(conn *c, const frame *f, const unsigned char *payload) {
  frame_ask a;
  memcpy(&a, payload, sizeof a);
  if (c->ask_tail - c->ask_head == FRAME_ASKS) {
    in_gave_up(c, "asked for more than a connection may");
    return;
  }
  c->ask[c->ask_tail++ % FRAME_ASKS] = (ask){.key = f->key, .answer = a.key, .off = f->off, .answer_off = a.off, .bytes = a.bytes};
}

static void control(stream *s) {
  conn *c = s->c;
  frame *f = &s->in;
  if (f->kind == FRAME_BYE) {
    c->byed = 1;
    c->bye_seq = f->seq;
    if (f->len) {
      s->small[f->len] = 0;
      gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "socket: rank %d has given up: %.180s", c->base.peer, (char *)s->small);
    }
    return;
  }
  if (f->kind == FRAME_ACK) return;
  if (f->aux >= (uint32_t)c->nstreams || (int)f->aux == s->index) {
    in_gave_up(c, "spoke of a stream that it cannot speak of");
    return;
  }
  stream *about = c->streams[f->aux];
  if (f->kind == FRAME_RESET) {
    if (!about->dead) stream_died(about, DEAD_RESET);
    about->tell_reset_ack = 1;
  } else if (about->dead && !about->confirmed) {
    about->confirmed = 1;
    about->tell_reset = 0;
    out_lost(c, about->index);
  }
}

/* A frame is complete. */
void in_finish(stream *s) {
  conn *c = s->c;
  frame *f = &s->in;
  if (f->ack > c->seq) {
    in_gave_up(c, "acknowledged what was never sent");
    return;
  }
  out_acked(c, f->ack);
  if (!frame_numbered(f)) {
    control(s);
    return;
  }
  if (!s->into) {
    c->owed_frames++; /* the sender does not know that it had come */
    return;
  }
  if (f->kind == FRAME_MSG) {
    message *m = &c->message[f->seq % FRAME_WINDOW];
    m->held = 1;
    m->weak = f->after != FRAME_ALL;
    m->after = f->after;
    m->bytes = (uint8_t)f->len;
    memcpy(m->data, s->small, f->len);
    c->weak_held += m->weak;
    return;
  }
  if (f->kind == FRAME_ASK) {
    asked(c, f, s->small);
  } else {
    if (f->len <= GCCL_NET_MSG && !lands(c, f)) {
      gccl_net_mr *m = target(c, f);
      if (!m) return;
      gccl_net_store_small(m->addr + f->off, s->small, f->len);
    }
    gccl_net_count(&c->base.stats.rx_bytes, f->len);
    if (f->flags & FRAME_GOT) answered(c, f);
  }
  has_arrived(c, f->seq, f->len);
}

static void deliver(conn *c, uint64_t seq, gccl_net_event *ev) {
  message *m = &c->message[seq % FRAME_WINDOW];
  ev->conn = &c->base;
  ev->kind = GCCL_NET_EV_MSG;
  ev->cookie = 0;
  ev->bytes = m->bytes;
  memcpy(ev->data, m->data, m->bytes);
  m->held = 0;
  c->weak_held -= m->weak;
  gccl_net_count(&c->base.stats.rx_msgs, 1);
  has_arrived(c, seq, 0);
}

/* Whether the frames that a weak message covers have arrived. */
static int covered(const conn *c, uint64_t seq, uint32_t after) {
  for (uint64_t n = after > seq ? 0 : seq - after; n < seq; n++)
    if (n >= c->arrived && !bit(c, n)) return 0;
  return 1;
}

/* Hands messages to the caller whose puts have arrived; returns how many. One that is not handed over counts as not arrived,
 * so that the sender stops when nobody takes them. */
int in_deliver(conn *c, gccl_net_event *ev, int max) {
  int n = 0;
  while (n < max && c->message[c->arrived % FRAME_WINDOW].held) deliver(c, c->arrived, &ev[n++]);
  if (!c->weak_held) return n;
  for (uint64_t seq = c->arrived, end = seq + FRAME_WINDOW; seq < end && n < max && c->weak_held; seq++) {
    message *m = &c->message[seq % FRAME_WINDOW];
    if (m->held && m->weak && covered(c, seq, m->after)) deliver(c, seq, &ev[n++]);
  }
  while (n < max && c->message[c->arrived % FRAME_WINDOW].held) deliver(c, c->arrived, &ev[n++]);
  return n;
}

/* Acknowledges what has arrived, unless frames of ours have done it or more is coming in. An answer of the caller may carry
 * it: so not in the poll that brought it. Over one stream the sender needs it for nothing but its window. */
void in_acknowledge(conn *c, int received) {
  if (!c->owed_frames) return;
  int one = c->nstreams == 1;
  int many = one ? c->owed_frames >= FRAME_WINDOW / 4 : c->owed_frames >= SOCK_ACK_FRAMES || c->owed_bytes >= SOCK_ACK_BYTES;
  uint32_t quiet = c->base.lazy ? SOCK_QUIET : one ? SOCK_QUIET_ONE : 0;
  if (!many && (received || ++c->quiet < quiet)) return;
  c->quiet = 0;
  c->want_ack = 1;
}
