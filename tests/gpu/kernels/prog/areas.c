#include <stdlib.h>

#include "device.h"

/* LL epochs begin shortly before their slots are cleared, so that tests see that. */
enum { LL_START = 0x3ffffff0 };

const uint64_t *areas_of(const device *d, unsigned n) {
  static uint64_t area[GCCL_SPIN_RANKS + 1][GCCL_SPIN_RANKS];
  for (unsigned r = 0; r < n && !area[n][r]; r++) {
    uint64_t bytes = gccl_spin_area_bytes(n), start[GCCL_LL_BLOCKS];
    void *zero = calloc(1, bytes);
    if (!zero) die("areas", "out of memory");
    for (int b = 0; b < GCCL_LL_BLOCKS; b++) start[b] = LL_START;
    area[n][r] = d->alloc(bytes);
    d->put(area[n][r], zero, bytes);
    d->put(area[n][r] + GCCL_SPIN_LL_EPOCH, start, sizeof start);
    free(zero);
  }
  return area[n];
}
