/* pointers.cc: teams of a device communicator, and every way to a pointer. */
#include "frame.h"
#include "kernels.h"

#include <unistd.h>

void suite_teams(Rank &r) {
  DevComm d(r, requirements());
  ncclTeam world = ncclTeamWorld(d.dev), lsa = ncclTeamLsa(d.dev), rail = ncclTeamRail(d.dev);
  ncclTeam hostLsa = ncclTeamLsa(r.comm), hostRail = ncclTeamRail(r.comm);
  r.check(world.nRanks == r.nranks && world.rank == r.rank && world.stride == 1, "world team");
  r.check(!memcmp(&lsa, &hostLsa, sizeof lsa) && !memcmp(&rail, &hostRail, sizeof rail), "teams of host and device differ");
  r.check(lsa.nRanks == r.lsa && rail.nRanks == r.nranks / r.lsa && rail.stride == lsa.nRanks, "LSA team of %d, rail of %d", lsa.nRanks,
          rail.nRanks);
  for (int q = 0; q < r.nranks; q++) {
    bool inside = q / lsa.nRanks == r.rank / lsa.nRanks;
    r.check(ncclTeamRankIsMember(lsa, world, q) == inside, "rank %d in the LSA team", q);
    if (inside) r.check(ncclTeamRankToTeam(lsa, world, q) == ncclTeamRankToLsa(d.dev, world, q), "rank %d in the LSA team: place", q);
  }
  /* Teams of every shape against lists of their members. */
  for (int n = 1; n <= 12; n++)
    for (int step = 1; step < n; step++)
      for (int first = 0; first < n; first++)
        for (int count = 1; first + (count - 1) * step < n; count++) {
          std::vector<int> rest;
          for (int q = 0; q < n; q++)
            if (q < first || (q - first) % step || (q - first) / step >= count) rest.push_back(q);
          ncclTeam all = {n, first, 1}, sub = {count, 0, step};
          for (size_t i = 0; i < rest.size(); i++)
            r.check(ncclTeamRankInDifference(all, sub, (int)i) == rest[i], "difference of %d and %d+%d*%d: %zu", n, first, step, count, i);
        }
  for (uint32_t y : {1u, 2u, 3u, 7u, 8u, 12u, 1000003u})
    for (uint32_t x : {0u, 1u, y - 1, y, y + 1, 7 * y - 1, 7 * y, 0x7fffffffu, 0xffffffffu})
      r.check(nccl::utility::idivFast32(x, y, nccl::utility::idivRcp32(y)) == x / y &&
                  nccl::utility::imodFast32(x, y, nccl::utility::idivRcp32(y)) == x % y,
              "%u / %u", x, y);
}

/* A nonblocking communicator: the call returns at once, and the structure is there when the communicator is no longer busy. */
static void nonblocking(Rank &r) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t child;
  ncclResult_t state = ncclInProgress;
  ncclDevComm d = {};
  ncclDevCommRequirements q = requirements();
  OK(ncclCommSplit(r.comm, 0, r.rank, &child, &config));
  ncclResult_t rc = ncclDevCommCreate(child, &q, &d);
  r.check(rc == ncclInProgress || rc == ncclSuccess, "ncclDevCommCreate on a nonblocking communicator gives %d", (int)rc);
  for (int ms = 0; ms < 60000 && state == ncclInProgress; ms++) {
    OK(ncclCommGetAsyncError(child, &state));
    if (state == ncclInProgress) usleep(1000);
  }
  if (r.check(state == ncclSuccess && d.nRanks == r.nranks, "nonblocking: state %d, %d ranks", (int)state, d.nRanks))
    OK(ncclDevCommDestroy(child, &d));
  OK(ncclCommDestroy(child));
}

