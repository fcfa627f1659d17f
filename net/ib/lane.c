/* Queue pairs.
 *
 * Order. Work requests of one reliable connection are executed by the responder in the order of posting, and a SEND completes
 * there after the RDMA WRITEs before it are in memory (InfiniBand Architecture Specification volume 1, 9.5 and 10.8.3.3). A
 * CPU that polls a word written by an RDMA WRITE has no such promise: with adaptive routing and with relaxed PCI ordering the
 * word may be there before the data. So messages are SENDs and are seen by their completion, never by their bytes; then
 * both are safe. Memory is nevertheless registered without relaxed ordering: other words in windows are polled by their
 * owners. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "conn.h"

enum { RECV_SLOTS = IB_RQ + IB_CONTROLS, RECV_MARK = 1 << 30 };

static unsigned char *recv_slot(lane *l, uint32_t i) { return l->buffers + (size_t)i * IB_SLOT; }
static unsigned char *send_slot(lane *l, uint64_t i) { return l->buffers + (size_t)(RECV_SLOTS + i % IB_SQ) * IB_SLOT; }

static int post_recv(lane *l, uint32_t i) {
  vb_sge s = {(uintptr_t)recv_slot(l, i), IB_SLOT, l->v->lkey};
  vb_recv_wr w = {.wr_id = RECV_MARK | i, .sg_list = &s, .num_sge = 1}, *bad;
  return l->qp->context->ops.post_recv(l->qp, &w, &bad);
}

static int to_init(endpoint *e, conn *c, int i) {
  return qp_init(e->vb, &e->rail[i], c->lane[i].qp, VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ);
}

/* Makes the queue pair of a rail, not yet connected. */
int lane_open(conn *c, int i, char *why) {
  endpoint *e = of(c);
  rail *r = &e->rail[i];
  lane *l = &c->lane[i];
  size_t bytes = (size_t)(RECV_SLOTS + IB_SQ) * IB_SLOT;
  l->buffers = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!l->buffers) return gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
  memset(l->buffers, 0, bytes);
  l->v = e->vb->reg_mr(r->pd, l->buffers, bytes, VB_ACCESS_LOCAL_WRITE);
  if (!l->v)
    return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: registering %zu bytes: %s (is the limit of locked memory, ulimit -l, large enough?)",
                        r->name, bytes, strerror(errno));
  l->cq = e->vb->create_cq(r->context, IB_SQ + RECV_SLOTS, NULL, NULL, 0);
  if (!l->cq) return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: ibv_create_cq: %s", r->name, strerror(errno));
  vb_qp_init_attr init = {
      .send_cq = l->cq,
      .recv_cq = l->cq,
      .cap = {.max_send_wr = IB_SQ, .max_recv_wr = RECV_SLOTS, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = IB_SLOT},
      .qp_type = VB_QPT_RC};
  l->qp = e->vb->create_qp(r->pd, &init);
  if (!l->qp) { /* a device that inlines less, or nothing */
    init.cap.max_inline_data = 0;
    l->qp = e->vb->create_qp(r->pd, &init);
  }
  if (!l->qp) return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: ibv_create_qp: %s", r->name, strerror(errno));
  l->max_inline = init.cap.max_inline_data;
  int rc = to_init(e, c, i);
  if (rc) return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: queue pair to INIT: %s", r->name, strerror(rc));
  return 0;
}

int lane_connect(conn *c, int i, const gccl_ib_address *to, char *why) {
  endpoint *e = of(c);
  rail *r = &e->rail[i];
  lane *l = &c->lane[i];
  if (to->link != r->link)
    return gccl_net_why(why, GCCL_NET_EINVAL, "rail %d is %s here and %s there", i, r->link == VB_LINK_ETHERNET ? "RoCE" : "InfiniBand",
                        to->link == VB_LINK_ETHERNET ? "RoCE" : "InfiniBand");
  int rc = qp_ready_to_receive(e->vb, r, &e->config, l->qp, to, why);
  if (rc < 0) return rc;
  for (uint32_t k = 0; k < RECV_SLOTS; k++)
    if ((rc = post_recv(l, k))) return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: ibv_post_recv: %s", r->name, strerror(rc));
  return qp_ready_to_send(e->vb, r, &e->config, l->qp, why);
}

/* Back to INIT, with empty queues: the other end was not there yet. The number of the queue pair stays. */
int lane_reset(conn *c, int i) {
  lane *l = &c->lane[i];
  vb_qp_attr a = {.qp_state = 0};
  int rc = of(c)->vb->modify_qp(l->qp, &a, VB_QP_STATE);
  if (rc) return rc;
  vb_wc wc[16];
  while (l->qp->context->ops.poll_cq(l->cq, 16, wc) > 0) {
  }
  l->posted = l->completed = 0;
  l->nbatch = l->failed = 0;
  return to_init(of(c), c, i);
}

void lane_close(conn *c, int i) {
  lane *l = &c->lane[i];
  const vb_library *vb = of(c)->vb;
  if (l->qp) vb->destroy_qp(l->qp);
  if (l->cq) vb->destroy_cq(l->cq);
  if (l->v) vb->dereg_mr(l->v);
  free(l->buffers);
}

static void fail(conn *c, int i, int status, uint32_t vendor) {
  endpoint *e = of(c);
  if (!c->started) {
    if (!c->lane[i].failed) c->lane[i].failed = status;
    return;
  }
  const char *hint = status == VB_WC_REM_ACCESS_ERR  ? "; its memory is no longer registered"
                     : status == VB_WC_RETRY_EXC_ERR ? "; its process has ended, or the path is down"
                                                     : "";
  gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "ib: rank %d over %s:%u: %s (vendor error %#x)%s", c->base.peer, e->rail[i].name,
                e->rail[i].port, e->vb->wc_status_str(status), vendor, hint);
}

