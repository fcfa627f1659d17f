#include <stdlib.h>

#include "gin.h"

enum { BATCH = 64, RUN = 8 };         /* entries of a queue started in one turn; writes whose order is changed on command */
enum { OPEN, CARRIED, ANSWER, DONE }; /* of a slot: what its completion waits for */

static int before(uint32_t a, uint32_t b) { return (int32_t)(a - b) < 0; } /* wrap-safe */

/* ---- Queues ---- */

static int nic_open(gin *g, gin_context *x, char *why) {
  int i = (int)(x - g->context);
  x->signals = gin_alloc(g, (x->nsignals + 1) * sizeof *x->signals);
  x->qp = calloc((size_t)g->nranks, sizeof *x->qp);
  int ok = x->signals && x->qp;
  x->sink_lkey = nic_key(NIC_KEY_SINK, x->number);
  for (int32_t r = 0; ok && r < g->nranks; r++) {
    nic_qp *q = &x->qp[r];
    uint32_t depth = x->depth;
    x->queue[r] = &q->q;
    x->signal_rkeys[r] = nic_key(NIC_KEY_SIGNALS, x->number); /* the same at all ranks: they open contexts in the same order */
    q->q.depth = q->q.cq_depth = depth;
    q->q.qpn = ((uint32_t)i + 1) << 16 | (uint32_t)(r + 1); /* as the queue pair numbers of a device: 24 bits, never 0 */
    q->q.sq = gin_alloc(g, depth * GCCL_WQE_BYTES);
    q->q.cq = gin_alloc(g, depth * GCCL_CQE_BYTES);
    q->q.dbrec = gin_alloc(g, 4 * GCCL_LINE); /* record, then the doorbell on lines of its own */
    q->slot = calloc(depth, sizeof *q->slot);
    ok = q->q.sq && q->q.cq && q->q.dbrec && q->slot;
    if (!ok) break;
    q->q.doorbell = (uint64_t *)((char *)q->q.dbrec + 2 * GCCL_LINE);
    for (uint32_t k = 0; k < depth; k++) q->q.cq[k * GCCL_CQE_BYTES + GCCL_CQE_OP_OWN] = GCCL_CQE_INVALID << 4;
  }
  return ok ? 0 : gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
}

static void nic_close(gin *g, gin_context *x) {
  for (int32_t r = 0; x->qp && r < g->nranks; r++) {
    gin_give(g, x->qp[r].q.sq);
    gin_give(g, x->qp[r].q.cq);
    gin_give(g, x->qp[r].q.dbrec);
    free(x->qp[r].slot);
  }
  free(x->qp);
}

static int nic_done(const gin_context *x, int32_t peer) {
  const nic_qp *q = &x->qp[peer];
  return q->failed || (q->told == q->posted && __atomic_load_n(q->q.doorbell, __ATOMIC_ACQUIRE) == q->q.rung);
}

void gin_nic_start(nic_qp *q, uint32_t index) {
  q->posted = q->next = q->carried = q->told = q->last_write = q->visible = q->last_read = index;
  q->ncq = index;
  q->q.dbrec[GCCL_DBREC_SEND] = gccl_dbrec_value(index);
}

void gin_nic_ring(gin *g, int context, int32_t peer, uint32_t next) {
  nic_qp *q = &g->context[context].qp[peer];
  gccl_wqe *last = (gccl_wqe *)(q->q.sq + (uint64_t)((next - 1) & (q->q.depth - 1)) * GCCL_WQE_BYTES);
  __atomic_store_n(&q->q.dbrec[GCCL_DBREC_SEND], gccl_dbrec_value(next), __ATOMIC_RELEASE); /* acquired in look */
  __atomic_store_n(q->q.doorbell, gccl_doorbell_value(last), __ATOMIC_RELEASE);             /* the same */
  gin_rouse(g);
}

/* ---- Completions ---- */

