/* The lock, the work queues of the peers, and the turn that moves everything on. */
#define _GNU_SOURCE
#include "gin.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t gin_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

gin *gin_new(int32_t rank, int32_t nranks, struct ncclComm *comm) {
  gin *g = aligned_alloc(2 * GCCL_LINE, gccl_align(sizeof *g, 2 * GCCL_LINE));
  if (!g) return NULL;
  memset(g, 0, sizeof *g);
  size_t n = (size_t)nranks;
  g->rank = rank;
  g->nranks = nranks;
  g->comm = comm;
  g->spin_ns = 1000000;
  g->nap_ns = 200000;
  g->cpu = -1;
  g->peer = calloc(n, sizeof *g->peer);
  g->dirty = calloc(n, sizeof *g->dirty);
  g->port.done = calloc(n, sizeof *g->port.done);
  g->port.anywhere = calloc(n, sizeof *g->port.anywhere);
  if (!g->peer || !g->dirty || !g->port.done || !g->port.anywhere) {
    gin_free(g);
    return NULL;
  }
  for (int32_t q = 0; q < nranks; q++) g->peer[q].rank = q;
  return g;
}

void gin_free(gin *g) {
  if (!g) return;
  for (int i = 0; i < GIN_CONTEXTS; i++) gin_context_close(g, i);
  for (int i = 0; i < GIN_WINDOWS; i++) {
    free(g->window[i].remote);
    free(g->window[i].keys.rkeys);
  }
  for (int32_t q = 0; g->peer && q < g->nranks; q++) free(g->peer[q].answers);
  gin_lanes_close(g);
  free(g->port.ring);
  free(g->port.done);
  free(g->port.anywhere);
  free(g->peer);
  free(g->dirty);
  free(g);
}

void gin_endpoint(gin *g, int slot, gccl_net_ep *ep) { g->ep[slot] = ep; }

void gin_connect(gin *g, int32_t rank, int endpoint, gccl_net_conn *conn) {
  gin_peer *p = &g->peer[rank];
  p->endpoint = (uint8_t)endpoint;
  p->conn = conn;
  if (conn) conn->user = p;
  g->port.anywhere[rank] = conn && conn->sends;
  p->nwork = p->first = 0;
  p->faulted = 0;
  p->sent = p->received = 0;
}

/* ---- The lock ---- */

int gin_try(gin *g) { return !atomic_exchange_explicit(&g->lock, 1, memory_order_acquire); }

void gin_release(gin *g) { atomic_store_explicit(&g->lock, 0, memory_order_release); }

/* The thread may sleep in a transport's wait with the lock: a wake makes it give the lock up. */
void gin_rouse(gin *g) {
  if (!atomic_load_explicit(&g->deep, memory_order_acquire)) return;
  for (int i = 0; i < GIN_ENDPOINTS; i++)
    if (g->ep[i] && g->ep[i]->ops->wake) g->ep[i]->ops->wake(g->ep[i]);
}

void gin_acquire(gin *g) {
  atomic_fetch_add(&g->wanted, 1); /* the thread stands back */
  for (unsigned n = 0; !gin_try(g); n++) {
    gin_rouse(g);
    if (n > 100) sched_yield();
  }
  atomic_fetch_sub(&g->wanted, 1);
}

int gin_help(gin *g) {
  atomic_store_explicit(&g->helped, atomic_load_explicit(&g->helped, memory_order_relaxed) + 1, memory_order_relaxed);
  if (!gin_try(g)) {
    gin_rouse(g);
    return 0;
  }
  int moved = gin_serve(g);
  gin_release(g);
  return moved;
}

/* ---- Work ---- */

void gin_peer_failed(gin *g, gin_peer *p, const char *text) {
  (void)g;
  p->nwork = 0;
  if (p->faulted) return;
  snprintf(p->fault, sizeof p->fault, "%s", text);
  p->faulted_ns = gin_now();
  __atomic_store_n(&p->faulted, 1, __ATOMIC_RELEASE); /* acquired by whoever asks for failures */
}

