#define _GNU_SOURCE
#include "carry.h"

#include <sys/mman.h>

/* Frames travel behind a head: not every plugin says how much has come. */
typedef struct {
  uint32_t magic, bytes;
} head;
enum { MAGIC = 0x464e5047, SLOT = NP_FRAME + 64 };

typedef struct {
  np_lane base;
  np_net *m;
  void *send, *recv, *send_handle, *recv_handle;
  char *out, *in; /* NP_FRAMES frames each */
  uint32_t depth; /* of them in use: not more than the plugin has requests */
  uint8_t send_failed, recv_failed, registered;
  void *tx[NP_FRAMES], *rx[NP_FRAMES];
  uint32_t tx_bytes[NP_FRAMES], rx_bytes[NP_FRAMES], tx_step[NP_FRAMES];
  uint32_t filled, started, finished; /* frames out */
  uint32_t posted, arrived, taken;    /* frames in */
} net_lane;

static void failed(net_lane *l, uint8_t *side, const char *call, int rc) {
  *side = 1;
  gccl_net_fail(&l->base.fault, GCCL_NET_EREMOTE, "%s: %s", call, np_result(rc));
}

/* Of a frame: its bytes. The head stands before them. */
static char *frame(net_lane *l, char *base, uint32_t number) { return base + (size_t)(number % l->depth) * SLOT + sizeof(head); }

static char *room(np_lane *lane) {
  net_lane *l = (net_lane *)lane;
  return l->filled - l->finished < l->depth ? frame(l, l->out, l->filled) : NULL;
}

static void send_side(net_lane *l) {
  for (; l->started != l->filled; l->started++) {
    uint32_t i = l->started % l->depth;
    head *h = (head *)frame(l, l->out, l->started) - 1;
    *h = (head){MAGIC, l->tx_bytes[i]};
    int rc = l->m->isend(l->m, l->send, h, sizeof *h + h->bytes, 0, l->send_handle, np_step(l->tx_step[i]), &l->tx[i]);
    if (rc) return failed(l, &l->send_failed, "isend", rc);
    if (!l->tx[i]) break; /* again later */
  }
  for (; l->finished != l->started; l->finished++) {
    int done = 0, size = -1, rc = l->m->test(l->m, l->tx[l->finished % l->depth], &done, &size);
    if (rc) return failed(l, &l->send_failed, "test of a send", rc);
    if (!done) break;
    np_step_drop(l->tx_step[l->finished % l->depth]);
  }
}

/* Frames are received before anybody knows what will come in them, so for no step. */
static void receive_side(net_lane *l) {
  for (; l->posted - l->taken < l->depth; l->posted++) {
    void *to = (head *)frame(l, l->in, l->posted) - 1;
    size_t size = sizeof(head) + NP_FRAME;
    void *none = NULL;
    int tag = 0, rc = l->m->irecv(l->m, l->recv, 1, &to, &size, &tag, &l->recv_handle, &none, &l->rx[l->posted % l->depth]);
    if (rc) return failed(l, &l->recv_failed, "irecv", rc);
    if (!l->rx[l->posted % l->depth]) break;
  }
  for (; l->arrived != l->posted; l->arrived++) {
    int done = 0, sizes[NP_RECVS] = {0}, rc = l->m->test(l->m, l->rx[l->arrived % l->depth], &done, sizes);
    if (rc) return failed(l, &l->recv_failed, "test of a receive", rc);
    if (!done) break;
    const head *h = (head *)frame(l, l->in, l->arrived) - 1;
    int sane = h->magic == MAGIC && h->bytes >= 1 && h->bytes <= NP_FRAME;
    if (!sane || (sizes[0] && (uint32_t)sizes[0] != sizeof *h + h->bytes)) {
      l->recv_failed = 1;
      gccl_net_fail(&l->base.fault, GCCL_NET_EREMOTE,
                    "a receive ended with %d bytes and its head speaks of %u: the plugin lost or added bytes", sizes[0],
                    sane ? h->bytes : 0);
      return;
    }
    l->rx_bytes[l->arrived % l->depth] = h->bytes;
  }
}

static void progress(np_lane *lane) {
  net_lane *l = (net_lane *)lane;
  if (!l->send_failed) send_side(l);
  if (!l->recv_failed) receive_side(l);
}

static void send_frame(np_lane *lane, uint32_t bytes, uint32_t step) {
  net_lane *l = (net_lane *)lane;
  uint32_t i = l->filled++ % l->depth;
  l->tx_bytes[i] = bytes;
  l->tx_step[i] = step;
  np_step_hold(step);
  if (!l->send_failed) send_side(l);
}

static const char *next(np_lane *lane, uint32_t *bytes) {
  net_lane *l = (net_lane *)lane;
  if (l->taken == l->arrived) return NULL;
  *bytes = l->rx_bytes[l->taken % l->depth];
  return frame(l, l->in, l->taken);
}

static void release(np_lane *lane) { ((net_lane *)lane)->taken++; }

static int idle(np_lane *lane) {
  net_lane *l = (net_lane *)lane;
  return l->finished == l->filled;
}

static void close_lane(np_lane *lane) {
  net_lane *l = (net_lane *)lane;
  if (l->registered > 0) l->m->dereg(l->m, l->send, l->send_handle);
  if (l->registered > 1) l->m->dereg(l->m, l->recv, l->recv_handle);
  for (; l->finished != l->filled; l->finished++) np_step_drop(l->tx_step[l->finished % l->depth]);
  l->m->close_send(l->m, l->send);
  l->m->close_recv(l->m, l->recv);
  if (l->out) munmap(l->out, 2 * NP_FRAMES * SLOT);
  free(l);
}

static const np_lane_ops lane_ops = {room, send_frame, progress, next, release, idle, close_lane};

np_lane *np_lane_net(np_net *m, void *send, void *recv, char *why) {
  net_lane *l = calloc(1, sizeof *l);
  if (!l) {
    m->close_send(m, send);
    m->close_recv(m, recv);
    gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
    return NULL;
  }
  enum { BYTES = NP_FRAMES * SLOT };
  *l = (net_lane){.base.ops = &lane_ops, .m = m, .send = send, .recv = recv};
  l->depth = m->requests < NP_FRAMES ? (uint32_t)m->requests : NP_FRAMES;
  char *p = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int rc = NP_OK;
  if (p != MAP_FAILED) {
    l->out = p;
    l->in = p + BYTES;
    if (!(rc = m->reg(m, send, l->out, BYTES, NP_PTR_HOST, &l->send_handle))) l->registered = 1;
    if (!rc && !(rc = m->reg(m, recv, l->in, BYTES, NP_PTR_HOST, &l->recv_handle))) l->registered = 2;
  }
  if (p == MAP_FAILED || rc) {
    gccl_net_why(why, GCCL_NET_ESYSTEM, "%s of %d bytes: %s", rc ? "regMr" : "mmap", 2 * BYTES, rc ? np_result(rc) : "out of memory");
    close_lane(&l->base);
    return NULL;
  }
  return &l->base;
}
