/* Signals by place and atomics on words of windows that the CPU cannot touch. The owner's agent fetches the word, adds, and stores it, one word at a
 * time; whatever wants the same word next is added in one go. So the agent is the word's only writer but for resets: kernels signal such words through
 * their backend alone, also at ranks whose memory they store to (gccl_gin_direct.places).
 */
#include <stdlib.h>

#include "gin.h"

enum { FETCH, FETCHING, STORE, STORING }; /* of the first words */

int gin_add(gin *g, gin_peer *p, char *at, uint64_t value, const gin_answer *answer) {
  gin_adds *q = &g->adds;
  if (q->n == q->room) {
    uint32_t room = q->room ? 2 * q->room : 64;
    gin_add_entry *add = malloc(room * sizeof *add);
    if (!add) return 0;
    for (uint32_t i = 0; i < q->n; i++) add[i] = q->add[(q->first + i) & (q->room - 1)];
    free(q->add);
    q->add = add;
    q->room = room;
    q->first = 0;
  }
  gin_add_entry *last = q->n ? &q->add[(q->first + q->n - 1) & (q->room - 1)] : NULL;
  if (last && q->n > q->taken && last->at == (uint64_t)(uintptr_t)at && !last->wanted && !answer) {
    last->value += value; /* so the queue does not grow with signals that nobody has waited for */
    return 1;
  }
  gin_add_entry *e = &q->add[(q->first + q->n++) & (q->room - 1)];
  *e = (gin_add_entry){.at = (uint64_t)(uintptr_t)at, .value = value, .rank = p->rank, .wanted = answer != NULL};
  if (answer) e->answer = *answer;
  return 1;
}

/* All at the front that want the same word. */
static void add_up(gin_adds *q, uint64_t word) {
  uint64_t at = q->add[q->first].at;
  for (q->taken = 0; q->taken < q->n; q->taken++) {
    gin_add_entry *e = &q->add[(q->first + q->taken) & (q->room - 1)];
    if (e->at != at) break;
    e->answer.old = word;
    word += e->value;
  }
  q->word = word;
}

int gin_adds_serve(gin *g) {
  gin_adds *q = &g->adds;
  gccl_mover *m = g->mover;
  if (q->n == 0) return 0;
  if ((q->state == FETCHING || q->state == STORING) && !gccl_mover_reached(m, q->mark)) return 0;
  switch (q->state) {
  case FETCH:
    m->ops->begin(m);
    q->from = m->ops->fetch(m, q->add[q->first].at);
    m->ops->end(m);
    if (!q->from) return 0;
    q->mark = m->marks;
    q->state = FETCHING;
    return 1;
  case FETCHING:
    add_up(q, *q->from);
    q->state = STORE;
    /* fall through */
  case STORE:
    m->ops->begin(m);
    int stored = m->ops->value(m, q->add[q->first].at, &q->word, sizeof q->word);
    m->ops->end(m);
    if (!stored) return 0;
    q->mark = m->marks;
    q->state = STORING;
    return 1;
  default:
    for (; q->taken; q->taken--, q->n--) {
      gin_add_entry *e = &q->add[q->first];
      if (e->wanted) gin_nic_owe(g, &g->peer[e->rank], &e->answer);
      q->first = (q->first + 1) & (q->room - 1);
    }
    q->state = FETCH;
    return 1;
  }
}
