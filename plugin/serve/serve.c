#define _GNU_SOURCE
#include "serve.h"

#include <sched.h>
#include <stdlib.h>

#include "helper.h"

/* What the ends tell each other. Messages are numbered on both sides alike: the n-th send fills the n-th receive. The receiver tells a
 * registration, where the bytes of a receive are to go, and how many receives it has finished. The sender sends a small message, whose
 * bytes are behind the head or in the slot of its number, tells that it has filled a receive, or that it waits for the place of one. Where
 * the transport carries sends nobody tells or waits for places: bytes of a large message leave at once, and wait for it on their way. */
enum { SAY_REG = 1, SAY_PLACE, SAY_TAKEN, SAY_SMALL, SAY_FILLED, SAY_WANT };

typedef struct {
  uint8_t kind, pad[3];
  uint32_t seq; /* of a message, or of a registration */
} head;
typedef struct {
  head h;
  uint32_t id, taken;
  uint64_t off, bytes;
} say;
typedef struct {
  head h;
  uint32_t bytes;
  unsigned char data[GCCL_NET_MSG - sizeof(head) - 4];
} say_small;
typedef struct {
  head h;
  unsigned char blob[GCCL_NET_MSG - sizeof(head)];
} say_reg;
_Static_assert(sizeof(say_small) == GCCL_NET_MSG && sizeof(say_reg) == GCCL_NET_MSG && sizeof(say) <= GCCL_NET_MSG, "one message");

enum { IN_MESSAGE = sizeof(((say_small *)0)->data), SLOTS_ID = 0, NO_ID = UINT32_MAX };

typedef struct {
  gccl_net_mr *mr;
  uint32_t id; /* that the sender knows it by; NO_ID */
} sv_mr;

enum { FREE, POSTED, MOVING, LEAVING, DONE }; /* MOVING: the place is told, or the bytes go there; LEAVING: small, not all of it has left */

typedef struct {
  sv_comm *c;
  _Atomic int state;
  unsigned char *data;
  size_t bytes; /* of a send; room of a receive, then what has come */
  sv_mr *mr;
} sv_request;

struct sv_comm {
  gccl_net_ep *ep;
  gccl_net_conn *conn;
  uint64_t go;
  int sends;
  _Atomic int broken;
  helper *helper; /* NULL: the caller moves everything itself */
  atomic_flag lock;

  /* Request n is at n modulo SV_REQUESTS. The caller fills it and frees it once it is done; between that whoever has the lock works at it. */
  _Atomic uint32_t posted;
  _Atomic int large; /* 1: the last message that came was; 2: and worth the helper */
  sv_request req[SV_REQUESTS];

  gccl_net_mr *slots_mr; /* SV_SLOTS of SV_SMALL bytes: where small messages leave from, or arrive */
  unsigned char *slots;
  int half; /* of two work requests the first is taken */

  /* Sender. */
  uint32_t next, taken; /* to be sent; finished by the receiver, all before it */
  int asked;            /* for the place of next */
  int leaving;          /* requests in that state */
  gccl_net_rmr *theirs;
  uint32_t ntheirs;
  struct {
    int here;
    uint32_t id;
    uint64_t off, bytes;
  } place[SV_REQUESTS];

  /* Receiver. */
  uint32_t done, told, placed; /* finished; the sender knows that; places told: all before it */
  uint32_t wanted;             /* the sender waits for the places of all before it */
  sv_mr slots_told;
  sv_mr **mine; /* by id */
  uint32_t nmine;
  struct {
    int here;
    say_small m;
  } early[SV_SLOTS]; /* small messages that came before their receives */
};

static np_logger logger;

void sv_log(np_logger l) { __atomic_store_n(&logger, l, __ATOMIC_RELEASE); }

static void logged(int level, const char *text) { /* ncclDebugLogLevel; 1 << 4 is NET */
  np_logger log = __atomic_load_n(&logger, __ATOMIC_ACQUIRE);
  if (log) log(level, 1 << 4, "gccl", 0, "GCCL network: %s", text);
}
void sv_warn(const char *text) { logged(2, text); }
void sv_info(const char *text) { logged(3, text); }

