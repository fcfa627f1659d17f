#define _GNU_SOURCE
#include "socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"

#define MS 1000000ull
enum { LOOK_POLLS = 1024, LOOK_MS = 250, LINGER_MS = 1000, READY = 64 };

uint64_t sock_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static ssize_t real_send(void *arg, int fd, const struct msghdr *m) {
  (void)arg;
  return sendmsg(fd, m, MSG_DONTWAIT | MSG_NOSIGNAL);
}
static ssize_t real_receive(void *arg, int fd, const struct iovec *v, int n) {
  (void)arg;
  struct msghdr m = {.msg_iov = (struct iovec *)v, .msg_iovlen = (size_t)n};
  return recvmsg(fd, &m, MSG_DONTWAIT);
}
static const gccl_socket_io real_io = {real_send, real_receive};

static int socket_reg(gccl_net_ep *ep, const gccl_net_mem *m, gccl_net_mr **out, char *why) {
  if (m->dmabuf >= 0) return gccl_net_why(why, GCCL_NET_ENOTSUP, "socket: the kernel does not send from the memory of a device");
  gccl_mrt_entry *e = gccl_mrt_add(&((endpoint *)ep)->mrs, ep, m);
  if (!e) return gccl_net_why(why, GCCL_NET_ENOMEM, "socket: no room for another registration");
  gccl_mrt_blob(e);
  gccl_mrt_publish(e);
  *out = &e->mr;
  return 0;
}

static void socket_dereg(gccl_net_mr *mr) { gccl_mrt_drop(&((endpoint *)mr->ep)->mrs, (gccl_mrt_entry *)mr); }

static int socket_import(gccl_net_conn *c, const void *blob, uint32_t bytes, gccl_net_rmr *out, char *why) {
  (void)c;
  return gccl_mrt_import(blob, bytes, out, why);
}

static void send_all(conn *c) {
  for (int i = 0; i < c->nstreams; i++) {
    stream *s = c->streams[i];
    if (!s->dead && (s->out_at != s->out_end || s->head != s->tail || stream_first(c) == s)) stream_send(s);
  }
}

static int streams_full(const conn *c) {
  for (int i = 0; i < c->nstreams; i++) {
    const stream *s = c->streams[i];
    if (!s->dead && (s->out_at != s->out_end || s->head != s->tail)) return 1;
  }
  return c->op_next != c->op_tail || c->again;
}

static void note_unsent(conn *c) { atomic_store_explicit(&c->base.unsent, (uint32_t)streams_full(c), memory_order_relaxed); }

static int socket_post(gccl_net_conn *base, const gccl_net_wr *w, int n, char *why) {
  conn *c = (conn *)base;
  if (gccl_net_faulted(&base->fault)) return GCCL_NET_EFAULT;
  int done = 0, rc = 1;
  for (; done < n && (rc = out_take(c, &w[done], why)) > 0;) done++;
  if (done) {
    out_frames(c);
    send_all(c);
    note_unsent(c);
  }
  return done || rc > 0 ? done : rc;
}

/* One turn of a connection whose streams have been read. */
static int turn(conn *c, gccl_net_event *ev, int max, int received) {
  int n = 0;
  if (!c->told && !gccl_net_faulted(&c->base.fault)) {
    n = in_deliver(c, ev, max);
    out_frames(c);
    in_acknowledge(c, received);
    send_all(c);
    note_unsent(c);
    out_complete(c);
    if (c->byed && c->arrived >= c->bye_seq)
      gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "socket: rank %d has closed the connection", c->base.peer);
  }
  stream *first;
  if (c->want_bye && (first = stream_first(c))) stream_send(first);
  if (!c->told && n < max && gccl_net_faulted(&c->base.fault)) {
    c->told = 1;
    ev[n].conn = &c->base;
    ev[n].cookie = ev[n].bytes = 0;
    ev[n++].kind = GCCL_NET_EV_FAULT;
    for (int i = 0; i < c->nstreams; i++) /* or wait would find them ready for ever */
      if (!c->streams[i]->dead) epoll_ctl(of(c)->epoll, EPOLL_CTL_DEL, c->streams[i]->fd, NULL);
  }
  return n;
}

static void look(endpoint *e) {
  uint64_t now = sock_now();
  if (now - e->looked < LOOK_MS * MS) return;
  e->looked = now;
  for (gccl_net_conn *p = gccl_conns_first(&e->conns); p; p = gccl_conns_next(p)) {
    conn *c = (conn *)p;
    for (int i = 0; i < c->nstreams && !c->told; i++) stream_look(c->streams[i], now);
  }
}

