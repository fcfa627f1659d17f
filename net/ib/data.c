#define _GNU_SOURCE
#include "conn.h"

/* Takes a work request: 1 taken, 0 no room, otherwise an error. */
int data_take(conn *c, const gccl_net_wr *w, char *why) {
  int rc = gccl_net_check(&c->base, w, why);
  if (rc) return rc;
  if (c->op_tail - c->op_head == IB_OPS) return 0;
  if (c->op_head == c->op_tail) c->busy_since = ib_now();
  op *o = &c->op[c->op_tail++ % IB_OPS];
  memset(o, 0, offsetof(op, local));
  o->op = w->op;
  o->signaled = (w->flags & GCCL_NET_SIGNALED) != 0;
  o->cookie = w->cookie;
  o->bytes = w->bytes;
  o->roff = w->roff;
  o->local = (const mr *)w->local;
  o->loff = w->loff;
  if (w->op <= GCCL_NET_GET) o->remote = *w->remote;
  if (w->op == GCCL_NET_PUT_INLINE || w->op == GCCL_NET_MSGSEND) memcpy(o->data, w->data, w->bytes);
  if (w->op <= GCCL_NET_PUT_INLINE) gccl_net_count(&c->base.stats.tx_bytes, w->bytes);
  if (w->op == GCCL_NET_MSGSEND) gccl_net_count(&c->base.stats.tx_msgs, 1);
  gccl_net_count(&c->base.stats.tx_ops, 1);
  return 1;
}

/* One work request of a transfer. Returns its bytes, or -1 without room. */
static int64_t transfer(conn *c, op *o, int i, uint64_t bytes) {
  vb_send_wr *w = lane_next(c, i, 0);
  if (!w) return -1;
  uint32_t max = of(c)->rail[i].max_bytes;
  if (bytes > max) bytes = max;
  w->opcode = o->op == GCCL_NET_GET ? VB_WR_RDMA_READ : VB_WR_RDMA_WRITE;
  w->rdma.remote_addr = o->remote.base + o->roff + o->moved;
  w->rdma.rkey = o->remote.key[i];
  *w->sg_list = (vb_sge){(uintptr_t)o->local->base.addr + o->loff + o->moved, (uint32_t)bytes, o->local->v[i]->lkey};
  if (!bytes) w->num_sge = 0;
  if (o->op == GCCL_NET_PUT) c->lane[i].dirty = 1;
  return (int64_t)bytes;
}

static int move(conn *c, op *o) {
  uint64_t stripe = ((o->bytes + (uint64_t)c->nlanes - 1) / (uint64_t)c->nlanes + 4095) & ~4095ull;
  int all = o->bytes >= IB_STRIPE && c->nlanes > 1;
  do {
    int i = all ? (int)(o->moved / stripe) : 0;
    uint64_t end = all && (uint64_t)(i + 1) * stripe < o->bytes ? (uint64_t)(i + 1) * stripe : o->bytes;
    int64_t n = transfer(c, o, i, end - o->moved);
    if (n < 0) return 0;
    o->moved += (uint64_t)n;
    o->until[i] = c->lane[i].posted;
  } while (o->moved < o->bytes);
  return 1;
}

static int put_inline(conn *c, op *o) {
  lane *l = &c->lane[0];
  uint64_t at = l->posted;
  vb_send_wr *w = lane_next(c, 0, 0);
  if (!w) return 0;
  unsigned char *from = l->buffers + (size_t)(IB_RQ + IB_CONTROLS + at % IB_SQ) * IB_SLOT;
  memcpy(from, o->data, o->bytes);
  w->opcode = VB_WR_RDMA_WRITE;
  w->rdma.remote_addr = o->remote.base + o->roff;
  w->rdma.rkey = o->remote.key[0];
  *w->sg_list = (vb_sge){(uintptr_t)from, (uint32_t)o->bytes, l->v->lkey};
  if (!o->bytes) w->num_sge = 0;
  if (o->bytes && o->bytes <= l->max_inline) w->send_flags = VB_SEND_INLINE;
  l->dirty = 1;
  o->until[0] = l->posted;
  return 1;
}

/* A message goes over the first rail. What was put over the others is covered by marks behind it there. */
static int message(conn *c, op *o) {
  for (int i = 1; i < c->nlanes; i++) {
    lane *l = &c->lane[i];
    if (!l->dirty) continue;
    if (!lane_send(c, i, WIRE_MARK, NULL, 0)) return 0;
    l->marks_sent++;
    l->dirty = 0;
    o->until[i] = l->posted;
  }
  if (!lane_send(c, 0, WIRE_MSG, o->data, (int)o->bytes)) return 0;
  o->until[0] = c->lane[0].posted;
  return 1;
}

/* Turns work into work requests of the queue pairs as far as there is room, and rings each doorbell once a batch. */
void data_push(conn *c) {
  for (; c->op_next != c->op_tail; c->op_next++) {
    op *o = &c->op[c->op_next % IB_OPS];
    int ok = 1;
    switch (o->op) {
    case GCCL_NET_PUT:
    case GCCL_NET_GET: ok = move(c, o); break;
    case GCCL_NET_PUT_INLINE: ok = put_inline(c, o); break;
    case GCCL_NET_MSGSEND: ok = message(c, o); break;
    }
    if (!ok) break;
  }
  for (int i = 0; i < c->nlanes; i++)
    if (c->lane[i].nbatch) {
      lane_flush(c, i);
      c->last_sent = 0; /* lately: poll fills in the time */
    }
  atomic_store_explicit(&c->base.unsent, c->op_next != c->op_tail, memory_order_relaxed);
}

static int has_marks(const conn *c, const wire *m) {
  for (int i = 1; i < c->nlanes; i++)
    if ((int32_t)(c->lane[i].marks_got - m->marks[i]) < 0) return 0;
  return 1;
}

int data_deliver(conn *c, gccl_net_event *ev, int max) {
  int n = 0;
  for (; n < max && c->held_head != c->held_tail; c->held_head++, n++) {
    const wire *m = &c->held[c->held_head % IB_RQ];
    if (!has_marks(c, m)) break;
    ev[n].conn = &c->base;
    ev[n].kind = GCCL_NET_EV_MSG;
    ev[n].cookie = 0;
    ev[n].bytes = m->bytes;
    memcpy(ev[n].data, m->data, m->bytes);
    c->lane[0].taken++;
  }
  if (n) gccl_net_count(&c->base.stats.rx_msgs, (uint64_t)n);
  return n;
}

void data_complete(conn *c) {
  if (c->op_head == c->op_next) return;
  gccl_dones *d = &of(c)->dones;
  for (; c->op_head != c->op_next; c->op_head++) {
    op *o = &c->op[c->op_head % IB_OPS];
    for (int i = 0; i < c->nlanes; i++)
      if (o->until[i] > c->lane[i].completed) return;
    if (o->signaled) {
      if (!gccl_dones_room(d)) return;
      gccl_dones_add(d, &c->base, o->cookie);
    }
  }
  if (c->op_head == c->op_tail) gccl_net_count(&c->base.stats.busy_ns, ib_now() - c->busy_since);
}
