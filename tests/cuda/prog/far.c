/* far.c: what ranks on several hosts are refused with GPU memory; the communicator goes on. */
#include "gpu.h"

enum { SMALL = 1000 };

void suite_farlimits(struct team *t) {
  struct sums v;
  if (!sums_new(&v, t, SMALL)) return;
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    void *stream, *graph;
    mem_rank(r);
    CU(r, cu.StreamCreate(&stream, CU_NON_BLOCKING));
    CU(r, cu.StreamBeginCapture(stream, CU_CAPTURE_THREAD_LOCAL));
    RC(r, ncclInvalidUsage, sums_call(&v, i, t->comm[i], stream));
    TRUE(r, strstr(ncclGetLastError(NULL), "captured") != NULL);
    CU(r, cu.StreamEndCapture(stream, &graph));
    CU(r, cu.GraphDestroy(graph));
    CU(r, cu.StreamDestroy(stream));
    RC(r, ncclInvalidUsage, ncclSignal((r + 1) % t->nranks, 0, 0, 0, t->comm[i], NULL));
    TRUE(r, strstr(ncclGetLastError(NULL), "one host") != NULL);
  }
  for (int round = 0; round < 3; round++) {
    sums_put(&v, t, round);
    EACH(t, "a sum between hosts", sums_call(&v, i, t->comm[i], NULL));
    for (int i = 0; i < t->nlocal; i++) {
      mem_rank(t->first + i);
      CU(t->first + i, cu.StreamSynchronize(NULL));
    }
    if (!sums_check(&v, t, round, "a sum between hosts")) break;
  }
  sums_free(&v, t);
}
