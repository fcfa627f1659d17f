#define _GNU_SOURCE
#include "ib.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "conn.h"

enum { LOOK_POLLS = 1024, BEAT_NS = 1000 * 1000 * 1000, LINGER_NS = 1000 * 1000 * 1000 };

uint64_t ib_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Lane rates in Mbit/s by code of active_speed, and lanes by code of active_width (InfiniBand specification volume 1, 14.2.5.6, PortInfo). */
static uint32_t rate(const vb_port_attr *p) {
  static const struct {
    uint8_t code;
    uint32_t mbps;
  } speeds[] = {{1, 2500}, {2, 5000}, {4, 10000}, {8, 10000}, {16, 14000}, {32, 25000}, {64, 50000}, {128, 100000}};
  static const struct {
    uint8_t code;
    uint32_t lanes;
  } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  uint32_t mbps = 0, lanes = 0;
  for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
    if (speeds[i].code == p->active_speed) mbps = speeds[i].mbps;
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    if (widths[i].code == p->active_width) lanes = widths[i].lanes;
  return mbps * lanes;
}

/* Lists the ports that are up. Negative with a text if there is no library; a device that cannot be opened is left out. */
int gccl_ib_ports(gccl_ib_port *out, int max, char *why) {
  const vb_library *vb = vb_open(why);
  if (!vb) return GCCL_NET_ENOTSUP;
  int ndevices = 0, n = 0;
  vb_device **list = vb->get_device_list(&ndevices);
  if (!list) return gccl_net_why(why, GCCL_NET_ESYSTEM, "ibv_get_device_list: %s", strerror(errno));
  for (int d = 0; d < ndevices; d++) {
    vb_context *x = vb->open_device(list[d]);
    if (!x) continue;
    vb_device_attr attr = {0};
    if (!vb->query_device(x, &attr))
      for (int p = 1; p <= attr.phys_port_cnt && n < max; p++) {
        vb_port_attr a = {0};
        if (vb->query_port(x, (uint8_t)p, &a) || a.state != VB_PORT_ACTIVE) continue;
        gccl_ib_port *o = &out[n++];
        memset(o, 0, sizeof *o);
        snprintf(o->name, sizeof o->name, "%s", vb->get_device_name(list[d]));
        o->port = (uint8_t)p;
        o->link = a.link_layer == VB_LINK_ETHERNET ? VB_LINK_ETHERNET : VB_LINK_INFINIBAND;
        o->lid = a.lid;
        o->mbps = rate(&a);
      }
    vb->close_device(x);
  }
  vb->free_device_list(list);
  return n;
}

static int ib_reg(gccl_net_ep *ep, const gccl_net_mem *m, gccl_net_mr **out, char *why) {
  endpoint *e = (endpoint *)ep;
  mr *r = calloc(1, sizeof *r);
  if (!r) return gccl_net_why(why, GCCL_NET_ENOMEM, "ib: out of memory");
  r->base.ep = ep;
  r->base.addr = m->addr;
  r->base.bytes = m->bytes;
  int access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ, rc = 0;
  for (int i = 0; i < e->nrails && !rc; i++) {
    if (m->dmabuf < 0)
      r->v[i] = e->vb->reg_mr(e->rail[i].pd, m->addr, m->bytes, access);
    else if (e->vb->reg_dmabuf_mr)
      r->v[i] = e->vb->reg_dmabuf_mr(e->rail[i].pd, m->dmabuf_offset, m->bytes, (uintptr_t)m->addr, m->dmabuf, access);
    else
      rc = gccl_net_why(why, GCCL_NET_ENOTSUP, "ib: this libibverbs cannot register a dma-buf (rdma-core 34 can)");
    if (!rc && !r->v[i])
      rc = gccl_net_why(why, errno == EOPNOTSUPP ? GCCL_NET_ENOTSUP : GCCL_NET_ESYSTEM, "ib: %s: registering %llu bytes: %s%s",
                        e->rail[i].name, (unsigned long long)m->bytes, strerror(errno),
                        errno == ENOMEM ? " (is the limit of locked memory, ulimit -l, large enough?)" : "");
  }
  if (rc) {
    for (int i = 0; i < e->nrails; i++)
      if (r->v[i]) e->vb->dereg_mr(r->v[i]);
    free(r);
    return rc;
  }
  uint32_t keys[GCCL_IB_RAILS] = {0}, magic = 0x524d4247 /* "GBMR" */;
  for (int i = 0; i < e->nrails; i++) keys[i] = r->v[i]->rkey;
  uint64_t addr = (uintptr_t)m->addr;
  unsigned char *b = r->base.blob;
  memcpy(b, &magic, 4);
  memcpy(b + 4, &e->nrails, 4);
  memcpy(b + 8, &addr, 8);
  memcpy(b + 16, &m->bytes, 8);
  memcpy(b + 24, keys, sizeof keys);
  r->base.blob_bytes = 24 + sizeof keys;
  pthread_mutex_lock(&e->lock);
  r->next = e->mrs;
  e->mrs = r;
  pthread_mutex_unlock(&e->lock);
  *out = &r->base;
  return 0;
}

