#define _GNU_SOURCE
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"

enum { LOOK_NS = 10 * 1000 * 1000, LOOK_POLLS = 256 }; /* how often the peers' sockets are asked whether they live */

uint64_t shm_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int shm_reg(gccl_net_ep *ep, const gccl_net_mem *m, gccl_net_mr **out, char *why) {
  if (m->dmabuf >= 0) return gccl_net_why(why, GCCL_NET_ENOTSUP, "shm: memory of a device cannot be loaded and stored");
  gccl_mrt_entry *e = gccl_mrt_add(&((shm_ep *)ep)->mrs, ep, m);
  if (!e) return gccl_net_why(why, GCCL_NET_ENOMEM, "shm: no room for another registration");
  gccl_mrt_blob(e);
  gccl_mrt_publish(e);
  *out = &e->mr;
  return 0;
}

static void shm_dereg(gccl_net_mr *mr) { gccl_mrt_drop(&((shm_ep *)mr->ep)->mrs, (gccl_mrt_entry *)mr); }

static int shm_import(gccl_net_conn *c, const void *blob, uint32_t bytes, gccl_net_rmr *out, char *why) {
  (void)c;
  return gccl_mrt_import(blob, bytes, out, why);
}

/* A sleeper looks into its slots once more some time after it has said that it sleeps (shm_wait), so this needs no fence
 * between the slot and the question. */
