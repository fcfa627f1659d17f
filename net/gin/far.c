/* Lanes to ranks of other hosts, whose windows are not mapped here and whose memory the network does not reach: through bounce memory, which is pinned
 * and registered with the transport, a ring of slots for each direction and peer.
 *
 *   a put    the mover copies a piece to a slot here; the transport puts it into the slot of the same number there, and a message behind it says where
 *            it belongs; the agent there has its mover copy it there, and gives the slot back by a credit
 *   a value  is in its message
 *   a get    asks by a message; the pieces come as those of a put
 *
 * What comes from a peer is obeyed in the order of its messages: an ordinary message (a signal, an atomic, an answer) waits until the mover is done
 * with all pieces before it, so that it covers them, as transport.h promises for strong messages. Weak ones are as strong ones here.
 *
 * A put has completed when its last piece is in a slot here. A slot is used again when the transport is done with it and the peer has given it back.
 * Nothing waits in a circle: credits pass everything else, and the peer owes one as soon as its mover has moved, whatever it has itself to send. Puts
 * and answers to gets take turns for slots.
 */
#include <stdlib.h>

#include "lane.h"

enum {
  SLOTS = 8,
  PIECE = 252 << 10,     /* of a slot: two rings and a head of the allocator's fit 4 MiB */
  PIECES_ALL = 64 << 20, /* bytes for all peers; with many of them slots are smaller */
  HELD = 256,            /* messages of a peer that are under way or not obeyed yet */
  OUT = 64               /* that wait for the mover or the connection here */
};

typedef struct {
  uint32_t mark, bytes; /* of the piece in slot; 0: a message alone */
  uint32_t slot;        /* counts on: slot % SLOTS */
  uint8_t put, length;  /* put: the piece is the connection's, the message is not yet */
  unsigned char message[GCCL_NET_MSG];
} outgoing;

typedef struct {
  uint32_t mark, bytes;
  unsigned char message[GCCL_NET_MSG];
} incoming;

typedef struct {
  uint64_t at, bytes, done;
  uint32_t id;
} ask;

struct gin_far {
  uint64_t piece;
  char *slots; /* SLOTS for what goes, then SLOTS for what comes */
  gccl_net_mr *mr;
  gccl_net_rmr there;
  /* To the peer. */
  outgoing out[OUT];
  uint32_t said, head, tail;
  uint32_t filled, carried, back; /* slots: with which the transport is done; that the peer has given back */
  uint32_t entered, credited;     /* messages: posted; obeyed by the peer */
  uint8_t waits, answered;        /* for fairness: the lane has a put that waits for a slot; the last slot went to an answer */
  uint64_t left[LANE];            /* bytes that a get waits for, by entry */
  /* From the peer: messages [done, given) are the mover's. */
  incoming in[HELD];
  uint32_t heard, come, given, done;
  uint32_t landed;           /* pieces that the mover has taken */
  uint32_t emptied;          /* slots */
  uint32_t told, told_slots; /* the last credit: of done, of emptied */
  ask asked[LANE];
  uint32_t first_ask, asks;
};

static struct gin_far *far_of(const gin_peer *p) { return p->lane ? p->lane->far : NULL; }
static char *slot_out(struct gin_far *f, uint32_t n) { return f->slots + n % SLOTS * f->piece; }
static char *slot_in(struct gin_far *f, uint32_t n) { return f->slots + (SLOTS + n % SLOTS) * f->piece; }
static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

/* ---- Making it ---- */

int gin_far_open(gin *g, int32_t rank, char *why) {
  gin_peer *p = &g->peer[rank];
  struct gin_far *f = p->conn ? calloc(1, sizeof *f) : NULL;
  if (!f)
    return gccl_net_why(why, p->conn ? GCCL_NET_ENOMEM : GCCL_NET_EINVAL, p->conn ? "out of memory" : "rank %d is not connected", rank);
  f->piece = PIECE;
  while (f->piece > PIECE / 64 && (uint64_t)(g->nranks - 1) * 2 * SLOTS * f->piece > PIECES_ALL) f->piece /= 2;
  p->lane->far = f;
  uint64_t bytes = 2 * SLOTS * f->piece;
  f->slots = g->mover->ops->pinned(g->mover, bytes);
  if (!f->slots) return gccl_net_why(why, GCCL_NET_ENOMEM, "no %llu bytes of pinned memory for rank %d", (unsigned long long)bytes, rank);
  gccl_net_mem m = {.addr = f->slots, .bytes = bytes, .dmabuf = -1};
  return g->ep[p->endpoint]->ops->reg(g->ep[p->endpoint], &m, &f->mr, why);
}

