/* An endpoint in front of another one: what wrappers have in common. Hooks see the work and the events on their way. */
#ifndef GCCL_NET_WRAP_H
#define GCCL_NET_WRAP_H

#include <sched.h>
#include <stdlib.h>

#include "base.h"

typedef struct {
  /* How many of n work requests go on to the inner connection: fewer look like full queues. Negative: the connection is
   * dropped, with the text in why. */
  int (*post)(void *state, gccl_net_conn *, const gccl_net_wr *, int n, char *why);
  /* How many were taken, or the error. */
  void (*posted)(void *state, gccl_net_conn *, const gccl_net_wr *, int n);
  /* How many events to ask for, at most max. */
  int (*poll)(void *state, int max);
  void (*event)(void *state, const gccl_net_event *);
  void (*closed)(void *state, gccl_net_conn *);
} gccl_wrap_hooks;

typedef struct {
  gccl_net_ep base;
  gccl_net_ep *inner;
  gccl_net_ops ops;
  const gccl_wrap_hooks *hooks;
  void *state;
  gccl_conns conns;
} gccl_wrap_ep;

typedef struct {
  gccl_net_conn base;
  gccl_net_conn *inner; /* NULL once it was dropped */
  int told;
} gccl_wrap_conn;

static int gccl_wrap_reg(gccl_net_ep *e, const gccl_net_mem *m, gccl_net_mr **out, char *why) {
  gccl_net_ep *inner = ((gccl_wrap_ep *)e)->inner;
  return inner->ops->reg(inner, m, out, why); /* the registration is the inner endpoint's, and goes back to it */
}

static void gccl_wrap_dereg(gccl_net_mr *m) { m->ep->ops->dereg(m); }

static int gccl_wrap_import(gccl_net_conn *c, const void *blob, uint32_t n, gccl_net_rmr *out, char *why) {
  gccl_net_conn *inner = ((gccl_wrap_conn *)c)->inner;
  return inner ? inner->ops->import(inner, blob, n, out, why) : gccl_net_why(why, GCCL_NET_EFAULT, "%s", c->fault.text);
}

static void gccl_wrap_drop(gccl_wrap_conn *c) {
  if (c->inner) c->inner->ops->close_conn(c->inner);
  c->inner = NULL;
}

static int gccl_wrap_post(gccl_net_conn *base, const gccl_net_wr *w, int n, char *why) {
  gccl_wrap_conn *c = (gccl_wrap_conn *)base;
  gccl_wrap_ep *e = (gccl_wrap_ep *)base->ep;
  if (gccl_net_faulted(&base->fault)) return GCCL_NET_EFAULT;
  char text[GCCL_NET_TEXT] = "";
  int k = e->hooks->post(e->state, base, w, n, text);
  if (k < 0) {
    gccl_net_fail(&base->fault, GCCL_NET_EREMOTE, "%s", text);
    gccl_wrap_drop(c);
    return GCCL_NET_EFAULT;
  }
  int rc = k ? c->inner->ops->post(c->inner, w, k, why) : 0;
  e->hooks->posted(e->state, base, w, rc);
  return rc;
}

static void gccl_wrap_mirror(gccl_wrap_conn *c) {
  gccl_net_stats *to = &c->base.stats, *from = &c->inner->stats;
#define MIRROR(f) atomic_store_explicit(&to->f, atomic_load_explicit(&from->f, memory_order_relaxed), memory_order_relaxed)
  MIRROR(tx_bytes), MIRROR(rx_bytes), MIRROR(tx_ops), MIRROR(tx_msgs), MIRROR(rx_msgs), MIRROR(busy_ns), MIRROR(retries), MIRROR(paths);
#undef MIRROR
}