/* Ends the connection for NCCL, with one line of the reason. */
static int broken(sv_comm *c, int rc, const char *what) {
  int none = 0;
  if (atomic_compare_exchange_strong(&c->broken, &none, rc)) sv_warn(what);
  return atomic_load(&c->broken);
}

static int nonsense(sv_comm *c) { return broken(c, NP_REMOTE, "the peer sent a message that makes no sense"); }

static sv_request *request_at(sv_comm *c, uint32_t seq) { return &c->req[seq % SV_REQUESTS]; }
static unsigned char *slot_at(sv_comm *c, uint32_t seq) { return c->slots + (size_t)(seq % SV_SLOTS) * SV_SMALL; }
static void finish(sv_request *q) { atomic_store_explicit(&q->state, DONE, memory_order_release); }

/* Posts one work request, or two that belong together: whether all of it is taken. */
static int post(sv_comm *c, const gccl_net_wr *w, int n) {
  char why[GCCL_NET_TEXT];
  int rc = c->conn->ops->post(c->conn, w + c->half, n - c->half, why);
  if (rc < 0) {
    broken(c, rc == GCCL_NET_EFAULT ? NP_REMOTE : NP_INTERNAL, rc == GCCL_NET_EFAULT ? c->conn->fault.text : why);
    return 0;
  }
  int whole = c->half + rc == n;
  c->half = whole ? 0 : c->half + rc;
  return whole;
}

static gccl_net_wr message(const void *data, size_t bytes) {
  gccl_net_wr w = {.op = GCCL_NET_MSGSEND, .bytes = bytes};
  memcpy(w.data, data, bytes);
  return w;
}

static int tell(sv_comm *c, const void *data, size_t bytes) {
  gccl_net_wr w = message(data, bytes);
  return post(c, &w, 1);
}

/* ---- Sender ---------------------------------------------------------------------------------------------------------- */

static int send_small(sv_comm *c, sv_request *q) {
  if (c->next - c->taken >= SV_SLOTS || !c->ntheirs) return 0;
  say_small s = {.h = {.kind = SAY_SMALL, .seq = c->next}, .bytes = (uint32_t)q->bytes};
  gccl_net_wr w[2];
  int n = 0;
  if (q->bytes <= IN_MESSAGE) {
    memcpy(s.data, q->data, q->bytes);
  } else {
    unsigned char *slot = slot_at(c, c->next); /* or NCCL would have to wait until the peer has acknowledged */
    memcpy(slot, q->data, q->bytes);
    w[n++] = (gccl_net_wr){.op = GCCL_NET_PUT,
                           .bytes = q->bytes,
                           .local = c->slots_mr,
                           .loff = (uint64_t)(slot - c->slots),
                           .remote = &c->theirs[SLOTS_ID],
                           .roff = (uint64_t)(slot - c->slots)};
  }
  w[n++] = message(&s, q->bytes <= IN_MESSAGE ? offsetof(say_small, data) + q->bytes : offsetof(say_small, data));
  if (!post(c, w, n)) return 0;
  if (atomic_load_explicit(&c->conn->unsent, memory_order_relaxed)) {
    atomic_store_explicit(&q->state, LEAVING, memory_order_relaxed);
    c->leaving++;
  } else {
    finish(q);
  }
  return 1;
}

