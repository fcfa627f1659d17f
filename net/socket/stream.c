#define _GNU_SOURCE
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "conn.h"

enum {
  EINTR_TRIES = 1000,       /* a call that is interrupted more often has met something else (a guess) */
  RECEIVE_BUDGET = 2 << 20, /* bytes of one stream before others get their turn */
  SILENT_MS = 3000,         /* without a word of the peer's kernel while something is under way */
};

enum { REASON = 128 };

static const char *reason(const stream *s, char *text) {
  switch (s->dead) {
  case DEAD_EOF: return "its process has ended, or closed the connection without a word";
  case DEAD_FRAME: return s->wrong;
  case DEAD_RESET: return "it has lost the connection";
  case DEAD_SILENT: return "its host does not answer";
  }
  return strerror_r(s->dead, text, REASON);
}

/* A stream carries no more. The others take over, or the connection has failed. */
void stream_died(stream *s, int why) {
  conn *c = s->c;
  if (s->dead) return;
  s->dead = why;
  epoll_ctl(of(c)->epoll, EPOLL_CTL_DEL, s->fd, NULL);
  close(s->fd);
  s->fd = -1;
  c->alive--;
  atomic_store_explicit(&c->base.stats.paths, (uint32_t)c->alive, memory_order_relaxed);
  s->in_payload = 0;
  s->tell_reset = 1;
  c->owed_frames++;                       /* our last acknowledgement may be lost */
  for (int i = 0; i < c->nstreams; i++) { /* it may have carried the news of others */
    stream *t = c->streams[i];
    if (t->dead && !t->confirmed) t->tell_reset = 1;
  }
  if (c->alive) return;
  char text[REASON];
  if (c->byed)
    gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "socket: rank %d has closed the connection", c->base.peer);
  else
    gccl_net_fail(&c->base.fault, GCCL_NET_EREMOTE, "socket: rank %d: %s", c->base.peer, reason(s, text));
}

static segment *build(stream *s, uint8_t kind, uint32_t aux) {
  segment *g = &s->out[s->out_end++];
  memset(&g->head, 0, sizeof g->head);
  g->head.magic = FRAME_MAGIC;
  g->head.kind = kind;
  g->head.aux = aux;
  g->from = NULL;
  return g;
}

/* Control frames that wait for the first stream; they stand before data. */
static void build_controls(stream *s) {
  conn *c = s->c;
  for (int i = 0; c->alive < c->nstreams && i < c->nstreams && s->out_end < SOCK_BATCH - 2; i++) {
    stream *t = c->streams[i];
    if (t->tell_reset) build(s, FRAME_RESET, (uint32_t)i);
    if (t->tell_reset_ack) build(s, FRAME_RESET_ACK, (uint32_t)i);
    t->tell_reset = t->tell_reset_ack = 0;
  }
  if (c->want_bye) {
    segment *g = build(s, FRAME_BYE, 0);
    g->head.seq = c->seq;
    if (gccl_net_faulted(&c->base.fault)) {
      g->from = (const unsigned char *)c->base.fault.text;
      g->head.len = (uint32_t)strlen(c->base.fault.text);
    }
    c->want_bye = 0;
  }
}

/* Builds the next frames to send. */
static void build_batch(stream *s) {
  conn *c = s->c;
  int first = stream_first(c) == s;
  s->out_at = s->out_end = 0;
  if (first) build_controls(s);
  uint64_t bytes = 0;
  while (s->head != s->tail && s->out_end < SOCK_BATCH && bytes < SOCK_QUEUED) {
    const segment *w = &c->window[s->queue[s->head++ % SOCK_QUEUE] % FRAME_WINDOW];
    segment *g = &s->out[s->out_end++];
    g->head = w->head;
    g->from = w->from;
    if (!w->from) memcpy(g->data, w->data, sizeof g->data); /* the filling too: zeros from next_frame */
    bytes += w->head.len;
  }
  if (first && c->want_ack && !s->out_end) build(s, FRAME_ACK, 0);
  if (!s->out_end) return;
  c->want_ack = 0;
  c->owed_frames = 0;
  c->owed_bytes = 0;
  for (uint32_t i = 0; i < s->out_end; i++) {
    s->out[i].head.ack = c->arrived;
    s->out[i].head.check = frame_check(&s->out[i].head);
  }
}

static const unsigned char filling[FRAME_LINE];

/* The bytes of out that have not gone. */
static int pieces(stream *s, struct iovec *v) {
  int n = 0;
  uint64_t skip = s->done;
  for (uint32_t i = s->out_at; i < s->out_end; i++) {
    segment *g = &s->out[i];
    uint64_t room = frame_room(g->head.len), whole = g->from ? g->head.len : room;
    struct iovec part[3] = {{&g->head, sizeof g->head}, {g->from ? (void *)g->from : g->data, whole}, {(void *)filling, room - whole}};
    for (int k = 0; k < 3; k++) {
      if (skip >= part[k].iov_len) {
        skip -= part[k].iov_len;
        continue;
      }
      v[n++] = (struct iovec){(char *)part[k].iov_base + skip, part[k].iov_len - skip};
      skip = 0;
    }
  }
  return n;
}