/* Rings the doorbell for what was built: one completion for all of it. */
void lane_flush(conn *c, int i) {
  lane *l = &c->lane[i];
  if (!l->nbatch) return;
  for (int k = 0; k < l->nbatch; k++) l->batch[k].next = k + 1 < l->nbatch ? &l->batch[k + 1] : NULL;
  vb_send_wr *last = &l->batch[l->nbatch - 1], *bad;
  last->send_flags |= VB_SEND_SIGNALED;
  last->wr_id = l->posted;
  int rc = l->qp->context->ops.post_send(l->qp, l->batch, &bad);
  l->nbatch = 0;
  if (rc)
    gccl_net_fail(&c->base.fault, GCCL_NET_ESYSTEM, "ib: rank %d over %s: ibv_post_send: %s", c->base.peer, of(c)->rail[i].name,
                  strerror(rc));
}

/* The next work request of a lane with its place for one element, or NULL if the send queue is full. */
vb_send_wr *lane_next(conn *c, int i, int control) {
  lane *l = &c->lane[i];
  if (l->posted - l->completed >= IB_SQ - (control ? 0 : IB_CONTROLS)) return NULL;
  if (l->nbatch == IB_BATCH) lane_flush(c, i);
  vb_send_wr *w = &l->batch[l->nbatch];
  memset(w, 0, offsetof(vb_send_wr, other));
  w->sg_list = &l->sge[l->nbatch++];
  w->num_sge = 1;
  l->posted++;
  return w;
}

/* Sends a control message or, with credit, a message. Returns 0 if there is no room. */
int lane_send(conn *c, int i, uint8_t kind, const void *data, int n) {
  lane *l = &c->lane[i];
  int counted = kind == WIRE_MSG || kind == WIRE_MARK;
  if (counted && l->sent - l->credited >= IB_RQ) return 0;
  uint64_t at = l->posted;
  vb_send_wr *w = lane_next(c, i, !counted);
  if (!w) return 0;
  wire *m = (wire *)send_slot(l, at);
  memset(m, 0, offsetof(wire, data));
  m->kind = kind;
  m->bytes = (uint8_t)n;
  for (int k = 0; k < c->nlanes; k++) {
    m->marks[k] = c->lane[k].marks_sent;
    m->taken[k] = c->lane[k].told = c->lane[k].taken;
  }
  memcpy(m->data, data, (size_t)n);
  w->opcode = VB_WR_SEND;
  uint32_t bytes = (uint32_t)offsetof(wire, data) + (uint32_t)n;
  *w->sg_list = (vb_sge){(uintptr_t)m, bytes, l->v->lkey};
  if (bytes <= l->max_inline) w->send_flags = VB_SEND_INLINE;
  l->sent += (uint32_t)counted;
  return 1;
}

static void received(conn *c, int i, const wire *m, uint32_t bytes) {
  lane *l = &c->lane[i];
  if (bytes < offsetof(wire, data) || m->bytes > GCCL_NET_MSG || bytes != offsetof(wire, data) + m->bytes) {
    gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "ib: rank %d sent a message of %u bytes that says it has %u", c->base.peer, bytes,
                  m->bytes);
    return;
  }
  for (int k = 0; k < c->nlanes; k++) {
    uint32_t more = m->taken[k] - c->lane[k].credited; /* messages of two lanes may overtake each other: only forward */
    if (more <= c->lane[k].sent - c->lane[k].credited) c->lane[k].credited = m->taken[k];
  }
  switch (m->kind) {
  case WIRE_MSG:
    if (c->held_tail - c->held_head == IB_RQ) break;
    c->held[c->held_tail++ % IB_RQ] = *m;
    return;
  case WIRE_MARK:
    l->marks_got++;
    l->taken++;
    return;
  case WIRE_CREDIT: return;
  case WIRE_BYE: c->byed = 1; return;
  case WIRE_AUTH:
    if (c->started || l->nauth == 4) break;
    memset(l->auth[l->nauth], 0, GCCL_NET_MSG);
    memcpy(l->auth[l->nauth++], m->data, m->bytes);
    return;
  }
  gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "ib: rank %d sent a message of kind %u that cannot be", c->base.peer, m->kind);
}

/* Takes what a lane has completed. */
void lane_poll(conn *c, int i) {
  lane *l = &c->lane[i];
  vb_wc wc[16];
  int n = l->qp->context->ops.poll_cq(l->cq, 16, wc);
  if (n < 0) gccl_net_fail(&c->base.fault, GCCL_NET_ESYSTEM, "ib: rank %d over %s: ibv_poll_cq failed", c->base.peer, of(c)->rail[i].name);
  for (int k = 0; k < n; k++) {
    if (wc[k].status != VB_WC_SUCCESS) {
      fail(c, i, wc[k].status, wc[k].vendor_err);
    } else if (wc[k].opcode & VB_WC_RECV) {
      uint32_t at = (uint32_t)wc[k].wr_id & ~(uint32_t)RECV_MARK;
      received(c, i, (const wire *)recv_slot(l, at), wc[k].byte_len);
      int rc = post_recv(l, at);
      if (rc)
        gccl_net_fail(&c->base.fault, GCCL_NET_ESYSTEM, "ib: rank %d over %s: ibv_post_recv: %s", c->base.peer, of(c)->rail[i].name,
                      strerror(rc));
    } else {
      l->completed = wc[k].wr_id;
    }
  }
}