void shm_wake_peer(shm_conn *c) {
  if (!atomic_load_explicit(&c->out->asleep, memory_order_relaxed)) return;
  char byte = 1;
  if (send(c->socket, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return; /* full: it has enough to wake up for; ended: noticed elsewhere */
}

static int shm_post(gccl_net_conn *conn, const gccl_net_wr *w, int n, char *why) {
  shm_conn *c = (shm_conn *)conn;
  if (gccl_net_faulted(&conn->fault)) return GCCL_NET_EFAULT;
  uint64_t before = c->sent;
  int done = 0, rc = 1;
  for (; done < n && (rc = shm_execute(c, &w[done], why)) > 0;) done++;
  if (c->op_next != c->op_tail) shm_push(c);
  shm_finish(c);
  if (c->sent != before) shm_wake_peer(c);
  return done || rc > 0 ? done : rc;
}

/* Tells the peer why this end has given up. */
static void tell(shm_conn *c) {
  if (atomic_load_explicit(&c->seg->closed[c->me], memory_order_relaxed)) return;
  memcpy(c->seg->text[c->me], c->base.fault.text, GCCL_NET_TEXT);
  atomic_store_explicit(&c->seg->closed[c->me], 2, memory_order_release);
  shm_wake_peer(c);
}

static int has_ended(shm_conn *c) {
  char bytes[64];
  ssize_t got = recv(c->socket, bytes, sizeof bytes, MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static void look_at_end(shm_conn *c) {
  uint32_t closed = atomic_load_explicit(&c->seg->closed[!c->me], memory_order_acquire);
  if ((!closed && !c->ended) || shm_pending(c)) return; /* what was sent before comes first */
  if (closed == 2) {
    char text[GCCL_NET_TEXT];
    memcpy(text, c->seg->text[!c->me], sizeof text);
    text[sizeof text - 1] = 0;
    gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "shm: rank %d has given up: %.180s", c->base.peer, text);
  } else if (closed) {
    gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "shm: rank %d has closed the connection", c->base.peer);
  } else {
    gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "shm: the process of rank %d has ended", c->base.peer);
  }
}

static int poll_conn(shm_conn *c, gccl_net_event *ev, int max, int look) {
  int n = 0;
  if (!c->told && !gccl_net_faulted(&c->base.fault)) {
    uint64_t before = c->sent, read = c->read;
    if (look && !c->ended) c->ended = has_ended(c);
    n = shm_receive(c, ev, max);
    if (shm_out_blocked(c)) shm_push(c);
    shm_finish(c);
    if (c->sent != before || c->read != read) shm_wake_peer(c);
    if (n < max) look_at_end(c);
    if (gccl_net_faulted(&c->base.fault)) tell(c);
  }
  if (!c->told && n < max && gccl_net_faulted(&c->base.fault)) {
    c->told = 1;
    ev[n].conn = &c->base;
    ev[n].cookie = ev[n].bytes = 0;
    ev[n++].kind = GCCL_NET_EV_FAULT;
  }
  return n;
}

static int shm_poll(gccl_net_ep *ep, gccl_net_event *ev, int max) {
  shm_ep *s = (shm_ep *)ep;
  int look = 0;
  if (s->polls++ % LOOK_POLLS == 0) {
    uint64_t now = shm_now();
    look = now - s->looked > LOOK_NS;
    if (look) s->looked = now;
  }
  int n = gccl_dones_take(&s->dones, ev, max);
  for (gccl_net_conn *c = gccl_conns_first(&s->conns); c && n < max; c = gccl_conns_next(c))
    n += poll_conn((shm_conn *)c, ev + n, max - n, look);
  return n;
}

static int something_waits(shm_ep *s, int asleep) {
  int waits = 0;
  for (gccl_net_conn *p = gccl_conns_first(&s->conns); p; p = gccl_conns_next(p)) {
    shm_conn *c = (shm_conn *)p;
    if (asleep >= 0) atomic_store_explicit(&c->in->asleep, (uint32_t)asleep, memory_order_relaxed);
    uint64_t taken = atomic_load_explicit(&c->out->taken, memory_order_relaxed);
    waits |= !c->told && (shm_pending(c) || (shm_out_blocked(c) && taken != c->free));
  }
  return waits;
}

static int sleep_for(shm_ep *s, uint64_t ns) {
  struct pollfd p = {.fd = s->epoll, .events = POLLIN};
  struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
  return ppoll(&p, 1, &t, NULL);
}

/* A slot stored while we say that we sleep may not be visible at the first look: its writer has no fence. It is at the
 * second, a long time later for a store buffer; and no sleep is longer than this. */
enum { SETTLE_NS = 50 * 1000, LONGEST_NS = 50 * 1000 * 1000 };

static void shm_wait(gccl_net_ep *ep, uint64_t ns) {
  shm_ep *s = (shm_ep *)ep;
  if (s->dones.head != s->dones.tail) return;
  int waits = something_waits(s, 1);
  atomic_thread_fence(memory_order_seq_cst);
  if (!waits && !something_waits(s, -1)) {
    uint64_t first = ns < SETTLE_NS ? ns : SETTLE_NS;
    if (sleep_for(s, first) == 0 && ns > first && !something_waits(s, -1)) sleep_for(s, ns - first < LONGEST_NS ? ns - first : LONGEST_NS);
  }
  something_waits(s, 0);
  uint64_t count;
  if (read(s->event, &count, sizeof count) < 0) {
  } /* the usual case: nobody has called wake */
  for (gccl_net_conn *p = gccl_conns_first(&s->conns); p; p = gccl_conns_next(p)) {
    shm_conn *c = (shm_conn *)p;
    if (c->ended) continue;
    if ((c->ended = has_ended(c))) epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->socket, NULL); /* it would be ready for ever */
  }
}

static void shm_wake(gccl_net_ep *ep) {
  uint64_t one = 1;
  if (write(((shm_ep *)ep)->event, &one, sizeof one) < 0) {
  } /* full: it wakes up anyway */
}

void gccl_shm_discard(gccl_net_conn *conn) {
  shm_conn *c = (shm_conn *)conn;
  if (c->seg) {
    uint32_t none = 0;
    atomic_compare_exchange_strong_explicit(&c->seg->closed[c->me], &none, 1, memory_order_release, memory_order_relaxed);
    munmap(c->seg, sizeof *c->seg);
  }
  if (c->socket >= 0) close(c->socket);
  free(c);
}

static void shm_close_conn(gccl_net_conn *conn) {
  shm_ep *s = (shm_ep *)conn->ep;
  gccl_conns_remove(&s->conns, conn);
  gccl_dones_forget(&s->dones, conn);
  gccl_shm_discard(conn);
}

static void shm_close(gccl_net_ep *ep) {
  shm_ep *s = (shm_ep *)ep;
  for (gccl_net_conn *c; (c = gccl_conns_first(&s->conns));) shm_close_conn(c);
  gccl_mrt_free(&s->mrs);
  pthread_mutex_destroy(&s->conns.lock);
  close(s->event);
  close(s->epoll);
  free(s);
}

