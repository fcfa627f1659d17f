/* Send queues of mlx5 cards for kernels, by libibverbs and libmlx5: verbs make and connect a queue pair, mlx5dv_init_obj says where its queue,
 * record, doorbell and completions are, and from then on kernels post. No verb posts or polls on it any more.
 *
 * Facts, from rdma-core (version 44) unless said otherwise:
 * - providers/mlx5/mlx5dv.h: mlx5dv_qp.dbrec has two words, the send queue's is MLX5_SND_DBR; bf.reg takes the first 8 bytes of an entry.
 * - providers/mlx5/verbs.c: a queue pair gets as many blocks as its largest entry times max_send_wr needs, a power of two; a completion queue
 *   the power of two above cqe.
 * - providers/mlx5/cq.c: the first word of a completion queue's record is how many completions have been seen, 24 bits, big-endian.
 * - Linux, drivers/infiniband/hw/mlx5/qp.c: answers to reads are written into completions only where sq_sig_all is set; it is not.
 * - ibv_reg_mr_iova: addresses of a registration may begin at 0 where the memory begins a page. */
#include <errno.h>
#include <stdlib.h>

#include "../../include/gccl_device/impl/mlx5.h"
#include "conn.h"
#include "mlx5.h"
#include "mlx5dv.h"
#include "pages.h"

enum { BLOCK = 64, DEPTH_MAX = 1 << 15, PROOF_NS = 1000 * 1000 * 1000, PROOF_BYTES = 4096 };

typedef struct {
  gccl_card base; /* first */
  const vb_library *vb;
  const dv_library *dv;
  rail rail;
  gccl_ib_config config;
  const gccl_card_pages *pages;
  int ring;    /* enum gccl_card_ring */
  int relayed; /* the CPU rings */
  char why_relayed[GCCL_NET_TEXT];
} card;

typedef struct {
  gccl_card_mr base;
  vb_mr *v;
} mlx_mr;

typedef struct {
  gccl_sendq base; /* first; as kernels see it */
  vb_qp *qp;
  vb_cq *cq;
  dv_qp q; /* as the CPU sees it */
  dv_cq c;
  uint64_t *word; /* in place of the doorbell: a page of its own */
  int pinned;     /* of the ranges of pins() */
} mlx_queue;

/* ---- Memory ---- */

static int mlx_reg(gccl_card *base, void *at, uint64_t bytes, int atomics, gccl_card_mr **out, char *why) {
  card *k = (card *)base;
  mlx_mr *m = calloc(1, sizeof *m);
  if (!m) return gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
  int access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_ATOMIC | (atomics ? 0 : VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ);
  m->v = k->vb->reg_mr_iova(k->rail.pd, at, bytes, 0, access);
  if (!m->v) {
    free(m);
    return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: ibv_reg_mr_iova of %llu bytes: %s%s", k->rail.name, (unsigned long long)bytes,
                        strerror(errno), errno == ENOMEM ? " (is the limit of locked memory, ulimit -l, large enough?)" : "");
  }
  m->base = (gccl_card_mr){base, m->v->lkey, m->v->rkey};
  *out = &m->base;
  return 0;
}

static void mlx_dereg(gccl_card_mr *base) {
  mlx_mr *m = (mlx_mr *)base;
  ((card *)base->card)->vb->dereg_mr(m->v);
  free(m);
}

/* ---- Queues ---- */

/* What of a queue kernels write or read: the doorbell last, which may stay where it is. */
enum { PINS = 5, PIN_DOORBELL = 4 };
struct pin {
  void *at;
  uint64_t bytes;
  void **to;
};
static void pins(mlx_queue *q, struct pin p[PINS]) {
  gccl_sendq *b = &q->base;
  p[0] = (struct pin){q->q.sq.buf, (uint64_t)b->depth * BLOCK, (void **)&b->sq};
  p[1] = (struct pin){q->c.buf, (uint64_t)b->cq_depth * BLOCK, (void **)&b->cq};
  p[2] = (struct pin){q->q.dbrec, 8, (void **)&b->dbrec};
  p[3] = (struct pin){q->c.dbrec, 8, (void **)&b->cq_dbrec};
  p[PIN_DOORBELL] = (struct pin){q->q.bf.reg, 8, (void **)&b->doorbell};
}