/* Reads what has come. One call for a stream, instead of two, is most of a small message's time. */
static void receive_all(endpoint *e) {
  int streams = 0;
  for (gccl_net_conn *p = gccl_conns_first(&e->conns); p && streams <= SOCK_DIRECT; p = gccl_conns_next(p))
    streams += ((conn *)p)->nstreams;
  if (streams <= SOCK_DIRECT) {
    for (gccl_net_conn *p = gccl_conns_first(&e->conns); p; p = gccl_conns_next(p)) {
      conn *c = (conn *)p;
      for (int i = 0; i < c->nstreams && !c->told; i++)
        if (!c->streams[i]->dead) c->received |= stream_receive(c->streams[i]) > 0;
    }
    return;
  }
  struct epoll_event ready[READY];
  int k = epoll_wait(e->epoll, ready, READY, 0);
  for (int i = 0; i < k; i++) {
    stream *s = ready[i].data.ptr;
    if (s && !s->dead && !s->c->told) s->c->received |= stream_receive(s) > 0;
  }
  for (gccl_net_conn *p = gccl_conns_first(&e->conns); p; p = gccl_conns_next(p)) {
    conn *c = (conn *)p;
    for (int i = 0; p->land && i < c->nstreams && !c->told; i++) /* the kernel may have nothing more of what waits */
      if (!c->streams[i]->dead && c->streams[i]->waits) c->received |= stream_receive(c->streams[i]) > 0;
  }
}

static int socket_poll(gccl_net_ep *ep, gccl_net_event *ev, int max) {
  endpoint *e = (endpoint *)ep;
  int n = gccl_dones_take(&e->dones, ev, max);
  receive_all(e);
  if (e->polls++ % LOOK_POLLS == 0) look(e);
  for (gccl_net_conn *p = gccl_conns_first(&e->conns); p && n < max; p = gccl_conns_next(p)) {
    conn *c = (conn *)p;
    n += turn(c, ev + n, max - n, c->received);
    c->received = 0;
  }
  return n;
}

/* Says to epoll which streams wait for room. Returns whether something is to be done at once. */
static int arm(endpoint *e) {
  int busy = e->dones.head != e->dones.tail;
  for (gccl_net_conn *p = gccl_conns_first(&e->conns); p; p = gccl_conns_next(p)) {
    conn *c = (conn *)p;
    if (c->told) continue;
    busy |= (c->owed_frames && !c->want_ack) || c->message[c->arrived % FRAME_WINDOW].held || gccl_net_faulted(&c->base.fault);
    for (int i = 0; i < c->nstreams; i++) {
      stream *s = c->streams[i];
      int wants = s->out_at != s->out_end || s->head != s->tail;
      if (s->dead || s->armed == wants) continue;
      struct epoll_event ee = {.events = wants ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = s};
      if (!epoll_ctl(e->epoll, EPOLL_CTL_MOD, s->fd, &ee)) s->armed = wants;
    }
  }
  return busy;
}

static void socket_wait(gccl_net_ep *ep, uint64_t ns) {
  endpoint *e = (endpoint *)ep;
  e->polls = 0; /* look at the peers after a sleep */
  if (arm(e)) return;
  if (ns > LOOK_MS * MS) ns = LOOK_MS * MS;
  struct pollfd p = {.fd = e->epoll, .events = POLLIN};
  struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
  uint64_t count;
  if (ppoll(&p, 1, &t, NULL) > 0 && read(e->event, &count, sizeof count) < 0) {
  } /* the usual case: nobody has called wake */
}

static void socket_wake(gccl_net_ep *ep) {
  uint64_t one = 1;
  if (write(((endpoint *)ep)->event, &one, sizeof one) < 0) {
  } /* full: it wakes up anyway */
}

static int unsent(const conn *c) { return streams_full(c) || c->acked < c->seq; }

/* Waits until the peer has all that was posted, for a moment at most: what comes meanwhile is dropped. */
static void linger(conn *c) {
  gccl_net_event ev[4];
  for (uint64_t end = sock_now() + LINGER_MS * MS; unsent(c) && !gccl_net_faulted(&c->base.fault) && sock_now() < end;) {
    int got = 0;
    for (int i = 0; i < c->nstreams; i++) got |= stream_receive(c->streams[i]) > 0;
    turn(c, ev, 4, got);
    if (!got) {
      struct timespec t = {.tv_nsec = 100000};
      nanosleep(&t, NULL);
    }
  }
}

static void free_conn(conn *c) {
  for (int i = 0; i < c->nstreams; i++) {
    if (!c->streams[i]) continue;
    if (!c->streams[i]->dead) close(c->streams[i]->fd);
    free(c->streams[i]);
  }
  free(c->streams);
  free(c);
}

static void socket_close_conn(gccl_net_conn *base) {
  conn *c = (conn *)base;
  endpoint *e = of(c);
  gccl_conns_remove(&e->conns, base);
  linger(c);
  gccl_dones_forget(&e->dones, base);
  if (!gccl_net_faulted(&base->fault)) {
    c->want_bye = 1;
    stream *s = stream_first(c);
    if (s) stream_send(s);
    for (int i = 0; i < c->nstreams; i++)
      if (!c->streams[i]->dead) {
        shutdown(c->streams[i]->fd, SHUT_WR);
        (void)stream_receive(c->streams[i]); /* unread bytes would make the kernel send a reset that overtakes our last ones */
      }
  }
  if (c->op_head != c->op_tail) link_rest(c, sock_now());
  free_conn(c);
}

