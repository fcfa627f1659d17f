#define _GNU_SOURCE
#include "conn.h"

/* A copy of a slot, which the peer may still change. */
typedef struct {
  uint8_t kind;
  uint32_t key, answer;
  uint64_t off, bytes, answer_off;
  const unsigned char *data;
} piece;

static int broken(shm_conn *c, const char *what) {
  gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "shm: rank %d sent %s", c->base.peer, what);
  return 0;
}

static int store(shm_conn *c, const piece *p) {
  gccl_net_mr *m = gccl_mrt_find(&((shm_ep *)c->base.ep)->mrs, p->key);
  if (!m) return broken(c, "data for memory that is not registered");
  if (!gccl_net_within(m->bytes, p->off, p->bytes)) return broken(c, "data beyond the end of a registration");
  if (p->bytes <= GCCL_NET_MSG)
    gccl_net_store_small(m->addr + p->off, p->data, p->bytes);
  else
    memcpy(m->addr + p->off, p->data, p->bytes);
  gccl_net_count(&c->base.stats.rx_bytes, p->bytes);
  return 1;
}

/* Answers come in the order of the GETs: this one belongs to the oldest that is not complete. */
static int answered(shm_conn *c, uint64_t bytes) {
  for (uint32_t i = c->op_head; i != c->op_next; i++) {
    shm_op *o = &c->op[i % SHM_OPS];
    if (o->op != GCCL_NET_GET || o->answered) continue;
    if (bytes > o->bytes - o->moved) return broken(c, "more than was asked for");
    o->moved += bytes;
    o->answered = o->moved == o->bytes;
    c->gets -= o->answered;
    return 1;
  }
  return broken(c, "an answer that nobody asked for");
}

static int asked(shm_conn *c, const piece *p) {
  if (c->ask_tail - c->ask_head == SHM_ASKS) return broken(c, "more requests than a connection may have");
  c->ask[c->ask_tail++ % SHM_ASKS] =
      (shm_ask){.key = p->key, .answer = p->answer, .off = p->off, .answer_off = p->answer_off, .bytes = p->bytes};
  return 1;
}

/* Whether a slot waits to be read. */
int shm_pending(shm_conn *c) {
  return atomic_load_explicit(&c->in->slot[c->read % SHM_SLOTS].turn, memory_order_acquire) == (uint32_t)(c->read / SHM_SLOTS) + 1;
}

/* Takes slots in; returns the number of events. */
int shm_receive(shm_conn *c, gccl_net_event *ev, int max) {
  int n = 0, ok = 1;
  uint64_t before = c->read;
  while (ok && n < max && c->read - before < SHM_SLOTS && shm_pending(c)) {
    shm_slot *s = &c->in->slot[c->read % SHM_SLOTS];
    piece p = {.kind = s->kind, .key = s->key, .answer = s->answer, .off = s->off, .bytes = s->bytes, .data = s->u.data};
    if (p.kind == SHM_ASK) {
      p.answer_off = s->u.answer_off;
    } else if (p.bytes > SHM_INLINE) {
      if (p.bytes > SHM_CHUNK) {
        broken(c, "a piece that is too long");
        break;
      }
      uint64_t skip = SHM_DATA - c->read_bytes % SHM_DATA;
      if (skip < p.bytes) c->read_bytes += skip;
      p.data = &c->in->data[c->read_bytes % SHM_DATA];
      c->read_bytes += p.bytes;
    }
    switch (p.kind) {
    case SHM_PUT: ok = store(c, &p); break;
    case SHM_GOT: ok = store(c, &p) && answered(c, p.bytes); break;
    case SHM_ASK: ok = asked(c, &p); break;
    case SHM_MSG:
      if (p.bytes > GCCL_NET_MSG) {
        ok = broken(c, "a message that is too long");
        break;
      }
      ev[n].conn = &c->base;
      ev[n].kind = GCCL_NET_EV_MSG;
      ev[n].cookie = 0;
      ev[n].bytes = (uint32_t)p.bytes;
      memcpy(ev[n++].data, p.data, p.bytes);
      break;
    default: ok = broken(c, "a slot of no known kind");
    }
    c->read++;
  }
  if (n) gccl_net_count(&c->base.stats.rx_msgs, (uint64_t)n);
  if (c->read != before) {
    atomic_store_explicit(&c->in->taken_bytes, c->read_bytes, memory_order_release);
    atomic_store_explicit(&c->in->taken, c->read, memory_order_release);
  }
  return n;
}