static void ib_dereg(gccl_net_mr *m) {
  endpoint *e = (endpoint *)m->ep;
  pthread_mutex_lock(&e->lock);
  mr **at = &e->mrs;
  while (*at && &(*at)->base != m) at = &(*at)->next;
  mr *r = *at;
  if (r) *at = r->next;
  pthread_mutex_unlock(&e->lock);
  if (!r) return;
  for (int i = 0; i < e->nrails; i++) e->vb->dereg_mr(r->v[i]);
  free(r);
}

static int ib_import(gccl_net_conn *base, const void *blob, uint32_t bytes, gccl_net_rmr *out, char *why) {
  conn *c = (conn *)base;
  const unsigned char *b = blob;
  uint32_t magic = 0, rails = 0;
  if (bytes == 24 + 4 * GCCL_IB_RAILS) {
    memcpy(&magic, b, 4);
    memcpy(&rails, b + 4, 4);
  }
  if (magic != 0x524d4247 || (int)rails < c->nlanes)
    return gccl_net_why(why, GCCL_NET_EINVAL, "%u bytes that are no registration of this transport", bytes);
  memset(out, 0, sizeof *out);
  memcpy(&out->base, b + 8, 8);
  memcpy(&out->bytes, b + 16, 8);
  memcpy(out->key, b + 24, 4 * GCCL_IB_RAILS);
  return 0;
}

static int ib_post(gccl_net_conn *base, const gccl_net_wr *w, int n, char *why) {
  conn *c = (conn *)base;
  if (gccl_net_faulted(&base->fault)) return GCCL_NET_EFAULT;
  int done = 0, rc = 1;
  for (; done < n && (rc = data_take(c, &w[done], why)) > 0;) done++;
  if (done) data_push(c);
  return done || rc > 0 ? done : rc;
}

/* Tells the peer how much was taken when it may be short of credit. */
static void give_credit(conn *c) {
  for (int i = 0; i < c->nlanes; i++)
    if (c->lane[i].taken - c->lane[i].told >= IB_RQ / 4) {
      lane_send(c, 0, WIRE_CREDIT, NULL, 0);
      lane_flush(c, 0);
      return;
    }
}

/* An idle connection sends something now and then: only what is sent tells that the other end has gone. */
static void beat(conn *c, uint64_t now) {
  lane *l = &c->lane[0];
  if (!c->last_sent) c->last_sent = now;
  if (now - c->last_sent < BEAT_NS || l->posted != l->completed) return;
  lane_send(c, 0, WIRE_CREDIT, NULL, 0);
  lane_flush(c, 0);
  c->last_sent = now;
}

static int turn(conn *c, gccl_net_event *ev, int max, uint64_t now) {
  int n = 0;
  if (!c->told && !gccl_net_faulted(&c->base.fault)) {
    for (int i = 0; i < c->nlanes; i++) lane_poll(c, i);
    n = data_deliver(c, ev, max);
    if (c->op_next != c->op_tail) data_push(c);
    give_credit(c);
    data_complete(c);
    if (now) beat(c, now);
    if (c->byed && c->held_head == c->held_tail)
      gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "ib: rank %d has closed the connection", c->base.peer);
  }
  if (!c->told && n < max && gccl_net_faulted(&c->base.fault)) {
    c->told = 1;
    ev[n].conn = &c->base;
    ev[n].cookie = ev[n].bytes = 0;
    ev[n++].kind = GCCL_NET_EV_FAULT;
  }
  return n;
}

static int ib_poll(gccl_net_ep *ep, gccl_net_event *ev, int max) {
  endpoint *e = (endpoint *)ep;
  uint64_t now = e->polls++ % LOOK_POLLS ? 0 : ib_now();
  int n = gccl_dones_take(&e->dones, ev, max);
  for (gccl_net_conn *c = gccl_conns_first(&e->conns); c && n < max; c = gccl_conns_next(c)) n += turn((conn *)c, ev + n, max - n, now);
  return n;
}

void gccl_ib_discard(gccl_net_conn *base) {
  conn *c = (conn *)base;
  for (int i = 0; i < of(c)->nrails; i++) lane_close(c, i);
  free(c);
}

static int unfinished(conn *c) {
  int n = c->op_next != c->op_tail;
  for (int i = 0; i < c->nlanes; i++) n |= c->lane[i].posted != c->lane[i].completed;
  return n;
}

static void ib_close_conn(gccl_net_conn *base) {
  conn *c = (conn *)base;
  endpoint *e = of(c);
  gccl_net_event ev[4];
  gccl_conns_remove(&e->conns, base);
  int said = 0;
  for (uint64_t end = ib_now() + LINGER_NS; !gccl_net_faulted(&base->fault) && ib_now() < end;) {
    if (!said && c->op_next == c->op_tail && (said = lane_send(c, 0, WIRE_BYE, NULL, 0))) lane_flush(c, 0);
    turn(c, ev, 4, 0);
    if (said && !unfinished(c)) break;
  }
  gccl_dones_forget(&e->dones, base);
  gccl_ib_discard(base);
}

