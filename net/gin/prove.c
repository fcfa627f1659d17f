/* The proof of a connection: bytes from this rank's scratch to the peer's mirror of it, and a signal behind them.
 *
 * An object without a communicator has areas and mirrors for the proof alone: an area is the pattern that is put and a word for each rank,
 * a mirror is a pattern. */
#include "gin.h"

uint64_t gin_proof_area(int32_t nranks) { return gccl_align(GIN_PROOF + 8ull * (uint32_t)nranks, 4096); }

static char *area_of(const gin *g) { return g->comm ? g->comm->self.area : g->area.base; }
static uint64_t pattern_off(const gin *g) { return g->comm ? g->comm->geo.p2p : 0; }

/* Beside the one-sided signal word of the pair and the word that says "left": free during creation. */
static uint64_t word_of(const gin *g, int32_t from) {
  return g->comm ? g->comm->geo.signals + (uint64_t)from * GCCL_LINE + 16 : GIN_PROOF + 8ull * (uint32_t)from;
}

int gin_prove(gin *g, int32_t rank, const unsigned char pattern[GIN_PROOF]) {
  gin_peer *p = &g->peer[rank];
  char *src = area_of(g) + pattern_off(g);
  if (!gin_room(g, p, 2)) return 0;
  memcpy(src, pattern, GIN_PROOF);
  gccl_net_wr *w = gin_work(g, p, GCCL_NET_PUT);
  w->remote = &p->mirror;
  w->roff = p->mirror_off + pattern_off(g);
  gin_local(g, p, w, src, GIN_PROOF);
  gccl_msg_signal m = {
      .head = {.kind = GCCL_MSG_SIGNAL, .place = GCCL_AT_AREA, .op = GCCL_SIGNAL_RAISE}, .off = word_of(g, g->rank), .value = 1};
  gin_message(g, p, &m, sizeof m, 0);
  return 1;
}

int gin_proved(gin *g, int32_t rank, const unsigned char pattern[GIN_PROOF]) {
  uint64_t *word = (uint64_t *)(area_of(g) + word_of(g, rank));
  if (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) return 0;
  __atomic_store_n(word, 0, __ATOMIC_RELAXED);
  return memcmp(g->mirrors.base + g->peer[rank].here_off + pattern_off(g), pattern, GIN_PROOF) == 0 ? 1 : -1;
}
