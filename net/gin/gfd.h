/* Descriptors of NCCL's GIN proxy, as kernels compiled against NVIDIA's headers write them.
 *
 * Facts from NCCL's src/include/nccl_device/gin/proxy/gin_proxy_device_host_common.h in 2.28.9, 2.29.3, 2.29.7, 2.30.3 and 2.30.7 (read
 * 2026-11-29 and 30): every 8-byte word has a valid bit in bit 0, so that the consumer needs no order between words; it stores zero into all
 * of them before the slot counts as free. Before 2.30 there are 8 words with the operation in the header; 2.30 has 16 (the last 8 are reserved)
 * with the operation in word 7 and a version in the header, where signals are strong below version 2.
 */
#ifndef GCCL_GIN_GFD_H
#define GCCL_GIN_GFD_H

#include "../../include/gccl_device/impl/gfd.h"

enum gfd_format { GFD_64 = GCCL_GFD_FORMAT_64, GFD_128 = GCCL_GFD_FORMAT_128, GFD_64_WIDE = GCCL_GFD_FORMAT_64_WIDE };

typedef gccl_gfd gfd;

enum { GFD_WORDS_MAX = 16 };
static inline uint32_t gfd_words(int format) { return format == GFD_128 ? 16 : 8; }
static inline uint32_t gfd_bytes(int format) { return 8 * gfd_words(format); }

/* What a producer stores; 0 if the format cannot say it. */
int gfd_encode(int format, const gfd *, uint64_t *words);
/* What a consumer reads. Returns NULL, or what is wrong with it. */
const char *gfd_decode(int format, const uint64_t *words, gfd *);

#endif
