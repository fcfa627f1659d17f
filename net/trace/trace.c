#define _GNU_SOURCE
#include "trace.h"

#include <time.h>

#include "../transport/wrap.h"

/* The lock is for readers: the data path has one thread. */
typedef struct {
  pthread_mutex_t lock;
  uint64_t opened, n;
  gccl_trace_line line[GCCL_TRACE_LINES];
} trace;

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void add(trace *t, gccl_trace_line l) {
  pthread_mutex_lock(&t->lock);
  l.ns = now() - t->opened;
  t->line[t->n++ % GCCL_TRACE_LINES] = l;
  pthread_mutex_unlock(&t->lock);
}

static int on_post(void *state, gccl_net_conn *c, const gccl_net_wr *w, int n, char *why) {
  (void)state, (void)c, (void)w, (void)why;
  return n;
}

static void on_posted(void *state, gccl_net_conn *c, const gccl_net_wr *w, int n) {
  for (int i = 0; i < n; i++)
    add(state, (gccl_trace_line){
                   .peer = c->peer, .what = w[i].op, .flags = w[i].flags, .bytes = w[i].bytes, .off = w[i].roff, .cookie = w[i].cookie});
}

static int on_poll(void *state, int max) {
  (void)state;
  return max;
}

static void on_event(void *state, const gccl_net_event *e) {
  add(state, (gccl_trace_line){.peer = e->conn->peer, .is_event = 1, .what = (uint8_t)e->kind, .bytes = e->bytes, .cookie = e->cookie});
}

static void on_closed(void *state, gccl_net_conn *c) { (void)state, (void)c; }

static const gccl_wrap_hooks hooks = {on_post, on_posted, on_poll, on_event, on_closed};

gccl_net_ep *gccl_trace_open(gccl_net_ep *inner) {
  trace *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  pthread_mutex_init(&t->lock, NULL);
  t->opened = now();
  gccl_net_ep *e = gccl_wrap_open("trace", inner, &hooks, t);
  if (!e) free(t);
  return e;
}

gccl_net_conn *gccl_trace_conn(gccl_net_ep *e, gccl_net_conn *inner) { return gccl_wrap_conn_of(e, inner); }

void gccl_trace_close(gccl_net_ep *e) {
  trace *t = ((gccl_wrap_ep *)e)->state;
  e->ops->close(e);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

/* Copies the last lines, oldest first, to an array of GCCL_TRACE_LINES; returns how many were ever written. */
uint64_t gccl_trace_read(gccl_net_ep *e, gccl_trace_line *out) {
  trace *t = ((gccl_wrap_ep *)e)->state;
  pthread_mutex_lock(&t->lock);
  uint64_t n = t->n, from = n > GCCL_TRACE_LINES ? n - GCCL_TRACE_LINES : 0;
  for (uint64_t i = from; i < n; i++) out[i - from] = t->line[i % GCCL_TRACE_LINES];
  pthread_mutex_unlock(&t->lock);
  return n;
}