static void socket_close(gccl_net_ep *ep) {
  endpoint *e = (endpoint *)ep;
  for (gccl_net_conn *c; (c = gccl_conns_first(&e->conns));) socket_close_conn(c);
  gccl_mrt_free(&e->mrs);
  pthread_mutex_destroy(&e->conns.lock);
  close(e->event);
  close(e->epoll);
  free(e);
}

static const gccl_net_ops socket_ops = {
    .version = GCCL_NET_VERSION,
    .size = sizeof(gccl_net_ops),
    .name = "socket",
    .reg = socket_reg,
    .dereg = socket_dereg,
    .import = socket_import,
    .post = socket_post,
    .poll = socket_poll,
    .wait = socket_wait,
    .wake = socket_wake,
    .close_conn = socket_close_conn,
    .close = socket_close,
};

gccl_net_ep *gccl_socket_open(int32_t rank, char *why) {
  endpoint *e = calloc(1, sizeof *e);
  if (!e) {
    gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
    return NULL;
  }
  e->base.ops = &socket_ops;
  e->base.rank = rank;
  e->io = &real_io;
  e->epoll = epoll_create1(EPOLL_CLOEXEC);
  e->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct epoll_event ee = {.events = EPOLLIN};
  if (e->epoll < 0 || e->event < 0 || epoll_ctl(e->epoll, EPOLL_CTL_ADD, e->event, &ee)) {
    gccl_net_why(why, GCCL_NET_ESYSTEM, "epoll or eventfd: %s", strerror(errno));
    if (e->epoll >= 0) close(e->epoll);
    if (e->event >= 0) close(e->event);
    free(e);
    return NULL;
  }
  gccl_mrt_init(&e->mrs);
  pthread_mutex_init(&e->conns.lock, NULL);
  return &e->base;
}

void gccl_socket_set_io(gccl_net_ep *ep, const gccl_socket_io *io, void *arg) {
  ((endpoint *)ep)->io = io;
  ((endpoint *)ep)->io_arg = arg;
}

static void tune(int fd) {
  /* The loss of an idle peer's host is noticed in four seconds: tcp(7). */
  int on = 1, idle = 1, interval = 1, count = 3;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

/* Makes a connection of connected sockets, which are its own from a success on. It is no part of poll before gccl_socket_start. */
gccl_net_conn *gccl_socket_conn(gccl_net_ep *ep, int32_t peer, const int *fds, const int *links, int n, char *why) {
  endpoint *e = (endpoint *)ep;
  conn *c = calloc(1, sizeof *c);
  if (c) c->streams = calloc((size_t)n, sizeof *c->streams);
  if (!c || !c->streams) {
    free(c);
    gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
    return NULL;
  }
  c->base.ops = &socket_ops;
  c->base.ep = ep;
  c->base.peer = peer;
  c->base.sends = n == 1; /* of several one could die whose frames have to go behind one that waits for its place until they have come */
  int rc = 0;
  for (int i = 0; i < n && !rc; i++) {
    stream *s = calloc(1, sizeof *s);
    if (!s) {
      rc = gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
      break;
    }
    s->c = c;
    s->index = i;
    s->fd = fds[i];
    s->link = links[i];
    if (s->link >= 0) c->links |= 1u << s->link;
    c->streams[c->nstreams++] = s;
    tune(fds[i]);
    struct epoll_event ee = {.events = 0}; /* a place only: gccl_socket_start cannot fail then */
    if (epoll_ctl(e->epoll, EPOLL_CTL_ADD, fds[i], &ee)) rc = gccl_net_why(why, GCCL_NET_ESYSTEM, "epoll_ctl: %s", strerror(errno));
  }
  if (rc) {
    for (int i = 0; i < c->nstreams; i++) c->streams[i]->dead = DEAD_EOF; /* the descriptors stay the caller's */
    free_conn(c);
    return NULL;
  }
  c->alive = n;
  atomic_store_explicit(&c->base.stats.paths, (uint32_t)n, memory_order_relaxed);
  return &c->base;
}

void gccl_socket_start(gccl_net_conn *base) {
  conn *c = (conn *)base;
  endpoint *e = of(c);
  for (int i = 0; i < c->nstreams; i++) {
    struct epoll_event ee = {.events = EPOLLIN, .data.ptr = c->streams[i]};
    epoll_ctl(e->epoll, EPOLL_CTL_MOD, c->streams[i]->fd, &ee);
  }
  gccl_conns_add(&e->conns, base);
}

/* Gives a head its magic number and its check word. */
void gccl_socket_seal(void *head) {
  frame f;
  _Static_assert(sizeof f == GCCL_SOCKET_HEAD, "the length that Go knows");
  memcpy(&f, head, sizeof f);
  f.magic = FRAME_MAGIC;
  f.check = frame_check(&f);
  memcpy(head, &f, sizeof f);
}
