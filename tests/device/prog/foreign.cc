/* foreign.cc: kernels that were compiled with NVIDIA's header (tests/gpu/foreign.cu), with device communicators in that version's form.
 * GCCL_TEST_HEADER is its version, 22809 or 23007. On a GPU only: kernels of that header do not run on a CPU. */
#include "frame.h"

/* By name alone. DevComm: the version's structure. */
template <typename DevComm> static void foreign_barriers(DevComm, ncclWindow_t, int, int *) {}
template <typename DevComm> static void foreign_pointers(DevComm, ncclWindow_t, void *, int *) {}
template <typename DevComm> static void foreign_a2a(DevComm, ncclLLA2AHandle, int, int *) {}

template <typename DevComm> static void run(Rank &r, void const *requirements, ncclLLA2AHandle_t const &some) {
  DevComm d = {};
  Window w(r, 8 * 4096);
  place::Shared<int> bad;
  /* In brackets the name is no macro: the plain symbol, which NVIDIA's header calls. */
  if (!OK((ncclDevCommCreate)(r.comm, (ncclDevCommRequirements const *)requirements, (ncclDevComm *)&d))) return;
  Grid(1, 32)(r, "pointers", place::named(foreign_pointers<DevComm>, "foreign_pointers"), d, w.win, (void *)w.memory.at, bad);
  r.check(*bad == 0, "foreign pointers: %d wrong", *bad);
  r.barrier();
  for (int again = 0; again < 2; again++) {
    Grid(4, 32)(r, "barriers", place::named(foreign_barriers<DevComm>, "foreign_barriers"), d, w.win, 50, bad);
    r.check(*bad == 0, "foreign barriers: %d wrong values", *bad);
    Grid(2, 32)(r, "all-to-all", place::named(foreign_a2a<DevComm>, "foreign_a2a"), d, some, 50, bad);
    r.check(*bad == 0, "foreign all-to-all: %d wrong values", *bad);
  }
  OK(ncclDevCommDestroy(r.comm, (ncclDevComm *)&d));
}

void suite_foreign(Rank &r) {
  const char *version = getenv("GCCL_TEST_HEADER");
  if (!r.check(place::onGpu() && version, "this suite needs a GPU and GCCL_TEST_HEADER")) return;
  ncclLLA2AHandle_t some;
  ncclDevResourceRequirements_t list;
  OK(ncclLLA2ACreateRequirement(2, ncclLLA2ACalcSlots(2 * r.nranks, sizeof(int)), &some, &list));
  if (!strcmp(version, "23007")) {
    ncclDevCommRequirements q = requirements();
    q.lsaBarrierCount = 4;
    q.resourceRequirementsList = &list;
    run<ncclDevComm>(r, &q, some);
    return;
  }
  struct { /* tests/abi/testdata/layouts.tsv: 2.28.9 */
    void *resources, *teams;
    bool multimem;
    int barriers, lsaBarriers, railBarriers, blocks, slots;
    bool gin;
    int contexts, signals, counters;
  } q = {&list, nullptr, false, 0, 4, 0, 0, 0, false, 0, 0, 0};
  static_assert(sizeof q == 56, "layouts.tsv");
  struct Old {
    alignas(8) unsigned char bytes[200];
  };
  run<Old>(r, &q, some);
}
