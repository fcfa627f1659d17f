/* Commands for the port. The executor is the only producer of the ring: it owns the communicator while it is being served. */
#include "remote.h"

#include <string.h>

#include "probe.h"

/* Progress is told to remote ranks once in so many operations: they need it before the ring of records comes round, and a
 * record says anyway that the operation before it has ended. */
enum { PROGRESS_EVERY = GCCL_RECORDS / 2 };

/* The next free command. A full ring is waited for; the abort word ends that, and the command then goes nowhere. */
static gccl_cmd *next(struct ncclComm *c) {
  gccl_port *p = c->port;
  uint64_t head = atomic_load_explicit(&p->head, memory_order_relaxed);
  while (head - atomic_load_explicit(&p->tail, memory_order_acquire) > p->mask) { /* acquire: the slot has been read */
    if (atomic_load_explicit(&c->abort, memory_order_relaxed)) return &p->nowhere;
    if (!p->help(p)) gccl_relax();
  }
  gccl_cmd *d = &p->ring[head & p->mask];
  memset(d, 0, offsetof(gccl_cmd, message));
  return d;
}

static void submit(struct ncclComm *c, const gccl_cmd *d) {
  gccl_port *p = c->port;
  if (d == &p->nowhere) return;
  /* release; acquired where the ring is served */
  atomic_store_explicit(&p->head, atomic_load_explicit(&p->head, memory_order_relaxed) + 1, memory_order_release);
}

static gccl_cmd *message_to(struct ncclComm *c, int q) {
  gccl_cmd *d = next(c);
  d->kind = GCCL_CMD_MESSAGE;
  d->peer = q;
  return d;
}

static void signal_in(gccl_cmd *d, enum gccl_place place, uint64_t off, uint64_t value) {
  gccl_msg_signal m = {.head = {.kind = GCCL_MSG_SIGNAL, .place = (uint8_t)place, .op = GCCL_SIGNAL_RAISE}, .off = off, .value = value};
  memcpy(d->message, &m, sizeof m);
  d->message_bytes = sizeof m;
}

void gccl_remote_raise(struct ncclComm *c, int q, enum gccl_place place, uint64_t off, uint64_t value) {
  gccl_cmd *d = message_to(c, q);
  signal_in(d, place, off, value);
  submit(c, d);
}

void gccl_remote_put(struct ncclComm *c, int q, enum gccl_place place, uint32_t window, uint64_t off, const void *src, uint64_t bytes,
                     enum gccl_place word_place, uint64_t word, uint64_t value, unsigned flags) {
  gccl_cmd *d = message_to(c, q);
  if (bytes) {
    d->kind = GCCL_CMD_PUT;
    d->place = (uint8_t)place;
    d->window = window;
    d->off = off;
    d->src = src;
    d->bytes = bytes;
    if (gccl_probed(c)) d->put = gccl_probe_put(c, q, bytes, &d->step);
  }
  d->flags = (uint8_t)flags;
  signal_in(d, word_place, word, value);
  submit(c, d);
}

/* The payload of an eager operation: in this rank's record or eager slot, where it stays until all peers have read it. */
static void record_to(const gccl_op *x, int q, const gccl_msg_record *m, uint64_t payload) {
  struct ncclComm *c = x->comm;
  gccl_cmd *d = message_to(c, q);
  if (payload > m->n) {
    uint64_t off = x->send_kind == GCCL_BUF_INLINE
                       ? c->geo.records + (x->seq & (GCCL_RECORDS - 1)) * sizeof(gccl_record) + offsetof(gccl_record, u)
                       : c->geo.eager + (x->seq & (GCCL_RECORDS - 1)) * c->geo.eager_bytes;
    d->kind = GCCL_CMD_PUT;
    d->place = GCCL_AT_MIRROR;
    d->off = off;
    d->src = c->self.area + off;
    d->bytes = payload;
    if (gccl_probed(c)) d->put = gccl_probe_put(c, q, payload, &d->step);
  }
  memcpy(d->message, m, sizeof *m);
  d->message_bytes = sizeof *m;
  submit(c, d);
}

/* Bytes that this rank's plan has stored in its eager slot. */
static uint64_t offered(const gccl_op *x) {
  const gccl_lowered *p = x->plan;
  const gccl_lop *op = gccl_lowered_ops(p);
  if (!p->eager) return 0;
  for (uint32_t k = 0; k < p->nops; k++)
    if (op[k].kind == GCCL_OP_REDUCE && op[k].dst[0].space == GCCL_EAGER) return x->part * p->send_parts * x->esize;
  return 0;
}

void gccl_remote_record(gccl_op *x) {
  struct ncclComm *c = x->comm;
  const gccl_lowered *p = x->plan;
  const gccl_record *r = gccl_record_of(c, c->rank, x->seq);
  uint64_t payload = offered(x);
  gccl_msg_record m = {.head = {.kind = GCCL_MSG_RECORD},
                       .seq = x->seq,
                       .hash = r->hash,
                       .send_kind = r->send_kind,
                       .recv_kind = r->recv_kind,
                       .scaled = r->scaled,
                       .count = x->count,
                       .coll = x->coll,
                       .dtype = x->dtype,
                       .op = x->red,
                       .cls = x->cls,
                       .root = x->root,
                       .scale = x->scale.u64};
  if (payload && payload <= sizeof m.data) {
    m.n = (uint8_t)payload;
    memcpy(m.data, r->u.data, payload);
  }
  if (p->nedges) {
    const gccl_edge *e = gccl_lowered_edges(p);
    for (uint32_t k = 0; k < p->nedges; k++) {
      int told = !gccl_is_remote(c, e[k].peer);
      for (uint32_t j = 0; j < k && !told; j++) told = e[j].peer == e[k].peer;
      if (!told) record_to(x, e[k].peer, &m, payload);
    }
  } else {
    for (int k = 1; k < c->nranks; k++) { /* every rank begins with another */
      int q = (c->rank + k) % c->nranks;
      if (gccl_is_remote(c, q)) record_to(x, q, &m, payload);
    }
  }
  gccl_port_help(c);
}

void gccl_remote_post(struct ncclComm *c, int q, int which, const gccl_post *p) {
  gccl_msg_post m = {
      .head = {.kind = GCCL_MSG_POST, .which = (uint8_t)which}, .seq = p->seq, .bytes = p->bytes, .hash = p->hash, .kind = p->kind};
  if (p->kind == GCCL_BUF_INLINE) memcpy(m.data, p->pad, sizeof m.data);
  gccl_cmd *d = message_to(c, q);
  memcpy(d->message, &m, sizeof m);
  d->message_bytes = sizeof m;
  submit(c, d);
}

void gccl_remote_done(struct ncclComm *c, uint64_t seq) {
  if (seq % PROGRESS_EVERY) return;
  for (int q = 0; q < c->nranks; q++)
    if (gccl_is_remote(c, q)) gccl_remote_raise(c, q, GCCL_AT_MIRROR, offsetof(gccl_area, progress), (seq + 1) << GCCL_STEP_BITS);
}