const gccl_net_mr *gin_far_memory(const gin *g, int32_t rank) {
  const struct gin_far *f = far_of(&g->peer[rank]);
  return f ? f->mr : NULL;
}

int gin_far_join(gin *g, int32_t rank, const void *blob, uint32_t bytes, char *why) {
  struct gin_far *f = far_of(&g->peer[rank]);
  int rc = gin_import(g, rank, blob, bytes, &f->there, why);
  if (rc == 0 && f->there.bytes != 2 * SLOTS * f->piece)
    return gccl_net_why(why, GCCL_NET_EREMOTE, "rank %d has %llu bytes of bounce memory where %llu are due", rank,
                        (unsigned long long)f->there.bytes, (unsigned long long)(2 * SLOTS * f->piece));
  return rc;
}

void gin_far_deregister(gin *g) {
  for (int32_t r = 0; r < g->nranks; r++) {
    struct gin_far *f = far_of(&g->peer[r]);
    if (f && f->mr) f->mr->ep->ops->dereg(f->mr);
    if (f) f->mr = NULL;
  }
}

void gin_far_close(gin *g, gin_peer *p) {
  struct gin_far *f = far_of(p);
  if (!f) return;
  if (f->slots && gccl_mover_reached(g->mover, g->mover->marks))
    g->mover->ops->unpin(g->mover, f->slots); /* else the mover may still use it */
  free(f);
}

/* ---- To the peer ---- */

static int has_slot(const struct gin_far *f) {
  return f->filled - f->carried < SLOTS && f->filled - f->back < SLOTS && f->head - f->tail < OUT;
}

static outgoing *say(struct gin_far *f, const void *message, uint32_t length) {
  outgoing *o = &f->out[f->head++ % OUT];
  o->bytes = 0;
  o->put = 0;
  o->length = (uint8_t)length;
  memcpy(o->message, message, length);
  return o;
}

/* One of this file's messages. */
static outgoing *tell(struct gin_far *f, gccl_msg_piece *m, uint8_t kind) {
  m->head = (gccl_msg_head){.kind = kind, .number = ++f->said};
  return say(f, m, kind == GCCL_MSG_VALUE ? sizeof *m : GCCL_MSG_PIECE_BYTES);
}

/* Copies a piece to a slot; m says where it belongs. Preconditions: begin, and has_slot. */
static int fill(gin *g, struct gin_far *f, uint64_t from, gccl_msg_piece *m, uint8_t kind) {
  if (!g->mover->ops->bounce(g->mover, address(slot_out(f, f->filled)), from, m->bytes)) return 0;
  outgoing *o = tell(f, m, kind);
  o->bytes = (uint32_t)m->bytes;
  o->slot = f->filled++;
  f->answered = kind == GCCL_MSG_ANSWER;
  return 1;
}

static uint64_t piece_of(const struct gin_far *f, uint64_t left) { return left < f->piece ? left : f->piece; }

static int put(gin *g, gin_lane *l, struct gin_far *f, const gccl_net_wr *w) {
  while (l->part < w->bytes) {
    gccl_msg_piece m = {.off = w->roff + l->part, .bytes = piece_of(f, w->bytes - l->part), .window = w->remote->key[0]};
    f->waits = 1;
    if (!has_slot(f) || (f->asks && !f->answered) || !fill(g, f, w->loff + l->part, &m, GCCL_MSG_PIECE)) return 0;
    l->part += m.bytes;
  }
  f->waits = 0;
  l->part = 0;
  return 1;
}

static int put_value(struct gin_far *f, const gccl_net_wr *w) {
  gccl_msg_piece m;
  if (f->head - f->tail > OUT - sizeof w->data / sizeof m.data) return 0;
  for (uint64_t at = 0; at < w->bytes; at += m.bytes) {
    memset(&m, 0, sizeof m);
    m.off = w->roff + at;
    m.bytes = w->bytes - at < sizeof m.data ? w->bytes - at : sizeof m.data;
    m.window = w->remote->key[0];
    memcpy(m.data, w->data + at, m.bytes);
    tell(f, &m, GCCL_MSG_VALUE);
  }
  return 1;
}

