#include "serve.h"

#include <stdlib.h>

enum { SAY_REG = 1, SAY_GRANT, SAY_SENT, SAY_GOT };

/* What the ends tell each other: a registration of the receiver, a buffer of a receive, that it is filled, and that this was seen. */
typedef struct {
  uint8_t kind, i, n, pad;
  uint32_t id; /* of a registration */
  uint32_t seq;
  int32_t tag;
  uint64_t off, bytes;
} say;
enum { SAY_BLOB = GCCL_NET_MSG - 8 }; /* of SAY_REG, after id */

typedef struct {
  gccl_net_mr *mr;
  uint32_t id;
  int told;
} sv_mr;

typedef struct {
  sv_comm *c;
  uint8_t used, done;
  int n, left;
  uint32_t seq;
  int sizes[SV_RECVS];
} sv_request;

typedef struct {
  uint8_t n, used;
  struct {
    uint8_t state; /* 0 not told yet, 1 waits for its bytes, 2 filled */
    int32_t tag;
    uint32_t id;
    uint64_t off, bytes;
  } at[SV_RECVS];
} sv_group;

typedef struct {
  uint8_t bytes, signaled;
  uint32_t cookie;
  unsigned char data[GCCL_NET_MSG];
} sv_say;

struct sv_comm {
  gccl_net_ep *ep;
  gccl_net_conn *conn;
  uint64_t go;
  int sends, broken;
  sv_mr **mine; /* by id: told to the sender */
  gccl_net_rmr *theirs;
  uint32_t nmine, ntheirs;
  uint32_t seq; /* of the next receive, or of the group that sends fill */
  sv_group group[SV_GROUPS];
  sv_request req[SV_REQUESTS];
  uint32_t next; /* where to look for a free request */
  uint32_t say_head, say_tail;
  sv_say out[SV_SAYS];
};

static np_logger logger;

void sv_log(np_logger l) { __atomic_store_n(&logger, l, __ATOMIC_RELEASE); }

sv_comm *sv_comm_new(gccl_net_ep *ep, gccl_net_conn *conn, int sends, uint64_t go) {
  sv_comm *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->ep = ep;
  c->conn = conn;
  c->sends = sends;
  c->go = go;
  return c;
}

uint64_t sv_comm_go(const sv_comm *c) { return c->go; }

void sv_comm_free(sv_comm *c) {
  free(c->mine);
  free(c->theirs);
  free(c);
}

void sv_warn(const char *text) {
  np_logger log = __atomic_load_n(&logger, __ATOMIC_ACQUIRE);
  if (log) log(2, 1 << 4, "gccl", 0, "GCCL network: %s", text);
}

/* Ends the connection for NCCL, with one line of the reason. */
static int broken(sv_comm *c, int rc, const char *what) {
  if (!c->broken) sv_warn(what);
  if (!c->broken) c->broken = rc;
  return c->broken;
}

static uint32_t say_room(const sv_comm *c) { return SV_SAYS - (c->say_tail - c->say_head); }

static void tell(sv_comm *c, const void *data, uint32_t bytes, sv_request *signaled) {
  sv_say *s = &c->out[c->say_tail++ % SV_SAYS];
  s->bytes = (uint8_t)bytes;
  s->signaled = signaled != NULL;
  s->cookie = signaled ? (uint32_t)(signaled - c->req) : 0;
  memcpy(s->data, data, bytes);
}

static int failed(sv_comm *c) { return broken(c, NP_REMOTE, c->conn->fault.text); }

/* Posts the messages that wait. */
static int push(sv_comm *c) {
  for (; c->say_head != c->say_tail; c->say_head++) {
    sv_say *s = &c->out[c->say_head % SV_SAYS];
    gccl_net_wr w = {.op = GCCL_NET_MSGSEND, .bytes = s->bytes, .cookie = s->cookie, .flags = s->signaled ? GCCL_NET_SIGNALED : 0};
    memcpy(w.data, s->data, s->bytes);
    char why[GCCL_NET_TEXT];
    int rc = c->conn->ops->post(c->conn, &w, 1, why);
    if (rc == GCCL_NET_EFAULT) return failed(c);
    if (rc < 0) return broken(c, NP_INTERNAL, why);
    if (rc == 0) break;
  }
  return NP_OK;
}

static int heard_reg(sv_comm *c, const unsigned char *data, uint32_t bytes) {
  uint32_t id;
  memcpy(&id, data + 4, 4);
  if (bytes < 9 || id >= 1 << 20) return broken(c, NP_REMOTE, "the peer speaks of a registration that makes no sense");
  if (id >= c->ntheirs) {
    uint32_t n = id + 32;
    gccl_net_rmr *more = realloc(c->theirs, n * sizeof *more);
    if (!more) return broken(c, NP_SYSTEM, "out of memory");
    memset(more + c->ntheirs, 0, (n - c->ntheirs) * sizeof *more);
    c->theirs = more;
    c->ntheirs = n;
  }
  char why[GCCL_NET_TEXT];
  if (c->conn->ops->import(c->conn, data + 8, bytes - 8, &c->theirs[id], why) < 0) return broken(c, NP_REMOTE, why);
  return NP_OK;
}

