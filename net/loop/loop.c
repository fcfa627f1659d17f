#define _GNU_SOURCE
#include "loop.h"

#include <sched.h>

/* Messages from one end to the other. head is the receiver's, tail the sender's; each on lines of its own. */
enum { SLOTS = 256 };

typedef struct {
  uint32_t bytes;
  unsigned char data[GCCL_NET_MSG];
} slot;

typedef struct {
  _Alignas(128) _Atomic uint32_t head;
  _Alignas(128) _Atomic uint32_t tail;
  uint32_t seen; /* head, as the sender last saw it */
  slot at[SLOTS];
} ring;

struct end;

/* What two connections share: the last one frees it. */
typedef struct {
  ring to[2];                    /* by receiving side */
  _Atomic(struct end *) side[2]; /* NULL: closed */
  _Atomic int inside[2];         /* side i is storing into the memory of the other, which must not go meanwhile */
  _Atomic int holders;
} pair;

typedef struct end {
  gccl_net_conn base;
  pair *p;
  int me, told; /* which side; whether poll has reported the fault */
} end;

typedef struct {
  gccl_net_ep base;
  gccl_mrt mrs;
  gccl_conns conns;
  gccl_dones dones;
} loop;

static int loop_reg(gccl_net_ep *ep, const gccl_net_mem *m, gccl_net_mr **out, char *why) {
  loop *l = (loop *)ep;
  if (m->dmabuf >= 0) return gccl_net_why(why, GCCL_NET_ENOTSUP, "loop: memory of a device cannot be loaded and stored");
  gccl_mrt_entry *e = gccl_mrt_add(&l->mrs, ep, m);
  if (!e) return gccl_net_why(why, GCCL_NET_ENOMEM, "loop: no room for another registration");
  gccl_mrt_blob(e);
  gccl_mrt_publish(e);
  *out = &e->mr;
  return 0;
}

static void loop_dereg(gccl_net_mr *mr) { gccl_mrt_drop(&((loop *)mr->ep)->mrs, (gccl_mrt_entry *)mr); }

static int loop_import(gccl_net_conn *c, const void *blob, uint32_t bytes, gccl_net_rmr *out, char *why) {
  (void)c;
  return gccl_mrt_import(blob, bytes, out, why);
}

static unsigned char *place(end *peer, const gccl_net_wr *w) {
  gccl_net_mr *m = gccl_mrt_find(&((loop *)peer->base.ep)->mrs, w->remote->key[0]);
  return m && gccl_net_within(m->bytes, w->roff, w->bytes) ? m->addr + w->roff : NULL;
}

static int send(ring *r, const gccl_net_wr *w) {
  uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
  if (tail - r->seen == SLOTS) {
    r->seen = atomic_load_explicit(&r->head, memory_order_acquire); /* the slot's reader is done with it */
    if (tail - r->seen == SLOTS) return 0;
  }
  slot *s = &r->at[tail % SLOTS];
  s->bytes = (uint32_t)w->bytes;
  memcpy(s->data, w->data, w->bytes);
  atomic_store_explicit(&r->tail, tail + 1, memory_order_release); /* everything put before; acquired in loop_poll */
  return 1;
}

/* 1: done, 0: no room, otherwise an error. */
static int execute(end *e, end *peer, const gccl_net_wr *w, char *why) {
  loop *l = (loop *)e->base.ep;
  int rc = gccl_net_check(&e->base, w, why);
  if (rc) return rc;
  if (w->flags & GCCL_NET_SIGNALED && !gccl_dones_room(&l->dones)) return 0;
  unsigned char *at = NULL;
  if (w->op <= GCCL_NET_GET && !(at = place(peer, w))) {
    gccl_net_fail(&e->base.fault, GCCL_NET_EREMOTE, "loop: rank %d has deregistered the memory that this work request names", e->base.peer);
    return GCCL_NET_EFAULT;
  }
  switch (w->op) {
  case GCCL_NET_PUT: memcpy(at, w->local->addr + w->loff, w->bytes); break;
  case GCCL_NET_PUT_INLINE: gccl_net_store_small(at, w->data, w->bytes); break;
  case GCCL_NET_GET: memcpy(w->local->addr + w->loff, at, w->bytes); break;
  case GCCL_NET_MSGSEND:
    if (!send(&e->p->to[!e->me], w)) return 0;
    gccl_net_count(&e->base.stats.tx_msgs, 1);
    break;
  }
  if (w->op <= GCCL_NET_PUT_INLINE) gccl_net_count(&e->base.stats.tx_bytes, w->bytes);
  gccl_net_count(&e->base.stats.tx_ops, 1);
  if (w->flags & GCCL_NET_SIGNALED) gccl_dones_add(&l->dones, &e->base, w->cookie);
  return 1;
}

