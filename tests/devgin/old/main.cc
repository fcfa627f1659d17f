/* main.cc: old [--memory cuda] RANKS VERSION: GIN as kernels compiled with an older header of NVIDIA's use it. The kernel is written by hand after the layouts
 * (headers.h) and knows nothing of this library's structures; ranks are threads. */
#include "headers.h"

#include "../../internal/place/place.h"
#undef ncclDevCommCreate /* the plain symbol: a caller with another header */

#include <gccl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <thread>
#include <vector>

namespace {

Header const *gHeader;
pthread_barrier_t gMeet;
int gFailures;

void meet() { pthread_barrier_wait(&gMeet); }

void failed(int rank, char const *format, ...) __attribute__((format(printf, 2, 3)));
void failed(int rank, char const *format, ...) {
  char text[600];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (__atomic_fetch_add(&gFailures, 1, __ATOMIC_RELAXED) < 20) printf("not ok: rank %d: %s\n", rank, text);
}

void must(int rank, char const *what, ncclResult_t rc) {
  if (rc == ncclSuccess) return;
  printf("not ok: rank %d: %s gives %d: %s\n", rank, what, (int)rc, ncclGetLastError(nullptr));
  fflush(stdout);
  exit(1);
}
#define MUST(CALL) must(rank, #CALL, (CALL))

constexpr int kSignals = 6, kCounters = 2, kBarriers = 2, kPuts = 700;
constexpr size_t kSizes[] = {0, 1, 7, 8, 65, 4096, 9999}, kPart = 16384, kWords = 8192;
constexpr uint32_t kContexts = 3;

/* A rank's device communicator and window as its kernel sees them. */
struct Side {
  Header const *h;
  int rank, n;
  char *dev;                  /* ncclDevComm */
  char *window, *local;       /* ncclWindow_vidmem, and this rank's part */
  uint32_t lists, listSignal; /* of the caller's own list: buffer handle, first signal */
  int bad;

