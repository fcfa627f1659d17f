#define _GNU_SOURCE
#include "conn.h"

/* The next slot to write, or NULL. */
static shm_slot *next_slot(shm_conn *c) {
  if (c->sent - c->free >= SHM_SLOTS) {
    c->free = atomic_load_explicit(&c->out->taken, memory_order_acquire); /* the reader is done with it */
    if (c->sent - c->free >= SHM_SLOTS) return NULL;
  }
  return &c->out->slot[c->sent % SHM_SLOTS];
}

/* Room for n contiguous bytes of data, or NULL. The receiver counts the bytes skipped at the end in the same way. */
static unsigned char *next_data(shm_conn *c, uint64_t n) {
  uint64_t at = c->sent_bytes, skip = SHM_DATA - at % SHM_DATA;
  if (skip < n) at += skip;
  if (at + n - c->free_bytes > SHM_DATA) {
    c->free_bytes = atomic_load_explicit(&c->out->taken_bytes, memory_order_acquire);
    if (at + n - c->free_bytes > SHM_DATA) return NULL;
  }
  c->sent_bytes = at + n;
  return &c->out->data[at % SHM_DATA];
}

static void publish(shm_conn *c, shm_slot *s) {
  /* release: the slot, its data, and everything put before; acquired in shm_receive */
  atomic_store_explicit(&s->turn, (uint32_t)(c->sent / SHM_SLOTS) + 1, memory_order_release);
  c->sent++;
}

/* Sends a piece of a transfer. Returns its bytes, or -1 when there is no room. */
static int64_t send_piece(shm_conn *c, uint8_t kind, uint32_t key, uint64_t off, const unsigned char *from, uint64_t bytes) {
  if (bytes > SHM_CHUNK) bytes = SHM_CHUNK;
  shm_slot *s = next_slot(c);
  unsigned char *to = s ? s->u.data : NULL;
  if (s && bytes > SHM_INLINE) to = next_data(c, bytes);
  if (!to) return -1;
  s->kind = kind;
  s->key = key;
  s->off = off;
  s->bytes = bytes;
  memcpy(to, from, bytes);
  publish(c, s);
  return (int64_t)bytes;
}

static int send_all(shm_conn *c, uint8_t kind, uint32_t key, uint64_t off, const unsigned char *from, uint64_t bytes, uint64_t *moved) {
  do {
    int64_t n = send_piece(c, kind, key, off + *moved, from + *moved, bytes - *moved);
    if (n < 0) return 0;
    *moved += (uint64_t)n;
  } while (*moved < bytes);
  return 1;
}

/* Whether the whole of an operation is in slots now. */
static int send_op(shm_conn *c, shm_op *o) {
  switch (o->op) {
  case GCCL_NET_PUT: return send_all(c, SHM_PUT, o->key, o->off, o->local, o->bytes, &o->moved);
  case GCCL_NET_PUT_INLINE: return send_piece(c, SHM_PUT, o->key, o->off, o->data, o->bytes) >= 0;
  case GCCL_NET_MSGSEND: return send_piece(c, SHM_MSG, 0, 0, o->data, o->bytes) >= 0;
  case GCCL_NET_GET: {
    shm_slot *s = c->gets < SHM_ASKS ? next_slot(c) : NULL; /* the peer has room for as many */
    if (!s) return 0;
    s->kind = SHM_ASK;
    s->key = o->key;
    s->off = o->off;
    s->bytes = o->bytes;
    s->answer = o->mine;
    s->u.answer_off = o->loff;
    publish(c, s);
    c->gets++;
    return 1;
  }
  }
  return 1; /* GCCL_NET_FLUSH: its place among the completions is all */
}

static void account(shm_conn *c, const gccl_net_wr *w) {
  if (w->op <= GCCL_NET_PUT_INLINE) gccl_net_count(&c->base.stats.tx_bytes, w->bytes);
  if (w->op == GCCL_NET_MSGSEND) gccl_net_count(&c->base.stats.tx_msgs, 1);
  gccl_net_count(&c->base.stats.tx_ops, 1);
}