static int send_large(sv_comm *c, sv_request *q) {
  uint32_t at = c->next % SV_REQUESTS;
  int sends = c->conn->sends;
  if (!sends && !c->place[at].here) {
    say s = {.h = {.kind = SAY_WANT, .seq = c->next}, .bytes = q->bytes};
    if (!c->asked) c->asked = tell(c, &s, sizeof s);
    return 0;
  }
  if (!sends && q->bytes > c->place[at].bytes)
    return broken(c, NP_INVALID_USAGE, "a message is longer than the buffer that was posted for it"), 0;
  say s = {.h = {.kind = SAY_FILLED, .seq = c->next}, .bytes = q->bytes};
  gccl_net_wr w[2] = {{.op = sends ? GCCL_NET_SEND : GCCL_NET_PUT,
                       .bytes = q->bytes,
                       .local = q->mr->mr,
                       .loff = (uint64_t)(q->data - q->mr->mr->addr),
                       .remote = sends ? NULL : &c->theirs[c->place[at].id],
                       .roff = sends ? c->next : c->place[at].off},
                      message(&s, sizeof s)};
  w[1].flags = GCCL_NET_SIGNALED;
  w[1].cookie = c->next;
  atomic_store_explicit(&q->state, MOVING, memory_order_relaxed);
  return post(c, w, 2);
}

static void work_sender(sv_comm *c) {
  if (c->leaving && !atomic_load_explicit(&c->conn->unsent, memory_order_relaxed))
    for (uint32_t seq = c->next; c->leaving; seq--) {
      sv_request *q = request_at(c, seq - 1);
      if (atomic_load_explicit(&q->state, memory_order_relaxed) != LEAVING) continue;
      finish(q);
      c->leaving--;
    }
  for (uint32_t end = atomic_load_explicit(&c->posted, memory_order_acquire); c->next != end && !c->broken; c->next++) {
    sv_request *q = request_at(c, c->next);
    if (!(q->bytes <= SV_SMALL ? send_small(c, q) : send_large(c, q))) return;
    c->place[c->next % SV_REQUESTS].here = c->asked = 0;
  }
}

static void heard_reg(sv_comm *c, const say_reg *m, uint32_t bytes) {
  uint32_t id = m->h.seq;
  if (id >= 1 << 20) {
    nonsense(c);
    return;
  }
  if (id >= c->ntheirs) {
    uint32_t n = id + 32;
    gccl_net_rmr *more = realloc(c->theirs, n * sizeof *more);
    if (!more) {
      broken(c, NP_SYSTEM, "out of memory");
      return;
    }
    memset(more + c->ntheirs, 0, (n - c->ntheirs) * sizeof *more);
    c->theirs = more;
    c->ntheirs = n;
  }
  char why[GCCL_NET_TEXT];
  if (c->conn->ops->import(c->conn, m->blob, bytes - (uint32_t)sizeof m->h, &c->theirs[id], why) < 0) broken(c, NP_REMOTE, why);
}

static void sender_heard(sv_comm *c, const unsigned char *data, uint32_t bytes) {
  if (bytes > sizeof(head) && data[0] == SAY_REG) {
    heard_reg(c, (const void *)data, bytes);
    return;
  }
  say s;
  if (bytes != sizeof s) {
    nonsense(c);
    return;
  }
  memcpy(&s, data, sizeof s);
  uint32_t at = s.h.seq % SV_REQUESTS;
  if (s.taken - c->taken > c->next - c->taken || (s.h.kind != SAY_PLACE && s.h.kind != SAY_TAKEN)) {
    nonsense(c);
    return;
  }
  c->taken = s.taken;
  if (s.h.kind == SAY_TAKEN || (int32_t)(s.h.seq - c->next) < 0) return; /* it was small, and had left already */
  if (s.h.seq - c->next >= SV_REQUESTS || s.id >= c->ntheirs || c->place[at].here) {
    nonsense(c);
    return;
  }
  c->place[at].here = 1;
  c->place[at].id = s.id;
  c->place[at].off = s.off;
  c->place[at].bytes = s.bytes;
}

/* ---- Receiver -------------------------------------------------------------------------------------------------------- */

/* Where a part of a large message goes that nobody was told the place of: NULL while it is not posted. */
static unsigned char *land(void *arg, uint32_t seq, uint64_t off, uint64_t bytes) {
  sv_comm *c = arg;
  uint32_t posted = atomic_load_explicit(&c->posted, memory_order_acquire) - c->done;
  if (seq - c->done >= posted) return NULL;
  sv_request *q = request_at(c, seq);
  if (gccl_net_within(q->bytes, off, bytes)) return q->data + off;
  broken(c, NP_INVALID_USAGE, "a message is longer than the buffer that was posted for it");
  return GCCL_NET_NOWHERE;
}