static const gccl_net_ops shm_ops = {
    .version = GCCL_NET_VERSION,
    .size = sizeof(gccl_net_ops),
    .name = "shm",
    .reg = shm_reg,
    .dereg = shm_dereg,
    .import = shm_import,
    .post = shm_post,
    .poll = shm_poll,
    .wait = shm_wait,
    .wake = shm_wake,
    .close_conn = shm_close_conn,
    .close = shm_close,
};

gccl_net_ep *gccl_shm_open(int32_t rank, char *why) {
  shm_ep *s = calloc(1, sizeof *s);
  if (!s) {
    gccl_net_why(why, GCCL_NET_ENOMEM, "shm: out of memory");
    return NULL;
  }
  s->base.ops = &shm_ops;
  s->base.rank = rank;
  s->epoll = epoll_create1(EPOLL_CLOEXEC);
  s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct epoll_event e = {.events = EPOLLIN};
  if (s->epoll < 0 || s->event < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->event, &e)) {
    gccl_net_why(why, GCCL_NET_ESYSTEM, "shm: epoll or eventfd: %s", strerror(errno));
    if (s->epoll >= 0) close(s->epoll);
    if (s->event >= 0) close(s->event);
    free(s);
    return NULL;
  }
  gccl_mrt_init(&s->mrs);
  pthread_mutex_init(&s->conns.lock, NULL);
  return &s->base;
}

gccl_net_conn *gccl_shm_conn(gccl_net_ep *ep, int32_t peer) {
  shm_conn *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->base.ops = &shm_ops;
  c->base.ep = ep;
  c->base.peer = peer;
  c->socket = -1;
  return &c->base;
}

uint64_t gccl_shm_segment_bytes(void) { return sizeof(shm_segment); }

/* Maps a segment of which this is one side. A file that a peer could shorten would end this process with SIGBUS: it must be sealed. */
int gccl_shm_map(gccl_net_conn *conn, int segment, int side, char *why) {
  shm_conn *c = (shm_conn *)conn;
  struct stat st;
  if (fstat(segment, &st) || (uint64_t)st.st_size != sizeof(shm_segment))
    return gccl_net_why(why, GCCL_NET_EINVAL, "shm: the segment has %lld bytes instead of %zu", (long long)st.st_size, sizeof(shm_segment));
  if (!(fcntl(segment, F_GET_SEALS) & F_SEAL_SHRINK)) return gccl_net_why(why, GCCL_NET_EINVAL, "shm: the segment can be shortened");
  void *p = mmap(NULL, sizeof(shm_segment), PROT_READ | PROT_WRITE, MAP_SHARED, segment, 0);
  if (p == MAP_FAILED) return gccl_net_why(why, GCCL_NET_ESYSTEM, "shm: mmap of %zu bytes: %s", sizeof(shm_segment), strerror(errno));
  c->seg = p;
  c->me = side;
  c->in = &c->seg->way[side];
  c->out = &c->seg->way[!side];
  return 0;
}

void gccl_shm_prove(gccl_net_conn *conn, uint64_t pattern) {
  shm_conn *c = (shm_conn *)conn;
  atomic_store_explicit(&c->seg->proof[c->me], pattern, memory_order_release);
}

uint64_t gccl_shm_proof(gccl_net_conn *conn) {
  shm_conn *c = (shm_conn *)conn;
  return atomic_load_explicit(&c->seg->proof[!c->me], memory_order_acquire);
}

/* Takes the socket, which says when the peer has ended, and makes the connection part of poll. */
int gccl_shm_start(gccl_net_conn *conn, int socket, char *why) {
  shm_conn *c = (shm_conn *)conn;
  shm_ep *s = (shm_ep *)conn->ep;
  struct epoll_event e = {.events = EPOLLIN};
  c->socket = socket;
  if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, socket, &e)) return gccl_net_why(why, GCCL_NET_ESYSTEM, "shm: epoll_ctl: %s", strerror(errno));
  atomic_store_explicit(&conn->stats.paths, 1, memory_order_relaxed);
  gccl_conns_add(&s->conns, conn);
  return 0;
}