/* Posts what the connection takes. */
static int flush(gin *g, gin_peer *p) {
  char why[GCCL_NET_TEXT] = "";
  if (g->mover) return gin_lane_serve(g, p);
  if (p->nwork == 0) return 0;
  int n = p->conn->ops->post(p->conn, &p->work[p->first], (int)p->nwork, why);
  if (n < 0) {
    gin_peer_failed(g, p, n == GCCL_NET_EFAULT ? p->conn->fault.text : why);
    return 1;
  }
  p->first += (uint32_t)n;
  p->nwork -= (uint32_t)n;
  if (p->nwork == 0) p->first = 0;
  return n > 0;
}

int gin_room(gin *g, gin_peer *p, uint32_t n) {
  if (p->first + p->nwork + n <= GIN_WORK) return 1;
  if (p->nwork + n > GIN_WORK) flush(g, p);
  if (p->nwork + n > GIN_WORK) return 0;
  memmove(p->work, &p->work[p->first], p->nwork * sizeof *p->work);
  p->first = 0;
  return 1;
}

gccl_net_wr *gin_work(gin *g, gin_peer *p, uint8_t op) {
  gccl_net_wr *w = &p->work[p->first + p->nwork++];
  memset(w, 0, offsetof(gccl_net_wr, data));
  w->op = op;
  if (!p->dirty) {
    p->dirty = 1;
    g->dirty[g->ndirty++] = p->rank;
  }
  return w;
}

gccl_net_wr *gin_message(gin *g, gin_peer *p, const void *message, uint32_t bytes, int weak) {
  gccl_net_wr *w = gin_work(g, p, GCCL_NET_MSGSEND);
  w->bytes = bytes;
  w->flags = weak ? GCCL_NET_WEAK : 0;
  memcpy(w->data, message, bytes);
  uint32_t number = ++p->sent;
  memcpy(w->data + offsetof(gccl_msg_head, number), &number, sizeof number);
  return w;
}

static int inside(const gin_region *r, const char *at, uint64_t bytes) {
  return r->base && at >= r->base && (uint64_t)(at - r->base) <= r->bytes && bytes <= r->bytes - (uint64_t)(at - r->base);
}

int gin_local(gin *g, gin_peer *p, gccl_net_wr *w, const void *at, uint64_t bytes) {
  const gin_region *r = NULL;
  if (inside(&g->mirrors, at, bytes))
    r = &g->mirrors;
  else if (inside(&g->area, at, bytes))
    r = &g->area;
  if (g->mover) { /* the source or destination of kernels, which is in a window */
    w->loff = (uint64_t)(uintptr_t)at;
    w->bytes = bytes;
    return 1;
  }
  for (int i = 0; i < GIN_WINDOWS && !r; i++)
    if (g->window[i].number && inside(&g->window[i].local, at, bytes)) r = &g->window[i].local;
  if (!r && p->conn && p->conn->sends && w->op == GCCL_NET_PUT) {
    w->local = NULL;
    w->loff = (uint64_t)(uintptr_t)at;
    w->bytes = bytes;
    return 1;
  }
  if (!r) return 0;
  w->local = r->mr[p->endpoint];
  w->loff = (uint64_t)((const char *)at - r->base);
  w->bytes = bytes;
  return 1;
}

gin_window *gin_window_of(gin *g, uint32_t number) {
  for (int i = 0; number && i < GIN_WINDOWS; i++)
    if (g->window[i].number == number) return &g->window[i];
  return NULL;
}

void gin_signal(uint64_t *word, unsigned op, uint64_t value) {
  /* Release; acquired by whoever waits on the word. */
  if (op == GCCL_SIGNAL_ADD)
    __atomic_fetch_add(word, value, __ATOMIC_RELEASE); /* a word of a window may have kernels as writers too */
  else if ((int64_t)(value - __atomic_load_n(word, __ATOMIC_RELAXED)) > 0)
    __atomic_store_n(word, value, __ATOMIC_RELEASE); /* the agent is the only writer */
}

/* ---- A turn ---- */

