#define _GNU_SOURCE
#include "carry.h"

#include <fcntl.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

/* How long the last words of a connection may take. */
enum { LINGER_NS = 100 * 1000 * 1000 };

uint64_t np_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void np_fail(np_conn *c, const char *format, ...) {
  char text[GCCL_NET_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "plugin %s, rank %d: %s", ((np_ep *)c->base.ep)->name, c->base.peer, text))
    c->telling = 1;
}

int np_is_device(const np_ep *e, const gccl_mrt_entry *mr) { return e->dmabuf[mr->index].fd != 0; }

/* The blob is that of base.h and one byte more: whether the CPU reaches the memory. */
enum { BLOB = GCCL_MRT_BLOB + 1 };

static int np_reg(gccl_net_ep *ep, const gccl_net_mem *m, gccl_net_mr **out, char *why) {
  np_ep *e = (np_ep *)ep;
  if (m->dmabuf >= 0 && !e->device)
    return gccl_net_why(why, GCCL_NET_ENOTSUP, "plugin %s: its devices do not register memory by dma-buf", e->name);
  int fd = -1;
  if (m->dmabuf >= 0 && (fd = fcntl(m->dmabuf, F_DUPFD_CLOEXEC, 3)) < 0)
    return gccl_net_why(why, GCCL_NET_ESYSTEM, "plugin %s: cannot copy the descriptor %d of a dma-buf", e->name, m->dmabuf);
  gccl_mrt_entry *mr = gccl_mrt_add(&e->mrs, ep, m);
  if (!mr) {
    if (fd >= 0) close(fd);
    return gccl_net_why(why, GCCL_NET_ENOMEM, "plugin %s: no room for another registration", e->name);
  }
  e->dmabuf[mr->index].fd = fd + 1;
  e->dmabuf[mr->index].offset = m->dmabuf_offset;
  gccl_mrt_blob(mr);
  mr->mr.blob[GCCL_MRT_BLOB] = fd >= 0;
  mr->mr.blob_bytes = BLOB;
  gccl_mrt_publish(mr);
  *out = &mr->mr;
  return 0;
}

static void np_dereg(gccl_net_mr *m) {
  gccl_mrt_entry *mr = (gccl_mrt_entry *)m;
  np_ep *e = (np_ep *)m->ep;
  for (gccl_net_conn *c = gccl_conns_first(&e->conns); c; c = gccl_conns_next(c))
    if (((np_conn *)c)->bulk) np_bulk_forget((np_conn *)c, mr);
  if (e->dmabuf[mr->index].fd) close(e->dmabuf[mr->index].fd - 1);
  e->dmabuf[mr->index].fd = 0;
  gccl_mrt_drop(&e->mrs, mr);
}

static int np_import(gccl_net_conn *c, const void *blob, uint32_t bytes, gccl_net_rmr *out, char *why) {
  (void)c;
  unsigned device = bytes == BLOB ? ((const unsigned char *)blob)[GCCL_MRT_BLOB] : 2;
  if (device > 1) return gccl_net_why(why, GCCL_NET_EINVAL, "%u bytes that are no registration of this transport", bytes);
  int rc = gccl_mrt_import(blob, GCCL_MRT_BLOB, out, why);
  out->key[1] = device;
  return rc;
}

static int np_post(gccl_net_conn *conn, const gccl_net_wr *w, int n, char *why) {
  np_conn *c = (np_conn *)conn;
  if (gccl_net_faulted(&conn->fault)) return GCCL_NET_EFAULT;
  int done = 0, rc = 1;
  for (; done < n && (rc = np_take(c, &w[done], why)) > 0;) done++;
  np_push(c);
  c->lane->ops->progress(c->lane);
  if (c->bulk) np_bulk_progress(c);
  np_finish(c);
  return done || rc >= 0 ? done : rc;
}

/* Whether the peer can say no more. What it said before comes first. */
static void look_at_end(np_conn *c) {
  uint32_t bytes;
  if (c->in || c->lane->ops->next(c->lane, &bytes)) return;
  int gone = gccl_net_faulted(&c->lane->fault);
  if (c->bye && (gone || c->msg_head == c->msg_tail))
    np_fail(c, "it has closed the connection");
  else if (gone)
    np_fail(c, "%s", c->lane->fault.text);
  if (gone || c->bye) c->telling = 0;
}

