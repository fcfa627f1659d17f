/* soak.cc: many signals behind numbered payload, around the ring. One CTA of each rank sends, the other waits for the signal of the slot and reads
 * every word back. What is sent follows from a seed: how many words, in how many puts, by which kind of signal.
 *
 * A slot is used again when the receiver has said that it is done with it, so the source is free then too. Weak signals cover one put; each slot has a
 * signal of its own, because weak ones of several messages have no order. */
#include "frame.h"

namespace {

constexpr int kSlots = 16, kWords = 48, kCredit = kSlots; /* signals: one for each slot, then the credits */

uint64_t mixed(uint64_t v) { /* splitmix64 */
  v += 0x9e3779b97f4a7c15ull;
  v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
  v = (v ^ v >> 27) * 0x94d049bb133111ebull;
  return v ^ v >> 31;
}
/* Message number n of a rank, and word i of it. */
uint64_t messageOf(uint64_t seed, int rank, long n) { return mixed(mixed(seed + (uint64_t)rank) + (uint64_t)n); }
int wordsIn(uint64_t message) { return 1 + (int)(message % kWords); }
uint64_t wordOf(uint64_t message, long n, int i) { return (mixed(message + (uint64_t)i) & 0xffffff) | (uint64_t)n << 24; }

void soakKernel(ncclDevComm comm, ncclWindow_t w, uint64_t seed, long count, long *bad, long *words) {
  ncclTeam world = ncclTeamWorld(comm);
  int next = (comm.rank + 1) % comm.nRanks, prev = (comm.rank + comm.nRanks - 1) % comm.nRanks;
  constexpr size_t slot = kWords * 8, in = kSlots * slot;
  ncclCoopThread thread;
  if (blockIdx.x == 0) {
    ncclGin gin(comm, 0), credits(comm, 1);
    for (long n = 0; n < count; n++) {
      size_t k = (size_t)(n % kSlots), at = k * slot;
      uint64_t m = messageOf(seed, comm.rank, n);
      int size = wordsIn(m);
      if (n >= kSlots) credits.waitSignal(thread, kCredit, (uint64_t)(n - kSlots + 1));
      uint64_t *mine = static_cast<uint64_t *>(ncclGetLocalPointer(w, at));
      for (int i = 0; i < size; i++) mine[i] = wordOf(m, n, i);
      size_t bytes = (size_t)size * 8, first = 8 * (1 + (size_t)(m >> 32) % (size_t)size);
      switch (m >> 60 & 3) {
      case 0: gin.put(world, next, w, in + at, w, at, bytes, ncclGin_WeakSignalInc{(ncclGinSignal_t)k}); break;
      case 1: gin.put(world, next, w, in + at, w, at, bytes, ncclGin_StrongSignalAdd{(ncclGinSignal_t)k, 1}); break;
      case 2: /* two puts, the first of which the signal of the second covers; told together */
        gin.put(world, next, w, in + at, w, at, first, ncclGin_None{}, ncclGin_None{}, thread, ncclGin_None{}, cuda::thread_scope_thread,
                cuda::thread_scope_device, ncclGinOptFlagsAggregateRequests);
        gin.put(world, next, w, in + at + first, w, at + first, bytes - first, ncclGin_StrongSignalInc{(ncclGinSignal_t)k});
        break;
      default: /* the last word as a value, then a signal alone */
        if (size > 1) gin.put(world, next, w, in + at, w, at, bytes - 8);
        gin.putValue(world, next, w, in + at + bytes - 8, wordOf(m, n, size - 1));
        gin.signal(world, next, ncclGin_StrongSignalInc{(ncclGinSignal_t)k});
      }
    }
    gin.flush(thread);
    return;
  }
  ncclGin gin(comm, 1), arrivals(comm, 0);
  long wrong = 0, seen = 0;
  for (long n = 0; n < count; n++) {
    size_t k = (size_t)(n % kSlots);
    uint64_t m = messageOf(seed, prev, n);
    arrivals.waitSignal(thread, (ncclGinSignal_t)k, (uint64_t)(n / kSlots + 1));
    uint64_t const *theirs = static_cast<uint64_t const *>(ncclGetLocalPointer(w, in + k * slot));
    for (int i = 0; i < wordsIn(m); i++, seen++) wrong += theirs[i] != wordOf(m, n, i);
    gin.signal(world, prev, ncclGin_StrongSignalInc{kCredit});
  }
  *bad = wrong;
  *words = seen;
}

} // namespace

void soak(Rank &r) {
  ncclDevCommRequirements q = wants(kSlots + 1, 0, 2);
  Bench b(r, "soak", 2 * kSlots * kWords * 8, q);
  long bad = 0, words = 0;
  meet();
  b.run(2, 1, soakKernel, b.dev, b.win, gSeed, gSoak, &bad, &words);
  CHECK(bad == 0, "seed %llu: %ld of %ld words were not there when their signal was", (unsigned long long)gSeed, bad, words);
  meet();
  if (r.rank == 0)
    printf("soak: seed %llu, %ld signals from each of %d ranks, %ld words read back here\n", (unsigned long long)gSeed, gSoak, r.n, words);
}