/* Tells the sender of a registration, at its first use. Whether it knows it now. */
static int tell_reg(sv_comm *c, sv_mr *m) {
  if (m->id != NO_ID) return 1;
  uint32_t id = 0;
  while (id < c->nmine && c->mine[id]) id++;
  if (id == c->nmine) {
    sv_mr **more = realloc(c->mine, (c->nmine + 32) * sizeof *more);
    if (!more) return broken(c, NP_SYSTEM, "out of memory"), 0;
    memset(more + c->nmine, 0, 32 * sizeof *more);
    c->mine = more;
    c->nmine += 32;
  }
  say_reg s = {.h = {.kind = SAY_REG, .seq = id}};
  if (m->mr->blob_bytes > sizeof s.blob) return broken(c, NP_INTERNAL, "a registration does not fit into a message"), 0;
  memcpy(s.blob, m->mr->blob, m->mr->blob_bytes);
  if (!tell(c, &s, sizeof s.h + m->mr->blob_bytes)) return 0;
  c->mine[id] = m;
  m->id = id;
  return 1;
}

static int tell_place(sv_comm *c, uint32_t seq) {
  sv_request *q = request_at(c, seq);
  if (!tell_reg(c, q->mr)) return 0;
  say s = {.h = {.kind = SAY_PLACE, .seq = seq}, .id = q->mr->id, .taken = c->done, .bytes = q->bytes};
  s.off = (uint64_t)(q->data - q->mr->mr->addr);
  if (!tell(c, &s, sizeof s)) return 0;
  c->told = c->done;
  return 1;
}

static void take_small(sv_comm *c, const say_small *m) {
  sv_request *q = request_at(c, c->done);
  if (m->bytes > q->bytes) {
    broken(c, NP_INVALID_USAGE, "a message is longer than the buffer that was posted for it");
    return;
  }
  memcpy(q->data, m->bytes <= IN_MESSAGE ? m->data : slot_at(c, c->done), m->bytes);
  q->bytes = m->bytes;
  c->done++;
  finish(q);
}

static void work_receiver(sv_comm *c) {
  if (!tell_reg(c, &c->slots_told)) return;
  uint32_t end = atomic_load_explicit(&c->posted, memory_order_acquire);
  for (; c->done != end && c->early[c->done % SV_SLOTS].here && !c->broken; c->early[(c->done - 1) % SV_SLOTS].here = 0)
    take_small(c, &c->early[c->done % SV_SLOTS].m);
  if ((int32_t)(c->placed - c->done) < 0) c->placed = c->done;
  /* Where messages are small nobody needs to know where the next one would go. */
  int large = atomic_load_explicit(&c->large, memory_order_relaxed) && !c->conn->sends;
  while (c->placed != end && (large || (int32_t)(c->wanted - c->placed) > 0) && tell_place(c, c->placed)) c->placed++;
  if ((int32_t)(c->wanted - c->done) < 0) c->wanted = c->done;
  if (c->done - c->told >= SV_SLOTS / 4) {
    say s = {.h = {.kind = SAY_TAKEN}, .taken = c->done};
    if (tell(c, &s, sizeof s)) c->told = c->done;
  }
}

