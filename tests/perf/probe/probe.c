/* The floor: two pinned processes and one shared memfd mapping, no library.
 *
 *   probe SPEC...          SPEC is bytes:warmup:iterations
 *
 * For each SPEC one JSON line with the fastest of the methods that fit: one-shot
 * (each rank stores its words with a flag beside each into the peer's slot and
 * adds what it finds in its own; at most one line), two-shot (each rank adds its half of both
 * inputs and stores it to both outputs), and two-shot with streaming stores.
 * Every method has its own line as well. "barrier" is the barrier alone.
 * The timing loop is that of gccl-perf --latency and of the MPI peer. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "pin.h"
#include "samples.h"
#include "shbarrier.h"

#define NRANKS 2
#define BARRIER_TIMEOUT_S 60
#define ONE_SHOT_WORDS 8 /* with their flags one 64-byte line, as many 4-byte words as fit */

/* One word and its flag travel in one 8-byte store, so neither is seen alone. */
struct slot {
  _Atomic uint64_t word[ONE_SHOT_WORDS];
  char pad[128 - ONE_SHOT_WORDS * 8];
};

struct flag {
  _Atomic uint64_t value;
  char pad[120];
};

struct control {
  struct perf_barrier_line lines[NRANKS];
  struct slot slots[2][NRANKS]; /* by parity of the epoch: a rank runs at most one call ahead */
  struct flag ready[NRANKS], done[NRANKS];
  struct perf_summary summary[NRANKS];
  long wrong[NRANKS];
};

struct world {
  struct control *ctl;
  float *in[NRANKS], *out[NRANKS];
  int rank;
  uint64_t epoch;
};

static void one_shot(struct world *w, size_t count) {
  uint32_t epoch = (uint32_t)++w->epoch;
  int peer = 1 - w->rank;
  struct slot *to = &w->ctl->slots[epoch & 1][peer], *from = &w->ctl->slots[epoch & 1][w->rank];
  const float *in = w->in[w->rank];
  float *out = w->out[w->rank];
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &in[i], 4);
    atomic_store_explicit(&to->word[i], (uint64_t)epoch << 32 | bits, memory_order_release);
  }
  for (size_t i = 0; i < count; i++) {
    uint64_t v;
    while ((v = atomic_load_explicit(&from->word[i], memory_order_acquire)) >> 32 != epoch) perf_pause();
    uint32_t bits = (uint32_t)v;
    float other;
    memcpy(&other, &bits, 4);
    out[i] = w->rank == 0 ? in[i] + other : other + in[i];
  }
}

static void add_to_both(const float *restrict a, const float *restrict b, float *restrict x, float *restrict y, size_t n) {
  for (size_t i = 0; i < n; i++) {
    float s = a[i] + b[i];
    x[i] = s;
    y[i] = s;
  }
}

static void add_to_both_streaming(const float *a, const float *b, float *x, float *y, size_t n) {
  size_t i = 0;
#if defined(__AVX__)
  for (; i + 8 <= n; i += 8) {
    __m256 s = _mm256_add_ps(_mm256_load_ps(a + i), _mm256_load_ps(b + i));
    _mm256_stream_ps(x + i, s);
    _mm256_stream_ps(y + i, s);
  }
  _mm_sfence();
#endif
  for (; i < n; i++) x[i] = y[i] = a[i] + b[i];
}

static void meet(struct flag *flags, int rank, uint64_t epoch) {
  /* release: my buffers are ready (or written); acquired by the peer below */
  atomic_store_explicit(&flags[rank].value, epoch, memory_order_release);
  while (atomic_load_explicit(&flags[1 - rank].value, memory_order_acquire) < epoch) perf_pause();
}

static void two_shot(struct world *w, size_t count, int streaming) {
  uint64_t epoch = ++w->epoch;
  size_t half = count / 2 & ~(size_t)15; /* both halves start on a line */
  size_t at = w->rank == 0 ? 0 : half, n = w->rank == 0 ? half : count - half;
  meet(w->ctl->ready, w->rank, epoch);
  (streaming ? add_to_both_streaming : add_to_both)(w->in[0] + at, w->in[1] + at, w->out[0] + at, w->out[1] + at, n);
  meet(w->ctl->done, w->rank, epoch);
}

enum method { ONE_SHOT, TWO_SHOT, TWO_SHOT_STREAMING, BARRIER, METHODS };
static const char *const method_name[METHODS] = {"one-shot", "two-shot", "two-shot-streaming", "barrier"};

