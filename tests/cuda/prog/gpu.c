/* gpu.c: see gpu.h. */
#include "gpu.h"

int gpu_rounds(int on_gpu) {
  const char *v = getenv("GCCL_TEST_ROUNDS");
  if (v) return atoi(v) * on_gpu / 1000 + 1;
  return on_gpu / 10 + 1;
}

/* One entry, one structure by value as its parameter. Bounded in time, so that a mistake of a test does not take the GPU away. */
static const char ptx[] = ".version 7.0\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry gccl_test_busy(.param .align 8 .b8 p[32]) {\n"
                          ".reg .b64 %word, %started, %limit, %t0, %t1;\n"
                          ".reg .b32 %value, %now, %one;\n"
                          ".reg .pred %q;\n"
                          "ld.param.u64 %word, [p];\n"
                          "ld.param.u32 %value, [p+8];\n"
                          "ld.param.u64 %started, [p+16];\n"
                          "ld.param.u64 %limit, [p+24];\n"
                          "mov.u64 %t0, %globaltimer;\n"
                          "mov.u32 %one, 1;\n"
                          "setp.eq.u64 %q, %started, 0;\n"
                          "@%q bra LOOP;\n"
                          "st.volatile.global.u32 [%started], %one;\n"
                          "LOOP:\n"
                          "mov.u64 %t1, %globaltimer;\n"
                          "sub.u64 %t1, %t1, %t0;\n"
                          "setp.ge.u64 %q, %t1, %limit;\n"
                          "@%q bra DONE;\n"
                          "setp.eq.u64 %q, %word, 0;\n"
                          "@%q bra LOOP;\n"
                          "ld.volatile.global.u32 %now, [%word];\n"
                          "setp.ne.u32 %q, %now, %value;\n"
                          "@%q bra LOOP;\n"
                          "DONE:\n"
                          "ret;\n"
                          "}\n";

enum { DEVICES = 16 };
static void *function[DEVICES];
static int sms[DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int device_of(int rank) {
  const char *v = getenv("GCCL_TEST_DEVICES");
  int n = v ? atoi(v) : 1;
  return rank % (n < 1 || n > DEVICES ? 1 : n);
}

int gpu_load(int rank) {
  int d = device_of(rank), ok = 1, regs = 0;
  mem_rank(rank);
  pthread_mutex_lock(&lock);
  if (!function[d]) {
    void *module = NULL, *f = NULL;
    ok = CU(rank, cu.DeviceGetAttribute(&sms[d], 16, d)) && CU(rank, cu.ModuleLoadData(&module, ptx)) &&
         CU(rank, cu.ModuleGetFunction(&f, module, "gccl_test_busy")) && CU(rank, cu.FuncGetAttribute(&regs, 4, f));
    if (ok) function[d] = f;
  }
  pthread_mutex_unlock(&lock);
  return ok;
}

void *gpu_function(int rank) { return function[device_of(rank)]; }

int gpu_busy(int rank, void *stream, const struct gpu_busy *b, int cooperative) {
  int d = device_of(rank);
  struct gpu_busy param = *b;
  void *params[] = {&param};
  unsigned grid = 2u * (unsigned)sms[d]; /* two blocks of 1024 threads on each multiprocessor */
  mem_rank(rank);
  if (cooperative) return CU(rank, cu.LaunchCooperativeKernel(function[d], grid, 1, 1, 1024, 1, 1, 0, stream, params));
  return CU(rank, cu.LaunchKernel(function[d], grid, 1, 1, 1024, 1, 1, 0, stream, params, NULL));
}

int gpu_fill(int rank, void *stream, int us, int cooperative) {
  return gpu_busy(rank, stream, &(struct gpu_busy){.ns = (uint64_t)us * 1000}, cooperative);
}

_Atomic uint32_t *gpu_words(int rank, int n) {
  void *p = NULL;
  mem_rank(rank);
  if (!CU(rank, cu.MemHostAlloc(&p, (size_t)n * 4, 3))) return NULL;
  memset(p, 0, (size_t)n * 4);
  return p;
}

int sums_new(struct sums *s, const struct team *t, int n) {
  memset(s, 0, sizeof *s);
  s->n = n;
  int ok = 1;
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(t->first + i);
    ok &= buf_new(&s->buf[i], t->first + i, (size_t)n * sizeof(int32_t));
  }
  return ok;
}

int sums_pool(struct sums *s, const struct team *t) {
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    cu_ptr p = 0;
    mem_rank(r);
    if (!CU(r, cu.MemAllocAsync(&p, s->buf[i].bytes, NULL)) || !CU(r, cu.StreamSynchronize(NULL))) return 0;
    CU(r, cu.MemFree((cu_ptr)(uintptr_t)s->buf[i].at));
    s->buf[i].at = (unsigned char *)(uintptr_t)p;
  }
  s->pool = 1;
  return 1;
}

/* Freeing waits for the device: what other ranks of the process launch next must not wait for this rank meanwhile. */
void sums_free(struct sums *s, const struct team *t) {
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++) {
    if (!s->pool) {
      buf_free(&s->buf[i], t->first + i);
      continue;
    }
    mem_rank(t->first + i);
    CU(t->first + i, cu.MemFreeAsync((cu_ptr)(uintptr_t)s->buf[i].at, NULL));
    free(s->buf[i].copy);
  }
  conf_barrier(t);
}

void sums_put(struct sums *s, const struct team *t, int v) {
  for (int i = 0; i < t->nlocal; i++) {
    int32_t *at = (int32_t *)s->buf[i].copy;
    for (int j = 0; j < s->n; j++) at[j] = v + t->first + i;
    buf_put(&s->buf[i], 0, s->buf[i].bytes);
  }
}

int sums_check(struct sums *s, const struct team *t, int v, const char *what) {
  int n = t->nranks, want = n * v + n * (n - 1) / 2, ok = 1;
  for (int i = 0; i < t->nlocal; i++) {
    buf_get(&s->buf[i], 0, s->buf[i].bytes);
    const int32_t *at = (const int32_t *)s->buf[i].copy;
    atomic_fetch_add(&W->checks, 1);
    for (int j = 0; j < s->n; j++)
      if (at[j] != want) {
        ok = conf_fail(t->first + i, "%s: index %d: want %d, got %d", what, j, want, at[j]);
        break;
      }
  }
  return ok;
}

ncclResult_t sums_call(const struct sums *s, int i, ncclComm_t comm, void *stream) {
  return ncclAllReduce(s->buf[i].at, s->buf[i].at, (size_t)s->n, ncclInt32, ncclSum, comm, stream);
}
