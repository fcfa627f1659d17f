/* far.c: ranks on several hosts with GPU memory: operations that are copied in chunks, and what is refused. */
#include <dlfcn.h>
#include <nccl_device.h>

#include "coll.h"
#include "gpu.h"
#include "numfmt.h"

enum { SMALL = 1000, LARGE = 5 << 20 };

/* Every collective and messages, with buffers that are copied in chunks and end in the middle of one. Where the driver counts its calls, the
 * stream waits for chunks: more than once an operation. */
void suite_farchunks(struct team *t) {
  static const ncclDataType_t types[] = {ncclFloat32, ncclInt8, ncclFloat16};
  const char *(*calls)(unsigned, unsigned long *) = NULL;
  void (*count)(void) = NULL;
  struct pool p;
  *(void **)&calls = dlsym(RTLD_DEFAULT, "gccl_fake_calls");
  *(void **)&count = dlsym(RTLD_DEFAULT, "gccl_fake_count");
  if (!pool_make(&p, t, t->comm, LARGE + 4096)) return;
  if (count) count();
  unsigned long cases = 0, waits = 0, n = 0;
  for (int kind = 0; kind < K_COUNT; kind++)
    for (int inplace = 0; inplace < 2; inplace++) {
      struct coll_case c = {
          .kind = kind, .inplace = inplace, .type = types[(kind + inplace) % 3], .root = (kind + inplace) % t->nranks, .seed = 7};
      if ((kind == K_BCAST && !inplace) || ((kind == K_ALLTOALL || kind == K_SENDRECV) && inplace)) continue;
      size_t parts = kind == K_REDUCESCATTER || (kind >= K_ALLGATHER && kind != K_BROADCAST && kind != K_BCAST && kind != K_SENDRECV)
                         ? (size_t)t->nranks
                         : 1;
      c.count = (LARGE / num_size(c.type) / parts - 12345) | 1;
      c.flavour = EXACT;
      coll_run_case(t, t->comm, &p, &c);
      cases++;
    }
  coll_compare_hashes(t);
  for (unsigned i = 0; calls; i++) {
    const char *name = calls(i, &n);
    if (!name) break;
    if (!strncmp(name, "cuStreamWaitValue32", 19)) waits += n;
  }
  TRUE(t->first, !calls || waits > 2 * cases);
  pool_free(&p, t, t->comm);
}

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
    ncclCommProperties_t props = NCCL_COMM_PROPERTIES_INITIALIZER;
    RC(r, ncclSuccess, ncclCommQueryProperties(t->comm[i], &props));
    TRUE(r, !props.hostRmaSupport && props.deviceApiSupport);
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