/* 1 if the entry `sent` is on its way. */
static int send(gin *g, gin_lane *l, struct gin_far *f, const gccl_net_wr *w) {
  switch (w->op) {
  case GCCL_NET_PUT: return put(g, l, f, w);
  case GCCL_NET_PUT_INLINE: return put_value(f, w);
  case GCCL_NET_GET: {
    gccl_msg_piece m = {.off = w->roff, .bytes = w->bytes, .id = l->sent};
    f->left[l->sent % LANE] = w->bytes;
    if (w->bytes == 0) return 1;
    if (f->head - f->tail == OUT) return 0;
    m.window = w->remote->key[0];
    tell(f, &m, GCCL_MSG_ASK);
    return 1;
  }
  case GCCL_NET_MSGSEND:
    if (f->head - f->tail == OUT) return 0;
    say(f, w->data, (uint32_t)w->bytes);
    return 1;
  default: return 1;
  }
}

static int broken(const gin *g) { return gccl_net_faulted(&g->fault) == GCCL_NET_ESYSTEM; }

int gin_far_submit(gin *g, gin_lane *l) {
  struct gin_far *f = l->far;
  gccl_mover *m = g->mover;
  uint32_t from = l->sent, out = f->head, marks = m->marks;
  uint64_t part = l->part;
  if (from == l->head || broken(g)) return 0;
  m->ops->begin(m);
  while (l->sent != l->head && send(g, l, f, &l->wr[l->sent % LANE])) l->sent++;
  m->ops->end(m);
  if (m->marks != marks) l->last = m->marks;
  for (uint32_t i = from; i != l->sent; i++) l->mark[i % LANE] = l->last;
  for (uint32_t i = out; i != f->head; i++) f->out[i % OUT].mark = l->last;
  return l->sent != from || l->part != part;
}

int gin_far_got(const struct gin_far *f, uint32_t entry) { return f->left[entry % LANE] == 0; }

/* Pieces of what the peer has asked for. */
static int answer(gin *g, struct gin_far *f) {
  gccl_mover *m = g->mover;
  uint32_t out = f->head;
  if (!f->asks || !has_slot(f) || (f->waits && f->answered) || broken(g)) return 0;
  m->ops->begin(m);
  while (f->asks && has_slot(f) && !(f->waits && f->answered)) {
    ask *a = &f->asked[f->first_ask % LANE];
    gccl_msg_piece part = {.off = a->done, .bytes = piece_of(f, a->bytes - a->done), .id = a->id};
    if (!fill(g, f, a->at + a->done, &part, GCCL_MSG_ANSWER)) break;
    a->done += part.bytes;
    if (a->done == a->bytes) f->first_ask++, f->asks--;
  }
  m->ops->end(m);
  for (uint32_t i = out; i != f->head; i++) f->out[i % OUT].mark = m->marks;
  return f->head != out;
}

/* Posts work requests; how many were taken. */
static int post(gin *g, gin_peer *p, const gccl_net_wr *w, int n) {
  char why[GCCL_NET_TEXT] = "";
  int taken = p->conn->ops->post(p->conn, w, n, why);
  if (taken < 0) gin_peer_failed(g, p, taken == GCCL_NET_EFAULT ? p->conn->fault.text : why);
  return taken < 0 ? 0 : taken;
}

static void message(gccl_net_wr *w, const void *data, uint32_t bytes) {
  memset(w, 0, offsetof(gccl_net_wr, data));
  w->op = GCCL_NET_MSGSEND;
  w->bytes = bytes;
  memcpy(w->data, data, bytes);
}

/* What is ready, in order. */
static int depart(gin *g, gin_peer *p, struct gin_far *f) {
  uint32_t from = f->tail;
  while (f->tail != f->head && f->entered - f->credited < HELD) {
    outgoing *o = &f->out[f->tail % OUT];
    gccl_net_wr w[2], *next = w;
    if (!gccl_mover_reached(g->mover, o->mark)) break;
    if (o->bytes && !o->put) {
      memset(next, 0, offsetof(gccl_net_wr, data));
      next->op = GCCL_NET_PUT;
      next->flags = GCCL_NET_SIGNALED;
      next->cookie = gin_cookie(GIN_COOKIE_FAR, 0, o->slot + 1);
      next->bytes = o->bytes;
      next->local = f->mr;
      next->loff = (uint64_t)(slot_out(f, o->slot) - f->slots);
      next->remote = &f->there;
      next->roff = (uint64_t)(slot_in(f, o->slot) - f->slots);
      next++;
    }
    message(next++, o->message, o->length);
    int n = (int)(next - w), taken = post(g, p, w, n);
    if (taken < n) {
      o->put = taken == 1;
      break;
    }
    f->entered++;
    f->tail++;
  }
  return f->tail != from;
}

