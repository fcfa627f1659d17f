/* foreign.cc: kernels that were compiled with NVIDIA's header (tests/gpu/foreign.cu), with device communicators in that version's form.
 * GCCL_TEST_HEADER is its version, 22809 or 23007. On a GPU only: kernels of that header do not run on a CPU. */
#include "frame.h"

/* By name alone. DevComm: the version's structure. */
template <typename DevComm> static void foreign_barriers(DevComm, ncclWindow_t, int, int *) {}
template <typename DevComm> static void foreign_pointers(DevComm, ncclWindow_t, void *, int *) {}
template <typename DevComm> static void foreign_a2a(DevComm, ncclLLA2AHandle, int, int *) {}
template <typename DevComm> static void foreign_gin(DevComm, ncclWindow_t, int, int *) {}

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

/* Of 2.28.9: tests/abi/testdata/layouts.tsv. */
struct OldRequirements {
  void *resources, *teams;
  bool multimem;
  int barriers, lsaBarriers, railBarriers, blocks, slots;
  bool gin;
  int contexts, signals, counters;
};
static_assert(sizeof(OldRequirements) == 56, "layouts.tsv");
struct OldDevComm {
  alignas(8) unsigned char bytes[200];
};

static const char *header(Rank &r) {
  const char *version = getenv("GCCL_TEST_HEADER");
  return r.check(place::onGpu() && version, "this suite needs a GPU and GCCL_TEST_HEADER") ? version : nullptr;
}

template <typename DevComm> static void runGin(Rank &r, void const *requirements) {
  DevComm d = {};
  Window w(r, 8 * 4096);
  place::Shared<int> bad;
  if (!OK((ncclDevCommCreate)(r.comm, (ncclDevCommRequirements const *)requirements, (ncclDevComm *)&d))) return;
  r.barrier();
  Grid(1, 32)(r, "GIN", place::named(foreign_gin<DevComm>, "foreign_gin"), d, w.win, 100, bad);
  r.check(*bad == 0, "foreign GIN: %d wrong words", *bad);
  r.barrier();
  OK(ncclDevCommDestroy(r.comm, (ncclDevComm *)&d));
}

void suite_foreign_gin(Rank &r) {
  const char *version = header(r);
  if (!version) return;
  if (!strcmp(version, "23007")) {
    ncclDevCommRequirements q = requirements();
    q.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
    q.ginSignalCount = 3;
    q.ginCounterCount = 1;
    runGin<ncclDevComm>(r, &q);
    return;
  }
  OldRequirements q = {nullptr, nullptr, false, 0, 0, 0, 0, 0, true, 1, 3, 1};
  runGin<OldDevComm>(r, &q);
}

void suite_foreign(Rank &r) {
  const char *version = header(r);
  if (!version) return;
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
  OldRequirements q = {&list, nullptr, false, 0, 4, 0, 0, 0, false, 0, 0, 0};
  run<OldDevComm>(r, &q, some);
}
