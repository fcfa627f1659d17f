/* speed.cc: times of what kernels do by loads and stores, printed as "speed" lines: medians of several launches, of which each is timed with
 * many rounds and with none. */
#include "frame.h"
#include "kernels.h"

#include <algorithm>

template <typename Run> static void report(Rank &r, const char *what, int rounds, Run run) {
  std::vector<double> us;
  for (int again = 0; again < 7; again++) {
    double t[2];
    for (int k = 0; k < 2; k++) {
      timespec a, b;
      r.barrier();
      clock_gettime(CLOCK_MONOTONIC, &a);
      run(k ? rounds : 0);
      clock_gettime(CLOCK_MONOTONIC, &b);
      t[k] = (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3;
    }
    us.push_back((t[1] - t[0]) / rounds);
  }
  std::sort(us.begin(), us.end());
  if (r.rank == 0) printf("speed %-34s %2d ranks %9.3f us (%.3f to %.3f)\n", what, r.nranks, us[3], us[0], us[6]);
}

void suite_speed(Rank &r) {
  const size_t most = 1 << 20;
  Window in(r, most), out(r, most);
  ncclDevCommRequirements q = requirements();
  q.lsaBarrierCount = 64;
  DevComm d(r, q);
  int rounds = place::onGpu() ? 10000 : 20;
  report(r, "LSA barrier, 32 threads", rounds, [&](int n) { Grid(1, 32)(r, "barriers", K(many_barriers), d.dev, n); });
  report(r, "LSA barrier, 512 threads", rounds, [&](int n) { Grid(1, 512)(r, "barriers", K(many_barriers), d.dev, n); });
  for (size_t bytes : {(size_t)8, (size_t)8192, (size_t)65536, most})
    for (unsigned ctas : {1u, 4u, 16u}) {
      if (ctas * 4096 > bytes + 4096) continue;
      char what[64];
      snprintf(what, sizeof what, "LSA all-reduce %zu B, %u CTAs", bytes, ctas);
      report(r, what, rounds / 10,
             [&](int n) { Grid(ctas, 512)(r, "all-reduces", K(many_all_reduces), d.dev, in.win, out.win, bytes / 4, n); });
    }
}
