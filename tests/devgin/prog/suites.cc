/* suites.cc: what every backend of GIN has to do, over every transport. What arrives is read back and compared exactly. */
#include "frame.h"
#include "kernels.h"

#include <algorithm>
#include <thread>

namespace {

/* The byte at i of what `from` sends. */
inline unsigned char byteOf(int from, size_t i) { return (unsigned char)(i * 7 + (size_t)from * 31 + 1); }
void fill(Bench &b, size_t at, size_t n) {
  for (size_t i = 0; i < n; i++) b.mem[at + i] = (char)byteOf(b.r.rank, i);
}

/* ---- puts: every rank to every rank, itself included, every awkward size, weak signals that count bytes ---- */

void puts(Rank &r) {
  Bench b(r, "puts", (size_t)(r.n + 2) * kPart, wants(r.n, 4));
  fill(b, 0, kPart);
  b.ready();
  place::Shared<int> bad;
  b.run(1, 40, K(putsKernel), b.dev, b.win, bad);
  CHECK(*bad == 0, "%d signals have other values", *bad);
  b.settled();
  for (int p = 0; p < r.n; p++)
    for (size_t size : {(size_t)9999}) { /* the longest covers the others of its alignment; where they lie apart they are checked below */
      for (size_t i = 0; i < size; i++) {
        unsigned char got = (unsigned char)b.mem[(size_t)(1 + p) * kPart + size % 16 + i];
        bool other = false; /* a shorter one may have come last: puts have no order */
        for (size_t s : kSizes) {
          size_t at = size % 16 + i - s % 16;
          if (size % 16 + i >= s % 16 && at < s) other = other || got == byteOf(p, s % 5 + at);
        }
        CHECK(other, "byte %zu of rank %d is 0x%02x", i, p, got);
      }
      for (size_t i = size % 16 + size; i < kPart; i++)
        CHECK(b.mem[(size_t)(1 + p) * kPart + i] == 0, "byte %zu behind the puts of rank %d is 0x%02x", i, p,
              b.mem[(size_t)(1 + p) * kPart + i]);
    }
}

/* ---- sequence: numbered payload with a signal behind it around the ring, flow control back ---- */

void sequence(Rank &r) {
  Bench b(r, "sequence", 2 * kSlots * kWords * 8, wants(2));
  place::Shared<int> bad;
  b.ready();
  b.run(1, 32, K(sequenceKernel), b.dev, b.win, gSignals, bad);
  CHECK(*bad == 0, "%d of %ld words were not there when their signal was", *bad, gSignals * kWords);
}

/* ---- signals: wrap-around, adds and incs mixed, by number and by place, resets, shadows ---- */

void signals(Rank &r) {
  ncclDevCommRequirements q = wants(4);
  q.worldGinBarrierCount = 1;
  Bench b(r, "signals", 4096, q);
  uint64_t v = 0x1122334455667788ull;
  memcpy(b.mem, &v, 8);
  place::Shared<int> bad;
  b.ready();
  b.run(1, 32, K(signalsKernel), b.dev, b.win, bad);
  CHECK(*bad == 0, "%d values are wrong", *bad);
}

/* ---- local completion: counters, flush, requests; sources are written again afterwards ---- */

void local(Rank &r) {
  Bench b(r, "local", 4096 + 12 * 512, wants(1, 3));
  place::Shared<int> bad;
  b.ready();
  b.run(1, 40, K(localKernel), b.dev, b.win, bad);
  CHECK(*bad == 0, "%d counters are wrong", *bad);
  b.settled();
  for (int round = 0; round < 12; round++)
    for (int i = 0; i < 512; i++) {
      char got = b.mem[4096 + round * 512 + i];
      CHECK(got == round + 1, "put %d has byte %d: the source was used again too early", round, got);
    }
}

/* ---- gets and values ---- */

void values(Rank &r) {
  Bench b(r, "values", 131072, wants(1));
  for (size_t i = 0; i < 8192; i++) b.mem[32768 + i] = (char)byteOf(r.rank, i);
  b.ready();
  b.run(1, 40, K(valuesKernel), b.dev, b.win);
  b.settled();
  for (int n = 1; n <= 8; n++)
    for (int i = 0; i < 16; i++) {
      unsigned char want = i < n ? (unsigned char)(0x10 * n + i) : 0, got = (unsigned char)b.mem[1024 + 16 * n + i];
      CHECK(got == want, "a value of %d bytes has 0x%02x in byte %d", n, got, i);
    }
  uint64_t v;
  memcpy(&v, b.mem + 1200, 8);
  CHECK(v == 0x0123456789abcdefull, "the value of 8 bytes is 0x%llx", (unsigned long long)v);
  for (size_t k = 0; k < 8; k++)
    for (size_t i = 0; i < 8192; i++) {
      unsigned char want = i < kSizes[k] ? byteOf((r.rank + 1) % r.n, kSizes[k] % 7 + i) : 0,
                    got = (unsigned char)b.mem[65536 + k * 8192 + i];
      CHECK(got == want, "a get of %zu has 0x%02x in byte %zu", kSizes[k], got, i);
    }
}

/* ---- bulk: puts and gets between all ranks at once, each longer than what any backend has under way ---- */

void bulk(Rank &r) {
  constexpr size_t bytes = (3 << 20) + 40;
  ncclDevCommRequirements q = wants(r.n);
  q.worldGinBarrierCount = 1;
  Bench b(r, "bulk", bytes * (size_t)(1 + 2 * r.n), q);
  place::Shared<int> bad;
  b.ready();
  b.run(1, 64, K(bulkKernel), b.dev, b.win, bytes, 3, bad);
  CHECK(*bad == 0, "%d words are wrong", *bad);
}

/* ---- killed: the last rank's process dies while everybody puts. The kernels of the others end, and their communicators name it, within 5 s. By name; ranks
 * are processes, and this is the last suite ---- */

void killed(Rank &r) {
  constexpr size_t bytes = (1 << 20) + 40;
  Bench &b = *new Bench(r, "killed", bytes * (size_t)(1 + r.n), wants(r.n)); /* stays: it would meet the dead one at its end */
  b.ready();
  if (r.rank == r.n - 1) dieSoon();
  place::Launch l(1, 64);
  l.deadlineNs = 30 * 1000000000ull;
  ncclResult_t async = l.start(K(killedKernel), b.dev, b.win, bytes);
  CHECK(async == ncclSuccess, "the launch gives %d: %s", (int)async, l.error());
  (void)l.finish(); /* on the CPU it says what ended it */
  double after = sinceDeath();
  while (ncclCommGetAsyncError(r.comm, &async) == ncclSuccess && async == ncclSuccess && sinceDeath() < 5) std::this_thread::yield();
  char who[32];
  snprintf(who, sizeof who, "rank %d", r.n - 1);
  CHECK(after > 0 && after < 5, "the kernel ended %.1f s after the death", after);
  CHECK(async == ncclRemoteError && strstr(ncclGetLastError(r.comm), who), "the communicator says %d: %s", (int)async,
        ncclGetLastError(r.comm));
  printf("survivor %d: %.2f s: %s\n", r.rank, after, ncclGetLastError(r.comm));
  ncclCommAbort(r.comm);
  CHECK(sinceDeath() < 10, "the abort ended %.1f s after the death", sinceDeath());
  leaveNow();
}

/* ---- queues: 16 entries, many puts, several threads and CTAs in one context, every sharing mode and option ---- */

void queues(Rank &r) {
  Bench b(r, "queues", 65536, wants(2, 1, 3, 16));
  b.ready();
  b.run(2, 24, K(queuesKernel), b.dev, b.win, gPuts);
  b.settled();
  for (long i = 0; i < 4096; i++) { /* the words that one number alone was written to; others may have any of theirs */
    uint64_t v;
    memcpy(&v, b.mem + i * 8, 8);
    CHECK(i >= gPuts ? v == 0 : (long)v > 0 && (long)((v - 1) % 4096) == i && (long)v <= gPuts, "word %ld is %llu", i,
          (unsigned long long)v);
  }
}

/* ---- contexts: the same signal number in each is another signal ---- */

void contexts(Rank &r) {
  Bench b(r, "contexts", 4096, wants(4, 0, 4));
  place::Shared<uint64_t> out(4);
  CHECK(b.dev.ginContextCount == 4, "%u contexts", b.dev.ginContextCount);
  b.ready();
  b.run(4, 32, K(contextsKernel), b.dev);
  b.settled();
  b.run(4, 32, K(readContexts), b.dev, out);
  for (int i = 0; i < 4; i++) CHECK(out.p[i] == 10u * (unsigned)(i + 1), "signal 3 of context %d is %llu", i, (unsigned long long)out.p[i]);
}

/* ---- again: many device communicators one after another; more contexts than there are at a time ---- */

void again(Rank &r) {
  for (int i = 0; i < 18; i++) {
    Bench b(r, "again", 4096, wants(2, 0, 4));
    b.ready();
    b.run(1, 32, K(againKernel), b.dev, b.win);
    b.settled();
    for (int k = 0; k < 4 * r.n; k++) {
      uint64_t v;
      memcpy(&v, b.mem + k * 8, 8);
      CHECK(v == (uint64_t)(k / r.n + 1), "round %d: word %d is %llu", i, k, (unsigned long long)v);
    }
  }
}

/* ---- barriers: world, rail, all contexts, a team of the caller's, hybrid; each CTA its own index ---- */

void barriers(Rank &r) {
  ncclDevCommRequirements q = wants(1, 0, 2);
  q.worldGinBarrierCount = 4;
  q.railGinBarrierCount = 2;
  q.barrierCount = 2;
  Barriers h;
  ncclDevResourceRequirements_t own;
  ncclGinBarrierCreateRequirement(r.comm, ncclTeamWorld(r.comm), 2, &h.own, &own);
  ncclGinSignal_t first = 0;
  ncclDevResourceRequirements_t more = {};
  more.ginSignalCount = 5;
  more.outGinSignalStart = &first;
  own.next = &more;
  q.resourceRequirementsList = &own;
  Bench b(r, "barriers", 65536, q);
  CHECK(first + 5 == (ncclGinSignal_t)b.dev.ginSignalCount && h.own.signal0 + 2 * (unsigned)r.n == first,
        "signals begin at %u and %u of %d", h.own.signal0, first, b.dev.ginSignalCount);
  place::Shared<int> bad;
  b.ready();
  b.run(2, 16, K(barriersKernel), b.dev, b.win, h, 16, bad);
  CHECK(*bad == 0, "%d puts were not there after a barrier", *bad);
  b.settled();
  place::Shared<int> timedOut;
  b.run(1, 8, K(lateKernel), b.dev, timedOut);
  CHECK(*timedOut == (r.rank != 0), "a barrier without rank 0 ends with %d", *timedOut);
}

/* ---- together: two kernels of a rank at once, in contexts of their own; the functions without templates ---- */

void together(Rank &r) {
  Bench b(r, "together", 16384, wants(2, 1, 2));
  fill(b, 0, 256);
  b.ready();
  place::Launch l(1, 32);
  l.deadlineNs = (uint64_t)gSeconds * 1000000000u;
  CHECK(l.start(K(togetherKernel), b.dev, b.win, 0, 30) == ncclSuccess, "%s", l.error());
  b.run(1, 32, K(togetherKernel), b.dev, b.win, 1, 30);
  CHECK(l.finish() == ncclSuccess, "%s", l.error());
  b.settled();
  for (int c = 0; c < 2; c++) {
    uint64_t v;
    memcpy(&v, b.mem + 8192 + c * 8, 8);
    CHECK(v == 30, "the last value of kernel %d is %llu", c, (unsigned long long)v);
    for (int i = 0; i < 256; i++) {
      unsigned char got = (unsigned char)b.mem[4096 + c * 512 + i], have = (unsigned char)b.mem[12288 + c * 256 + i];
      CHECK(got == byteOf((r.rank + r.n - 1) % r.n, (size_t)i), "byte %d of kernel %d is 0x%02x", i, c, got);
      CHECK(have == byteOf((r.rank + 1) % r.n, (size_t)i), "byte %d that kernel %d got is 0x%02x", i, c, have);
    }
  }
}

/* ---- behind: what a program has queued behind a kernel that waits, in one stream after another, must not hold up what the kernel waits for. On a GPU, by
 * name ---- */

void behind(Rank &r) {
  Bench b(r, "behind", 16384, wants(2, 1, 2));
  place::Shared<char> back(4096);
  b.ready();
  constexpr int kStreams = 16; /* all of them stay, so that they share hardware queues with each other and with any other stream */
  place::Launch *l[kStreams];
  for (int i = 0; i < kStreams; i++) {
    l[i] = new place::Launch(1, 32);
    l[i]->deadlineNs = 20 * 1000000000ull;
    CHECK(l[i]->start(K(roundKernel), b.dev, b.win, i + 1) == ncclSuccess, "%s", l[i]->error());
    if (place::onGpu()) {
      place::must("cuMemcpyAsync", (CUdeviceptr)(uintptr_t)back.p, (CUdeviceptr)(uintptr_t)b.memory.at, (size_t)4096, l[i]->stream);
      CHECK(l[i]->start(K(roundKernel), b.dev, b.win, 0) == ncclSuccess, "%s", l[i]->error());
    }
    CHECK(l[i]->finish() == ncclSuccess, "stream %d: %s", i, l[i]->error());
    meet();
  }
  for (int i = 0; i < kStreams; i++) delete l[i];
}

/* ---- full: a kernel that fills the GPU waits for copies. On a GPU, by name ---- */

void full(Rank &r) {
  Bench b(r, "full", 131072 + 4096, wants(1));
  place::Shared<uint64_t> done;
  fill(b, 0, 65536);
  b.ready();
  b.run(place::onGpu() ? 4096 : 3, place::onGpu() ? 1024 : 8, K(fullKernel), b.dev, b.win, 50, done);
  b.settled();
  uint64_t v[2];
  memcpy(v, b.mem + 131072, sizeof v);
  if (r.rank != 0) return;
  CHECK(*done && v[0] == 50 && v[1] == 50, "done %llu, the value is %llu, the signal in the window %llu", (unsigned long long)*done,
        (unsigned long long)v[0], (unsigned long long)v[1]);
  for (size_t i = 0; i < 65536; i++)
    CHECK((unsigned char)b.mem[65536 + i] == byteOf(0, i), "byte %zu is 0x%02x", i, (unsigned char)b.mem[65536 + i]);
}

/* ---- race: ThreadSanitizer has to find it. Only by name ---- */

void race(Rank &r) {
  Bench b(r, "race", 4096, wants(1));
  place::Shared<uint64_t> seen;
  b.ready();
  b.run(1, 1, K(raceKernel), b.dev, b.win, seen);
}

/* ---- times, as "speed" lines: medians of several launches, of which each is timed with many rounds and with none ---- */

template <typename Run> void report(Rank &r, char const *what, int rounds, Run run) {
  double us[7];
  for (double &x : us) {
    double t[2];
    for (int k = 0; k < 2; k++) {
      timespec a, b;
      meet();
      clock_gettime(CLOCK_MONOTONIC, &a);
      run(k ? rounds : 0);
      clock_gettime(CLOCK_MONOTONIC, &b);
      t[k] = (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3;
    }
    x = (t[1] - t[0]) / rounds;
  }
  std::sort(us, us + 7);
  if (r.rank == 0) printf("speed %-34s %2d ranks %9.3f us (%.3f to %.3f)\n", what, r.n, us[3], us[0], us[6]);
}
void speed(Rank &r) {
  Bench b(r, "speed", 2 << 20, wants(2, 1, 1, 1024));
  int rounds = place::onGpu() ? 2000 : 50;
  uint64_t before = 0;
  b.ready();
  if (r.n < 2) return;
  for (size_t bytes : {(size_t)8, (size_t)4096, (size_t)65536, (size_t)1 << 20}) {
    char what[64];
    snprintf(what, sizeof what, "put %zu B and signal, round trip", bytes);
    report(r, what, rounds, [&](int n) {
      b.run(1, bytes > 8 ? 256 : 1, K(pingPongKernel), b.dev, b.win, bytes, before, n);
      before += (uint64_t)n;
    });
  }
  place::Shared<long> ns;
  for (int k = 0; k < 8; k++) { /* the best of several: what a put costs a kernel that nobody holds up */
    static char const *const who[] = {"thread", "warp"}, *const how[] = {"", ", alone in its context", ", released", ", alone, released"};
    long best = 0;
    for (int i = 0; i < 7; i++) {
      b.run(1, k < 4 ? 1 : 32, K(enqueueKernel), b.dev, b.win, 500, k % 2, k / 2 % 2, ns);
      if (!best || *ns < best) best = *ns;
      meet();
    }
    char what[64];
    snprintf(what, sizeof what, "put 8 B asked for by a %s%s", who[k / 4], how[k % 4]);
    if (r.rank == 0) printf("speed %-34s %2d ranks %9.3f us (the kernel's part)\n", what, r.n, (double)best / 500e3);
  }
  report(r, "empty put by 32 threads, each", 32 * rounds, [&](int n) { b.run(1, 32, K(drainKernel), b.dev, b.win, n / 32, 0); });
  report(r, "signal by 32 threads, each", 32 * rounds, [&](int n) { b.run(1, 32, K(drainKernel), b.dev, b.win, n / 32, 1); });
  report(r, "put 8 B by a thread", rounds, [&](int n) { b.run(1, 1, K(issueKernel), b.dev, b.win, n); });
  report(r, "put 8 B by each of 32 threads", rounds, [&](int n) { b.run(1, 32, K(issueKernel), b.dev, b.win, n); });
}

} // namespace

Suite const gSuites[] = {{"puts", puts, false},         {"sequence", sequence, false}, {"signals", signals, false},
                         {"local", local, false},       {"values", values, false},     {"bulk", bulk, false},
                         {"queues", queues, false},     {"contexts", contexts, false}, {"barriers", barriers, false},
                         {"together", together, false}, {"again", again, false},       {"soak", soak, false},
                         {"behind", behind, true},      {"full", full, true},          {"race", race, true},
                         {"killed", killed, true},      {"speed", speed, true}};
int const gSuiteCount = sizeof gSuites / sizeof *gSuites;