static void finish(nic_qp *q, uint32_t index, uint8_t wait, uint8_t syndrome) {
  nic_slot *s = &q->slot[index & (q->q.depth - 1)];
  s->wait = wait;
  s->syndrome = syndrome;
  if (syndrome) q->failed = 1;
}

/* Writes the completions that are due, in order. */
static int tell(nic_qp *q) {
  uint32_t from = q->told;
  for (; q->told != q->next; q->told++) {
    nic_slot *s = &q->slot[q->told & (q->q.depth - 1)];
    if (s->wait == ANSWER || (s->wait == CARRIED && !before(q->told, q->carried))) break;
    if (s->signaled || s->syndrome) { /* an error is always told */
      cqe c = {.opcode = s->opcode, .syndrome = s->syndrome, .qpn = q->q.qpn, .index = q->told, .bytes = s->bytes};
      cqe_write(q->q.cq + (q->ncq & (q->q.depth - 1)) * GCCL_CQE_BYTES, q->ncq, q->q.depth, &c);
      q->ncq++;
    }
  }
  return q->told != from;
}

__attribute__((format(printf, 6, 7))) static void complain(gin *g, const gin_context *x, gin_peer *p, uint32_t index, uint8_t syndrome,
                                                           const char *format, ...) {
  char text[GCCL_NET_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  gccl_net_fail(&g->fault, GCCL_NET_EINVAL, "rank %d: entry %u to rank %d in context %u: %s: %s", g->rank, index, p->rank, x->number,
                wqe_syndrome(syndrome), text);
}

/* What was under way when the connection failed will not be answered. */
static void give_up(nic_qp *q) {
  for (uint32_t i = q->told; i != q->next; i++) {
    nic_slot *s = &q->slot[i & (q->q.depth - 1)];
    if (s->wait == ANSWER || (s->wait == CARRIED && !before(i, q->carried))) finish(q, i, DONE, GCCL_SYNDROME_RETRY);
  }
  q->failed = 1;
}

void gin_nic_done(gin *g, gin_peer *p, uint64_t cookie) {
  gin_context *x = gin_context_of(g, gin_cookie_context(cookie));
  if (!x || !x->qp) return;
  nic_qp *q = &x->qp[p->rank];
  q->carried = (uint32_t)cookie;
  tell(q);
}

/* ---- Keys ---- */

/* The range that a key of this rank stands for, or NULL. */
static char *range_of(gin *g, gin_context *x, uint32_t key, uint64_t addr, uint64_t bytes) {
  if (key == nic_key(NIC_KEY_SINK, x->number)) return gccl_net_within(sizeof x->sink, addr, bytes) ? (char *)&x->sink + addr : NULL;
  gin_window *w = (key & 0xff) == NIC_KEY_WINDOW ? gin_window_of(g, key >> 8) : NULL;
  return w && gccl_net_within(w->local.bytes, addr, bytes) ? w->local.base + addr : NULL;
}

/* A word that atomics of peers may change, or NULL. */
static uint64_t *word_of(gin *g, unsigned place, uint32_t window, uint32_t context, uint64_t off) {
  if (place == GCCL_AT_SIGNAL) {
    gin_context *x = gin_context_of(g, context);
    return x && off < x->nsignals ? &x->signals[off] : NULL;
  }
  gin_window *w = place == GCCL_AT_WINDOW ? gin_window_of(g, window) : NULL;
  return w && off % 8 == 0 && gccl_net_within(w->local.bytes, off, 8) ? (uint64_t *)(w->local.base + off) : NULL;
}

static uint64_t fetch_add(uint64_t *word, uint64_t value) { return __atomic_fetch_add(word, value, __ATOMIC_RELEASE); }

/* ---- Starting entries ---- */

#define FAILED(SYNDROME, ...)                          \
  do {                                                 \
    complain(g, x, p, index, (SYNDROME), __VA_ARGS__); \
    return (SYNDROME);                                 \
  } while (0)

static unsigned long long ull(uint64_t v) { return v; }

/* Starts an entry: 0 or a syndrome. Preconditions: room for one work request. */
static uint8_t issue(gin *g, gin_context *x, gin_peer *p, nic_qp *q, uint32_t index, const wqe *e) {
  nic_slot *s = &q->slot[index & (q->q.depth - 1)];
  int self = gin_at_once(g, p->rank), atomic = e->opcode == GCCL_WQE_FETCH_ADD;
  s->opcode = e->opcode;
  s->signaled = e->signaled;
  s->bytes = e->opcode == GCCL_WQE_READ || atomic ? e->bytes : 0;
  s->wait = DONE;
  if (e->opcode == GCCL_WQE_NOP) return 0;
  char *at = e->inlined || e->bytes == 0 ? NULL : range_of(g, x, e->lkey, e->laddr, e->bytes);
  if (!at && !e->inlined && e->bytes)
    FAILED(GCCL_SYNDROME_LOCAL_PROT, "no memory of this rank has key 0x%x and %u bytes at 0x%llx", e->lkey, e->bytes, ull(e->laddr));
  if ((e->lkey & 0xff) == NIC_KEY_SINK && !atomic && at) FAILED(GCCL_SYNDROME_LOCAL_PROT, "the sink is for the old values of atomics");
  if (atomic && g->mover && (e->lkey & 0xff) != NIC_KEY_SINK)
    FAILED(GCCL_SYNDROME_LOCAL_PROT, "old values of atomics go to the sink alone");
  uint32_t number = e->rkey >> 8;
  int signals = e->rkey == nic_key(NIC_KEY_SIGNALS, x->number);
  if (signals ? !atomic || !gccl_net_within(8ull * x->nsignals, e->raddr, 8) : (e->rkey & 0xff) != NIC_KEY_WINDOW)
    FAILED(GCCL_SYNDROME_REMOTE_ACCESS, "key 0x%x does not allow this at 0x%llx", e->rkey, ull(e->raddr));
  gin_window *w = signals ? NULL : gin_window_of(g, number);
  uint64_t size = signals ? 8ull * x->nsignals : !w ? 0 : self ? w->local.bytes : w->remote[p->rank].bytes;
  if ((!signals && !w) || !gccl_net_within(size, e->raddr, e->bytes))
    FAILED(GCCL_SYNDROME_REMOTE_ACCESS, "no memory of rank %d has key 0x%x and %u bytes at 0x%llx", p->rank, e->rkey, e->bytes,
           ull(e->raddr));
  if (self) {
    if (atomic) {
      uint64_t old =
          fetch_add(word_of(g, signals ? GCCL_AT_SIGNAL : GCCL_AT_WINDOW, number, x->number, signals ? e->raddr / 8 : e->raddr), e->add);
      memcpy(at, &old, sizeof old);
    } else if (e->opcode == GCCL_WQE_READ) {
      if (e->bytes) memmove(at, w->local.base + e->raddr, e->bytes);
    } else {
      if (e->bytes) memmove(w->local.base + e->raddr, e->inlined ? (const char *)e->data : at, e->bytes);
    }
    return 0;
  }
  if (atomic) {
    gccl_msg_fetch m = {.head = {.kind = GCCL_MSG_FETCH, .place = signals ? GCCL_AT_SIGNAL : GCCL_AT_WINDOW, .op = GCCL_SIGNAL_ADD},
                        .off = signals ? e->raddr / 8 : e->raddr,
                        .value = e->add,
                        .window = number,
                        .context = x->number,
                        .id = index};
    gin_message(g, p, &m, sizeof m, 0);
    s->old = at;
    s->wait = ANSWER;
    q->fetches++;
    return 0;
  }
  if (e->opcode == GCCL_WQE_READ)
    q->last_read = index + 1;
  else
    q->last_write = index + 1;
  if (e->bytes == 0) return 0;
  gccl_net_wr *r = gin_work(g, p, e->inlined ? GCCL_NET_PUT_INLINE : e->opcode == GCCL_WQE_READ ? GCCL_NET_GET : GCCL_NET_PUT);
  r->remote = &w->remote[p->rank];
  r->roff = e->raddr;
  if (e->inlined) {
    r->bytes = e->bytes;
    memcpy(r->data, e->data, e->bytes);
  } else {
    gin_local(g, p, r, at, e->bytes);
  }
  s->wait = CARRIED;
  return 0;
}

/* Whether what is before an entry is far enough for it. */
static int ripe(gin *g, gin_context *x, gin_peer *p, nic_qp *q, const wqe *e) {
  int reads = gin_at_once(g, p->rank) || !before(q->carried, q->last_read);
  if (e->fence && (!reads || q->fetches)) return 0;
  if (e->opcode == GCCL_WQE_FETCH_ADD) return reads && q->fetches < NIC_FETCHES;
  if (e->opcode != GCCL_WQE_READ || gin_at_once(g, p->rank) || !before(q->visible, q->last_write)) return 1;
  if (!q->probing) { /* the answer to a message behind the writes says that they have arrived */
    gccl_msg_fetch m = {.head = {.kind = GCCL_MSG_FETCH, .place = GCCL_AT_NOTHING, .which = 1}, .context = x->number, .id = q->last_write};
    gin_message(g, p, &m, sizeof m, 0);
    q->probing = 1;
  }
  return 0;
}

static uint64_t random_of(nic_orders *o) { /* xorshift */
  o->shuffle ^= o->shuffle << 13;
  o->shuffle ^= o->shuffle >> 7;
  return o->shuffle ^= o->shuffle << 17;
}

int32_t gin_nic_first(gin *g) { return g->orders.shuffle ? (int32_t)(random_of(&g->orders) % (uint32_t)g->nranks) : 0; }

/* The entry with an index, out of the queue; it fails where it makes no sense. */
static int read_entry(gin *g, gin_context *x, gin_peer *p, nic_qp *q, uint32_t index, wqe *e) {
  unsigned char block[GCCL_WQE_BYTES];
  char why[GCCL_NET_TEXT];
  memcpy(block, q->q.sq + (uint64_t)(index & (q->q.depth - 1)) * GCCL_WQE_BYTES, sizeof block);
  if (wqe_read(block, q->q.qpn, index, e, why)) return 1;
  q->slot[index & (q->q.depth - 1)] = (nic_slot){.opcode = e->opcode};
  finish(q, index, DONE, GCCL_SYNDROME_QP_OP);
  complain(g, x, p, index, GCCL_SYNDROME_QP_OP, "%s", why);
  return 0;
}

/* On command: a run of writes, whose order nothing depends on, in another order. */
static uint32_t shuffled(gin *g, gin_context *x, gin_peer *p, nic_qp *q) {
  wqe run[RUN];
  uint32_t n = 0, order[RUN];
  while (n < RUN && q->next + n != q->posted) {
    if (!read_entry(g, x, p, q, q->next + n, &run[n]) || run[n].opcode != GCCL_WQE_WRITE || run[n].fence) break;
    order[n] = n;
    n++;
  }
  if (q->failed || n < 2 || g->orders.fail || !gin_room(g, p, n + 1)) return 0;
  for (uint32_t i = n - 1; i > 0; i--) {
    uint32_t k = (uint32_t)(random_of(&g->orders) % (i + 1)), t = order[i];
    order[i] = order[k];
    order[k] = t;
  }
  for (uint32_t i = 0; i < n; i++) {
    uint8_t syndrome = issue(g, x, p, q, q->next + order[i], &run[order[i]]);
    if (syndrome) finish(q, q->next + order[i], DONE, syndrome);
  }
  q->last_write = q->next + n;
  return n;
}

/* Starts the next entry, or a run of them: how many; 0 if it has to wait. */
static uint32_t start(gin *g, gin_context *x, gin_peer *p, nic_qp *q) {
  uint32_t index = q->next;
  wqe e;
  if (q->failed) {
    q->slot[index & (q->q.depth - 1)] = (nic_slot){0};
    finish(q, index, DONE, GCCL_SYNDROME_FLUSH);
    return 1;
  }
  if (!gin_at_once(g, p->rank) && !gin_room(g, p, 2)) return 0;
  if (g->orders.shuffle && !g->orders.drop) {
    uint32_t n = shuffled(g, x, p, q);
    if (n || q->failed) return n;
  }
  if (!read_entry(g, x, p, q, index, &e)) return 1;
  if (!ripe(g, x, p, q, &e)) return 0;
  if (g->orders.drop) {
    g->orders.drop--;
    if (++q->lost <= NIC_RETRIES) return 0; /* again in the next turn */
  }
  uint8_t syndrome = g->orders.fail ? g->orders.fail : q->lost > NIC_RETRIES ? GCCL_SYNDROME_RETRY : 0;
  q->lost = 0;
  if (syndrome) {
    g->orders.fail = 0;
    q->slot[index & (q->q.depth - 1)] = (nic_slot){.opcode = e.opcode};
    complain(g, x, p, index, syndrome, "on command");
  } else {
    syndrome = issue(g, x, p, q, index, &e);
  }
  if (syndrome) finish(q, index, DONE, syndrome);
  return 1;
}

/* Looks at the doorbell. What it says has to fit the record and the entry. */
static void look(gin *g, gin_context *x, gin_peer *p, nic_qp *q) {
  uint64_t bell = __atomic_load_n(q->q.doorbell, __ATOMIC_ACQUIRE); /* acquire: the record, and the entries */
  if (bell == q->q.rung) return;
  uint32_t record = gccl_be32(__atomic_load_n(&q->q.dbrec[GCCL_DBREC_SEND], __ATOMIC_ACQUIRE)), n = (uint16_t)(record - q->posted);
  uint32_t last = (uint32_t)(gccl_be64(bell) >> 40) & 0xffff, qpn = (uint32_t)(gccl_be64(bell) >> 8) & 0xffffff;
  uint32_t rung = (uint16_t)(last + 1 - q->posted); /* entries that the bell is about: fewer than the record says if it has moved on */
  q->q.rung = bell;
  const char *wrong = record >> 16                                                      ? "its record has more than 16 bits"
                      : qpn != q->q.qpn                                                 ? "it names another queue pair"
                      : n > q->q.depth - (q->posted - q->told)                          ? "its record allows more entries than are free"
                      : rung > n && rung <= UINT16_MAX / 2 /* not one that came late */ ? "its record was not stored before it"
                                                                                        : NULL;
  if (wrong) {
    gccl_net_fail(&g->fault, GCCL_NET_EINVAL, "rank %d: doorbell 0x%llx to rank %d in context %u, record %u, %u entries posted before: %s",
                  g->rank, ull(bell), p->rank, x->number, record, q->posted & 0xffff, wrong);
    q->failed = 1;
    return;
  }
  if (g->orders.delay_ns && q->next == q->posted) q->not_before_ns = gin_now() + g->orders.delay_ns;
  q->posted += n;
}

static int nic_serve(gin *g, gin_context *x, int32_t peer) {
  gin_peer *p = &g->peer[peer];
  nic_qp *q = &x->qp[peer];
  int self = gin_at_once(g, peer);
  look(g, x, p, q);
  if (q->next == q->posted && q->told == q->next) return 0;
  if (!self && (p->faulted || !gin_reached(g, p))) give_up(q);
  uint32_t from = q->next, limit = g->orders.shuffle ? 1 + (uint32_t)(random_of(&g->orders) % BATCH) : BATCH;
  if (!q->not_before_ns || gin_now() >= q->not_before_ns) {
    q->not_before_ns = 0;
    uint32_t n;
    while (q->next - from < limit && q->next != q->posted && (n = start(g, x, p, q))) q->next += n;
  }
  if (q->next != from && !self && !p->faulted && gin_reached(g, p)) { /* one completion for all that was started */
    gccl_net_wr *last = p->nwork ? &p->work[p->first + p->nwork - 1] : NULL;
    if (!last || last->flags & GCCL_NET_SIGNALED) last = gin_room(g, p, 1) ? gin_work(g, p, GCCL_NET_FLUSH) : NULL;
    if (last) {
      last->flags |= GCCL_NET_SIGNALED;
      last->cookie = gin_cookie(GIN_COOKIE_NIC, x->number, q->next);
    }
  }
  return tell(q) || q->next != from;
}

/* ---- Atomics of peers ---- */

void gin_nic_fetch(gin *g, gin_peer *p, const gccl_msg_fetch *m) {
  if (!p->answers && !(p->answers = calloc(GIN_ANSWERS, sizeof *p->answers))) {
    gin_peer_failed(g, p, "out of memory for the answer to an atomic");
    return;
  }
  gin_answer a = {.context = m->context, .id = m->id, .probe = m->head.which == 1};
  if (!a.probe) {
    uint64_t *word = word_of(g, m->head.place, m->window, m->context, m->off);
    int late = m->head.place == GCCL_AT_SIGNAL && !gin_context_of(g, m->context) && gin_context_was(g, m->context);
    if (word && g->mover && m->head.place == GCCL_AT_WINDOW) {
      if (!gin_add(g, p, (char *)word, m->value, &a)) gin_peer_failed(g, p, "out of memory for an atomic");
      return;
    }
    if (word)
      a.old = fetch_add(word, m->value);
    else if (!late) /* for a context that this rank has closed: nobody looks at it any more */
      a.syndrome = GCCL_SYNDROME_REMOTE_ACCESS;
  }
  gin_nic_owe(g, p, &a);
}

void gin_nic_owe(gin *g, gin_peer *p, const gin_answer *a) {
  if (p->nanswers == GIN_ANSWERS) {
    gin_peer_failed(g, p, "a peer has more atomics under way than it may");
    return;
  }
  p->answers[(p->answer + p->nanswers++) % GIN_ANSWERS] = *a;
  g->owing++;
}

int gin_nic_answer(gin *g) {
  int moved = 0;
  for (int32_t r = 0; r < g->nranks; r++) {
    gin_peer *p = &g->peer[r];
    while (p->nanswers && (p->faulted || !gin_reached(g, p) || gin_room(g, p, 1))) {
      gin_answer *a = &p->answers[p->answer];
      gccl_msg_fetched m = {
          .head = {.kind = GCCL_MSG_FETCHED, .op = a->syndrome, .which = a->probe}, .old = a->old, .context = a->context, .id = a->id};
      if (gin_reached(g, p) && !p->faulted) gin_message(g, p, &m, sizeof m, 0);
      p->answer = (p->answer + 1) % GIN_ANSWERS;
      p->nanswers--;
      g->owing--;
      moved = 1;
    }
  }
  return moved;
}

void gin_nic_fetched(gin *g, gin_peer *p, const gccl_msg_fetched *m) {
  gin_context *x = gin_context_of(g, m->context);
  nic_qp *q = x && x->qp ? &x->qp[p->rank] : NULL;
  if (!x && gin_context_was(g, m->context)) return; /* closed meanwhile */
  if (q && m->head.which == 1 && q->probing) {
    q->probing = 0;
    if (before(q->visible, m->id)) q->visible = m->id;
    return;
  }
  nic_slot *s = q && !before(m->id, q->told) && before(m->id, q->next) ? &q->slot[m->id & (q->q.depth - 1)] : NULL;
  if (!s || s->wait != ANSWER) {
    gin_peer_failed(g, p, "an answer to an atomic that is not under way");
    return;
  }
  memcpy(s->old, &m->old, sizeof m->old);
  q->fetches--;
  if (before(q->visible, m->id)) q->visible = m->id;
  finish(q, m->id, DONE, m->head.op);
  if (m->head.op) complain(g, x, p, m->id, m->head.op, "the peer has no such word");
  tell(q);
}

static int nic_busy(const gin_context *x, int32_t peer) { return x->qp[peer].told != x->qp[peer].posted; }

const gin_provider gin_software_nic = {nic_open, nic_serve, nic_done, nic_busy, nic_close};