/* A caller with the header of 2.28.3, whose structures are smaller and do not say so; GCCL_DEVICE_HEADER does. */
void suite_old(Rank &r) {
  struct {
    void *resources, *teams;
    bool lsaMultimem;
    int lsaBarrierCount;
  } q = {nullptr, nullptr, false, 2};
  static_assert(sizeof q == 24, "layouts.tsv");
  alignas(8) unsigned char out[128], req[64];
  memset(out, 0x77, sizeof out);
  memset(req, 0x77, sizeof req);
  int v[22];
  /* In brackets the name is no macro. */
  OK((ncclDevCommCreate)(r.comm, (ncclDevCommRequirements *)&q, (ncclDevComm *)out));
  memcpy(v, out, sizeof v);
  r.check(v[0] == r.rank && v[1] == r.nranks && v[3] == r.rank && v[4] == r.nranks && v[21] == 2, "ncclDevComm of 2.28.3: %d %d %d %d %d",
          v[0], v[1], v[3], v[4], v[21]);
  for (size_t i = 88; i < sizeof out; i++) r.check(out[i] == 0x77, "byte %zu behind ncclDevComm of 2.28.3", i);
  OK(ncclDevCommDestroy(r.comm, (ncclDevComm *)out));
  ncclLsaBarrierHandle_t h;
  OK(ncclLsaBarrierCreateRequirement(ncclTeamLsa(r.comm), 1, &h, (ncclDevResourceRequirements_t *)req));
  for (size_t i = 32; i < sizeof req; i++) r.check(req[i] == 0x77, "byte %zu behind a requirement of 2.28.3", i);
}

void suite_pointers(Rank &r) {
  place::Shared<int> bad;
  Window w(r, 16384), other(r, 100000);
  ncclDevResourceHandle_t handle[3] = {};
  ncclDevCommRequirements q = requirements();
  ncclDevResourceRequirements_t buffer[3] = {};
  for (int i = 0; i < 3; i++) {
    buffer[i].next = i < 2 ? &buffer[i + 1] : NULL;
    buffer[i].bufferSize = 1000 * (i + 1);
    buffer[i].bufferAlign = i == 1 ? 4096 : 0;
    buffer[i].outBufferHandle = &handle[i];
  }
  q.resourceRequirementsList = buffer;
  for (int again = 0; again < 2; again++) { /* the second one finds memory that was used */
    DevComm d(r, q);
    r.check(handle[1] * 128 % 4096 == 0 && handle[1] > handle[0] && handle[2] > handle[1], "handles %u %u %u", handle[0], handle[1],
            handle[2]);
    for (int i = 0; i < 3; i++) {
      Grid(1, 32)(r, "resource buffer", K(resource_buffer), d.dev, handle[i], 250 * (i + 1), bad);
      r.check(*bad == 0, "resource buffer %d: %d wrong", i, *bad);
      std::vector<char> used(buffer[i].bufferSize, 0x55);
      place::copy(ncclGetResourceBufferLocalPointer(d.dev, handle[i]), used.data(), used.size());
    }
    Grid(1, 32)(r, "write", K(write_windows), d.dev, w.win, (void *)w.memory.at, bad);
    r.check(*bad == 0, "write_windows: %d wrong", *bad);
    r.barrier();
    Grid(1, 32)(r, "read", K(read_windows), d.dev, w.win, bad);
    r.check(*bad == 0, "read_windows: %d wrong", *bad);
    r.barrier();
    memset(w.memory.mem, 0, 16384);
    w.memory.push();
    r.barrier();
  }
  OK(ncclGroupStart()); /* in a group, together with another one and a window */
  ncclDevComm a = {}, b = {};
  ncclWindow_t again = nullptr;
  OK(ncclDevCommCreate(r.comm, &q, &a));
  OK(ncclCommWindowRegister(r.comm, other.memory.at, 4096, &again, NCCL_WIN_DEFAULT));
  q = requirements();
  OK(ncclDevCommCreate(r.comm, &q, &b));
  r.check(a.nRanks == 0 && b.nRanks == 0, "a group's device communicators are there before its end");
  OK(ncclGroupEnd());
  r.check(a.nRanks == r.nranks && b.nRanks == r.nranks && again, "a group's device communicators are not there");
  OK(ncclCommWindowDeregister(r.comm, again));
  OK(ncclDevCommDestroy(r.comm, &b));
  OK(ncclDevCommDestroy(r.comm, &a));
  nonblocking(r);
}