static int heard(sv_comm *c, const unsigned char *data, uint32_t bytes) {
  const char *nonsense = "the peer sent a message that makes no sense";
  say s;
  if (c->sends && bytes > 8 && data[0] == SAY_REG) return heard_reg(c, data, bytes);
  if (bytes != sizeof s) return broken(c, NP_REMOTE, nonsense);
  memcpy(&s, data, sizeof s);
  if (c->sends && s.kind == SAY_GRANT) {
    if (s.n < 1 || s.n > SV_RECVS || s.i >= s.n || s.seq - c->seq >= SV_GROUPS || s.id >= c->ntheirs) return broken(c, NP_REMOTE, nonsense);
    sv_group *g = &c->group[s.seq % SV_GROUPS];
    if (g->at[s.i].state) return broken(c, NP_REMOTE, nonsense);
    g->n = s.n;
    g->at[s.i].state = 1;
    g->at[s.i].tag = s.tag;
    g->at[s.i].id = s.id;
    g->at[s.i].off = s.off;
    g->at[s.i].bytes = s.bytes;
    return NP_OK;
  }
  if (c->sends && s.kind == SAY_GOT) return NP_OK;
  if (!c->sends && s.kind == SAY_SENT) {
    for (uint32_t k = 0; k < SV_REQUESTS; k++) {
      sv_request *q = &c->req[(s.seq + k) % SV_REQUESTS];
      if (!q->used || q->done || q->seq != s.seq) continue;
      if (s.i >= q->n || q->sizes[s.i] >= 0) break;
      q->sizes[s.i] = (int)s.bytes;
      q->done = --q->left == 0;
      /* The transport acknowledges when it is polled again, and NCCL has no reason to call again: so we say something, which carries it. */
      say got = {.kind = SAY_GOT, .seq = s.seq};
      if (q->done && say_room(c)) tell(c, &got, sizeof got, NULL);
      return NP_OK;
    }
  }
  return broken(c, NP_REMOTE, nonsense);
}

static int progress(sv_comm *c) {
  gccl_net_event ev[16];
  if (c->broken || push(c)) return c->broken;
  int n = c->ep->ops->poll(c->ep, ev, 16);
  for (int i = 0; i < n && !c->broken; i++) {
    switch (ev[i].kind) {
    case GCCL_NET_EV_FAULT: failed(c); break;
    case GCCL_NET_EV_DONE:
      if (ev[i].cookie < SV_REQUESTS) c->req[ev[i].cookie].done = 1;
      break;
    case GCCL_NET_EV_MSG: heard(c, ev[i].data, ev[i].bytes); break;
    }
  }
  return c->broken ? c->broken : push(c);
}

int sv_reg(void *comm, void *data, size_t bytes, int type, void **mhandle) {
  sv_comm *c = comm;
  *mhandle = NULL;
  if (type != NP_PTR_HOST) return broken(c, NP_INTERNAL, "it registers host memory only");
  sv_mr *m = calloc(1, sizeof *m);
  if (!m) return NP_SYSTEM;
  gccl_net_mem mem = {.addr = data, .bytes = bytes, .dmabuf = -1};
  char why[GCCL_NET_TEXT];
  if (c->ep->ops->reg(c->ep, &mem, &m->mr, why) < 0) {
    free(m);
    return broken(c, NP_SYSTEM, why);
  }
  *mhandle = m;
  return NP_OK;
}

int sv_dereg(void *comm, void *mhandle) {
  sv_comm *c = comm;
  sv_mr *m = mhandle;
  if (m->told) c->mine[m->id] = NULL;
  m->mr->ep->ops->dereg(m->mr);
  free(m);
  return NP_OK;
}

/* Tells the sender of a registration, at its first use. */
static int tell_reg(sv_comm *c, sv_mr *m) {
  uint32_t id = 0;
  while (id < c->nmine && c->mine[id]) id++;
  if (id == c->nmine) {
    sv_mr **more = realloc(c->mine, (c->nmine + 32) * sizeof *more);
    if (!more) return NP_SYSTEM;
    memset(more + c->nmine, 0, 32 * sizeof *more);
    c->mine = more;
    c->nmine += 32;
  }
  if (m->mr->blob_bytes > SAY_BLOB) return broken(c, NP_INTERNAL, "a registration does not fit into a message");
  c->mine[id] = m;
  m->id = id;
  m->told = 1;
  unsigned char data[GCCL_NET_MSG] = {SAY_REG};
  memcpy(data + 4, &id, 4);
  memcpy(data + 8, m->mr->blob, m->mr->blob_bytes);
  tell(c, data, 8 + m->mr->blob_bytes, NULL);
  return NP_OK;
}