static void receiver_heard(sv_comm *c, const unsigned char *data, uint32_t bytes) {
  uint32_t end = atomic_load_explicit(&c->posted, memory_order_acquire);
  if (data[0] == SAY_SMALL && bytes >= offsetof(say_small, data)) {
    say_small m;
    memcpy(&m, data, bytes);
    uint32_t inside = bytes - (uint32_t)offsetof(say_small, data), at = m.h.seq % SV_SLOTS;
    if (m.h.seq - c->done >= SV_SLOTS || c->early[at].here || m.bytes > SV_SMALL || inside != (m.bytes <= IN_MESSAGE ? m.bytes : 0)) {
      nonsense(c);
      return;
    }
    atomic_store_explicit(&c->large, 0, memory_order_relaxed);
    if (m.h.seq == c->done && c->done != end) {
      take_small(c, &m);
    } else {
      c->early[at].here = 1;
      c->early[at].m = m;
    }
    return;
  }
  say s;
  if (bytes == sizeof s) memcpy(&s, data, sizeof s);
  if (bytes == sizeof s && s.h.kind == SAY_WANT && (int32_t)(s.h.seq - c->done) >= 0) {
    c->wanted = s.h.seq + 1;
    return;
  }
  sv_request *q = request_at(c, c->done);
  if (bytes != sizeof s || s.h.kind != SAY_FILLED || s.h.seq != c->done || c->done == end || s.bytes > q->bytes) {
    nonsense(c);
    return;
  }
  q->bytes = s.bytes;
  c->done++;
  atomic_store_explicit(&c->large, s.bytes >= SV_HELP ? 2 : 1, memory_order_relaxed);
  finish(q);
  /* With several streams the sender waits for an acknowledgement. The transport sends it when it is polled again, which NCCL has no reason to
   * do: so we say something, which carries it. */
  if (atomic_load_explicit(&c->conn->stats.paths, memory_order_relaxed) < 2) return;
  say taken = {.h = {.kind = SAY_TAKEN}, .taken = c->done};
  if (tell(c, &taken, sizeof taken)) c->told = c->done;
}

/* ---- Both ------------------------------------------------------------------------------------------------------------ */

/* One turn, unless another thread is at it. Whether something moved. */
static int work(void *arg) {
  sv_comm *c = arg;
  gccl_net_event ev[16];
  if (atomic_load(&c->broken) || atomic_flag_test_and_set_explicit(&c->lock, memory_order_acquire)) return 0;
  if (c->sends) work_sender(c);
  int n = c->ep->ops->poll(c->ep, ev, 16);
  for (int i = 0; i < n && !c->broken; i++) {
    switch (ev[i].kind) {
    case GCCL_NET_EV_FAULT: broken(c, NP_REMOTE, c->conn->fault.text); break;
    case GCCL_NET_EV_DONE: finish(request_at(c, (uint32_t)ev[i].cookie)); break;
    case GCCL_NET_EV_MSG: (c->sends ? sender_heard : receiver_heard)(c, ev[i].data, ev[i].bytes); break;
    }
  }
  if (c->sends && n > 0) work_sender(c);
  if (!c->sends && !c->broken) work_receiver(c);
  atomic_flag_clear_explicit(&c->lock, memory_order_release);
  return n > 0;
}

static int leave_it_to_helper(sv_comm *c) { return c->helper && helper_runs(c->helper); }

/* A free request with the next number, which nobody sees before publish. NULL: none is free. */
static sv_request *request(sv_comm *c, void *data, size_t bytes, sv_mr *m) {
  sv_request *q = request_at(c, atomic_load_explicit(&c->posted, memory_order_relaxed));
  if (atomic_load_explicit(&q->state, memory_order_relaxed) != FREE) return NULL;
  q->c = c;
  q->data = data;
  q->bytes = bytes;
  q->mr = m;
  atomic_store_explicit(&q->state, POSTED, memory_order_relaxed);
  return q;
}

static void publish(sv_comm *c, int helped) {
  atomic_store_explicit(&c->posted, atomic_load_explicit(&c->posted, memory_order_relaxed) + 1, memory_order_release);
  if (helped && c->helper) helper_wake(c->helper);
  if (!leave_it_to_helper(c)) work(c);
}

static int inside(const sv_mr *m, const unsigned char *data, size_t bytes) {
  return data >= m->mr->addr && gccl_net_within(m->mr->bytes, (uint64_t)(data - m->mr->addr), bytes);
}

