/* reduce.cc: reduce and copy, alone and as all-reduces. */
#include "frame.h"
#include "kernels.h"

void suite_reduce(Rank &r) {
  place::Shared<int> bad;
  place::Memory memory;
  if (!OK(memory.make(6 * 400 * 8 + 64))) return;
  for (unsigned threads : {1u, 40u}) {
    Grid(1, threads)(r, "reduce", K(local_reduces), memory.at, bad);
    r.check(*bad == 0, "reduce and copy, %u threads: %d wrong values", threads, *bad);
  }
  OK(memory.drop());
}

void suite_allreduce(Rank &r) {
  const size_t most = 20000;
  Window in(r, most * 4), out(r, most * 4);
  ncclDevCommRequirements q = requirements();
  q.lsaBarrierCount = 3;
  DevComm d(r, q);
  place::Memory scratch;
  if (!OK(scratch.make(most * 4))) return;
  for (size_t n : {(size_t)0, (size_t)1, (size_t)5, (size_t)1000, most}) {
    for (int form = 0; form < 2; form++) {
      for (size_t i = 0; i < most; i++) {
        in.as<float>()[i] = (float)(i % 1000 + r.rank);
        out.as<float>()[i] = -1;
      }
      in.memory.push();
      out.memory.push();
      r.barrier(); /* peers write into out */
      if (form == 0)
        Grid(3, 32)(r, "all-reduce", K(lsa_all_reduce), d.dev, in.win, out.win, n);
      else
        Grid(1, 64)(r, "all-reduce in two steps", K(lsa_all_reduce_twice), d.dev, in.win, out.win, (float *)scratch.at, n);
      out.memory.pull();
      size_t wrong = 0;
      for (size_t i = 0; i < most; i++) {
        float want = i < n ? (float)(r.nranks * (int)(i % 1000) + r.nranks * (r.nranks - 1) / 2) : -1;
        wrong += out.as<float>()[i] != want;
      }
      r.check(wrong == 0, "all-reduce %d of %zu: %zu wrong", form, n, wrong);
      r.barrier();
    }
  }
  OK(scratch.drop());
}
