/* Stand-ins for libibverbs and libmlx5: one card, whose queues a thread of this process executes as the card would. Entries are read by the software
 * NIC's reader (net/gin/wqe.c), every key, range, right and state is checked, and what a program must not do ends the process with a text: a verb
 * that posts or polls on a queue after mlx5dv_init_obj, completions that overtake the index written back, an end in the wrong order.
 *
 * As on a card, records and doorbells of several queues share pages, and a queue has more entries than were asked for.
 *
 * STUBNIC_FAIL names what does not work: device, supported, atomics, iova, cq, qp, init, stride, cqe, rtr, deaf (nobody hears doorbells). What is
 * left at the end is printed. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../../../../net/ib/mlx5dv.h"

#include "../../../../net/gin/wqe.c"

#define API __attribute__((visibility("default")))

enum { MOST = 1 << 14, REGISTERS = 16, RECORDS = 64, PAGE = 4096 };

struct vb_device {
  char name[64];
};
struct vb_pd {
  vb_context *context;
  int users;
};
struct vb_cq {
  unsigned char *buf;
  uint32_t *dbrec;
  uint32_t cqe_cnt, users;
  uint64_t written;
  int direct;
};
typedef struct {
  vb_mr v;
  uint64_t iova;
  int access, live;
} region;
typedef struct {
  vb_qp v; /* first */
  int state, direct, failed;
  unsigned access;
  uint32_t dest, wqe_cnt, next;
  unsigned char *buf;
  uint32_t *dbrec;
  uint64_t *reg, rung;
} pair;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static vb_device device = {"mlx5_stub"};
static vb_device *devices[] = {&device, NULL};
static region regions[MOST];
static pair *pairs[MOST];
static int npairs, nregions, contexts, nqueues, ndomains, running;
static char *registers, *records;
static int used_registers, used_records;

static int fails(const char *what) {
  const char *f = getenv("STUBNIC_FAIL");
  return f && !strcmp(f, what);
}

#define DIE(...) (fprintf(stderr, "stubnic: " __VA_ARGS__), fputc('\n', stderr), abort())