int sv_isend(void *comm, void *data, size_t bytes, int tag, void *mhandle, void **out) {
  (void)tag; /* there is one receive for a send */
  sv_comm *c = comm;
  *out = NULL;
  if (atomic_load(&c->broken)) return c->broken;
  if (bytes && !inside(mhandle, data, bytes)) return broken(c, NP_INTERNAL, "a buffer is not inside its registration");
  if (!(*out = request(c, data, bytes, mhandle))) return NP_OK;
  publish(c, bytes >= SV_HELP);
  return NP_OK;
}

int sv_irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **out) {
  (void)tags;
  sv_comm *c = comm;
  *out = NULL;
  if (atomic_load(&c->broken)) return c->broken;
  if (n != 1) return broken(c, NP_INTERNAL, "a receive of a number of buffers that is not allowed");
  if (!inside(mhandles[0], data[0], sizes[0])) return broken(c, NP_INTERNAL, "a buffer is not inside its registration");
  if (!(*out = request(c, data[0], sizes[0], mhandles[0]))) return NP_OK;
  publish(c, atomic_load_explicit(&c->large, memory_order_relaxed) > 1);
  return NP_OK;
}

int sv_test(void *request, int *done, int *sizes) {
  sv_request *q = request;
  sv_comm *c = q->c;
  int state = atomic_load_explicit(&q->state, memory_order_acquire);
  *done = 0;
  if (state != DONE && !leave_it_to_helper(c)) {
    work(c);
    state = atomic_load_explicit(&q->state, memory_order_acquire);
  }
  if (state != DONE) return atomic_load(&c->broken);
  if (sizes) *sizes = (int)q->bytes;
  atomic_store_explicit(&q->state, FREE, memory_order_relaxed);
  *done = 1;
  return NP_OK;
}

int sv_reg(void *comm, void *data, size_t bytes, int type, void **mhandle) {
  sv_comm *c = comm;
  *mhandle = NULL;
  if (type != NP_PTR_HOST) return broken(c, NP_INTERNAL, "it registers host memory only");
  sv_mr *m = malloc(sizeof *m);
  if (!m) return NP_SYSTEM;
  m->id = NO_ID;
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
  while (atomic_flag_test_and_set_explicit(&c->lock, memory_order_acquire)) sched_yield(); /* the helper, for one turn */
  if (m->id != NO_ID) c->mine[m->id] = NULL;
  m->mr->ep->ops->dereg(m->mr);
  atomic_flag_clear_explicit(&c->lock, memory_order_release);
  free(m);
  return NP_OK;
}

sv_comm *sv_comm_new(gccl_net_ep *ep, gccl_net_conn *conn, int sends, int helped, uint64_t go) {
  sv_comm *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->ep = ep;
  c->conn = conn;
  conn->lazy = 1; /* who waits for an acknowledgement is told in a message */
  conn->land = land;
  conn->user = c;
  c->sends = sends;
  c->go = go;
  c->slots_told.id = NO_ID;
  atomic_flag_clear(&c->lock);
  c->slots = aligned_alloc(4096, SV_SLOTS * SV_SMALL);
  gccl_net_mem mem = {.addr = c->slots, .bytes = SV_SLOTS * SV_SMALL, .dmabuf = -1};
  char why[GCCL_NET_TEXT];
  if (!c->slots || ep->ops->reg(ep, &mem, &c->slots_mr, why) < 0 || (helped && !(c->helper = helper_start(work, c)))) {
    if (c->slots_mr) ep->ops->dereg(c->slots_mr);
    free(c->slots);
    free(c);
    return NULL;
  }
  c->slots_told.mr = c->slots_mr;
  return c;
}

uint64_t sv_comm_go(const sv_comm *c) { return c->go; }

void sv_comm_stop(sv_comm *c) {
  if (c->helper) helper_stop(c->helper);
  c->helper = NULL;
}

void sv_comm_free(sv_comm *c) {
  free(c->slots);
  free(c->mine);
  free(c->theirs);
  free(c);
}