static int poll_conn(np_conn *c, gccl_net_event *ev, int max) {
  int n = 0;
  if (!gccl_net_faulted(&c->base.fault)) {
    c->lane->ops->progress(c->lane);
    if (c->bulk) np_bulk_progress(c);
    n = np_receive(c, ev, max);
    np_push(c);
    c->lane->ops->progress(c->lane);
    np_finish(c);
    if (n < max) look_at_end(c);
  }
  if (gccl_net_faulted(&c->base.fault) && !c->told && n < max) {
    c->told = 1;
    ev[n].conn = &c->base;
    ev[n].cookie = ev[n].bytes = 0;
    ev[n++].kind = GCCL_NET_EV_FAULT;
  }
  if (c->answer && np_tell(c, NP_SEEN, NULL)) c->answer = 0;
  if (c->told) { /* the peer hears why, if the lane still carries that */
    if (c->telling && np_tell(c, NP_GAVEUP, c->base.fault.text)) c->telling = 0;
    c->lane->ops->progress(c->lane);
  }
  return n;
}

static int np_poll(gccl_net_ep *ep, gccl_net_event *ev, int max) {
  np_ep *e = (np_ep *)ep;
  int n = gccl_dones_take(&e->dones, ev, max);
  for (gccl_net_conn *c = gccl_conns_first(&e->conns); c && n < max; c = gccl_conns_next(c)) n += poll_conn((np_conn *)c, ev + n, max - n);
  return n;
}

void np_conn_discard(np_conn *c) {
  if (c->bulk) np_bulk_close(c->bulk);
  if (c->lane) c->lane->ops->close(c->lane);
  free(c);
}

/* Says goodbye, or why not, and waits until that has left this end; a goodbye until the peer has seen it, or takes leave itself, because
 * some plugins throw away what has arrived when a connection is closed. */
static void last_words(np_conn *c) {
  gccl_net_event ignored[4];
  int said = gccl_net_faulted(&c->base.fault) && !c->telling;
  for (uint64_t end = np_now() + LINGER_NS; !gccl_net_faulted(&c->lane->fault) && np_now() < end; sched_yield()) {
    int faulted = gccl_net_faulted(&c->base.fault);
    if (!said) said = np_tell(c, faulted ? NP_GAVEUP : NP_BYE, faulted ? c->base.fault.text : NULL);
    c->lane->ops->progress(c->lane);
    if (!faulted) np_receive(c, ignored, 4);
    if (said && c->lane->ops->idle(c->lane) && (faulted || c->seen || c->bye)) return;
  }
}

static void np_close_conn(gccl_net_conn *conn) {
  np_ep *e = (np_ep *)conn->ep;
  last_words((np_conn *)conn);
  gccl_conns_remove(&e->conns, conn);
  gccl_dones_forget(&e->dones, conn);
  np_conn_discard((np_conn *)conn);
}

static void np_close(gccl_net_ep *ep) {
  np_ep *e = (np_ep *)ep;
  for (gccl_net_conn *c; (c = gccl_conns_first(&e->conns));) np_close_conn(c);
  for (uint32_t i = 0; i < GCCL_MRT_BLOCK * GCCL_MRT_BLOCKS; i++)
    if (e->dmabuf[i].fd) close(e->dmabuf[i].fd - 1);
  gccl_mrt_free(&e->mrs);
  pthread_mutex_destroy(&e->conns.lock);
  free(e->dmabuf);
  free(e);
}

static const gccl_net_ops np_ops = {
    .version = GCCL_NET_VERSION,
    .size = sizeof(gccl_net_ops),
    .name = "plugin",
    .reg = np_reg,
    .dereg = np_dereg,
    .import = np_import,
    .post = np_post,
    .poll = np_poll,
    .close_conn = np_close_conn,
    .close = np_close,
};

gccl_net_ep *np_ep_open(int32_t rank, const char *name, int device) {
  np_ep *e = calloc(1, sizeof *e);
  struct np_dmabuf *d = calloc(GCCL_MRT_BLOCK * GCCL_MRT_BLOCKS, sizeof *d);
  if (!e || !d) {
    free(e);
    free(d);
    return NULL;
  }
  e->base.ops = &np_ops;
  e->base.rank = rank;
  e->name = name;
  e->device = device;
  e->dmabuf = d;
  gccl_mrt_init(&e->mrs);
  pthread_mutex_init(&e->conns.lock, NULL);
  return &e->base;
}

np_conn *np_conn_new(gccl_net_ep *ep, int32_t peer) {
  np_conn *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->base.ops = &np_ops;
  c->base.ep = ep;
  c->base.peer = peer;
  return c;
}

void np_conn_start(np_conn *c) {
  atomic_store_explicit(&c->base.stats.paths, 1, memory_order_relaxed);
  gccl_conns_add(&((np_ep *)c->base.ep)->conns, &c->base);
}