static int measure(struct world *w, enum method m, size_t bytes, int warmup, int iterations) {
  struct perf_barrier barrier;
  uint64_t *ns = calloc((size_t)iterations, sizeof *ns);
  if (!ns) return 1;
  perf_barrier_init(&barrier, w->ctl->lines, w->rank, NRANKS, NRANKS, BARRIER_TIMEOUT_S);
  barrier.epoch = atomic_load(&w->ctl->lines[w->rank].epoch);
  size_t count = bytes / sizeof(float);
  long wrong = 0;
  for (int it = -warmup; it < iterations; it++) {
    memset(w->in[w->rank], 1 + (it + warmup) % 60, bytes);
    if (perf_barrier_wait(&barrier) >= 0) return 1;
    uint64_t t0 = perf_now_ns();
    switch (m) {
    case ONE_SHOT: one_shot(w, count); break;
    case TWO_SHOT: two_shot(w, count, 0); break;
    case TWO_SHOT_STREAMING: two_shot(w, count, 1); break;
    default:
      if (perf_barrier_wait(&barrier) >= 0) return 1;
    }
    uint64_t t1 = perf_now_ns();
    if (it >= 0) ns[it] = t1 - t0;
    float want = 2 * w->in[w->rank][0];
    if (m != BARRIER) wrong += (w->out[w->rank][0] != want) + (w->out[w->rank][count - 1] != want);
  }
  w->ctl->summary[w->rank] = perf_summarise(ns, (size_t)iterations);
  w->ctl->wrong[w->rank] = wrong;
  free(ns);
  return perf_barrier_wait(&barrier) >= 0;
}

static void print_line(const char *method, size_t bytes, struct perf_summary s, long wrong) {
  printf("{\"what\":\"probe\",\"method\":\"%s\",\"bytes\":%zu,\"p50\":%.4f,\"mean\":%.4f,\"p99\":%.4f,\"wrong\":%ld}\n", method, bytes,
         s.p50_us, s.mean_us, s.p99_us, wrong);
  fflush(stdout);
}

static struct perf_summary both(const struct control *c) {
  const struct perf_summary *a = &c->summary[0], *b = &c->summary[1];
  struct perf_summary s = {(a->p50_us + b->p50_us) / 2, (a->mean_us + b->mean_us) / 2, (a->p99_us + b->p99_us) / 2,
                           (a->min_us + b->min_us) / 2};
  return s;
}

static int run_all(struct world *w, int nspecs, char **specs) {
  for (int i = 0; i < nspecs; i++) {
    size_t bytes;
    int warmup, iterations;
    if (sscanf(specs[i], "%zu:%d:%d", &bytes, &warmup, &iterations) != 3 || bytes < 4 || iterations < 1) {
      fprintf(stderr, "probe: bad SPEC %s\n", specs[i]);
      return 1;
    }
    struct perf_summary best = {0, 0, 0, 0};
    long best_wrong = 0;
    for (int m = bytes > ONE_SHOT_WORDS * 4 ? TWO_SHOT : ONE_SHOT; m < METHODS; m++) {
      if (m == BARRIER && i > 0) continue;
      if (measure(w, m, bytes, warmup, iterations)) return 1;
      struct perf_summary s = both(w->ctl);
      long wrong = w->ctl->wrong[0] + w->ctl->wrong[1];
      if (w->rank == 0) print_line(method_name[m], m == BARRIER ? 0 : bytes, s, wrong);
      if (m != BARRIER && (best.p50_us == 0 || s.p50_us < best.p50_us)) {
        best = s;
        best_wrong = wrong;
      }
    }
    if (w->rank == 0) print_line("best", bytes, best, best_wrong);
  }
  return 0;
}

int main(int argc, char **argv) {
  size_t largest = 4096;
  for (int i = 1; i < argc; i++) {
    size_t b = strtoull(argv[i], NULL, 10);
    if (b > largest) largest = b;
  }
  largest = (largest + 4095) & ~(size_t)4095;
  size_t head = (sizeof(struct control) + 4095) & ~(size_t)4095, total = head + 2 * NRANKS * largest;
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  if (CPU_COUNT(&allowed) < NRANKS) {
    fprintf(stderr, "probe: needs %d cores, has %d\n", NRANKS, CPU_COUNT(&allowed));
    return 1;
  }
  int fd = memfd_create("gccl-probe", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, (off_t)total) != 0) {
    perror("probe: memfd");
    return 1;
  }
  char *base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (base == MAP_FAILED) {
    perror("probe: mmap");
    return 1;
  }
  struct world w = {.ctl = (struct control *)base};
  for (int r = 0; r < NRANKS; r++) {
    w.in[r] = (float *)(base + head + (size_t)(2 * r) * largest);
    w.out[r] = (float *)(base + head + (size_t)(2 * r + 1) * largest);
  }
  pid_t child = fork();
  if (child < 0) {
    perror("probe: fork");
    return 1;
  }
  w.rank = child == 0;
  int rc = perf_pin(&allowed, w.rank) < 0 || run_all(&w, argc - 1, argv + 1);
  if (w.rank == 1) _exit(rc);
  int status = 0;
  waitpid(child, &status, 0);
  return rc || status != 0;
}
