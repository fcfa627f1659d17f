/* Descriptors of NCCL's GIN proxy and the queues that kernels store them in, for whoever writes them (a GPU thread, a CPU thread) and for
 * the agent that reads them. One C header for C, C++ and CUDA. This header's kernels write the format of 2.30.7; older ones are read only.
 *
 * Facts from NCCL 2.30.7, src/include/nccl_device/gin/proxy/gin_proxy_device_host_common.h and gin_proxy.h (read 2026-11-30): 16 words of 8
 * bytes; bit 0 of each says that it is valid, so that the words may be stored in any order; the last 8 are reserved. */
#ifndef GCCL_DEVICE_GFD_H
#define GCCL_DEVICE_GFD_H

#ifdef __CUDACC_RTC__
#include "rtc.h"
#else
#include <stdint.h>
#endif

#include "mlx5.h"

/* Formats, by the headers that write them. */
enum {
  GCCL_GFD_FORMAT_64 = 0,     /* 2.28.7 to 2.29.3: signals and counters have 16 bits */
  GCCL_GFD_FORMAT_128 = 1,    /* 2.30 */
  GCCL_GFD_FORMAT_64_WIDE = 2 /* 2.29.5 to 2.29.7: signals and counters as in 2.30 */
};

/* ncclGinProxyOp_t. */
enum {
  GCCL_GFD_PUT = 1 << 0,
  GCCL_GFD_INLINE = 1 << 1,
  GCCL_GFD_COUNTER = 1 << 2,
  GCCL_GFD_SIGNAL_INC = 1 << 3,
  GCCL_GFD_SIGNAL_ADD = 1 << 4,
  GCCL_GFD_VA_SIGNAL = 1 << 5, /* a signal by address, without a put; from 2.29.7 */
  GCCL_GFD_GET = 1 << 6,       /* from 2.30.3 */
  GCCL_GFD_FLUSH = 1 << 7,
  GCCL_GFD_VERSION = 2,
  GCCL_GFD_WORDS = 16,
  GCCL_GFD_PUT_MAX = 1 << 30 /* bytes of one descriptor or entry: longer transfers are divided */
};

/* A descriptor in clear. Windows are handles that the host gave out. */
typedef struct {
  uint32_t op;
  uint8_t strong;
  uint64_t bytes;
  uint64_t value; /* of a put with INLINE */
  uint64_t src_window, src_off, dst_window, dst_off;
  uint64_t signal_window, signal_off; /* VA_SIGNAL */
  uint32_t counter, signal;
  uint64_t signal_value;
} gccl_gfd;

/* The words of a descriptor. Preconditions: values fit their fields (57 bits of bytes, 63 of windows and offsets, 23 of a counter, 24 of
 * a signal). */
GCCL_MLX5_FN void gccl_gfd_words(const gccl_gfd *d, uint64_t *w) {
  int va = (d->op & GCCL_GFD_VA_SIGNAL) != 0;
  for (int i = 0; i < GCCL_GFD_WORDS; i++) w[i] = 1;
  w[0] |= (uint64_t)GCCL_GFD_VERSION << 1 | d->bytes << 7;
  w[7] |= (uint64_t)(d->op & 0xffffu) << 8;
  if (d->op & GCCL_GFD_FLUSH) return;
  if (d->op & GCCL_GFD_INLINE) {
    w[1] |= (d->value & 0xffffffffffffull) << 8;
    w[2] |= (d->value >> 48) << 8;
  } else {
    w[1] |= (va ? d->signal_off : d->src_off) << 1;
    w[2] |= (va ? d->signal_window : d->src_window) << 1;
  }
  w[3] |= d->dst_off << 1;
  w[4] |= d->dst_window << 1;
  w[5] |= (uint64_t)(d->counter & 0x7fffffu) << 1 | (uint64_t)(d->signal & 0xffffffu) << 24 | d->signal_value << 48;
  w[6] |= (uint64_t)(d->strong != 0) << 1 | (d->signal_value >> 16) << 8;
}

/* A context of the proxy: NCCL's ncclGinProxyGpuCtx_t, and what is ours. Headers before 2.30.7 have the fields before signal_offsets alone, and reset a signal
 * by storing 0. ginHandles[0] points at one for each context id; before 2.29.5 ginHandles[i] points at context i. Arrays by rank unless said
 * otherwise. */
typedef struct {
  int32_t nranks;
  uint32_t queue_size;      /* descriptors of a queue: a power of two */
  uint64_t *queues;         /* queue of rank r at r × queue_size descriptors */
  uint32_t *pis;            /* descriptors claimed; producers */
  uint32_t *cis;            /* descriptors completed; the agent, with release */
  uint64_t *counters;       /* by number; the agent */
  uint64_t *signals;        /* by number; the agent of this rank alone */
  uint64_t *signal_offsets; /* by number: what a reset has left; kernels. Value = signal - offset */
  uint32_t *last_issued_get, *last_visible_get;
  /* This header's alone. */
  uint32_t *seen; /* what producers have read of cis, in memory of their own: a look at the host's costs a GPU a microsecond */
  uint64_t *told; /* in place of signals, where movers carry: the sum of what each rank has signalled, rank r's at r × nsignals; written by it alone. NULL: none */
  uint32_t nsignals, pad;
} gccl_proxy_context;

#define GCCL_PROXY_CONTEXT_OLD 48   /* bytes that headers before 2.30.7 have */
#define GCCL_PROXY_CONTEXT_23007 72 /* and 2.30.7 */

/* Signals and counters of puts that the calling threads do themselves (backend `direct`). They have words of their own, because those of
 * the other backends have another writer. */
typedef struct gccl_gin_direct {
  uint32_t ncontexts, nsignals, ncounters;
  uint32_t signals;         /* resource buffer handle: by context and number; atomics of the LSA team */
  uint64_t *counters;       /* by context and number */
  uint64_t *signal_offsets; /* by context and number, in place of the backend's */
  uint32_t places;          /* signals by place go through the backend, also to ranks that are direct: its agent has no atomics on such words */
  uint32_t pad;
} gccl_gin_direct;

#endif
