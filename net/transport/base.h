/* What several transports need: the table of an endpoint's registrations, its list of connections, and queues. */
#ifndef GCCL_NET_BASE_H
#define GCCL_NET_BASE_H

#include <pthread.h>
#include <stdlib.h>

#include "transport.h"

/* ---- Registrations by key --------------------------------------------------------------------------------------------
 *
 * A key is index and generation, so that one of a registration that is gone fits nothing. Looked up without a lock by whoever stores
 * into the memory; changed under the lock. Blocks are never moved. */

enum { GCCL_MRT_BLOCK = 64, GCCL_MRT_BLOCKS = 256 };

typedef struct {
  gccl_net_mr mr;       /* first: a registration is its entry */
  _Atomic uint32_t key; /* stored last (release; acquired in gccl_mrt_find); 0: free */
  uint32_t index, generation;
} gccl_mrt_entry;

typedef struct {
  pthread_mutex_t lock;
  _Atomic(gccl_mrt_entry *) block[GCCL_MRT_BLOCKS];
} gccl_mrt;

static inline void gccl_mrt_init(gccl_mrt *t) { pthread_mutex_init(&t->lock, NULL); }

__attribute__((unused)) static void gccl_mrt_free(gccl_mrt *t) {
  for (int b = 0; b < GCCL_MRT_BLOCKS; b++) free(atomic_load(&t->block[b]));
  pthread_mutex_destroy(&t->lock);
}

enum { GCCL_MRT_GENERATION_BITS = 18 }; /* the rest is 1 + index */

/* Reserves an entry. It cannot be found before gccl_mrt_publish. */
__attribute__((unused)) static gccl_mrt_entry *gccl_mrt_add(gccl_mrt *t, gccl_net_ep *ep, const gccl_net_mem *m) {
  gccl_mrt_entry *found = NULL;
  pthread_mutex_lock(&t->lock);
  for (int b = 0; b < GCCL_MRT_BLOCKS && !found; b++) {
    gccl_mrt_entry *e = atomic_load_explicit(&t->block[b], memory_order_relaxed);
    if (!e) {
      e = calloc(GCCL_MRT_BLOCK, sizeof *e);
      if (!e) break;
      for (int i = 0; i < GCCL_MRT_BLOCK; i++) e[i].index = (uint32_t)(b * GCCL_MRT_BLOCK + i);
      atomic_store_explicit(&t->block[b], e, memory_order_release);
    }
    for (int i = 0; i < GCCL_MRT_BLOCK && !found; i++)
      if (!e[i].mr.ep) found = &e[i];
  }
  if (found) {
    found->mr.ep = ep;
    found->mr.addr = m->addr;
    found->mr.bytes = m->bytes;
    found->generation = (found->generation + 1) & ((1u << GCCL_MRT_GENERATION_BITS) - 1);
  }
  pthread_mutex_unlock(&t->lock);
  return found;
}

static inline uint32_t gccl_mrt_key(const gccl_mrt_entry *e) { return (e->index + 1) << GCCL_MRT_GENERATION_BITS | e->generation; }

static inline void gccl_mrt_publish(gccl_mrt_entry *e) { atomic_store_explicit(&e->key, gccl_mrt_key(e), memory_order_release); }

__attribute__((unused)) static void gccl_mrt_drop(gccl_mrt *t, gccl_mrt_entry *e) {
  pthread_mutex_lock(&t->lock);
  atomic_store_explicit(&e->key, 0, memory_order_release);
  e->mr.ep = NULL;
  pthread_mutex_unlock(&t->lock);
}

/* The registration of a key that a peer sent, or NULL. */
static inline gccl_net_mr *gccl_mrt_find(gccl_mrt *t, uint32_t key) {
  uint32_t index = (key >> GCCL_MRT_GENERATION_BITS) - 1;
  if (index >= GCCL_MRT_BLOCK * GCCL_MRT_BLOCKS) return NULL;
  gccl_mrt_entry *e = atomic_load_explicit(&t->block[index / GCCL_MRT_BLOCK], memory_order_acquire);
  if (!e) return NULL;
  e += index % GCCL_MRT_BLOCK;
  return atomic_load_explicit(&e->key, memory_order_acquire) == key ? &e->mr : NULL;
}

/* The blob of transports that need no more than a key: magic, key, bytes. */
enum { GCCL_MRT_BLOB = 16, GCCL_MRT_MAGIC = 0x524d4e47 /* "GNMR" */ };

