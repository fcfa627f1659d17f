#include "carry.h"

static gccl_mrt_entry *target(np_conn *c, const np_record *r) {
  gccl_net_mr *m = gccl_mrt_find(&((np_ep *)c->base.ep)->mrs, r->key);
  if (!m)
    np_fail(c, "it sent data for memory that is not registered");
  else if (!gccl_net_within(m->bytes, r->off, r->bytes))
    np_fail(c, "it sent data beyond the end of a registration");
  else
    return (gccl_mrt_entry *)m;
  return NULL;
}

static int store(np_conn *c, const np_record *r) {
  gccl_mrt_entry *m = target(c, r);
  if (!m) return 0;
  if (np_is_device((np_ep *)c->base.ep, m) && r->bytes) {
    np_fail(c, "it sent data for a device's memory in a way that is for the CPU's");
    return 0;
  }
  if (r->bytes <= GCCL_NET_MSG)
    gccl_net_store_small(m->mr.addr + r->off, r + 1, r->bytes);
  else
    memcpy(m->mr.addr + r->off, r + 1, r->bytes);
  gccl_net_count(&c->base.stats.rx_bytes, r->bytes);
  return 1;
}

/* Bytes for the GET with this number have arrived. */
void np_got(np_conn *c, uint32_t id, uint64_t bytes) {
  np_op *o = &c->op[id % NP_OPS];
  if (id - c->op_head >= c->op_next - c->op_head || o->op != GCCL_NET_GET || o->answered || bytes > o->bytes - o->moved) {
    np_fail(c, "it sent an answer that nobody asked for");
    return;
  }
  o->moved += bytes;
  o->answered = o->moved == o->bytes;
  c->gets -= o->answered;
}

static int asked(np_conn *c, const np_record *r) {
  if (c->ask_tail - c->ask_head == NP_ASKS) return 0;
  np_ep *e = (np_ep *)c->base.ep;
  gccl_mrt_entry *m = target(c, r);
  if (!m) return -1;
  c->ask[c->ask_tail++ % NP_ASKS] = (np_op){.op = NP_ANSWER,
                                            .id = r->id,
                                            .key = r->mine,
                                            .mine = r->key,
                                            .off = r->back,
                                            .loff = r->off,
                                            .bytes = r->bytes,
                                            .local = m,
                                            .plain = !r->pad[0] && !np_is_device(e, m)};
  return 1;
}

static int message(np_conn *c, const np_record *r) {
  if (c->msg_tail - c->msg_head == NP_MSGS) return 0;
  uint32_t at = c->msg_tail++ % NP_MSGS;
  c->msg[at].needs = c->bulk ? c->bulk->rx_announced : 0;
  c->msg[at].bytes = (uint32_t)r->bytes;
  memcpy(c->msg[at].data, r + 1, r->bytes);
  return 1;
}

/* 1: taken, 0: not now, -1: the connection has failed. */
static int take(np_conn *c, const np_record *r) {
  switch (r->kind) {
  case NP_PUT: return store(c, r) ? 1 : -1;
  case NP_GOT:
    if (!store(c, r)) return -1;
    np_got(c, r->id, r->bytes);
    return 1;
  case NP_BULKPUT:
  case NP_BULKGOT:
    if (c->bulk && target(c, r)) return np_bulk_expect(c, r);
    if (!c->bulk) np_fail(c, "it announced what this connection does not have");
    return -1;
  case NP_ASK: return asked(c, r);
  case NP_MSG: return message(c, r);
  case NP_BYE: c->bye = c->answer = 1; return 1;
  case NP_SEEN: c->seen = 1; return 1;
  case NP_GAVEUP: np_fail(c, "it has given up: %.160s", (const char *)(r + 1)); c->telling = 0;
  }
  return -1;
}

/* The next record of the frame that is being read, checked as foreign data, or NULL. */
static const np_record *look(np_conn *c) {
  if (!c->in) {
    if (!(c->in = c->lane->ops->next(c->lane, &c->in_bytes))) return NULL;
    c->in_at = 0;
  }
  const np_record *r = (const np_record *)(c->in + c->in_at);
  uint64_t left = c->in_bytes - c->in_at, most = 0;
  if (left >= sizeof *r) switch (r->kind) {
    case NP_PUT:
    case NP_GOT: most = NP_FRAME; break;
    case NP_MSG: most = GCCL_NET_MSG; break;
    case NP_GAVEUP: most = GCCL_NET_TEXT; break;
    }
  int inside = left >= sizeof *r && r->kind >= NP_PUT && r->kind <= NP_SEEN;
  if (inside && most && (r->bytes > most || r->bytes > left - sizeof *r)) inside = 0;
  if (inside && r->kind == NP_GAVEUP && (r->bytes != GCCL_NET_TEXT || ((const char *)(r + 1))[GCCL_NET_TEXT - 1])) inside = 0;
  if (!inside) {
    np_fail(c, "it sent a record that makes no sense");
    return NULL;
  }
  return r;
}

static void advance(np_conn *c, const np_record *r) {
  int inside = r->kind == NP_PUT || r->kind == NP_GOT || r->kind == NP_MSG || r->kind == NP_GAVEUP;
  c->in_at += (uint32_t)((sizeof *r + (inside ? r->bytes : 0) + 7) & ~7ull);
  if (c->in_at < c->in_bytes) return;
  c->in = NULL;
  c->lane->ops->release(c->lane);
}

/* Takes in what has come; returns the number of events. */
int np_receive(np_conn *c, gccl_net_event *ev, int max) {
  int n = 0, ok = 1;
  uint32_t frames = 0; /* a busy peer must not keep us here */
  for (;;) {
    for (; c->msg_head != c->msg_tail && n < max; c->msg_head++) {
      uint32_t at = c->msg_head % NP_MSGS;
      if (c->bulk && (int32_t)(c->bulk->rx_done - c->msg[at].needs) < 0) break;
      ev[n].conn = &c->base;
      ev[n].kind = GCCL_NET_EV_MSG;
      ev[n].cookie = 0;
      ev[n].bytes = c->msg[at].bytes;
      memcpy(ev[n++].data, c->msg[at].data, c->msg[at].bytes);
    }
    if (ok <= 0 || frames == NP_FRAMES) break;
    const np_record *r = look(c);
    if (!r) break;
    if ((ok = take(c, r)) > 0) {
      advance(c, r);
      frames += !c->in;
    }
  }
  if (n) gccl_net_count(&c->base.stats.rx_msgs, (uint64_t)n);
  return n;
}
