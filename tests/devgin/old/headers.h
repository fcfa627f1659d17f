/* headers.h: ncclDevComm, its requirements and the descriptors as NVIDIA's headers before 2.30.7 have them: offsets of
 * tests/abi/testdata/layouts.tsv and of NCCL's src/include/nccl_device/gin/proxy (2.28.9, 2.29.3, 2.29.7, 2.30.3). Nothing here is the
 * library's own. */
#ifndef DEVGIN_OLD_HEADERS_H
#define DEVGIN_OLD_HEADERS_H

#include <stdint.h>
#include <string.h>

struct Header {
  char const *name;
  unsigned version; /* 0: requirements without a head */
  /* Of requirements. */
  size_t bytes, list, barriers, rail, force, contexts, signals, counters, connection; /* connection 0: there is none */
  /* Of ncclDevComm. */
  struct {
    size_t rank, window, inlined, lsaBarrier, rail, contexts, contextsBytes, types, handles, signalBase, signalCount, counterBase, shadows;
  } out;
  bool handleEach; /* a handle for each context; otherwise an array behind the first */
  bool oneSignal;  /* a barrier has one signal, and its rounds in the resource buffer */
  int words;       /* of a descriptor */
  bool wide;       /* counters of 23 and signals of 24 bits */
  size_t outBytes;
};

/* No bases from 2.30 on: 0. */
static Header const kHeaders[] = {
    {"2.28.9", 0, 56, 0, 20, 28, 40, 44, 48, 52, 0, {0, 32, 40, 120, 128, 136, 1, 137, 144, 176, 180, 184, 192}, true, true, 8, false, 200},
    {"2.29.3",
     22903,
     72,
     16,
     36,
     44,
     56,
     60,
     64,
     68,
     0,
     {0, 32, 40, 120, 128, 136, 1, 137, 144, 176, 180, 184, 192},
     true,
     true,
     8,
     false,
     200},
    {"2.29.7",
     22907,
     88,
     16,
     36,
     44,
     56,
     60,
     64,
     68,
     72,
     {0, 32, 40, 120, 128, 200, 4, 137, 144, 176, 180, 184, 192},
     false,
     false,
     8,
     true,
     224},
    {"2.30.3",
     23003,
     96,
     16,
     36,
     44,
     56,
     60,
     64,
     68,
     72,
     {8, 40, 48, 128, 136, 200, 4, 145, 152, 0, 184, 0, 192},
     false,
     false,
     16,
     true,
     240},
};

/* ncclGinProxyGpuCtx_t before 2.30.7: 48 bytes. */
struct OldContext {
  int nranks;
  uint32_t queueSize;
  uint64_t *queues;
  uint32_t *pis, *cis;
  uint64_t *counters, *signals;
};
static_assert(sizeof(OldContext) == 48, "layouts.tsv: ncclGinProxyGpuCtx_t 2.28.9");

/* ncclGinProxyOp_t. */
enum { OpPut = 1, OpInline = 2, OpCounter = 4, OpInc = 8, OpAdd = 16, OpVA = 32, OpGet = 64, OpFlush = 128 };

struct Op {
  uint32_t op;
  uint64_t bytes, value, srcWindow, srcOff, dstWindow, dstOff; /* of a signal by address src is its place */
  uint32_t counter, signal;
  uint64_t add;
};

/* The words. Bits that a header leaves as they were on the stack are rubbish here: they mean nothing. */
inline void wordsOf(Header const &h, Op const &o, uint64_t *w) {
  uint64_t const rubbish = 0x55;
  w[0] = 1 | (h.words == 8 ? (uint64_t)o.op << 1 : (uint64_t)1 << 1) | o.bytes << 7; /* 16 words: version 1 */
  if (o.op & OpInline) {
    w[1] = 1 | (rubbish & 0x7f) << 1 | (o.value & 0xffffffff) << 8 | (o.bytes > 4 ? o.value >> 32 & 0xffff : rubbish) << 40 | rubbish << 56;
    w[2] = 1 | (rubbish & 0x7f) << 1 | (o.bytes > 6 ? o.value >> 48 : rubbish) << 8 | rubbish << 32;
  } else {
    w[1] = 1 | o.srcOff << 1;
    w[2] = 1 | o.srcWindow << 1;
  }
  w[3] = 1 | o.dstOff << 1;
  w[4] = 1 | o.dstWindow << 1;
  if (h.wide)
    w[5] = 1 | (uint64_t)o.counter << 1 | (uint64_t)o.signal << 24 | o.add << 48;
  else
    w[5] = 1 | (rubbish & 0x7f) << 1 | (uint64_t)o.counter << 8 | (uint64_t)o.signal << 24 | (o.add & 0xffff) << 40 | rubbish << 56;
  w[6] = 1 | (o.add >> 16 & 0xffff) << 8 | o.add >> 32 << 24;
  w[7] = h.words == 8 ? 1 | rubbish << 1 : 1 | (uint64_t)o.op << 8;
  for (int i = 8; i < h.words; i++) w[i] = 1;
}

template <typename T> T readAt(void const *p, size_t at) {
  T v;
  memcpy(&v, static_cast<char const *>(p) + at, sizeof v);
  return v;
}
template <typename T> void writeAt(void *p, size_t at, T v) { memcpy(static_cast<char *>(p) + at, &v, sizeof v); }

#endif