/* The common case: nothing is unfinished, and the request is one slot. */
static int execute_at_once(shm_conn *c, shm_ep *ep, const gccl_net_wr *w) {
  if (c->op_head != c->op_tail || (w->flags & GCCL_NET_SIGNALED && !gccl_dones_room(&ep->dones))) return 0;
  int64_t n;
  if (w->op == GCCL_NET_PUT_INLINE)
    n = send_piece(c, SHM_PUT, w->remote->key[0], w->roff, w->data, w->bytes);
  else if (w->op == GCCL_NET_MSGSEND)
    n = send_piece(c, SHM_MSG, 0, 0, w->data, w->bytes);
  else if (w->op == GCCL_NET_PUT && w->bytes <= SHM_CHUNK)
    n = send_piece(c, SHM_PUT, w->remote->key[0], w->roff, w->local->addr + w->loff, w->bytes);
  else
    return 0;
  if (n < 0) return 0;
  if (w->flags & GCCL_NET_SIGNALED) gccl_dones_add(&ep->dones, &c->base, w->cookie);
  return 1;
}

/* 1: taken, 0: no room, otherwise an error. */
int shm_execute(shm_conn *c, const gccl_net_wr *w, char *why) {
  shm_ep *ep = (shm_ep *)c->base.ep;
  int rc = gccl_net_check(&c->base, w, why);
  if (rc) return rc;
  if (!execute_at_once(c, ep, w)) {
    if (c->op_tail - c->op_head == SHM_OPS) return 0;
    if (c->op_head == c->op_tail) c->busy_since = shm_now();
    shm_op *o = &c->op[c->op_tail++ % SHM_OPS];
    o->op = w->op;
    o->signaled = (w->flags & GCCL_NET_SIGNALED) != 0;
    o->cookie = w->cookie;
    o->bytes = w->bytes;
    o->answered = 0;
    o->moved = 0;
    o->off = w->roff;
    o->loff = w->loff;
    o->key = w->remote ? w->remote->key[0] : 0;
    if (w->op == GCCL_NET_PUT || w->op == GCCL_NET_GET) {
      o->local = w->local->addr + w->loff;
      o->mine = gccl_mrt_key((const gccl_mrt_entry *)w->local);
    } else {
      memcpy(o->data, w->data, w->bytes <= GCCL_NET_MSG ? w->bytes : 0);
    }
  }
  account(c, w);
  return 1;
}

/* Moves on with answers to the peer's GETs, then with our own work. Returns whether anything moved. */
int shm_push(shm_conn *c) {
  uint64_t before = c->sent;
  uint32_t from = c->op_next;
  for (; c->ask_head != c->ask_tail; c->ask_head++) {
    shm_ask *a = &c->ask[c->ask_head % SHM_ASKS];
    gccl_net_mr *m = gccl_mrt_find(&((shm_ep *)c->base.ep)->mrs, a->key);
    if (!m || !gccl_net_within(m->bytes, a->off, a->bytes)) {
      gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "shm: rank %d reads memory that is not registered here", c->base.peer);
      return 1;
    }
    if (!send_all(c, SHM_GOT, a->answer, a->answer_off, m->addr + a->off, a->bytes, &a->moved)) break;
  }
  while (c->op_next != c->op_tail && send_op(c, &c->op[c->op_next % SHM_OPS])) c->op_next++;
  return c->sent != before || c->op_next != from;
}

/* Completes what is finished, in order. */
void shm_finish(shm_conn *c) {
  shm_ep *ep = (shm_ep *)c->base.ep;
  if (c->op_head == c->op_next) return;
  while (c->op_head != c->op_next) {
    shm_op *o = &c->op[c->op_head % SHM_OPS];
    if (o->op == GCCL_NET_GET && !o->answered) return;
    if (o->signaled) {
      if (!gccl_dones_room(&ep->dones)) return;
      gccl_dones_add(&ep->dones, &c->base, o->cookie);
    }
    c->op_head++;
  }
  if (c->op_head == c->op_tail) gccl_net_count(&c->base.stats.busy_ns, shm_now() - c->busy_since);
}

int shm_out_blocked(shm_conn *c) { return c->op_next != c->op_tail || c->ask_head != c->ask_tail; }
