#include "gfd.h"

#include <string.h>

/* Words; a put without inline data, a put of a value and a signal by address use words 1 and 2 for different things. */
enum { HEADER = 0, W1 = 1, W2 = 2, DST_OFF = 3, DST_WINDOW = 4, COMPLETION = 5, SIGNAL_VALUE = 6, HEADER_EXT = 7 };

/* Bits [at, at + width) of a word. */
static inline uint64_t get(uint64_t w, unsigned at, unsigned width) { return width == 64 ? w : (w >> at) & ((1ull << width) - 1); }
static inline uint64_t put(uint64_t v, unsigned at, unsigned width) { return (v & ((1ull << width) - 1)) << at; }
static inline int fits(uint64_t v, unsigned width) { return v >> width == 0; }

/* What an operation may be made of. */
static const char *nonsense(uint32_t op) {
  uint32_t signal = op & (GCCL_GFD_SIGNAL_INC | GCCL_GFD_SIGNAL_ADD);
  if (op & ~0xffu) return "it has operation bits that no version has";
  if (signal == (GCCL_GFD_SIGNAL_INC | GCCL_GFD_SIGNAL_ADD)) return "its signal both increments and adds";
  if (op & GCCL_GFD_GET) return op == GCCL_GFD_GET ? NULL : "a get is combined with something else";
  if (op & GCCL_GFD_FLUSH) return op == GCCL_GFD_FLUSH ? NULL : "a flush is combined with something else";
  if (op & GCCL_GFD_VA_SIGNAL) {
    if (op & ~(uint32_t)(GCCL_GFD_VA_SIGNAL | GCCL_GFD_SIGNAL_INC | GCCL_GFD_SIGNAL_ADD))
      return "a signal by address is combined with something else";
    return signal ? NULL : "a signal by address has no operation";
  }
  return op & GCCL_GFD_PUT ? NULL : "it is no put, get, flush or signal";
}

int gfd_encode(int format, const gfd *d, uint64_t *w) {
  int narrow = format == GFD_64;
  uint32_t counter_bits = narrow ? 16 : 23, signal_bits = narrow ? 16 : 24;
  uint64_t w1 = d->src_off, w2 = d->src_window;
  if (nonsense(d->op) || !fits(d->bytes, 57) || !fits(d->counter, counter_bits) || !fits(d->signal, signal_bits)) return 0;
  if (format != GFD_128 && (!fits(d->op, 6) || !d->strong)) return 0;
  if (d->op & GCCL_GFD_VA_SIGNAL) w1 = d->signal_off, w2 = d->signal_window;
  if (!fits(w1, 63) || !fits(w2, 63) || !fits(d->dst_off, 63) || !fits(d->dst_window, 63)) return 0;
  if (d->op & GCCL_GFD_INLINE && d->bytes > 8) return 0;
  if (format == GFD_128) {
    gccl_gfd_words(d, w);
    return 1;
  }
  for (uint32_t i = 0; i < gfd_words(format); i++) w[i] = 1;
  w[HEADER] |= put(d->op, 1, 6) | put(d->bytes, 7, 57);
  if (d->op & GCCL_GFD_INLINE) {
    w[W1] |= put(d->value, 8, 32) | put(d->value >> 32, 40, 16);
    w[W2] |= put(d->value >> 48, 8, 16);
  } else {
    w[W1] |= put(w1, 1, 63);
    w[W2] |= put(w2, 1, 63);
  }
  w[DST_OFF] |= put(d->dst_off, 1, 63);
  w[DST_WINDOW] |= put(d->dst_window, 1, 63);
  if (narrow)
    w[COMPLETION] |= put(d->counter, 8, 16) | put(d->signal, 24, 16) | put(d->signal_value, 40, 16);
  else
    w[COMPLETION] |= put(d->counter, 1, 23) | put(d->signal, 24, 24) | put(d->signal_value, 48, 16);
  w[SIGNAL_VALUE] |= put(d->signal_value >> 16, 8, 16) | put(d->signal_value >> 32, 24, 32);
  return 1;
}

const char *gfd_decode(int format, const uint64_t *w, gfd *d) {
  memset(d, 0, sizeof *d);
  for (uint32_t i = 0; i < gfd_words(format); i++)
    if (!(w[i] & 1)) return "a word is not valid";
  d->bytes = get(w[HEADER], 7, 57);
  d->strong = 1;
  if (format == GFD_128) {
    uint64_t version = get(w[HEADER], 1, 4);
    if (version > GCCL_GFD_VERSION) return "its version is newer than 2";
    d->op = (uint32_t)get(w[HEADER_EXT], 8, 16);
    if (version >= 2 && !(d->op & GCCL_GFD_FLUSH)) d->strong = (uint8_t)get(w[SIGNAL_VALUE], 1, 1);
  } else {
    d->op = (uint32_t)get(w[HEADER], 1, 6);
  }
  const char *wrong = nonsense(d->op);
  if (wrong || d->op & GCCL_GFD_FLUSH) return wrong;
  if (d->op & GCCL_GFD_INLINE) {
    if (d->bytes > 8) return "a value is longer than 8 bytes";
    d->value = get(w[W1], 8, 32) | get(w[W1], 40, 16) << 32 | get(w[W2], 8, 16) << 48;
  } else if (d->op & GCCL_GFD_VA_SIGNAL) {
    d->signal_off = get(w[W1], 1, 63);
    d->signal_window = get(w[W2], 1, 63);
  } else {
    d->src_off = get(w[W1], 1, 63);
    d->src_window = get(w[W2], 1, 63);
  }
  d->dst_off = get(w[DST_OFF], 1, 63);
  d->dst_window = get(w[DST_WINDOW], 1, 63);
  if (format == GFD_64) {
    d->counter = (uint32_t)get(w[COMPLETION], 8, 16);
    d->signal = (uint32_t)get(w[COMPLETION], 24, 16);
    d->signal_value = get(w[COMPLETION], 40, 16);
  } else {
    d->counter = (uint32_t)get(w[COMPLETION], 1, 23);
    d->signal = (uint32_t)get(w[COMPLETION], 24, 24);
    d->signal_value = get(w[COMPLETION], 48, 16);
  }
  d->signal_value |= get(w[SIGNAL_VALUE], 8, 16) << 16 | get(w[SIGNAL_VALUE], 24, 32) << 32;
  if (d->op & GCCL_GFD_SIGNAL_INC) d->signal_value = 1;
  return NULL;
}
