#define _GNU_SOURCE
#include "faulty.h"

#include "../transport/wrap.h"

typedef struct {
  gccl_faulty_want want;
  uint64_t state;
  _Atomic uint64_t count;
} faulty;

/* xorshift64*: any generator with a seed would do. */
static uint64_t next(faulty *f) {
  f->state ^= f->state >> 12;
  f->state ^= f->state << 25;
  f->state ^= f->state >> 27;
  return f->state * 0x2545f4914f6cdd1dull >> 11;
}

static int happens(faulty *f, uint32_t per_1000) {
  if (next(f) % 1000 >= per_1000) return 0;
  atomic_fetch_add_explicit(&f->count, 1, memory_order_relaxed);
  return 1;
}

static int on_post(void *state, gccl_net_conn *c, const gccl_net_wr *w, int n, char *why) {
  (void)w;
  faulty *f = state;
  if (f->want.drop_after && atomic_load_explicit(&c->stats.tx_ops, memory_order_relaxed) >= f->want.drop_after)
    return gccl_net_why(why, -1, "faulty: the connection with rank %d was dropped, as asked", c->peer);
  if (happens(f, f->want.busy)) return 0;
  if (n > 1 && happens(f, f->want.partial)) return 1 + (int)(next(f) % (uint64_t)(n - 1));
  return n;
}

static void on_posted(void *state, gccl_net_conn *c, const gccl_net_wr *w, int n) { (void)state, (void)c, (void)w, (void)n; }

static int on_poll(void *state, int max) {
  faulty *f = state;
  if (happens(f, f->want.late)) return 0;
  return max > 1 && happens(f, f->want.single) ? 1 : max;
}

static void on_event(void *state, const gccl_net_event *e) { (void)state, (void)e; }
static void on_closed(void *state, gccl_net_conn *c) { (void)state, (void)c; }

static const gccl_wrap_hooks hooks = {on_post, on_posted, on_poll, on_event, on_closed};

gccl_net_ep *gccl_faulty_open(gccl_net_ep *inner, const gccl_faulty_want *want) {
  faulty *f = calloc(1, sizeof *f);
  if (!f) return NULL;
  f->want = *want;
  f->state = want->seed * 0x9e3779b97f4a7c15ull | 1;
  gccl_net_ep *e = gccl_wrap_open("faulty", inner, &hooks, f);
  if (!e) free(f);
  return e;
}

gccl_net_conn *gccl_faulty_conn(gccl_net_ep *e, gccl_net_conn *inner) { return gccl_wrap_conn_of(e, inner); }

void gccl_faulty_close(gccl_net_ep *e) {
  void *f = ((gccl_wrap_ep *)e)->state;
  e->ops->close(e);
  free(f);
}

uint64_t gccl_faulty_count(gccl_net_ep *e) { return atomic_load(&((faulty *)((gccl_wrap_ep *)e)->state)->count); }
