/* soak.cc: many signals behind numbered payload, around the ring. One CTA of each rank sends, the other waits for the signal of the slot and reads
 * every word back. What is sent follows from a seed: how many words, in how many puts, by which kind of signal.
 *
 * A slot is used again when the receiver has said that it is done with it, so the source is free then too. Weak signals cover one put; each slot has a
 * signal of its own, because weak ones of several messages have no order. */
#include "frame.h"
#include "kernels.h"

void soak(Rank &r) {
  ncclDevCommRequirements q = wants(kSoakSlots + 1, 0, 2);
  Bench b(r, "soak", 2 * kSoakSlots * kSoakWords * 8, q);
  place::Shared<long> bad, words;
  b.ready();
  b.run(2, 1, K(soakKernel), b.dev, b.win, gSeed, gSoak, bad, words);
  CHECK(*bad == 0, "seed %llu: %ld of %ld words were not there when their signal was", (unsigned long long)gSeed, *bad, *words);
  meet();
  if (r.rank == 0)
    printf("soak: seed %llu, %ld signals from each of %d ranks, %ld words read back here\n", (unsigned long long)gSeed, gSoak, r.n, *words);
}