static void mlx_close_queue(gccl_sendq *base) {
  mlx_queue *q = (mlx_queue *)base;
  card *k = (card *)base->card;
  struct pin p[PINS];
  if (q->pinned) pins(q, p);
  for (int i = 0; i < q->pinned; i++) ib_pages_unpin(k->pages, p[i].at, p[i].bytes);
  if (q->word) {
    if (base->doorbell) ib_pages_unpin(k->pages, q->word, 8);
    free(q->word);
  }
  if (q->qp) k->vb->destroy_qp(q->qp);
  if (q->cq) k->vb->destroy_cq(q->cq);
  free(q);
}

/* Kernels ring in memory, and the CPU in the register. */
static int relay(card *k, mlx_queue *q, char *why) {
  q->base.doorbell = NULL;
  if (!(q->word = aligned_alloc(4096, 4096))) return gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
  memset(q->word, 0, 4096);
  void *device;
  int rc = ib_pages_pin(k->pages, q->word, 8, 0, &device, why);
  if (rc < 0) return rc;
  q->base.doorbell = device;
  q->base.bell = q->q.bf.reg;
  k->relayed = 1;
  return 0;
}

static int pin_all(card *k, mlx_queue *q, char *why) {
  char text[GCCL_NET_TEXT] = "";
  static const char *const what[PINS] = {"the send queue", "the completion queue", "the record", "the completion queue's record",
                                         "the doorbell"};
  struct pin p[PINS];
  pins(q, p);
  int last = k->ring == GCCL_CARD_RING_CPU || k->relayed ? PIN_DOORBELL : PINS;
  for (; q->pinned < last; q->pinned++) {
    struct pin *i = &p[q->pinned];
    if (ib_pages_pin(k->pages, i->at, i->bytes, q->pinned == PIN_DOORBELL, i->to, text) == 0) continue;
    if (q->pinned < PIN_DOORBELL || k->ring == GCCL_CARD_RING_KERNEL)
      return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: mapping %s for kernels: %.180s", k->rail.name, what[q->pinned], text);
    snprintf(k->why_relayed, sizeof k->why_relayed, "mapping the doorbell for kernels: %.200s", text);
    break;
  }
  return q->pinned < PINS ? relay(k, q, why) : 0;
}

static int power_of_two(uint32_t n) { return n && !(n & (n - 1)); }