static void ib_close(gccl_net_ep *ep) {
  endpoint *e = (endpoint *)ep;
  for (gccl_net_conn *c; (c = gccl_conns_first(&e->conns));) ib_close_conn(c);
  while (e->mrs) ib_dereg(&e->mrs->base);
  for (int i = 0; i < e->nrails; i++) rail_close(e->vb, &e->rail[i]);
  pthread_mutex_destroy(&e->lock);
  pthread_mutex_destroy(&e->conns.lock);
  free(e);
}

static const gccl_net_ops ib_ops = {
    .version = GCCL_NET_VERSION,
    .size = sizeof(gccl_net_ops),
    .name = "ib",
    .reg = ib_reg,
    .dereg = ib_dereg,
    .import = ib_import,
    .post = ib_post,
    .poll = ib_poll,
    .close_conn = ib_close_conn,
    .close = ib_close,
};

gccl_net_ep *gccl_ib_open(int32_t rank, const gccl_ib_config *config, char *why) {
  const vb_library *vb = vb_open(why);
  endpoint *e = vb ? calloc(1, sizeof *e) : NULL;
  if (!e) {
    if (vb) gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
    return NULL;
  }
  e->base.ops = &ib_ops;
  e->base.rank = rank;
  e->vb = vb;
  e->config = *config;
  pthread_mutex_init(&e->lock, NULL);
  pthread_mutex_init(&e->conns.lock, NULL);
  return &e->base;
}

/* Opens a port. Preconditions: there is no connection and no registration yet. */
int gccl_ib_add_rail(gccl_net_ep *ep, const char *name, int port, int gid_index, char *why) {
  endpoint *e = (endpoint *)ep;
  if (e->nrails == GCCL_IB_RAILS) return gccl_net_why(why, GCCL_NET_EINVAL, "more than %d rails", GCCL_IB_RAILS);
  int rc = rail_open(e->vb, &e->rail[e->nrails], name, port, gid_index, why);
  if (rc < 0) return rc;
  e->nrails++;
  return 0;
}

gccl_net_conn *gccl_ib_conn(gccl_net_ep *ep, int32_t peer, char *why) {
  endpoint *e = (endpoint *)ep;
  conn *c = calloc(1, sizeof *c);
  if (!c) {
    gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
    return NULL;
  }
  c->base.ops = &ib_ops;
  c->base.ep = ep;
  c->base.peer = peer;
  for (int i = 0; i < e->nrails; i++)
    if (lane_open(c, i, why)) {
      gccl_ib_discard(&c->base);
      return NULL;
    }
  return &c->base;
}

int gccl_ib_rails(gccl_net_conn *base) { return of((conn *)base)->nrails; }

void gccl_ib_address_of(gccl_net_conn *base, int i, gccl_ib_address *a) {
  conn *c = (conn *)base;
  rail_address(&of(c)->rail[i], c->lane[i].qp, a);
}

int gccl_ib_connect(gccl_net_conn *base, int rails, const gccl_ib_address *to, char *why) {
  conn *c = (conn *)base;
  int rc = 0;
  c->nlanes = rails;
  for (int i = 0; i < rails && !rc; i++) rc = lane_connect(c, i, &to[i], why);
  return rc;
}

/* For the proof of the secret: one message over a rail. */
int gccl_ib_say(gccl_net_conn *base, int i, const void *data, int n) {
  conn *c = (conn *)base;
  if (!lane_send(c, i, WIRE_AUTH, data, n)) return GCCL_NET_ENOMEM;
  lane_flush(c, i);
  return gccl_net_faulted(&base->fault);
}

/* The next message of the proof: 1 and its bytes, 0 none yet; negative after a failure, GCCL_NET_ETIMEOUT if the peer did not answer
 * and has said nothing so far. */
int gccl_ib_hear(gccl_net_conn *base, int i, void *data) {
  conn *c = (conn *)base;
  lane *l = &c->lane[i];
  lane_poll(c, i);
  if (l->nauth) {
    memcpy(data, l->auth[0], GCCL_NET_MSG);
    memmove(l->auth[0], l->auth[1], sizeof l->auth - sizeof l->auth[0]);
    l->nauth--;
    return 1;
  }
  if (l->failed) {
    if (l->failed == VB_WC_RETRY_EXC_ERR) return GCCL_NET_ETIMEOUT;
    gccl_net_fail(&base->fault, GCCL_NET_EREMOTE, "%s over %s", of(c)->vb->wc_status_str(l->failed), of(c)->rail[i].name);
  }
  return gccl_net_faulted(&base->fault);
}

/* Starts a rail again whose peer was not there yet. */
int gccl_ib_again(gccl_net_conn *base, int i) { return lane_reset((conn *)base, i) ? GCCL_NET_ESYSTEM : 0; }

void gccl_ib_start(gccl_net_conn *base) {
  conn *c = (conn *)base;
  c->started = 1;
  atomic_store_explicit(&base->stats.paths, (uint32_t)c->nlanes, memory_order_relaxed);
  gccl_conns_add(&of(c)->conns, base);
}