static sv_request *request_of(sv_comm *c, int n) {
  for (uint32_t k = 0; k < SV_REQUESTS; k++) {
    sv_request *q = &c->req[(c->next + k) % SV_REQUESTS];
    if (q->used) continue;
    c->next = (uint32_t)(q - c->req) + 1;
    *q = (sv_request){.c = c, .used = 1, .n = n, .left = n};
    return q;
  }
  return NULL;
}

/* Offset of a buffer in its registration; -1 if it is not inside. */
static int64_t offset(const sv_mr *m, const void *data, size_t bytes) {
  uint64_t off = (uint64_t)((const unsigned char *)data - m->mr->addr);
  if (bytes == 0) return 0;
  return (const unsigned char *)data >= m->mr->addr && gccl_net_within(m->mr->bytes, off, bytes) ? (int64_t)off : -1;
}

int sv_irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **request) {
  sv_comm *c = comm;
  *request = NULL;
  if (progress(c)) return c->broken;
  if (n < 1 || n > SV_RECVS) return broken(c, NP_INTERNAL, "a receive of a number of buffers that is not allowed");
  if (say_room(c) < 2 * SV_RECVS) return NP_OK;
  for (int i = 0; i < n; i++)
    if (offset(mhandles[i], data[i], sizes[i]) < 0) return broken(c, NP_INTERNAL, "a buffer is not inside its registration");
  sv_request *q = request_of(c, n);
  if (!q) return NP_OK;
  q->seq = c->seq++;
  for (int i = 0; i < n; i++) {
    sv_mr *m = mhandles[i];
    if (!m->told && tell_reg(c, m)) return c->broken ? c->broken : NP_SYSTEM;
    q->sizes[i] = -1;
    say s = {.kind = SAY_GRANT, .i = (uint8_t)i, .n = (uint8_t)n, .id = m->id, .seq = q->seq, .tag = tags[i], .bytes = sizes[i]};
    s.off = (uint64_t)offset(m, data[i], sizes[i]);
    tell(c, &s, sizeof s, NULL);
  }
  if (push(c)) return c->broken;
  *request = q;
  return NP_OK;
}

int sv_isend(void *comm, void *data, size_t bytes, int tag, void *mhandle, void **request) {
  sv_comm *c = comm;
  *request = NULL;
  if (progress(c)) return c->broken;
  sv_group *g = &c->group[c->seq % SV_GROUPS];
  int i = 0;
  while (i < g->n && !(g->at[i].state == 1 && g->at[i].tag == tag)) i++;
  if (i == g->n || !say_room(c)) return NP_OK; /* no receive yet */
  if (bytes > g->at[i].bytes) return broken(c, NP_INVALID_USAGE, "a message is longer than the buffer that was posted for it");
  int64_t off = offset(mhandle, data, bytes);
  if (off < 0) return broken(c, NP_INTERNAL, "a buffer is not inside its registration");
  sv_request *q = request_of(c, 1);
  if (!q) return NP_OK;
  if (bytes) {
    gccl_net_wr w = {.op = GCCL_NET_PUT,
                     .bytes = bytes,
                     .local = ((sv_mr *)mhandle)->mr,
                     .loff = (uint64_t)off,
                     .remote = &c->theirs[g->at[i].id],
                     .roff = g->at[i].off};
    char why[GCCL_NET_TEXT];
    int rc = c->conn->ops->post(c->conn, &w, 1, why);
    if (rc <= 0) q->used = 0;
    if (rc == GCCL_NET_EFAULT) return failed(c);
    if (rc < 0) return broken(c, NP_INTERNAL, why);
    if (rc == 0) return NP_OK;
  }
  q->sizes[0] = (int)bytes;
  say s = {.kind = SAY_SENT, .i = (uint8_t)i, .seq = c->seq, .bytes = bytes};
  tell(c, &s, sizeof s, q);
  g->at[i].state = 2;
  if (++g->used == g->n) {
    *g = (sv_group){0};
    c->seq++;
  }
  if (push(c)) return c->broken;
  *request = q;
  return NP_OK;
}

int sv_test(void *request, int *done, int *sizes) {
  sv_request *q = request;
  *done = 0;
  if (!q->done) progress(q->c);
  if (!q->done) return q->c->broken;
  for (int i = 0; sizes && i < q->n; i++) sizes[i] = q->sizes[i];
  q->used = 0;
  *done = 1;
  return NP_OK;
}