/* Makes the pair with so many requests and completions. */
static int make(card *k, mlx_queue *q, uint32_t requests, uint32_t completions, char *why) {
  const char *name = k->rail.name;
  q->cq = k->vb->create_cq(k->rail.context, (int)completions - 1, NULL, NULL, 0);
  if (!q->cq) return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: ibv_create_cq: %s", name, strerror(errno));
  vb_qp_init_attr init = {.send_cq = q->cq,
                          .recv_cq = q->cq,
                          .cap = {.max_send_wr = requests, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                          .qp_type = VB_QPT_RC};
  q->qp = k->vb->create_qp(k->rail.pd, &init);
  if (!q->qp) return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: ibv_create_qp: %s", name, strerror(errno));
  dv_obj o = {.qp = {q->qp, &q->q}, .cq = {q->cq, &q->c}};
  memset(&q->q, 0, sizeof q->q);
  memset(&q->c, 0, sizeof q->c);
  int rc = k->dv->init_obj(&o, DV_OBJ_QP | DV_OBJ_CQ);
  if (rc) return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: mlx5dv_init_obj: %s", name, strerror(rc));
  if (q->q.sq.stride != BLOCK || !power_of_two(q->q.sq.wqe_cnt) || q->c.cqe_size != BLOCK || !power_of_two(q->c.cqe_cnt))
    return gccl_net_why(
        why, GCCL_NET_ENOTSUP,
        "%s: %u entries of %u bytes and %u completions of %u bytes: powers of two and 64 bytes are expected (is MLX5_CQE_SIZE set?)", name,
        q->q.sq.wqe_cnt, q->q.sq.stride, q->c.cqe_cnt, q->c.cqe_size);
  if (!q->q.sq.buf || !q->q.dbrec || !q->q.bf.reg || !q->c.buf || !q->c.dbrec)
    return gccl_net_why(why, GCCL_NET_ENOTSUP, "%s: mlx5dv_init_obj gives no %s", name,
                        !q->q.sq.buf   ? "send queue"
                        : !q->q.dbrec  ? "record"
                        : !q->q.bf.reg ? "doorbell"
                                       : "completion queue");
  return 0;
}

/* An entry here is one block, and a request of verbs is several: the queue is deeper than asked for, and completions have to fit it. */
static int mlx_open(gccl_card *base, uint32_t depth, gccl_sendq **out, char *why) {
  card *k = (card *)base;
  uint32_t requests = depth, completions = depth < 16 ? 16 : depth;
  for (int tries = 0;; tries++) {
    mlx_queue *q = calloc(1, sizeof *q);
    if (!q) return gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
    q->base.card = base;
    int rc = make(k, q, requests, completions, why);
    if (rc == 0 && (q->q.sq.wqe_cnt > DEPTH_MAX || q->c.cqe_cnt < q->q.sq.wqe_cnt)) {
      if (q->q.sq.wqe_cnt > DEPTH_MAX)
        requests /= 2;
      else
        completions = q->q.sq.wqe_cnt;
      mlx_close_queue(&q->base);
      if (tries < 20 && requests) continue;
      return gccl_net_why(why, GCCL_NET_ENOTSUP, "%s: no queue of %u entries with as many completions", k->rail.name, depth);
    }
    q->base.depth = q->q.sq.wqe_cnt;
    q->base.cq_depth = q->c.cqe_cnt;
    if (rc == 0) {
      q->base.qpn = q->qp->qp_num;
      rc = pin_all(k, q, why);
    }
    if (rc == 0) {
      gccl_ib_address a;
      int error = qp_init(k->vb, &k->rail, q->qp, VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC);
      if (error) rc = gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: queue pair to INIT: %s", k->rail.name, strerror(error));
      rail_address(&k->rail, q->qp, &a);
      _Static_assert(sizeof a <= GCCL_CARD_ADDRESS, "an address fits");
      memcpy(q->base.address, &a, sizeof a);
    }
    if (rc < 0) {
      mlx_close_queue(&q->base);
      return rc;
    }
    *out = &q->base;
    return 0;
  }
}

static int mlx_connect(gccl_sendq *base, const unsigned char address[GCCL_CARD_ADDRESS], char *why) {
  mlx_queue *q = (mlx_queue *)base;
  card *k = (card *)base->card;
  gccl_ib_address to;
  memcpy(&to, address, sizeof to);
  if (to.link != k->rail.link || to.qpn >> 24)
    return gccl_net_why(why, GCCL_NET_EINVAL, "%s: a peer's queue pair 0x%x is of another kind of link", k->rail.name, to.qpn);
  int rc = qp_ready_to_receive(k->vb, &k->rail, &k->config, q->qp, &to, why);
  return rc < 0 ? rc : qp_ready_to_send(k->vb, &k->rail, &k->config, q->qp, why);
}

/* ---- The proof: a queue pair that is connected with itself writes and adds, before anybody relies on it ---- */

static void post(mlx_queue *q, uint32_t index, const gccl_wqe *e) {
  memcpy((char *)q->q.sq.buf + (index & (q->base.depth - 1)) * BLOCK, e, sizeof *e);
  __atomic_store_n(&q->q.dbrec[GCCL_DBREC_SEND], gccl_dbrec_value(index + 1), __ATOMIC_RELEASE);
  __atomic_thread_fence(__ATOMIC_SEQ_CST); /* record before doorbell, and out of the buffers of combining stores after it */
  __atomic_store_n((uint64_t *)q->q.bf.reg, gccl_doorbell_value(e), __ATOMIC_RELEASE);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static int completed(card *k, mlx_queue *q, uint32_t index, const char *what, char *why) {
  const unsigned char *c = (unsigned char *)q->c.buf + (index & (q->base.cq_depth - 1)) * BLOCK;
  for (uint64_t end = ib_now() + PROOF_NS; !gccl_cqe_is(__atomic_load_n(c + GCCL_CQE_OP_OWN, __ATOMIC_ACQUIRE), index, q->base.cq_depth);)
    if (ib_now() > end)
      return gccl_net_why(why, GCCL_NET_ETIMEOUT, "%s: %s to itself did not complete within a second: is the doorbell heard?", k->rail.name,
                          what);
  if (c[GCCL_CQE_OP_OWN] >> 4 != GCCL_CQE_OK)
    return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: %s to itself failed with syndrome 0x%02x", k->rail.name, what, c[GCCL_CQE_SYNDROME]);
  __atomic_store_n(q->c.dbrec, gccl_be32(index + 1), __ATOMIC_RELEASE);
  return 0;
}

static int prove(card *k, char *why) {
  gccl_sendq *base = NULL;
  gccl_card_mr *m = NULL;
  uint64_t *page = aligned_alloc(4096, PROOF_BYTES);
  if (!page) return gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
  memset(page, 0, PROOF_BYTES);
  for (int i = 0; i < 8; i++) page[i] = 0x0123456789abcdefull * (uint64_t)(i + 1);
  page[256] = 40;
  int rc = mlx_open(&k->base, 16, &base, why);
  if (rc == 0) rc = mlx_connect(base, base->address, why);
  if (rc == 0) rc = mlx_reg(&k->base, page, PROOF_BYTES, 0, &m, why);
  if (rc == 0) {
    mlx_queue *q = (mlx_queue *)base;
    gccl_wqe e;
    gccl_wqe_write(&e, 0, base->qpn, 1024, m->rkey, 0, m->lkey, 64);
    post(q, 0, &e);
    rc = completed(k, q, 0, "a write", why);
    if (rc == 0) {
      gccl_wqe_fetch_add(&e, 1, base->qpn, 8 * 256, m->rkey, 2, 8 * 257, m->lkey);
      post(q, 1, &e);
      rc = completed(k, q, 1, "an atomic", why);
    }
    if (rc == 0 && (memcmp(page, page + 128, 64) || page[256] != 42 || page[257] != 40))
      rc = gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: a write and an atomic to itself completed with other bytes: 0x%llx, %llu, %llu",
                        k->rail.name, (unsigned long long)page[128], (unsigned long long)page[256], (unsigned long long)page[257]);
  }
  if (base) mlx_close_queue(base);
  if (m) mlx_dereg(m);
  free(page);
  return rc;
}

static const gccl_card_ops mlx_ops = {
    .name = "mlx5dv", .reg = mlx_reg, .dereg = mlx_dereg, .open = mlx_open, .connect = mlx_connect, .close_queue = mlx_close_queue};

gccl_card *gccl_ib_card_open(const char *name, int port, int gid_index, const gccl_ib_config *config, const gccl_card_pages *pages,
                             int ring, char *why) {
  const vb_library *vb = vb_open(why);
  const dv_library *dv = vb ? dv_open(why) : NULL;
  card *k = dv ? calloc(1, sizeof *k) : NULL;
  if (!k) {
    if (dv) gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
    return NULL;
  }
  *k = (card){.base = {&mlx_ops}, .vb = vb, .dv = dv, .config = *config, .pages = pages, .ring = ring};
  if (rail_open(vb, &k->rail, name, port, gid_index, why) < 0) {
    free(k);
    return NULL;
  }
  int rc = 0;
  if (!dv->is_supported(k->rail.context->device))
    rc = gccl_net_why(why, GCCL_NET_ENOTSUP, "%s is no mlx5 device", name);
  else if (!k->rail.atomics)
    rc = gccl_net_why(why, GCCL_NET_ENOTSUP, "%s has no atomics, which signals need", name);
  else if (!vb->reg_mr_iova)
    rc = gccl_net_why(why, GCCL_NET_ENOTSUP, "libibverbs.so.1 has no ibv_reg_mr_iova: rdma-core 26 has it");
  else
    rc = prove(k, why);
  if (rc == 0) return &k->base;
  gccl_ib_card_close(&k->base);
  return NULL;
}

const char *gccl_ib_card_relayed(const gccl_card *base) {
  const card *k = (const card *)base;
  return k->relayed ? k->why_relayed : NULL;
}

void gccl_ib_card_close(gccl_card *base) {
  card *k = (card *)base;
  rail_close(k->vb, &k->rail);
  free(k);
}