static int loop_post(gccl_net_conn *c, const gccl_net_wr *w, int n, char *why) {
  end *e = (end *)c;
  if (gccl_net_faulted(&c->fault)) return GCCL_NET_EFAULT;
  /* The closer stores side and then looks at inside; this looks the other way round. Sequentially consistent, all four. */
  atomic_store(&e->p->inside[e->me], 1);
  end *peer = atomic_load(&e->p->side[!e->me]);
  int done = 0, rc = 1;
  if (peer)
    for (; done < n && (rc = execute(e, peer, &w[done], why)) > 0;) done++;
  else
    rc = GCCL_NET_EFAULT; /* reported by poll, behind the messages that are still in the ring */
  atomic_store_explicit(&e->p->inside[e->me], 0, memory_order_release);
  return done || rc > 0 ? done : rc;
}

static int poll_end(end *e, gccl_net_event *ev, int max) {
  ring *r = &e->p->to[e->me];
  uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
  int gone = !atomic_load_explicit(&e->p->side[!e->me], memory_order_acquire); /* before tail: nothing comes after it */
  uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
  int n = 0;
  for (; head != tail && n < max && !e->told; head++, n++) {
    slot *s = &r->at[head % SLOTS];
    ev[n].conn = &e->base;
    ev[n].kind = GCCL_NET_EV_MSG;
    ev[n].cookie = 0;
    ev[n].bytes = s->bytes;
    memcpy(ev[n].data, s->data, s->bytes);
  }
  if (n) {
    atomic_store_explicit(&r->head, head, memory_order_release);
    gccl_net_count(&e->base.stats.rx_msgs, (uint64_t)n);
  }
  if (gone && head == tail) gccl_net_fail(&e->base.fault, GCCL_NET_EREMOTE, "loop: rank %d has closed the connection", e->base.peer);
  if (!e->told && n < max && gccl_net_faulted(&e->base.fault)) {
    e->told = 1;
    ev[n].conn = &e->base;
    ev[n].cookie = ev[n].bytes = 0;
    ev[n++].kind = GCCL_NET_EV_FAULT;
  }
  return n;
}

static int loop_poll(gccl_net_ep *ep, gccl_net_event *ev, int max) {
  loop *l = (loop *)ep;
  int n = gccl_dones_take(&l->dones, ev, max);
  for (gccl_net_conn *c = gccl_conns_first(&l->conns); c && n < max; c = gccl_conns_next(c)) n += poll_end((end *)c, ev + n, max - n);
  return n;
}

void gccl_loop_discard(gccl_net_conn *c) {
  end *e = (end *)c;
  if (e->p) {
    atomic_store(&e->p->side[e->me], NULL);
    while (atomic_load(&e->p->inside[!e->me])) sched_yield(); /* a batch of the peer, which blocks on nothing */
    if (atomic_fetch_sub(&e->p->holders, 1) == 1) free(e->p);
  }
  free(e);
}

static void loop_close_conn(gccl_net_conn *c) {
  loop *l = (loop *)c->ep;
  gccl_conns_remove(&l->conns, c);
  gccl_dones_forget(&l->dones, c);
  gccl_loop_discard(c);
}

static void loop_close(gccl_net_ep *ep) {
  loop *l = (loop *)ep;
  for (gccl_net_conn *c; (c = gccl_conns_first(&l->conns));) loop_close_conn(c);
  gccl_mrt_free(&l->mrs);
  pthread_mutex_destroy(&l->conns.lock);
  free(l);
}

static const gccl_net_ops loop_ops = {
    .version = GCCL_NET_VERSION,
    .size = sizeof(gccl_net_ops),
    .name = "loop",
    .reg = loop_reg,
    .dereg = loop_dereg,
    .import = loop_import,
    .post = loop_post,
    .poll = loop_poll,
    .close_conn = loop_close_conn,
    .close = loop_close,
};

gccl_net_ep *gccl_loop_open(int32_t rank) {
  loop *l = calloc(1, sizeof *l);
  if (!l) return NULL;
  l->base.ops = &loop_ops;
  l->base.rank = rank;
  gccl_mrt_init(&l->mrs);
  pthread_mutex_init(&l->conns.lock, NULL);
  return &l->base;
}

gccl_net_conn *gccl_loop_conn(gccl_net_ep *ep, int32_t peer) {
  end *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  e->base.ops = &loop_ops;
  e->base.ep = ep;
  e->base.peer = peer;
  atomic_store(&e->base.stats.paths, 1);
  return &e->base;
}

int gccl_loop_join(gccl_net_conn *a, gccl_net_conn *b) {
  pair *p = aligned_alloc(128, sizeof *p);
  if (!p) return GCCL_NET_ENOMEM;
  memset(p, 0, sizeof *p);
  end *ends[2] = {(end *)a, (end *)b};
  atomic_store(&p->holders, 2);
  for (int i = 0; i < 2; i++) {
    ends[i]->p = p;
    ends[i]->me = i;
    atomic_store(&p->side[i], ends[i]);
  }
  for (int i = 0; i < 2; i++) gccl_conns_add(&((loop *)ends[i]->base.ep)->conns, &ends[i]->base);
  return 0;
}