static void *pages(size_t bytes) {
  void *p = mmap(NULL, (bytes + PAGE - 1) / PAGE * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}
/* Places in shared pages; never given back. */
static void *place(char **page, int *used, int most) {
  if (!*page || *used == most) {
    *page = pages(PAGE);
    *used = 0;
  }
  return *page + (*used)++ * (PAGE / most);
}

/* ---- The card ---- */

static region *region_of(uint32_t key) {
  region *r = (key >> 8) < MOST ? &regions[key >> 8] : NULL;
  return r && r->live && r->v.lkey == key ? r : NULL;
}

static char *range(uint32_t key, const vb_pd *pd, uint64_t addr, uint64_t bytes, int access) {
  region *r = region_of(key);
  if (!r || r->v.pd != pd || (r->access & access) != access) return NULL;
  if (addr < r->iova || addr - r->iova > r->v.length || bytes > r->v.length - (addr - r->iova)) return NULL;
  return (char *)r->v.addr + (addr - r->iova);
}

static uint8_t carry_out(pair *p, const wqe *e) {
  pair *to = p->dest && p->dest <= MOST ? pairs[p->dest - 1] : NULL;
  if (e->opcode == GCCL_WQE_NOP) return 0;
  if (!to || (to->state != VB_QPS_RTR && to->state != VB_QPS_RTS) || to->dest != p->v.qp_num) return GCCL_SYNDROME_RETRY;
  int remote = e->opcode == GCCL_WQE_WRITE  ? VB_ACCESS_REMOTE_WRITE
               : e->opcode == GCCL_WQE_READ ? VB_ACCESS_REMOTE_READ
                                            : VB_ACCESS_REMOTE_ATOMIC;
  char *there = e->bytes ? range(e->rkey, to->v.pd, e->raddr, e->bytes, remote) : NULL, *here = NULL;
  if (e->bytes && !e->inlined) {
    here = range(e->lkey, p->v.pd, e->laddr, e->bytes, e->opcode == GCCL_WQE_WRITE ? 0 : VB_ACCESS_LOCAL_WRITE);
    if (!here) return GCCL_SYNDROME_LOCAL_PROT;
  }
  if (e->bytes && (!there || !(to->access & (unsigned)remote))) return GCCL_SYNDROME_REMOTE_ACCESS;
  if (e->opcode == GCCL_WQE_FETCH_ADD) {
    uint64_t old = __atomic_fetch_add((uint64_t *)there, e->add, __ATOMIC_ACQ_REL);
    memcpy(here, &old, sizeof old);
  } else if (e->opcode == GCCL_WQE_READ) {
    if (e->bytes) memcpy(here, there, e->bytes);
  } else if (e->bytes) {
    memcpy(there, e->inlined ? (const char *)e->data : here, e->bytes);
  }
  return 0;
}

static void complete(pair *p, const cqe *c) {
  vb_cq *q = p->v.send_cq;
  uint32_t seen = gccl_be32(__atomic_load_n(q->dbrec, __ATOMIC_ACQUIRE));
  if (seen >> 24 || ((uint32_t)(q->written - seen) & 0xffffff) >= q->cqe_cnt)
    DIE("queue pair 0x%x: completion %llu overtakes the index that was written back, %u of %u", p->v.qp_num, (unsigned long long)q->written,
        seen, q->cqe_cnt);
  cqe_write(q->buf + (q->written & (q->cqe_cnt - 1)) * GCCL_CQE_BYTES, q->written, q->cqe_cnt, c);
  q->written++;
}

static int serve(pair *p) {
  uint64_t bell = __atomic_load_n(p->reg, __ATOMIC_ACQUIRE);
  if (p->state != VB_QPS_RTS || bell == p->rung) return 0;
  p->rung = bell;
  uint32_t record = gccl_be32(__atomic_load_n(&p->dbrec[GCCL_DBREC_SEND], __ATOMIC_ACQUIRE)), n = (uint16_t)(record - p->next);
  if (record >> 16 || n > p->wqe_cnt)
    DIE("queue pair 0x%x: record 0x%x where entry %u is due of %u", p->v.qp_num, record, p->next, p->wqe_cnt);
  for (; n; n--, p->next++) {
    wqe e;
    char why[GCCL_NET_TEXT];
    unsigned char block[GCCL_WQE_BYTES];
    memcpy(block, p->buf + (p->next & (p->wqe_cnt - 1)) * GCCL_WQE_BYTES, sizeof block);
    cqe c = {.qpn = p->v.qp_num, .index = p->next};
    int ok = wqe_read(block, p->v.qp_num, p->next, &e, why);
    c.opcode = e.opcode;
    c.syndrome = p->failed ? GCCL_SYNDROME_FLUSH : !ok ? GCCL_SYNDROME_QP_OP : carry_out(p, &e);
    if (!p->failed && !ok) fprintf(stderr, "stubnic: queue pair 0x%x, entry %u: %s\n", p->v.qp_num, p->next, why);
    if (c.syndrome) p->failed = 1;
    if (c.syndrome || e.signaled) complete(p, &c);
  }
  return 1;
}

static void *run(void *none) {
  (void)none;
  for (unsigned idle = 0;; idle++) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < npairs; i++)
      if (pairs[i] && pairs[i]->direct && !fails("deaf") && serve(pairs[i])) idle = 0;
    int left = nqueues;
    pthread_mutex_unlock(&lock);
    struct timespec nap = {.tv_nsec = left ? 20000 : 1000000};
    if (idle > 1000 || !left)
      nanosleep(&nap, NULL);
    else
      sched_yield();
  }
  return NULL;
}

/* ---- Verbs ---- */

static int must_not_post(vb_qp *q, vb_send_wr *w, vb_send_wr **bad) {
  (void)w;
  if (((pair *)q)->direct) DIE("a verb posts on queue pair 0x%x, which kernels use", q->qp_num);
  *bad = w;
  return ENOSYS;
}
static int must_not_poll(vb_cq *q, int n, vb_wc *w) {
  (void)n, (void)w;
  if (q->direct) DIE("a verb polls a completion queue that kernels use");
  return 0;
}
static int no_recv(vb_qp *q, vb_recv_wr *w, vb_recv_wr **bad) {
  (void)q;
  *bad = w;
  return ENOSYS;
}

