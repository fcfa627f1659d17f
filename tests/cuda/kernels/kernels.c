/* The user's kernel of prog/gpu.c, as the stand-in for the driver runs it. */
#include <sched.h>
#include <stdint.h>
#include <time.h>

struct busy {
  uint32_t *word;
  uint32_t value, pad;
  uint32_t *started;
  uint64_t ns;
};

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void gccl_test_busy(const void *param, unsigned grid, unsigned block);
void gccl_test_busy(const void *param, unsigned grid, unsigned block) {
  const struct busy *b = param;
  uint64_t start = now();
  (void)grid, (void)block;
  if (b->started) __atomic_store_n(b->started, 1, __ATOMIC_RELEASE);
  while (now() - start < b->ns && !(b->word && __atomic_load_n(b->word, __ATOMIC_ACQUIRE) == b->value)) sched_yield();
}