static int gccl_wrap_poll(gccl_net_ep *base, gccl_net_event *ev, int max) {
  gccl_wrap_ep *e = (gccl_wrap_ep *)base;
  int n = 0;
  for (gccl_net_conn *p = gccl_conns_first(&e->conns); p && n < max; p = gccl_conns_next(p)) {
    gccl_wrap_conn *c = (gccl_wrap_conn *)p;
    if (c->inner || c->told) continue;
    c->told = 1;
    memset(&ev[n], 0, sizeof ev[n]);
    ev[n].conn = p;
    ev[n++].kind = GCCL_NET_EV_FAULT;
  }
  int ask = e->hooks->poll(e->state, max - n);
  int end = n + (ask > 0 ? e->inner->ops->poll(e->inner, ev + n, ask) : 0);
  for (; n < end; n++) {
    gccl_wrap_conn *c;
    /* The connection is the inner endpoint's before it is ours: for a moment of the thread that connects. */
    while (!(c = __atomic_load_n((gccl_wrap_conn **)&ev[n].conn->user, __ATOMIC_ACQUIRE))) sched_yield();
    if (ev[n].kind == GCCL_NET_EV_FAULT) {
      c->told = 1;
      gccl_net_fail(&c->base.fault, gccl_net_faulted(&c->inner->fault), "%s", c->inner->fault.text);
    }
    ev[n].conn = &c->base;
    e->hooks->event(e->state, &ev[n]);
  }
  for (gccl_net_conn *p = gccl_conns_first(&e->conns); p; p = gccl_conns_next(p))
    if (((gccl_wrap_conn *)p)->inner) gccl_wrap_mirror((gccl_wrap_conn *)p);
  return end;
}

static void gccl_wrap_wait(gccl_net_ep *base, uint64_t ns) {
  gccl_net_ep *inner = ((gccl_wrap_ep *)base)->inner;
  if (inner->ops->wait) inner->ops->wait(inner, ns < 1000000 ? ns : 1000000); /* a hook may hold something back */
}

static void gccl_wrap_wake(gccl_net_ep *base) {
  gccl_net_ep *inner = ((gccl_wrap_ep *)base)->inner;
  if (inner->ops->wake) inner->ops->wake(inner);
}

static void gccl_wrap_close_conn(gccl_net_conn *base) {
  gccl_wrap_ep *e = (gccl_wrap_ep *)base->ep;
  gccl_conns_remove(&e->conns, base);
  e->hooks->closed(e->state, base);
  gccl_wrap_drop((gccl_wrap_conn *)base);
  free(base);
}

/* Frees the wrapper alone: the inner endpoint is closed by whoever opened it. */
static void gccl_wrap_close(gccl_net_ep *base) {
  gccl_wrap_ep *e = (gccl_wrap_ep *)base;
  for (gccl_net_conn *c; (c = gccl_conns_first(&e->conns));) gccl_wrap_close_conn(c);
  pthread_mutex_destroy(&e->conns.lock);
  free(e);
}

/* The table, one for each wrapped endpoint: whether it can wait is the inner one's. */
__attribute__((unused)) static gccl_net_ep *gccl_wrap_open(const char *name, gccl_net_ep *inner, const gccl_wrap_hooks *hooks,
                                                           void *state) {
  gccl_wrap_ep *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  int can = inner->ops->wait != NULL;
  e->ops = (gccl_net_ops){.version = GCCL_NET_VERSION,
                          .size = sizeof e->ops,
                          .name = name,
                          .reg = gccl_wrap_reg,
                          .dereg = gccl_wrap_dereg,
                          .import = gccl_wrap_import,
                          .post = gccl_wrap_post,
                          .poll = gccl_wrap_poll,
                          .wait = can ? gccl_wrap_wait : NULL,
                          .wake = can ? gccl_wrap_wake : NULL,
                          .close_conn = gccl_wrap_close_conn,
                          .close = gccl_wrap_close};
  e->base.ops = &e->ops;
  e->base.rank = inner->rank;
  e->base.link = inner->link;
  e->base.nlinks = inner->nlinks;
  e->inner = inner;
  e->hooks = hooks;
  e->state = state;
  pthread_mutex_init(&e->conns.lock, NULL);
  return &e->base;
}

__attribute__((unused)) static gccl_net_conn *gccl_wrap_conn_of(gccl_net_ep *base, gccl_net_conn *inner) {
  gccl_wrap_conn *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->base.ops = base->ops;
  c->base.ep = base;
  c->base.peer = inner->peer;
  c->inner = inner;
  gccl_wrap_mirror(c);
  gccl_conns_add(&((gccl_wrap_ep *)base)->conns, &c->base);
  __atomic_store_n((gccl_wrap_conn **)&inner->user, c, __ATOMIC_RELEASE);
  return &c->base;
}

#endif
