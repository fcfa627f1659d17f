/* onequeue.c: streams that share a hardware queue. A send from a thread of its own, on its stream; a collective on another one; and only
 * then the other rank receives. A stream that waited on the GPU for the receiver would hold up the collective. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "gpu.h"

enum { COUNT = 600, BYTES = COUNT * sizeof(float), MOST_MS = 20 };

struct sender {
  ncclComm_t comm;
  int rank;
  struct buf from;
  void *stream;
  _Atomic int returned;
};

static void *send_one(void *arg) {
  struct sender *s = arg;
  if (mem_start(s->rank)) OK(s->rank, ncclSend(s->from.at, COUNT, ncclFloat, 1 - s->rank, s->comm, s->stream));
  s->returned = 1;
  return NULL;
}

static int round_of(struct sender *s, struct team *t, struct sums *v, ncclComm_t back, const struct buf *in, void *const stream[2],
                    int round) {
  pthread_t thread;
  int me = s->rank;
  float *out = (float *)s->from.copy, *got = (float *)in->copy;
  for (int i = 0; i < COUNT; i++) out[i] = (float)(1000 * round + 10 * me + i % 7);
  buf_put(&s->from, 0, BYTES);
  sums_put(v, t, round);
  s->returned = 0;
  if (pthread_create(&thread, NULL, send_one, s)) return 0;
  for (int k = 0; k < MOST_MS && !s->returned; k++) usleep(1000);
  OK(me, sums_call(v, 0, t->comm[0], stream[0]));
  OK(me, ncclRecv(in->at, COUNT, ncclFloat, 1 - me, back, stream[1]));
  pthread_join(thread, NULL);
  CU(me, cu.StreamSynchronize(s->stream));
  for (int k = 0; k < 2; k++) CU(me, cu.StreamSynchronize(stream[k]));
  buf_get(in, 0, BYTES);
  for (int i = 0; i < COUNT; i++) {
    float want = (float)(1000 * round + 10 * (1 - me) + i % 7);
    if (got[i] != want) return conf_fail(me, "element %d: want %g, got %g", i, want, got[i]), 0;
  }
  return sums_check(v, t, round, "beside messages");
}

void suite_onequeue(struct team *t) {
  ncclComm_t way[2]; /* messages from 0 to 1, from 1 to 0 */
  void *stream[2];
  struct sums v;
  struct buf in;
  int me = t->first;
  struct sender s = {.rank = me};
  if (t->nranks != 2 || t->nlocal != 1) return conf_skip("two ranks, a process each");
  for (int k = 0; k < 2; k++) {
    if (!OK(me, ncclCommSplit(t->comm[0], 0, me, &way[k], NULL)) || !OK(me, gcclCommMeetOnHost(way[k], 1))) return;
    if (!CU(me, cu.StreamCreate(&stream[k], CU_NON_BLOCKING))) return;
  }
  s.comm = way[me];
  if (!CU(me, cu.StreamCreate(&s.stream, CU_NON_BLOCKING)) || !buf_new(&s.from, me, BYTES) || !buf_new(&in, me, BYTES) ||
      !sums_new(&v, t, COUNT))
    return;
  for (int round = 0; round < gpu_rounds(100); round++) {
    conf_at(me, "a send, a collective, a receive, round %d", round);
    if (!round_of(&s, t, &v, way[1 - me], &in, stream, round)) break;
  }
  CU(me, cu.StreamDestroy(s.stream));
  for (int k = 0; k < 2; k++) {
    CU(me, cu.StreamDestroy(stream[k]));
    OK(me, ncclCommDestroy(way[k]));
  }
  buf_free(&s.from, me);
  buf_free(&in, me);
  sums_free(&v, t);
}