static inline void gccl_mrt_blob(gccl_mrt_entry *e) {
  uint32_t magic = GCCL_MRT_MAGIC, key = gccl_mrt_key(e);
  memcpy(e->mr.blob, &magic, 4);
  memcpy(e->mr.blob + 4, &key, 4);
  memcpy(e->mr.blob + 8, &e->mr.bytes, 8);
  e->mr.blob_bytes = GCCL_MRT_BLOB;
}

__attribute__((unused)) static int gccl_mrt_import(const void *blob, uint32_t bytes, gccl_net_rmr *out, char *why) {
  uint32_t magic = 0;
  if (bytes == GCCL_MRT_BLOB) memcpy(&magic, blob, 4);
  if (magic != GCCL_MRT_MAGIC) return gccl_net_why(why, GCCL_NET_EINVAL, "%u bytes that are no registration of this transport", bytes);
  memset(out, 0, sizeof *out);
  memcpy(&out->key[0], (const unsigned char *)blob + 4, 4);
  memcpy(&out->bytes, (const unsigned char *)blob + 8, 8);
  return 0;
}

/* ---- Connections of an endpoint --------------------------------------------------------------------------------------
 *
 * Added by any thread, walked and removed by the data-path thread. */

typedef struct {
  pthread_mutex_t lock;
  _Atomic(gccl_net_conn *) first;
} gccl_conns;

static inline void gccl_conns_add(gccl_conns *l, gccl_net_conn *c) {
  pthread_mutex_lock(&l->lock);
  atomic_store_explicit(&c->next, atomic_load_explicit(&l->first, memory_order_relaxed), memory_order_relaxed);
  atomic_store_explicit(&l->first, c, memory_order_release); /* acquired in gccl_conns_first */
  pthread_mutex_unlock(&l->lock);
}

__attribute__((unused)) static void gccl_conns_remove(gccl_conns *l, gccl_net_conn *c) {
  pthread_mutex_lock(&l->lock);
  _Atomic(gccl_net_conn *) *at = &l->first;
  gccl_net_conn *x;
  while ((x = atomic_load_explicit(at, memory_order_relaxed)) && x != c) at = &x->next;
  if (x) atomic_store_explicit(at, atomic_load_explicit(&c->next, memory_order_relaxed), memory_order_relaxed);
  pthread_mutex_unlock(&l->lock);
}

static inline gccl_net_conn *gccl_conns_first(gccl_conns *l) { return atomic_load_explicit(&l->first, memory_order_acquire); }
static inline gccl_net_conn *gccl_conns_next(gccl_net_conn *c) { return atomic_load_explicit(&c->next, memory_order_acquire); }

/* ---- Completions that wait for poll: used by the data-path thread only ----------------------------------------------- */

typedef struct {
  gccl_net_conn *conn;
  uint64_t cookie;
} gccl_done;

enum { GCCL_DONES = 1 << 12 };

typedef struct {
  uint32_t head, tail;
  gccl_done at[GCCL_DONES];
} gccl_dones;

static inline uint32_t gccl_dones_room(const gccl_dones *q) { return GCCL_DONES - (q->tail - q->head); }
static inline void gccl_dones_add(gccl_dones *q, gccl_net_conn *c, uint64_t cookie) {
  q->at[q->tail++ % GCCL_DONES] = (gccl_done){c, cookie};
}

/* Moves completions to events; those of a connection that has failed are dropped. */
static inline int gccl_dones_take(gccl_dones *q, gccl_net_event *ev, int max) {
  int n = 0;
  for (; q->head != q->tail && n < max; q->head++) {
    gccl_done *d = &q->at[q->head % GCCL_DONES];
    if (!d->conn || gccl_net_faulted(&d->conn->fault)) continue;
    ev[n].conn = d->conn;
    ev[n].kind = GCCL_NET_EV_DONE;
    ev[n].bytes = 0;
    ev[n++].cookie = d->cookie;
  }
  return n;
}

/* Forgets a connection that is about to be freed. */
static inline void gccl_dones_forget(gccl_dones *q, const gccl_net_conn *c) {
  for (uint32_t i = q->head; i != q->tail; i++)
    if (q->at[i % GCCL_DONES].conn == c) q->at[i % GCCL_DONES].conn = NULL;
}

/* Stores what a work request of up to GCCL_NET_MSG bytes carries. Eight aligned bytes are stored as one: readers poll such words. */
static inline void gccl_net_store_small(void *to, const void *from, uint64_t bytes) {
  if (bytes == 8 && !((uintptr_t)to & 7)) {
    uint64_t v;
    memcpy(&v, from, 8);
    __atomic_store_n((uint64_t *)to, v, __ATOMIC_RELAXED);
  } else {
    memcpy(to, from, bytes);
  }
}

#endif