API vb_device **ibv_get_device_list(int *n) {
  *n = fails("device") ? 0 : 1;
  return devices + fails("device");
}
API void ibv_free_device_list(vb_device **l) { (void)l; }
API const char *ibv_get_device_name(vb_device *d) { return d->name; }
API vb_context *ibv_open_device(vb_device *d) {
  vb_context *c = calloc(1, sizeof *c);
  c->device = d;
  c->ops.poll_cq = must_not_poll;
  c->ops.post_send = must_not_post;
  c->ops.post_recv = no_recv;
  __atomic_fetch_add(&contexts, 1, __ATOMIC_RELAXED);
  return c;
}
API int ibv_close_device(vb_context *c) {
  __atomic_fetch_sub(&contexts, 1, __ATOMIC_RELAXED);
  free(c);
  return 0;
}
API int ibv_query_device(vb_context *c, vb_device_attr *a) {
  (void)c;
  memset(a, 0, sizeof *a);
  a->max_qp_rd_atom = 16;
  a->phys_port_cnt = 1;
  a->atomic_cap = !fails("atomics");
  return 0;
}
API int ibv_query_port(vb_context *c, uint8_t port, vb_port_attr *a) {
  (void)c;
  memset(a, 0, sizeof *a);
  a->state = VB_PORT_ACTIVE;
  a->active_mtu = a->max_mtu = 5;
  a->lid = 7;
  a->link_layer = VB_LINK_INFINIBAND;
  a->active_speed = 32;
  a->active_width = 2;
  return port == 1 ? 0 : EINVAL;
}
API int ibv_query_gid(vb_context *c, uint8_t port, int index, vb_gid *g) {
  (void)c, (void)port, (void)index;
  memset(g, 0, sizeof *g);
  g->raw[0] = 0xfe, g->raw[1] = 0x80, g->raw[15] = 1;
  return 0;
}
API vb_pd *ibv_alloc_pd(vb_context *c) {
  vb_pd *p = calloc(1, sizeof *p);
  p->context = c;
  __atomic_fetch_add(&ndomains, 1, __ATOMIC_RELAXED);
  return p;
}
API int ibv_dealloc_pd(vb_pd *p) {
  if (p->users) DIE("a protection domain ends with %d users", p->users);
  __atomic_fetch_sub(&ndomains, 1, __ATOMIC_RELAXED);
  free(p);
  return 0;
}
API vb_mr *ibv_reg_mr_iova(vb_pd *pd, void *at, size_t n, uint64_t iova, int access) {
  region *r = NULL;
  if (fails("iova") || ((uintptr_t)at ^ iova) % PAGE) return errno = EINVAL, NULL;
  pthread_mutex_lock(&lock);
  for (uint32_t i = 1; i < MOST && !r; i++) {
    static uint32_t generation;
    if (regions[i].live) continue;
    r = &regions[i];
    *r = (region){{pd->context, pd, at, n, i, i << 8 | (generation & 0xff), i << 8 | (generation & 0xff)}, iova, access, 1};
    generation += 37;
    pd->users++;
    nregions++;
  }
  pthread_mutex_unlock(&lock);
  return r ? &r->v : NULL;
}
API vb_mr *ibv_reg_mr(vb_pd *pd, void *at, size_t n, int access) { return ibv_reg_mr_iova(pd, at, n, (uintptr_t)at, access); }
API int ibv_dereg_mr(vb_mr *m) {
  pthread_mutex_lock(&lock);
  ((region *)m)->live = 0;
  m->pd->users--;
  nregions--;
  pthread_mutex_unlock(&lock);
  return 0;
}

static uint32_t up(uint32_t n) {
  uint32_t p = 1;
  while (p < n) p *= 2;
  return p;
}

