/* How spinning kernels end when a rank is missing: by the abort word, or by giving up together. */
#include <stdio.h>
#include <string.h>

#include "device.h"

enum { N = 3, COUNT = 100, BYTES = 4 * COUNT };

typedef struct {
  uint64_t abort, status[N], ticket[N], send[N], recv[N];
} world;

static uint64_t word(const device *d, uint32_t v) {
  uint64_t a = d->alloc(256);
  d->put(a, &v, 4);
  return a;
}

static uint32_t read_word(const device *d, uint64_t a) {
  uint32_t v;
  d->get(&v, a, 4);
  return v;
}

static void fill(const device *d, world *w, gccl_spin_work *k, uint32_t bound) {
  uint32_t data[COUNT], zero = 0;
  const uint64_t *area = areas_of(d, N);
  for (unsigned r = 0; r < N; r++) {
    k[r] = (gccl_spin_work){
        .op = {.version = GCCL_WORK_VERSION, .coll = GCCL_ALL_REDUCE, .dtype = 3, .op = GCCL_WORK_SUM, .nranks = N, .count = COUNT}};
    k[r].rank = r, k[r].abort = w->abort, k[r].status = w->status[r], k[r].bound = bound, k[r].op.ticket = w->ticket[r];
    memcpy(k[r].area, area, N * sizeof *area);
    for (unsigned q = 0; q < N; q++) k[r].op.rank[q] = (gccl_leader_rank){.send = w->send[q], .recv = w->recv[q]};
    for (unsigned i = 0; i < COUNT; i++) data[i] = r + i;
    d->put(w->send[r], data, BYTES);
    memset(data, 0xff, BYTES);
    d->put(w->recv[r], data, BYTES);
    d->put(w->status[r], &zero, 4);
  }
}

/* Whether ranks 0 … n-1 ended so, with results or untouched receive buffers. */
static int ended(const device *d, const world *w, unsigned n, uint32_t status, const char *what) {
  int bad = 0;
  for (unsigned r = 0; r < n; r++) {
    uint32_t got[COUNT], s = read_word(d, w->status[r]);
    d->get(got, w->recv[r], BYTES);
    for (unsigned i = 0; i < COUNT && !bad; i++) bad = got[i] != (status == GCCL_SPIN_DONE ? N * (N - 1) / 2 + N * i : 0xffffffffu);
    if (bad || s != status) printf("FAIL %s: rank %u has status %u, want %u%s\n", what, r, s, status, bad ? "; wrong data" : "");
    bad |= s != status;
  }
  return bad;
}

tally check_endings(const device *d) {
  tally t = {0};
  world w = {.abort = word(d, 0)};
  gccl_spin_work k[N];
  char name[GCCL_KERNEL_NAME];
  for (unsigned r = 0; r < N; r++)
    w.status[r] = word(d, 0), w.ticket[r] = word(d, 0), w.send[r] = d->alloc(BYTES), w.recv[r] = d->alloc(BYTES);
  for (int m = 0; m < 2; m++) {
    enum gccl_spin_method method = m ? GCCL_SPIN_LL_METHOD : GCCL_SPIN_DIRECT;
    gccl_spin_kernel_name(name, method, GCCL_ALL_REDUCE, 3, GCCL_WORK_SUM);
    /* The last rank comes too late: all give up, it too. Then everything goes on. */
    fill(d, &w, k, 1000);
    gccl_launch_dims dims = gccl_spin_dims(k, method, 4);
    d->launch_all(name, k, sizeof *k, N - 1, dims);
    t.cases++, t.failed += (uint64_t)ended(d, &w, N - 1, GCCL_SPIN_GAVE_UP, "a missing rank, bounded");
    d->launch_all(name, k + N - 1, sizeof *k, 1, dims);
    t.cases++, t.failed += (uint64_t)ended(d, &w, N, GCCL_SPIN_GAVE_UP, "a late rank, bounded");
    for (int again = 0; again < 2; again++) {
      fill(d, &w, k, again ? 0 : 10000000);
      d->launch_all(name, k, sizeof *k, N, dims);
      t.cases++, t.failed += (uint64_t)ended(d, &w, N, GCCL_SPIN_DONE, "the next operation");
    }
    /* The leader's kernel does nothing where the spinning ones were done. */
    gccl_leader_work leader = k[0].op;
    char leading[GCCL_KERNEL_NAME];
    gccl_leader_kernel_name(leading, GCCL_ALL_REDUCE, 3, GCCL_WORK_PROD);
    leader.op = GCCL_WORK_PROD, leader.unless = w.status[0];
    d->launch(leading, &leader, gccl_leader_dims(&leader, 4));
    d->finish();
    t.cases++, t.failed += (uint64_t)ended(d, &w, N, GCCL_SPIN_DONE, "a leader that is not needed");
  }
  /* Last, because epochs of these areas are apart afterwards: an abort ends the waits. */
  for (int m = 0; m < 2; m++) {
    enum gccl_spin_method method = m ? GCCL_SPIN_LL_METHOD : GCCL_SPIN_DIRECT;
    uint32_t one = 1;
    gccl_spin_kernel_name(name, method, GCCL_ALL_REDUCE, 3, GCCL_WORK_SUM);
    fill(d, &w, k, 0);
    d->put(w.abort, &one, 4);
    d->launch_all(name, k, sizeof *k, N - 1, gccl_spin_dims(k, method, 4));
    t.cases++, t.failed += (uint64_t)ended(d, &w, N - 1, GCCL_SPIN_ABORTED, "an abort");
  }
  return t;
}
