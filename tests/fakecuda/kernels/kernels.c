/* Kernels for tests, as the stand-in runs them. */
#include <sched.h>
#include <stdint.h>

struct word {
  uint32_t *word;
  uint32_t value, pad;
  uint32_t *started; /* set to 1 when the kernel runs; may be NULL */
};

void add_value(const void *param, unsigned grid, unsigned block);
void wait_for_word(const void *param, unsigned grid, unsigned block);
void bad_access(const void *param, unsigned grid, unsigned block);
extern void gccl_fake_raise(int code) __attribute__((weak));

/* Once for each block. */
void add_value(const void *param, unsigned grid, unsigned block) {
  const struct word *w = param;
  (void)block;
  __atomic_fetch_add(w->word, w->value * grid, __ATOMIC_RELAXED);
}

/* Occupies what its grid takes until the word has the value. */
void wait_for_word(const void *param, unsigned grid, unsigned block) {
  const struct word *w = param;
  (void)grid, (void)block;
  if (w->started) __atomic_store_n(w->started, 1, __ATOMIC_RELEASE);
  while (__atomic_load_n(w->word, __ATOMIC_ACQUIRE) != w->value) sched_yield();
}

void bad_access(const void *param, unsigned grid, unsigned block) {
  (void)param, (void)grid, (void)block;
  gccl_fake_raise(700); /* CUDA_ERROR_ILLEGAL_ADDRESS */
}