API vb_cq *ibv_create_cq(vb_context *c, int cqe, void *x, void *channel, int vector) {
  (void)c, (void)x, (void)channel, (void)vector;
  if (fails("cq")) return errno = ENOMEM, NULL;
  vb_cq *q = calloc(1, sizeof *q);
  q->cqe_cnt = up((uint32_t)cqe + 1);
  q->buf = pages(q->cqe_cnt * GCCL_CQE_BYTES);
  for (uint32_t i = 0; i < q->cqe_cnt; i++) q->buf[i * GCCL_CQE_BYTES + GCCL_CQE_OP_OWN] = GCCL_CQE_INVALID << 4;
  pthread_mutex_lock(&lock);
  q->dbrec = place(&records, &used_records, RECORDS);
  pthread_mutex_unlock(&lock);
  *q->dbrec = 0;
  return q;
}
API int ibv_destroy_cq(vb_cq *q) {
  if (q->users) DIE("a completion queue ends before its queue pair");
  munmap(q->buf, (q->cqe_cnt * GCCL_CQE_BYTES + PAGE - 1) / PAGE * PAGE);
  free(q);
  return 0;
}
API vb_qp *ibv_create_qp(vb_pd *pd, vb_qp_init_attr *a) {
  if (fails("qp") || a->cap.max_send_wr > 16384) return errno = EINVAL, NULL;
  if (a->sq_sig_all) DIE("a queue pair whose answers may be scattered into completions");
  pair *p = calloc(1, sizeof *p);
  pthread_mutex_lock(&lock);
  int i = 0;
  while (i < MOST && pairs[i]) i++;
  if (i == MOST) DIE("too many queue pairs");
  p->v = (vb_qp){.context = pd->context, .pd = pd, .send_cq = a->send_cq, .recv_cq = a->recv_cq, .qp_num = (uint32_t)i + 1};
  p->wqe_cnt = up(a->cap.max_send_wr * 2);
  p->buf = pages(p->wqe_cnt * GCCL_WQE_BYTES);
  p->dbrec = place(&records, &used_records, RECORDS);
  p->reg = place(&registers, &used_registers, REGISTERS);
  *p->reg = 0;
  a->send_cq->users++;
  pd->users++;
  pairs[i] = p;
  npairs = i + 1 > npairs ? i + 1 : npairs;
  nqueues++;
  if (!running) {
    pthread_t t;
    running = !pthread_create(&t, NULL, run, NULL) && !pthread_detach(t);
  }
  pthread_mutex_unlock(&lock);
  return &p->v;
}
API int ibv_modify_qp(vb_qp *q, vb_qp_attr *a, int mask) {
  pair *p = (pair *)q;
  int rc = 0;
  pthread_mutex_lock(&lock);
  if (!(mask & VB_QP_STATE) || (a->qp_state && a->qp_state != p->state + 1) || (a->qp_state == VB_QPS_RTR && fails("rtr"))) {
    rc = EINVAL;
  } else {
    p->state = a->qp_state;
    if (mask & VB_QP_ACCESS_FLAGS) p->access = a->qp_access_flags;
    if (mask & VB_QP_DEST_QPN) p->dest = a->dest_qp_num;
  }
  pthread_mutex_unlock(&lock);
  return rc;
}
API int ibv_destroy_qp(vb_qp *q) {
  pair *p = (pair *)q;
  pthread_mutex_lock(&lock);
  pairs[q->qp_num - 1] = NULL;
  q->send_cq->users--;
  q->pd->users--;
  nqueues--;
  pthread_mutex_unlock(&lock);
  munmap(p->buf, (p->wqe_cnt * GCCL_WQE_BYTES + PAGE - 1) / PAGE * PAGE);
  free(p);
  return 0;
}
API int ibv_fork_init(void) { return 0; }
API const char *ibv_wc_status_str(int s) { return s ? "error" : "success"; }

/* ---- mlx5dv, which libmlx5 exports ---- */

API int stub_init_obj(dv_obj *o, uint64_t type) {
  if (fails("init")) return ENOTSUP;
  pthread_mutex_lock(&lock);
  if (type & DV_OBJ_QP) {
    pair *p = (pair *)o->qp.in;
    dv_qp *q = o->qp.out;
    q->dbrec = p->dbrec;
    q->sq.buf = p->buf;
    q->sq.wqe_cnt = p->wqe_cnt;
    q->sq.stride = fails("stride") ? 128 : 64;
    q->bf.reg = p->reg;
    q->bf.size = PAGE / REGISTERS;
    p->direct = 1;
  }
  if (type & DV_OBJ_CQ) {
    vb_cq *c = o->cq.in;
    c->direct = 1;
    *o->cq.out = (dv_cq){.buf = c->buf, .dbrec = c->dbrec, .cqe_cnt = c->cqe_cnt, .cqe_size = fails("cqe") ? 128 : 64};
  }
  pthread_mutex_unlock(&lock);
  return 0;
}
API unsigned char stub_is_supported(vb_device *d) { return d == &device && !fails("supported"); }

__attribute__((destructor)) static void leftovers(void) {
  if (nqueues || nregions || ndomains || contexts)
    fprintf(stderr, "stubnic: %d queue pairs, %d registrations, %d domains, %d contexts are left\n", nqueues, nregions, ndomains, contexts);
}
