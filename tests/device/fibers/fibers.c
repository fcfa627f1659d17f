/* fibers.c: the runtime of kernels on the CPU by itself, in plain C, so that it is also run where no C++ compiler for the target is
 * (make test-arm64): 64 threads keep integer and floating values in registers over barriers, exchanges and returns. */
#include <stdio.h>

#include <gccl_device/impl/cpu_runtime.h>

enum { CTAS = 3, THREADS = 64, ROUNDS = 10 };

static int returned, wrong;

static void body(void *arg) {
  int me = (int)gccl_cpu_current->rank, *none = arg;
  double x = 1.5 + me;
  float y = 2.0f;
  for (int i = 0; i < ROUNDS; i++) {
    int theirs = -1;
    uint32_t votes = gccl_cpu_barrier(0, 0, me == i);
    gccl_cpu_exchange(0xffffffffu, &me, &theirs, sizeof me, 3);
    x += y;
    if (votes != 1 || theirs != 3 + (me & ~31) || gccl_cpu_ballot(0xffffffffu, me % 32 == 5) != 1u << 5)
      __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
  }
  if (x != 1.5 + me + 2 * ROUNDS || none != NULL) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&returned, 1, __ATOMIC_RELAXED);
}

int main(void) {
  struct gccl_cpu_launch l = {.size = sizeof l, .grid = {CTAS, 1, 1}, .block = {THREADS, 1, 1}, .body = body};
  void *h;
  int rc = gccl_cpu_start(&l, &h);
  if (rc == 0) rc = gccl_cpu_finish(h);
  printf("fibers: result %d, %d of %d threads returned, %d wrong %s\n", rc, returned, CTAS * THREADS, wrong, gccl_cpu_error());
  return rc != 0 || returned != CTAS * THREADS || wrong != 0;
}