static void gone(stream *s, uint64_t bytes) {
  s->done += bytes;
  while (s->out_at != s->out_end) {
    uint64_t whole = sizeof(frame) + frame_room(s->out[s->out_at].head.len);
    if (s->done < whole) return;
    s->done -= whole;
    if (frame_numbered(&s->out[s->out_at].head)) {
      s->queued -= whole;
      s->c->sent++;
    }
    s->out_at++;
  }
}

/* Sends until nothing waits or the kernel takes no more. */
void stream_send(stream *s) {
  endpoint *ep = of(s->c);
  struct iovec v[3 * SOCK_BATCH];
  for (int tries = 0; !s->dead;) {
    if (s->out_at == s->out_end) build_batch(s);
    if (s->out_at == s->out_end) return;
    struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)pieces(s, v)};
    ssize_t n = ep->io->send(ep->io_arg, s->fd, &m);
    if (n >= 0) {
      gone(s, (uint64_t)n);
      if (s->link >= 0) ep->use[s->link].bytes += (uint64_t)n;
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    if (errno == EINTR && ++tries < EINTR_TRIES) continue;
    int why = errno;
    while (stream_receive(s) > 0) {
    } /* what the peer said before, a farewell perhaps */
    stream_died(s, why);
  }
}

static void take(stream *s, uint64_t n) {
  s->need -= n;
  if (s->into) s->into += n;
}

/* The payload is complete: s->into is where it began only for what is in small. */
static void frame_done(stream *s) {
  s->in_payload = 0;
  in_finish(s);
}

/* Takes frames out of the buffer as far as they are there, and have places. */
static void parse(stream *s) {
  while (!s->dead && !gccl_net_faulted(&s->c->base.fault) && !s->waits) {
    uint32_t have = s->in_end - s->in_at;
    if (!s->in_payload) {
      if (have < sizeof(frame)) return;
      memcpy(&s->in, s->buffer + s->in_at, sizeof(frame));
      s->in_at += sizeof(frame);
      have -= sizeof(frame);
      if ((s->wrong = frame_wrong(&s->in))) {
        stream_died(s, DEAD_FRAME);
        return;
      }
      in_begin(s);
      if (gccl_net_faulted(&s->c->base.fault)) return;
      s->in_payload = 1;
      if (frame_numbered(&s->in) && s->in.kind == FRAME_DATA) s->bulk = s->in.len > SOCK_BULK;
      if (s->waits) return;
    }
    uint64_t n = have < s->need ? have : s->need;
    if (n && s->into) memcpy(s->into, s->buffer + s->in_at, n);
    s->in_at += (uint32_t)n;
    take(s, n);
    if (s->need) return;
    n = s->in_end - s->in_at < s->fill ? s->in_end - s->in_at : s->fill;
    s->in_at += (uint32_t)n;
    s->fill -= (uint32_t)n;
    if (s->fill) return;
    frame_done(s);
  }
}

/* Receives until nothing is there. Returns the bytes that came. Payloads go straight to where they belong. */
int stream_receive(stream *s) {
  endpoint *ep = of(s->c);
  int64_t got = 0;
  for (int tries = 0; !s->dead && !gccl_net_faulted(&s->c->base.fault) && got < RECEIVE_BUDGET;) {
    if (s->in_payload) in_resume(s);
    if (gccl_net_faulted(&s->c->base.fault) || s->waits) break;
    if (s->in_payload && s->in_at != s->in_end) { /* what was read before its place was there */
      parse(s);
      continue;
    }
    memmove(s->buffer, s->buffer + s->in_at, s->in_end - s->in_at);
    s->in_end -= s->in_at;
    s->in_at = 0;
    struct iovec v[2];
    int n = 0;
    uint64_t direct = s->in_payload && s->into ? s->need : 0, room = SOCK_BUFFER - s->in_end;
    if (s->bulk && room > SOCK_HEADS) room = SOCK_HEADS; /* what is read before its head is known has to be copied once more */
    if (direct) v[n++] = (struct iovec){s->into, direct};
    v[n++] = (struct iovec){s->buffer + s->in_end, room};
    ssize_t r = ep->io->receive(ep->io_arg, s->fd, v, n);
    if (r < 0 && errno == EINTR && ++tries < EINTR_TRIES) continue;
    if (r < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (r <= 0) {
      stream_died(s, r ? errno : DEAD_EOF);
      break;
    }
    got += r;
    uint64_t to_payload = (uint64_t)r < direct ? (uint64_t)r : direct;
    if (to_payload) {
      take(s, to_payload);
      if (!s->need && !s->fill) frame_done(s);
    }
    s->in_end += (uint32_t)((uint64_t)r - to_payload);
    parse(s);
    if ((uint64_t)r < direct + room) break; /* that was all */
  }
  return (int)got;
}

/* Is the other end still there? While something waits for its kernel, keep-alive is off (tcp(7)): then its last word counts. A
 * process that is stopped has a kernel that answers. */
void stream_look(stream *s, uint64_t now) {
  struct tcp_info t;
  socklen_t n = sizeof t;
  if (s->dead || getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &t, &n)) return;
  if (!t.tcpi_unacked && !t.tcpi_probes) {
    s->waiting_since = 0;
    return;
  }
  if (!s->waiting_since) s->waiting_since = now;
  if (now - s->waiting_since > SILENT_MS * 1000000ull && t.tcpi_last_ack_recv > SILENT_MS) stream_died(s, DEAD_SILENT);
}
