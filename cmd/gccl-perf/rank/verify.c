#include "verify.h"

#include <string.h>

#define JUNK 0x5b

void perf_layout_of(struct perf_layout *l, const struct perf_case *c, enum perf_place place, int rank, int nranks,
                    const struct perf_buffer *send, const struct perf_buffer *recv) {
  size_t block = c->count * c->type->bytes;
  l->send_bytes = c->coll->sends_all ? block * (size_t)nranks : block;
  l->recv_bytes = c->coll->receives_all ? block * (size_t)nranks : block;
  l->recv = recv->payload;
  if (place == PERF_OUT_OF_PLACE) {
    l->send = send->payload;
    l->used_bytes[0] = l->send_bytes;
    l->used_bytes[1] = l->recv_bytes;
    return;
  }
  /* in place, the shorter side is this rank's own block of the longer one */
  l->send = recv->payload;
  if (c->coll->receives_all && !c->coll->sends_all) l->send += (size_t)rank * block;
  if (c->coll->sends_all && !c->coll->receives_all) l->recv += (size_t)rank * block;
  l->used_bytes[0] = 0;
  l->used_bytes[1] = l->send_bytes > l->recv_bytes ? l->send_bytes : l->recv_bytes;
}

static struct perf_oracle oracle_of(const struct perf_case *c, int nranks, uint32_t seed) {
  struct perf_oracle o = {c->type, c->op, nranks, seed};
  return o;
}

void perf_verify_prepare(const struct perf_case *c, enum perf_place place, const struct perf_layout *l, int rank, int nranks, uint32_t seed,
                         struct perf_buffer *send, struct perf_buffer *recv) {
  struct perf_oracle o = oracle_of(c, nranks, seed);
  memset(recv->payload, JUNK, l->used_bytes[1]);
  perf_canary_set(recv, l->used_bytes[1]);
  if (place == PERF_OUT_OF_PLACE) perf_canary_set(send, l->used_bytes[0]);
  if (c->coll->reduces)
    perf_fill_numbers(&o, l->send, rank, 0, l->send_bytes / c->type->bytes);
  else
    perf_fill_bytes(&o, l->send, rank, 0, l->send_bytes);
}

static size_t wrong_junk(const char *at, size_t bytes) {
  size_t n = 0;
  for (size_t i = 0; i < bytes; i++) n += at[i] != JUNK;
  return n;
}

/* Elements of the receive buffer that are not what the collective promises. */
static size_t wrong_output(const struct perf_case *c, enum perf_place place, const struct perf_layout *l, int rank, int nranks,
                           const struct perf_oracle *o) {
  size_t block = c->count * c->type->bytes, wrong = 0, own = (size_t)rank * c->count;
  if (c->coll->to_root && rank != c->root) /* a receive buffer that the call must leave alone */
    return place == PERF_OUT_OF_PLACE ? wrong_junk(l->recv, l->recv_bytes) : 0;
  if (c->coll->reduces) return perf_wrong_reduced(o, l->recv, c->coll->sends_all ? own : 0, c->count);
  if (c->coll->receives_all) {
    for (int from = 0; from < nranks; from++)
      wrong += perf_wrong_bytes(o, l->recv + (size_t)from * block, from, c->coll->sends_all ? (size_t)rank * block : 0, block);
    return wrong;
  }
  int from = c->coll->from_root ? c->root : (rank + nranks - 1) % nranks; /* else the ring shift of sendrecv */
  return perf_wrong_bytes(o, l->recv, from, c->coll->sends_all ? (size_t)rank * block : 0, block);
}

long perf_verify_count(const struct perf_case *c, enum perf_place place, const struct perf_layout *l, int rank, int nranks, uint32_t seed,
                       const struct perf_buffer *send, const struct perf_buffer *recv) {
  struct perf_oracle o = oracle_of(c, nranks, seed);
  size_t wrong = wrong_output(c, place, l, rank, nranks, &o);
  wrong += perf_canary_wrong(recv, l->used_bytes[1]);
  if (place == PERF_OUT_OF_PLACE) {
    wrong += perf_canary_wrong(send, l->used_bytes[0]);
    wrong += c->coll->reduces ? perf_wrong_input(&o, l->send, rank, 0, l->send_bytes / c->type->bytes)
                              : perf_wrong_bytes(&o, l->send, rank, 0, l->send_bytes);
  }
  return (long)wrong;
}