void gin_far_carried(gin_peer *p, uint64_t cookie) {
  struct gin_far *f = far_of(p);
  if (f) f->carried = (uint32_t)cookie;
}

/* ---- From the peer ---- */

static int held(gin *g, gin_peer *p, struct gin_far *f, const void *data, uint32_t bytes) {
  if (f->come - f->done == HELD || bytes > GCCL_NET_MSG) {
    gin_peer_failed(g, p, "a peer has sent more messages than it may");
    return 1;
  }
  incoming *e = &f->in[f->come++ % HELD];
  e->bytes = bytes;
  memcpy(e->message, data, bytes);
  return 1;
}

/* Credits may overtake each other. */
static void take_credit(gin *g, gin_peer *p, struct gin_far *f, const unsigned char *data, uint32_t bytes) {
  gccl_msg_credit c;
  if (bytes == sizeof c) memcpy(&c, data, sizeof c);
  if (bytes != sizeof c || (int32_t)(c.head.number - f->entered) > 0 || (int32_t)(c.slots - f->filled) > 0) {
    gin_peer_failed(g, p, "a peer gives credit for what was not sent");
    return;
  }
  if ((int32_t)(c.head.number - f->credited) > 0) f->credited = c.head.number;
  if ((int32_t)(c.slots - f->back) > 0) f->back = c.slots;
}

int gin_far_heard(gin *g, gin_peer *p, const unsigned char *data, uint32_t bytes) {
  struct gin_far *f = far_of(p);
  gccl_msg_head h;
  memcpy(&h, data, sizeof h);
  if (!f || h.kind < GCCL_MSG_PIECE || h.kind > GCCL_MSG_CREDIT) return 0;
  if (h.kind == GCCL_MSG_CREDIT) {
    take_credit(g, p, f, data, bytes);
    return 1;
  }
  if (bytes != (h.kind == GCCL_MSG_VALUE ? sizeof(gccl_msg_piece) : GCCL_MSG_PIECE_BYTES) || h.number != f->heard + 1) {
    gin_peer_failed(g, p, "a piece of a put or get is missing, or makes no sense");
    return 1;
  }
  f->heard++;
  return held(g, p, f, data, bytes);
}

int gin_far_hold(gin *g, gin_peer *p, const unsigned char *data, uint32_t bytes) {
  struct gin_far *f = far_of(p);
  return f ? held(g, p, f, data, bytes) : 0;
}

static int moves(const incoming *e) {
  return e->message[0] == GCCL_MSG_PIECE || e->message[0] == GCCL_MSG_ANSWER || e->message[0] == GCCL_MSG_VALUE;
}
static int uses_slot(const incoming *e) { return e->message[0] == GCCL_MSG_PIECE || e->message[0] == GCCL_MSG_ANSWER; }

static gccl_msg_piece piece_in(const incoming *e) {
  gccl_msg_piece m;
  memset(&m, 0, sizeof m);
  memcpy(&m, e->message, e->bytes);
  return m;
}

/* A range of this rank's part of a window. 0: there is none, which for a window that this rank has ended (*late) matters to nobody. */
static uint64_t range(gin *g, gin_peer *p, const gccl_msg_piece *m, int *late) {
  gin_window *w = gin_window_of(g, m->window);
  *late = !w && m->window && m->window <= g->numbers;
  if (w && gccl_net_within(w->local.bytes, m->off, m->bytes)) return address(w->local.base) + m->off;
  if (!*late) gin_peer_failed(g, p, "a peer puts or gets outside of windows");
  return 0;
}

/* The entry of a get that an answer is for, or NULL. */
static gccl_net_wr *got(gin_lane *l, const gccl_msg_piece *m) {
  gccl_net_wr *w = &l->wr[m->id % LANE];
  int known = m->id - l->tail < l->sent - l->tail && w->op == GCCL_NET_GET;
  return known && gccl_net_within(w->bytes, m->off, m->bytes) && m->bytes <= l->far->left[m->id % LANE] ? w : NULL;
}

