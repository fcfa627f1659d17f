/* Memory that peers reach: registrations with every endpoint, windows, mirrors. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "gin.h"

static const uint64_t SETTLE_NS = 2000000000; /* for what a peer or a kernel has asked for and nobody waits for */

void gin_deregister(gin_region *r) {
  for (int i = 0; i < GIN_ENDPOINTS; i++) {
    if (r->mr[i]) r->mr[i]->ep->ops->dereg(r->mr[i]);
    r->mr[i] = NULL;
  }
  r->base = NULL;
}

int gin_register(gin *g, gin_region *r, void *base, uint64_t bytes, char *why) {
  gccl_net_mem m = {.addr = base, .bytes = bytes, .dmabuf = -1};
  r->bytes = bytes;
  r->base = base;
  for (int i = 0; i < GIN_ENDPOINTS; i++) {
    if (!g->ep[i] || r->mr[i]) continue;
    int rc = g->ep[i]->ops->reg(g->ep[i], &m, &r->mr[i], why);
    if (rc < 0) {
      r->mr[i] = NULL;
      return rc;
    }
  }
  return 0;
}

int gin_import(gin *g, int32_t rank, const void *blob, uint32_t bytes, gccl_net_rmr *out, char *why) {
  gin_peer *p = &g->peer[rank];
  if (!p->conn) return gccl_net_why(why, GCCL_NET_EINVAL, "rank %d is not connected", rank);
  return p->conn->ops->import(p->conn, blob, bytes, out, why);
}

int gin_window_add(gin *g, uint32_t number, void *base, uint64_t bytes, gin_window **out, char *why) {
  for (int i = 0; i < GIN_WINDOWS; i++) {
    gin_window *w = &g->window[i];
    if (w->number) continue;
    if (!w->remote && !(w->remote = calloc((size_t)g->nranks, sizeof *w->remote)))
      return gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
    memset(w->remote, 0, (size_t)g->nranks * sizeof *w->remote);
    int rc = gin_register(g, &w->local, base, bytes, why);
    if (rc < 0) {
      gin_deregister(&w->local);
      return rc;
    }
    if (!w->keys.rkeys && !(w->keys.rkeys = calloc((size_t)g->nranks, sizeof *w->keys.rkeys))) {
      gin_deregister(&w->local);
      return gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
    }
    if (g->card && (rc = g->card->ops->reg(g->card, base, bytes, 0, &w->mr, why)) < 0) {
      gin_deregister(&w->local);
      return rc;
    }
    w->keys.lkey = gccl_be32(g->card ? w->mr->lkey : nic_key(NIC_KEY_WINDOW, number));
    for (int32_t r = 0; r < g->nranks; r++) w->keys.rkeys[r] = g->card ? 0 : w->keys.lkey; /* those of a card are the peers' */
    if (g->card) w->keys.rkeys[g->rank] = gccl_be32(w->mr->rkey);
    w->number = number;
    *out = w;
    return 0;
  }
  return gccl_net_why(why, GCCL_NET_ENOMEM, "all %d windows are in use", GIN_WINDOWS);
}

int gin_window_mapped(gin *g, const gccl_window *c, gin_window **out, char *why) {
  for (int i = 0; i < GIN_WINDOWS; i++) {
    gin_window *w = &g->window[i];
    if (w->number) continue;
    size_t n = (size_t)g->nranks;
    if (!w->remote) w->remote = calloc(n, sizeof *w->remote);
    if (!w->keys.rkeys) w->keys.rkeys = calloc(n, sizeof *w->keys.rkeys);
    if (!w->remote || !w->keys.rkeys) return gccl_net_why(why, GCCL_NET_ENOMEM, "out of memory");
    w->keys.lkey = gccl_be32(nic_key(NIC_KEY_WINDOW, c->number));
    for (size_t r = 0; r < n; r++) {
      int far = gin_far_memory(g, (int32_t)r) != NULL;
      w->remote[r] =
          (gccl_net_rmr){.base = far ? 0 : (uint64_t)(uintptr_t)c->flat + r * c->stride, .bytes = c->peer_size[r], .key = {c->number}};
      w->keys.rkeys[r] = w->keys.lkey;
    }
    w->local.base = c->flat + (uint64_t)g->rank * c->stride;
    w->local.bytes = c->size;
    w->number = c->number;
    if (c->number > g->numbers) g->numbers = c->number;
    *out = w;
    return 0;
  }
  return gccl_net_why(why, GCCL_NET_ENOMEM, "all %d windows are in use", GIN_WINDOWS);
}

void gin_window_end(gin_window *w) {
  w->number = 0;
  gin_deregister(&w->local);
  if (w->mr) w->mr->card->ops->dereg(w->mr);
  w->mr = NULL;
}

void gin_window_drop(gin *g, uint32_t number) {
  gin_window *w = gin_window_of(g, number);
  if (!w) return;
  if (g->mover) gin_lanes_settle(g, SETTLE_NS);
  gin_window_end(w);
}

void *gin_alloc(gin *g, uint64_t bytes) {
  if (g->mover) return g->mover->ops->pinned(g->mover, bytes);
  bytes = gccl_align(bytes ? bytes : 1, 2 * GCCL_LINE);
  void *at = aligned_alloc(2 * GCCL_LINE, bytes);
  return at ? memset(at, 0, bytes) : NULL;
}

void gin_give(gin *g, void *at) {
  if (g->mover)
    g->mover->ops->unpin(g->mover, at);
  else
    free(at);
}

char *gin_mirror(uint64_t bytes) {
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

void gin_unmirror(gin *g) {
  char *base = g->mirrors.base;
  gin_far_deregister(g);
  gin_deregister(&g->mirrors);
  if (base) munmap(base, g->mirrors.bytes);
  base = g->area.base;
  gin_deregister(&g->area);
  if (base && !g->comm) munmap(base, g->area.bytes);
}

void gin_dismiss(gin *g, int slot) {
  for (int32_t q = 0; q < g->nranks; q++) {
    gccl_net_conn *c = g->peer[q].conn;
    if (!c || g->peer[q].endpoint != slot) continue;
    gin_connect(g, q, 0, NULL);
    c->ops->close_conn(c);
  }
  gin_region *r[] = {&g->area, &g->mirrors};
  for (int i = 0; i < 2; i++) {
    if (r[i]->mr[slot]) r[i]->mr[slot]->ep->ops->dereg(r[i]->mr[slot]);
    r[i]->mr[slot] = NULL;
  }
  g->ep[slot] = NULL;
}