/* A sleeping executor of this rank looks again: what it waits for may have come. Its side is gccl_idle_wait (device/host/exec). */
static void wake_executor(gin *g) {
  if (!g->comm || !g->comm->self.area) return;
  gccl_area *a = (gccl_area *)g->comm->self.area;
  atomic_thread_fence(memory_order_seq_cst);
  if (__atomic_load_n(&a->asleep, __ATOMIC_RELAXED) && __atomic_exchange_n(&a->asleep, 0, __ATOMIC_ACQ_REL))
    syscall(SYS_futex, &a->asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* A message from a peer. Its number finds what came twice or not at all. */
void gin_received(gin *g, gin_peer *p, const unsigned char *data, uint32_t bytes) {
  char text[GIN_TEXT];
  gccl_msg_head head;
  if (p->faulted) return;
  if (bytes < sizeof head) {
    snprintf(text, sizeof text, "rank %d sent a message of %u bytes", p->rank, bytes);
    gin_peer_failed(g, p, text);
    return;
  }
  memcpy(&head, data, sizeof head);
  uint32_t due = p->received + 1;
  if (gin_far_heard(g, p, data, bytes)) return;
  if ((int32_t)(head.number - due) < 0) return; /* applied before */
  if (head.number != due) {
    snprintf(text, sizeof text, "messages of rank %d are missing: number %u came where %u was due", p->rank, head.number, due);
    gin_peer_failed(g, p, text);
    return;
  }
  p->received = due;
  if (!gin_far_hold(g, p, data, bytes)) gin_agent(g, p, data, bytes);
}

/* A work request has completed. */
void gin_completed(gin *g, gin_peer *p, uint64_t cookie) {
  unsigned kind = (unsigned)(cookie >> 56);
  if (kind == GIN_COOKIE_CONTEXT || kind == GIN_COOKIE_NIC) {
    (kind == GIN_COOKIE_NIC ? gin_nic_done : gin_context_done)(g, p, cookie);
    return;
  }
  if (kind == GIN_COOKIE_FAR) {
    gin_far_carried(p, cookie);
    return;
  }
  uint32_t put = (uint32_t)cookie, step = gin_cookie_context(cookie);
  if ((put || step) && g->comm->probe) g->comm->probe->net_done(g->comm->probe, put, step, p->rank);
  if (kind == GIN_COOKIE_TRACKED)
    __atomic_store_n(&g->port.done[p->rank], g->port.done[p->rank] + 1, __ATOMIC_RELEASE); /* acquired by the executor */
}

static int poll_endpoint(gin *g, gccl_net_ep *ep) {
  int n = ep->ops->poll(ep, g->event, GIN_EVENTS);
  int told = 0;
  for (int i = 0; i < n; i++) {
    gccl_net_event *e = &g->event[i];
    gin_peer *p = e->conn->user;
    if (!p) continue;
    switch (e->kind) {
    case GCCL_NET_EV_MSG:
      gin_received(g, p, e->data, e->bytes);
      told = 1;
      break;
    case GCCL_NET_EV_DONE:
      gin_completed(g, p, e->cookie);
      told = 1;
      break;
    default: gin_peer_failed(g, p, e->conn->fault.text);
    }
  }
  if (told) wake_executor(g);
  return n > 0;
}

int gin_serve(gin *g) {
  int moved = g->port.ring ? gin_port_serve(g) : 0;
  moved |= gin_context_serve(g);
  if (g->owing) moved |= gin_nic_answer(g);
  int left = 0;
  for (int i = 0; i < g->ndirty; i++) {
    gin_peer *p = &g->peer[g->dirty[i]];
    moved |= flush(g, p);
    if (p->nwork || gin_lane_busy(p))
      g->dirty[left++] = p->rank;
    else
      p->dirty = 0;
  }
  g->ndirty = left;
  for (int i = 0; i < GIN_ENDPOINTS; i++)
    if (g->ep[i]) moved |= poll_endpoint(g, g->ep[i]);
  if (g->mover) moved |= gin_lanes_turn(g);
  return moved;
}

static int idle(gin *g) {
  return g->ndirty == 0 &&
         atomic_load_explicit(&g->port.head, memory_order_acquire) == atomic_load_explicit(&g->port.tail, memory_order_relaxed);
}

int gin_drain(gin *g, uint64_t ns) {
  uint64_t start = gin_now();
  int done = 0;
  gin_acquire(g);
  while (!(done = idle(g)) && gin_now() - start < ns)
    if (!gin_serve(g)) sched_yield();
  gin_release(g);
  return done;
}
