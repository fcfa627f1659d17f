#define _GNU_SOURCE
#include "faulty.h"

#include <string.h>
#include <time.h>

#include "../transport/wrap.h"

typedef struct {
  gccl_faulty_want want;
  uint64_t state;
  _Atomic uint64_t count;
  gccl_net_link link[GCCL_NET_LINKS];
  uint64_t free_at[GCCL_NET_LINKS]; /* when a link has carried what was given to it */
  uint64_t done_at;                 /* when all have */
} faulty;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

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

static void on_posted(void *state, gccl_net_conn *c, const gccl_net_wr *w, int n) {
  (void)c;
  faulty *f = state;
  if (!f->want.nlinks || n <= 0) return;
  uint64_t now = now_ns();
  for (int i = 0; i < n; i++) {
    int k = 0;
    for (int l = 1; l < f->want.nlinks; l++)
      if (f->free_at[l] < f->free_at[k]) k = l;
    uint64_t takes = (uint64_t)((double)w[i].bytes * 1e9 / f->want.link[k].bytes_per_second);
    if (f->free_at[k] < now) f->free_at[k] = now;
    f->free_at[k] += takes;
    if (f->free_at[k] > f->done_at) f->done_at = f->free_at[k];
    gccl_net_count(&f->link[k].bytes, w[i].bytes);
    gccl_net_count(&f->link[k].busy_ns, takes);
  }
}

static int on_poll(void *state, int max) {
  faulty *f = state;
  if (f->done_at && now_ns() < f->done_at) return 0;
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
  if (!e) {
    free(f);
    return NULL;
  }
  for (int i = 0; i < want->nlinks; i++) {
    memcpy(f->link[i].name, want->link[i].name, sizeof f->link[i].name);
    f->link[i].port = want->link[i].port;
  }
  if (want->nlinks) e->link = f->link, e->nlinks = want->nlinks;
  return e;
}

gccl_net_conn *gccl_faulty_conn(gccl_net_ep *e, gccl_net_conn *inner) { return gccl_wrap_conn_of(e, inner); }

void gccl_faulty_close(gccl_net_ep *e) {
  void *f = ((gccl_wrap_ep *)e)->state;
  e->ops->close(e);
  free(f);
}

uint64_t gccl_faulty_count(gccl_net_ep *e) { return atomic_load(&((faulty *)((gccl_wrap_ep *)e)->state)->count); }
