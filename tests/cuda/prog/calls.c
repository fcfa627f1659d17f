/* calls.c: how many calls of the driver one all-reduce makes, by name: what its host time consists of. Only the stand-in counts. */
#include <dlfcn.h>

#include "gpu.h"

enum { WARM = 4, COUNTED = 16 };

static const char *(*calls)(unsigned i, unsigned long *n);
static void (*count)(void);

static unsigned long times(const char *name) {
  unsigned long n = 0;
  const char *s;
  for (unsigned i = 0; (s = calls(i, &n)); i++)
    if (!strcmp(s, name)) return n;
  return 0;
}

/* One operation must not make more of them than it needs. */
static void at_most(const struct team *t, const char *name, int most) {
  unsigned long n = times(name);
  atomic_fetch_add(&W->checks, 1);
  if (n > (unsigned long)most * COUNTED)
    conf_fail(t->first, "%s: %.2f calls for an all-reduce, at most %d are needed", name, (double)n / COUNTED, most);
}

static void say(const struct team *t, int count) {
  char line[1024];
  int at = 0;
  unsigned long n = 0, all = 0;
  const char *s;
  for (unsigned i = 0; (s = calls(i, &n)) && at < 900; i++) {
    if (n == 0) continue;
    at += snprintf(line + at, sizeof line - (size_t)at, ", %s %.4g", s, (double)n / COUNTED);
    all += n;
  }
  conf_note("calls of an all-reduce of %d bytes, %d ranks, %s, %s: %.4g%s", 4 * count, t->nranks, conf_launch_name(),
            t->nlocal > 1 ? "all of them"
            : t->first    ? "another rank"
                          : "rank 0",
            (double)all / COUNTED, at ? line : "");
}

static void counted(struct team *t, int ints) {
  void *s[CONF_MAX_RANKS];
  struct sums in, out;
  if (!sums_new(&in, t, ints) || !sums_new(&out, t, ints)) return;
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    if (!CU(t->first + i, cu.StreamCreate(&s[i], CU_NON_BLOCKING))) return;
  }
  sums_put(&in, t, 1);
  conf_barrier(t);
  for (int k = 0; k < WARM + COUNTED; k++) {
    if (k == WARM) count();
    EACH(t, "counted", ncclAllReduce(in.buf[i].at, out.buf[i].at, (size_t)ints, ncclInt32, ncclSum, t->comm[i], s[i]));
  }
  say(t, ints);
  int n = t->nranks;
  if (n == 1) {
    at_most(t, "cuLaunchKernel", 1);
  } else if (gpu_spins() && ints == 2) { /* a launch of each rank, and nothing else in a stream */
    at_most(t, "cuLaunchKernel", t->nlocal);
    at_most(t, "cuEventRecord", 0);
    at_most(t, "cuStreamWaitEvent", 0);
    at_most(t, "cuStreamGetCaptureInfo_v2", t->nlocal);
    at_most(t, "cuStreamBatchMemOp_v2", 0);
  } else if (t->nlocal > 1) { /* a stream that is not the executor's is ordered before and behind it */
    at_most(t, "cuLaunchKernel", 1);
    at_most(t, "cuEventRecord", n);
    at_most(t, "cuStreamWaitEvent", 2 * (n - 1));
    at_most(t, "cuStreamGetCaptureInfo_v2", n);
    at_most(t, "cuStreamBatchMemOp_v2", 0);
  } else if (W->launch == LAUNCH_PROCS) {
    at_most(t, "cuLaunchKernel", t->first == 0);
    at_most(t, "cuEventRecord", 0);
    at_most(t, "cuStreamGetCaptureInfo_v2", 1);
    at_most(t, "cuStreamBatchMemOp_v2", 1);
  }
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    CU(t->first + i, cu.StreamSynchronize(s[i]));
  }
  sums_check(&out, t, 1, "counted");
  for (int i = 0; i < t->nlocal; i++) CU(t->first + i, cu.StreamDestroy(s[i]));
  sums_free(&in, t);
  sums_free(&out, t);
}

void suite_calls(struct team *t) {
  *(void **)&calls = dlsym(RTLD_DEFAULT, "gccl_fake_calls");
  *(void **)&count = dlsym(RTLD_DEFAULT, "gccl_fake_count");
  if (!calls || !count) {
    conf_skip("a driver that counts its calls: this is not the stand-in");
    return;
  }
  counted(t, 2);
  counted(t, 64 << 10); /* many blocks: the last one ends the operation, as a single one does */
}