  uint32_t signalBase() const { return h->out.signalBase ? readAt<uint32_t>(dev, h->out.signalBase) : 0; }
  uint32_t counterBase() const { return h->out.counterBase ? readAt<uint32_t>(dev, h->out.counterBase) : 0; }
  OldContext *context(uint32_t c) const {
    char *first = readAt<char *>(dev, h->out.handles + (h->handleEach ? 8 * c : 0));
    return reinterpret_cast<OldContext *>(first) + (h->handleEach ? 0 : c);
  }
  uint64_t win(uint32_t c) const { return readAt<uint64_t>(window, 40 + (h->handleEach ? 8 * c : 0)); } /* ginWins */
  uint64_t offset(uint64_t at) const { return 4096ull * readAt<uint32_t>(window, 32) + at; }            /* ginOffset4K */
  uint64_t *shadows(uint32_t c) const {
    return readAt<uint64_t *>(dev, h->out.shadows) + c * (uint32_t)readAt<int>(dev, h->out.signalCount);
  }
  /* A place in this rank's resource buffer. */
  void *resource(uint32_t handle) const {
    char *base = readAt<char *>(dev, h->out.inlined + 8); /* lsaFlatBase */
    uint32_t stride4G = readAt<uint32_t>(dev, h->out.inlined + 24), lsaRank = readAt<uint32_t>(dev, h->out.rank + 12);
    return base + ((uint64_t)stride4G << 32) * lsaRank + 128ull * handle;
  }
};

bool rollingLess(uint32_t a, uint32_t b) { return b - a <= 0x7fffffffu; }

void post(Side const &s, uint32_t c, int peer, Op const &o) {
  OldContext *x = s.context(c);
  uint64_t w[16];
  wordsOf(*s.h, o, w);
  uint32_t at = __atomic_fetch_add(&x->pis[peer], 1u, __ATOMIC_RELAXED), ci;
  while (x->queueSize <= at - (ci = __atomic_load_n(&x->cis[peer], __ATOMIC_RELAXED)))
    if (gccl_cpu_wait(nullptr, "room", c, peer, at, ci)) return;
  uint64_t *slot = x->queues + ((uint64_t)(uint32_t)peer * x->queueSize + (at & (x->queueSize - 1))) * (uint64_t)s.h->words;
  for (int i = s.h->words - 1; i >= 0; i--) __atomic_store_n(slot + i, w[i], __ATOMIC_RELEASE);
}
void put(Side const &s, uint32_t c, int peer, uint64_t dst, uint64_t src, uint64_t bytes, uint32_t how, uint32_t signal, uint64_t add,
         uint32_t counter) {
  Op o = {OpPut | how, bytes, 0, s.win(c), s.offset(src), s.win(c), s.offset(dst), s.counterBase() + counter, s.signalBase() + signal, add};
  post(s, c, peer, o);
}
void putValue(Side const &s, uint32_t c, int peer, uint64_t dst, uint64_t value, uint64_t bytes, uint32_t how, uint32_t signal) {
  Op o = {OpPut | OpInline | how, bytes, value, 0, 0, s.win(c), s.offset(dst), 0, s.signalBase() + signal, 1};
  post(s, c, peer, o);
}
void signalOnly(Side const &s, uint32_t c, int peer, uint32_t how, uint32_t signal, uint64_t add) {
  Op o = {OpPut | how, 0, 0, 0, 0, 0, 0, 0, s.signalBase() + signal, add};
  post(s, c, peer, o);
}
void flush(Side const &s, uint32_t c) {
  OldContext *x = s.context(c);
  for (int p = 0; p < s.n; p++) {
    uint32_t pi = __atomic_load_n(&x->pis[p], __ATOMIC_RELAXED), ci;
    while (!rollingLess(pi, ci = __atomic_load_n(&x->cis[p], __ATOMIC_ACQUIRE)))
      if (gccl_cpu_wait(nullptr, "flush", c, p, pi, ci)) return;
  }
}
uint64_t *signalOf(Side const &s, uint32_t c, uint32_t signal) { return s.context(c)->signals + s.signalBase() + signal; }
uint64_t *counterOf(Side const &s, uint32_t c, uint32_t counter) { return s.context(c)->counters + s.counterBase() + counter; }
void waitWord(uint64_t const *word, uint64_t least, int bits, char const *what, uint64_t number) {
  uint64_t is, mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  while ((((is = __atomic_load_n(word, __ATOMIC_ACQUIRE)) - least) & mask) > mask >> 1)
    if (gccl_cpu_wait(nullptr, what, number, -1, least, is)) return;
}

/* A barrier of a team of the ranks first, first + stride, …, of which this is number me. */
void barrier(Side const &s, uint32_t c, int first, int stride, int ranks, int me, uint32_t signal0, uint32_t buffer, uint32_t index) {
  uint32_t *epochs = nullptr, epoch = 0, signal = signal0 + index * (s.h->oneSignal ? 1 : (uint32_t)ranks);
  if (s.h->oneSignal) {
    epochs = static_cast<uint32_t *>(s.resource(buffer));
    epoch = epochs[index * 4 + c];
  }
  for (int i = 1; i < ranks; i++) {
    int peer = (me + i) % ranks;
    signalOnly(s, c, first + peer * stride, OpInc, signal + (s.h->oneSignal ? 0 : (uint32_t)me), 1);
  }
  if (s.h->oneSignal) {
    epoch += (uint32_t)ranks - 1;
    waitWord(signalOf(s, c, signal), epoch, 32, "barrier", index);
    epochs[index * 4 + c] = epoch;
    return;
  }
  for (int i = 1; i < ranks; i++) {
    int peer = (me + i) % ranks;
    uint32_t *shadow = reinterpret_cast<uint32_t *>(s.shadows(c) + signal + peer);
    waitWord(signalOf(s, c, signal + (uint32_t)peer), ++*shadow, 32, "barrier", index);
  }
}
void everybody(Side const &s, uint32_t c, uint32_t index) { barrier(s, c, 0, 1, s.n, s.rank, s.listSignal, s.lists, index); }

#define EXPECT(OK) \
  if (!(OK)) failed(s.rank, "context %u: %s", c, #OK)

unsigned char byteOf(int from, uint32_t c, size_t i) { return (unsigned char)(i * 7 + (size_t)from * 31 + c * 5 + 1); }

/* Where things are in the window: sources of each context, then its parts by rank; words at the end. */
uint64_t sourceAt(uint32_t c) { return c * kPart; }
uint64_t partAt(Side const &s, uint32_t c, int from) { return (kContexts + c * (uint64_t)s.n + (uint64_t)from) * kPart; }
uint64_t wordsAt(Side const &s, uint32_t c) { return (kContexts + kContexts * (uint64_t)s.n + c) * kPart; }

void kernel(Side *side) {
  Side const &s = *side;
  int next = (s.rank + 1) % s.n;
  for (uint32_t c = 0; c < kContexts; c++) {
    uint64_t total = 0;
    for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; i++) { /* to all, itself included; signals that count bytes */
      for (int p = 0; p < s.n; p++) put(s, c, p, partAt(s, c, s.rank), sourceAt(c), kSizes[i], OpAdd | OpCounter, 0, kSizes[i] + 1, 1);
      total += (kSizes[i] + 1) * (uint64_t)s.n;
    }
    waitWord(signalOf(s, c, 0), total, 64, "signal", 0);
    waitWord(counterOf(s, c, 1), sizeof kSizes / sizeof *kSizes * (uint64_t)s.n, 56, "counter", 1);
    EXPECT(*signalOf(s, c, 0) == total);
    flush(s, c);
    everybody(s, c, 0);
    *counterOf(s, c, 1) = 0; /* ncclGinApi_ResetCounter, _ResetSignal */
    *signalOf(s, c, 0) = 0;
    everybody(s, c, 0);
    for (uint64_t bytes = 1; bytes <= 8; bytes *= 2)
      putValue(s, c, next, wordsAt(s, c) + 16 * bytes, 0x8877665544332211ull, bytes, bytes == 8 ? OpInc : 0, 0);
    waitWord(signalOf(s, c, 0), 1, 64, "signal", 0); /* strong: the values are there too */
    for (uint64_t bytes = 1; bytes <= 8; bytes *= 2) {
      uint64_t v = readAt<uint64_t>(s.local, wordsAt(s, c) + 16 * bytes),
               want = bytes == 8 ? 0x8877665544332211ull : 0x8877665544332211ull & ((1ull << 8 * bytes) - 1);
      EXPECT(v == want);
    }
    for (uint64_t i = 0; i < kPuts; i++) /* more than a queue has */
      putValue(s, c, next, wordsAt(s, c) + 512 + 8 * i, i << 40 | (i + 1), 8, OpInc, 1);
    waitWord(signalOf(s, c, 1), kPuts, 64, "signal", 1);
    for (uint64_t i = 0; i < kPuts; i++) EXPECT(readAt<uint64_t>(s.local, wordsAt(s, c) + 512 + 8 * i) == (i << 40 | (i + 1)));
    signalOnly(s, c, next, OpAdd, kSignals - 1, 0x7edcba9876543210ull); /* all bits of a value */
    signalOnly(s, c, next, OpInc, kSignals - 1, 1);
    waitWord(signalOf(s, c, kSignals - 1), 0x7edcba9876543211ull, 64, "signal", kSignals - 1);
    uint64_t *shadow = s.shadows(c) + kSignals - 1;
    EXPECT(*shadow == 0);
    *shadow += 0x7edcba9876543211ull;
    EXPECT(*signalOf(s, c, kSignals - 1) == *shadow);
    if (s.h->wide) { /* signals by address, from 2.29.7 */
      Op o = {OpVA | OpAdd, 0, 0, s.win(c), s.offset(wordsAt(s, c) + 256), 0, 0, 0, 0, 77};
      post(s, c, next, o);
      waitWord(reinterpret_cast<uint64_t *>(s.local + wordsAt(s, c) + 256), 77, 64, "signal by address", 0);
    }
    if (s.h->words == 16) { /* gets, from 2.30.3 */
      Op o = {OpGet, 4096, 0, s.win(c), s.offset(sourceAt(c)), s.win(c), s.offset(wordsAt(s, c) + 8192), 0, 0, 0};
      post(s, c, next, o);
      flush(s, c);
      for (size_t i = 0; i < 4096; i++) EXPECT((unsigned char)s.local[wordsAt(s, c) + 8192 + i] == byteOf(next, c, i));
    }
    flush(s, c);
    /* The rail, and hybrid barriers, which are those of the rail and of the LSA team here: their rounds have a place of their own. */
    int lsa = readAt<int>(s.dev, s.h->out.rank + 16), teams = s.n / lsa;
    uint32_t signal0 = readAt<uint32_t>(s.dev, s.h->out.rail), buffer = readAt<uint32_t>(s.dev, s.h->out.rail + 4);
    for (uint32_t round = 0; round < 3; round++) barrier(s, c, s.rank % lsa, lsa, teams, s.rank / lsa, signal0, buffer, round % kBarriers);
    everybody(s, c, 1);
  }
}

void rankMain(int rank, int n, ncclUniqueId id) {
  Header const &h = *gHeader;
  ncclComm_t comm;
  place::enter(rank);
  MUST(ncclCommInitRank(&comm, n, id, rank));
  Side s = {};
  s.h = &h;
  s.rank = rank;
  s.n = n;
  size_t bytes = (kContexts + kContexts * (size_t)n + kContexts) * kPart;
  MUST(ncclMemAlloc((void **)&s.local, bytes));
  memset(s.local, 0, bytes);
  for (uint32_t c = 0; c < kContexts; c++)
    for (size_t i = 0; i < kPart; i++) s.local[sourceAt(c) + i] = (char)byteOf(rank, c, i);
  MUST(ncclCommWindowRegister(comm, s.local, bytes, (ncclWindow_t *)&s.window, NCCL_WIN_COLL_SYMMETRIC));

  alignas(16) unsigned char reqs[96] = {0};
  alignas(16) char out[256];
  memset(out, 0x77, sizeof out);
  if (h.version) {
    writeAt(reqs, 0, h.bytes);
    writeAt(reqs, 8, (unsigned)NCCL_API_MAGIC);
    writeAt(reqs, 12, h.version);
  }
  struct {
    uint32_t signal0, buffer;
  } handle = {0, 0};
  ncclDevResourceRequirements_t own;
  MUST(ncclGinBarrierCreateRequirement(comm, ncclTeamWorld(comm), 2, (ncclGinBarrierHandle_t *)&handle, &own));
  writeAt(reqs, h.list, &own);
  writeAt(reqs, h.barriers, kBarriers);
  writeAt(reqs, h.rail, 1);
  writeAt(reqs, h.contexts, kContexts);
  writeAt(reqs, h.signals, kSignals);
  writeAt(reqs, h.counters, kCounters);
  if (h.connection) writeAt(reqs, h.connection, (int)NCCL_GIN_CONNECTION_FULL);
  MUST(ncclDevCommCreate(comm, (ncclDevCommRequirements const *)reqs, (ncclDevComm *)out));
  s.dev = out;
  s.lists = handle.buffer;
  s.listSignal = handle.signal0;
  for (size_t i = h.outBytes; i < sizeof out; i++)
    if (out[i] != 0x77) failed(rank, "byte %zu behind ncclDevComm has changed", i);
  uint32_t contexts = h.out.contextsBytes == 1 ? (uint32_t)readAt<uint8_t>(out, h.out.contexts) : readAt<uint32_t>(out, h.out.contexts);
  if (contexts != kContexts) failed(rank, "%u contexts, %u were asked for", contexts, kContexts);
  for (uint32_t c = 0; c < (h.handleEach ? kContexts : 1); c++)
    if (readAt<uint8_t>(out, h.out.types + c) != 2 /* NCCL_NET_DEVICE_GIN_PROXY */) failed(rank, "context %u is not of the proxy", c);
  if (readAt<int>(out, h.out.lsaBarrier + 4) < kBarriers && h.version < 23000) failed(rank, "hybrid barriers have no LSA barriers");
  meet();
  gccl::cpu::Launch l(1, 1);
  l.deadlineNs = 100 * 1000000000ull;
  ncclResult_t rc = l.run(kernel, &s);
  if (rc != ncclSuccess) failed(rank, "the launch gives %d: %s", (int)rc, l.error());
  meet();
  for (uint32_t c = 0; c < kContexts; c++)
    for (int from = 0; from < n; from++)
      for (size_t i = 0; i < kPart; i++) { /* all puts of a rank have the same bytes at the same place */
        unsigned char got = (unsigned char)s.local[partAt(s, c, from) + i], want = i < 9999 ? byteOf(from, c, i) : 0;
        if (got != want) failed(rank, "context %u: byte %zu of rank %d is 0x%02x, not 0x%02x", c, i, from, got, want);
      }
  ncclResult_t async;
  MUST(ncclCommGetAsyncError(comm, &async));
  if (async != ncclSuccess) failed(rank, "the communicator has failed: %s", ncclGetLastError(comm));
  MUST(ncclDevCommDestroy(comm, (ncclDevComm *)out));
  MUST(ncclCommWindowDeregister(comm, (ncclWindow_t)s.window));
  MUST(ncclMemFree(s.local));
  MUST(ncclCommDestroy(comm));
}

} // namespace

int main(int argc, char **argv) {
  place::arguments(argc, argv);
  place::start();
  int n = argc > 1 ? atoi(argv[1]) : 2;
  for (auto const &h : kHeaders)
    if (argc > 2 && !strcmp(h.name, argv[2])) gHeader = &h;
  if (!gHeader) return printf("usage: old RANKS VERSION\n"), 2;
  pthread_barrier_init(&gMeet, nullptr, (unsigned)n);
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) return 1;
  std::vector<std::thread> ranks;
  for (int i = 0; i < n; i++) ranks.emplace_back(rankMain, i, n, id);
  for (auto &t : ranks) t.join();
  if (!gFailures) printf("ok %s\n", gHeader->name);
  return gFailures ? 1 : 0;
}