/* Gives a piece or a value to the mover; 0: not now. */
static int land(gin *g, gin_peer *p, struct gin_far *f, const incoming *e) {
  gccl_msg_piece m = piece_in(e);
  int late = 0, value = m.head.kind == GCCL_MSG_VALUE;
  uint64_t to = 0;
  if (m.bytes == 0 || m.bytes > (value ? sizeof m.data : f->piece)) {
    gin_peer_failed(g, p, "a piece of a put or get has an impossible length");
    return 1;
  }
  if (m.head.kind == GCCL_MSG_ANSWER) {
    gccl_net_wr *w = got(p->lane, &m);
    if (!w)
      gin_peer_failed(g, p, "an answer to a get that is not under way");
    else
      to = w->loff + m.off;
  } else {
    to = range(g, p, &m, &late);
  }
  if (to && !(value ? g->mover->ops->value(g->mover, to, m.data, (uint32_t)m.bytes)
                    : g->mover->ops->bounce(g->mover, to, address(slot_in(f, f->landed)), m.bytes)))
    return 0;
  if (!value) f->landed++;
  if (m.head.kind == GCCL_MSG_ANSWER && to) f->left[m.id % LANE] -= m.bytes;
  return 1;
}

static void take_ask(gin *g, gin_peer *p, struct gin_far *f, const incoming *e) {
  gccl_msg_piece m = piece_in(e);
  int late;
  uint64_t at = range(g, p, &m, &late);
  if (!at || m.bytes == 0 || f->asks == LANE) {
    gin_peer_failed(g, p, late ? "a peer gets from a window that this rank has ended" : "a get of a peer makes no sense");
    return;
  }
  f->asked[(f->first_ask + f->asks++) % LANE] = (ask){.at = at, .bytes = m.bytes, .id = m.id};
}

/* Pieces and values from `given` on, as many as the mover takes now. */
static uint32_t land_all(gin *g, gin_peer *p, struct gin_far *f) {
  gccl_mover *m = g->mover;
  uint32_t from = f->given;
  if (broken(g)) return 0;
  m->ops->begin(m);
  while (f->given != f->come && !p->faulted && moves(&f->in[f->given % HELD]) && land(g, p, f, &f->in[f->given % HELD])) f->given++;
  m->ops->end(m);
  for (uint32_t i = from; i != f->given; i++) {
    incoming *e = &f->in[i % HELD];
    e->mark = m->marks;
    if (e->message[0] == GCCL_MSG_ANSWER) p->lane->mark[piece_in(e).id % LANE] = m->marks;
  }
  return f->given - from;
}

static int obey(gin *g, gin_peer *p, struct gin_far *f) {
  uint32_t given = f->given, done = f->done;
  while (!p->faulted) {
    for (; f->done != f->given && gccl_mover_reached(g->mover, f->in[f->done % HELD].mark); f->done++)
      f->emptied += (uint32_t)uses_slot(&f->in[f->done % HELD]);
    if (f->given == f->come) break;
    incoming *e = &f->in[f->given % HELD];
    if (moves(e)) {
      if (!land_all(g, p, f)) break;
      continue;
    }
    if (f->done != f->given) break; /* it covers what is before it */
    if (e->message[0] == GCCL_MSG_ASK)
      take_ask(g, p, f, e);
    else
      gin_agent(g, p, e->message, e->bytes);
    f->given++;
    f->done++;
  }
  return f->given != given || f->done != done;
}

/* Not for each message: a peer waits for credit only when it has used all of it. */
static int credit(gin *g, gin_peer *p, struct gin_far *f) {
  gccl_msg_credit c = {.head = {.kind = GCCL_MSG_CREDIT, .number = f->done}, .slots = f->emptied};
  gccl_net_wr w;
  if (f->done - f->told < HELD / 4 && f->emptied - f->told_slots < SLOTS / 4) return 0;
  message(&w, &c, sizeof c);
  w.flags = GCCL_NET_WEAK;
  if (!post(g, p, &w, 1)) return 0;
  f->told = c.head.number;
  f->told_slots = c.slots;
  return 1;
}

/* ---- Turns ---- */

int gin_far_turn(gin *g) {
  int moved = 0;
  for (int32_t r = 0; r < g->nranks; r++) {
    gin_peer *p = &g->peer[r];
    struct gin_far *f = far_of(p);
    if (!f) continue;
    if (!p->faulted) moved |= obey(g, p, f);
    if (!p->faulted) moved |= answer(g, f);
    if (!p->faulted) moved |= depart(g, p, f);
    if (!p->faulted) moved |= credit(g, p, f);
    if (p->faulted) gin_far_drop(f);
  }
  return moved;
}

int gin_far_busy(const struct gin_far *f) { return f->head != f->tail || f->come != f->done || f->asks; }

void gin_far_drop(struct gin_far *f) {
  f->tail = f->head;
  f->done = f->given = f->come;
  f->asks = 0;
  f->waits = 0;
}
