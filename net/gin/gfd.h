/* Descriptors of NCCL's GIN proxy, as kernels compiled against NVIDIA's headers write them.
 *
 * Facts from NCCL 2.30.7, src/include/nccl_device/gin/proxy/gin_proxy_device_host_common.h, and the header of the same name in
 * 2.28.9 (read 2026-11-29): every 8-byte word has a valid bit in bit 0, so that the consumer needs no order between words; it
 * stores zero into all of them before the slot counts as free. 2.28 has 8 words with the operation in the header, 2.30 has 16
 * (the last 8 are reserved) with the operation in word 7 and a version in the header, where signals are strong below version 2.
 */
#ifndef GCCL_GIN_GFD_H
#define GCCL_GIN_GFD_H

#include <stdint.h>

enum gfd_format { GFD_64 = 0, GFD_128 = 1 };

/* ncclGinProxyOp_t. */
enum {
  GFD_PUT = 1 << 0,
  GFD_INLINE = 1 << 1,
  GFD_COUNTER = 1 << 2,
  GFD_SIGNAL_INC = 1 << 3,
  GFD_SIGNAL_ADD = 1 << 4,
  GFD_VA_SIGNAL = 1 << 5, /* a signal by address, without a put; from 2.29.7 */
  GFD_GET = 1 << 6,       /* from 2.30.3 */
  GFD_FLUSH = 1 << 7
};

/* A descriptor in clear. Windows are handles that the host gave out. */
typedef struct {
  uint32_t op;
  uint8_t strong;
  uint64_t bytes;
  uint64_t value; /* of a put with GFD_INLINE */
  uint64_t src_window, src_off, dst_window, dst_off;
  uint64_t signal_window, signal_off; /* GFD_VA_SIGNAL */
  uint32_t counter, signal;
  uint64_t signal_value;
} gfd;

enum { GFD_WORDS_MAX = 16 };
static inline uint32_t gfd_words(int format) { return format == GFD_128 ? 16 : 8; }
static inline uint32_t gfd_bytes(int format) { return 8 * gfd_words(format); }

/* What a producer stores; 0 if the format cannot say it. */
int gfd_encode(int format, const gfd *, uint64_t *words);
/* What a consumer reads. Returns NULL, or what is wrong with it. */
const char *gfd_decode(int format, const uint64_t *words, gfd *);

#endif
