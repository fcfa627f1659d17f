#include "carry.h"

static void flush(np_conn *c) {
  if (!c->out || !c->out_bytes) return;
  c->lane->ops->send(c->lane, c->out_bytes, c->out_step);
  c->out = NULL;
}

/* Room for a record and up to `bytes` behind it, at least `least`, in the frame that is being filled or the next one. *got is how many of
 * them fit. NULL: no frame. */
static np_record *record(np_conn *c, uint64_t least, uint64_t bytes, uint64_t *got) {
  for (;;) {
    if (!c->out) {
      if (!(c->out = c->lane->ops->room(c->lane))) return NULL;
      c->out_bytes = c->out_step = 0;
    }
    uint64_t left = NP_FRAME - c->out_bytes;
    if (left >= sizeof(np_record) + least) {
      uint64_t fits = left - sizeof(np_record);
      *got = bytes < fits ? bytes : fits;
      np_record *r = (np_record *)(c->out + c->out_bytes);
      c->out_bytes += (uint32_t)((sizeof *r + *got + 7) & ~7ull);
      *r = (np_record){.bytes = *got};
      return r;
    }
    flush(c);
  }
}

/* A record with up to GCCL_NET_TEXT bytes behind it. */
static np_record *small(np_conn *c, uint8_t kind, const void *data, uint64_t bytes) {
  uint64_t got;
  np_record *r = record(c, bytes, bytes, &got);
  if (!r) return NULL;
  r->kind = kind;
  if (bytes) memcpy(r + 1, data, bytes);
  return r;
}

int np_tell(np_conn *c, uint8_t kind, const char *text) {
  if (!small(c, kind, text, text ? GCCL_NET_TEXT : 0)) return 0;
  flush(c);
  return 1;
}

/* Moves on with a transfer to the peer's memory. 1 once all of it is handed over. */
static int transfer(np_conn *c, np_op *o) {
  enum { SMALLEST = 512 }; /* what is worth a record at the end of a frame */
  int bulk = c->bulk && o->bytes && (o->bytes > NP_EAGER || !o->plain);
  do {
    uint64_t left = o->bytes - o->moved, n = left;
    np_record *r;
    if (bulk) {
      if (n > c->bulk->most) n = c->bulk->most;
      uint64_t none;
      if (!np_bulk_room(c->bulk) || !(r = record(c, 0, 0, &none))) return 0;
      r->bytes = n;
      if (np_bulk_send(c, o, o->moved, n)) return 0;
    } else {
      if (!(r = record(c, left < SMALLEST ? left : SMALLEST, left, &n))) return 0;
      memcpy(r + 1, o->local->mr.addr + o->loff + o->moved, n);
      if (!c->out_step) c->out_step = o->step;
    }
    r->kind = o->op == NP_ANSWER ? (bulk ? NP_BULKGOT : NP_GOT) : (bulk ? NP_BULKPUT : NP_PUT);
    r->key = o->key;
    r->id = o->id;
    r->off = o->off + o->moved;
    o->moved += n;
  } while (o->moved < o->bytes);
  return 1;
}

static int send_op(np_conn *c, np_op *o) {
  np_record *r;
  switch (o->op) {
  case GCCL_NET_PUT:
  case NP_ANSWER: return transfer(c, o);
  case GCCL_NET_PUT_INLINE:
    if (!(r = small(c, NP_PUT, o->data, o->bytes))) return 0;
    r->key = o->key;
    r->off = o->off;
    return 1;
  case GCCL_NET_MSGSEND: return small(c, NP_MSG, o->data, o->bytes) != NULL;
  case GCCL_NET_GET:
    if (c->gets == NP_ASKS || !(r = small(c, NP_ASK, NULL, 0))) return 0;
    r->key = o->key;
    r->mine = o->mine;
    r->id = o->id;
    r->off = o->off;
    r->back = o->loff;
    r->bytes = o->bytes;
    r->pad[0] = !o->plain;
    c->gets++;
    return 1;
  }
  return 1; /* GCCL_NET_FLUSH: what a plugin has to flush it flushes with each receive */
}

int np_take(np_conn *c, const gccl_net_wr *w, char *why) {
  np_ep *e = (np_ep *)c->base.ep;
  int rc = gccl_net_check(&c->base, w, why);
  if (rc) return rc;
  if (c->op_tail - c->op_head == NP_OPS) return 0;
  int far = w->op <= GCCL_NET_GET && w->remote->key[1];
  if (far && w->op == GCCL_NET_PUT_INLINE)
    return gccl_net_why(why, GCCL_NET_ENOTSUP, "plugin %s: bytes of a work request cannot be put into a device's memory", e->name);
  if (c->op_head == c->op_tail) c->busy_since = np_now();
  np_op *o = &c->op[c->op_tail % NP_OPS];
  *o = (np_op){.op = w->op,
               .signaled = (w->flags & GCCL_NET_SIGNALED) != 0,
               .cookie = w->cookie,
               .bytes = w->bytes,
               .off = w->roff,
               .loff = w->loff,
               .id = c->op_tail,
               .step = w->step,
               .key = w->remote ? w->remote->key[0] : 0};
  if (w->op == GCCL_NET_PUT || w->op == GCCL_NET_GET) {
    o->local = (gccl_mrt_entry *)w->local;
    o->mine = gccl_mrt_key(o->local);
    o->plain = !far && !np_is_device(e, o->local);
  } else if (w->op != GCCL_NET_FLUSH) {
    memcpy(o->data, w->data, w->bytes);
  }
  c->op_tail++;
  if (w->op <= GCCL_NET_PUT_INLINE) gccl_net_count(&c->base.stats.tx_bytes, w->bytes);
  if (w->op == GCCL_NET_MSGSEND) gccl_net_count(&c->base.stats.tx_msgs, 1);
  gccl_net_count(&c->base.stats.tx_ops, 1);
  return 1;
}

/* The answers to the peer's GETs, then our own work, as far as there is room. An operation that has begun is not interrupted. */
void np_push(np_conn *c) {
  np_op *o;
  while (c->ask_next != c->ask_tail) {
    o = &c->ask[c->ask_next % NP_ASKS];
    if (gccl_mrt_find(&((np_ep *)c->base.ep)->mrs, o->mine) != &o->local->mr) {
      np_fail(c, "it reads memory that is not registered here any more");
      return;
    }
    if (!send_op(c, o)) break;
    o->sent = 1;
    c->ask_next++;
  }
  for (; c->op_next != c->op_tail && send_op(c, o = &c->op[c->op_next % NP_OPS]); c->op_next++) o->sent = 1;
  flush(c);
}

/* Completes what is finished, in order. */
void np_finish(np_conn *c) {
  np_ep *e = (np_ep *)c->base.ep;
  while (c->ask_head != c->ask_next && !c->ask[c->ask_head % NP_ASKS].pending) c->ask_head++;
  if (c->op_head == c->op_next) return;
  while (c->op_head != c->op_next) {
    np_op *o = &c->op[c->op_head % NP_OPS];
    if (o->pending || (o->op == GCCL_NET_GET && !o->answered)) return;
    if (o->signaled) {
      if (!gccl_dones_room(&e->dones)) return;
      gccl_dones_add(&e->dones, &c->base, o->cookie);
    }
    c->op_head++;
  }
  if (c->op_head == c->op_tail) gccl_net_count(&c->base.stats.busy_ns, np_now() - c->busy_since);
}
