/* pointers.cc: teams of a device communicator, and every way to a pointer. */
#include "frame.h"
#include "kernels.h"

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

void suite_pointers(Rank &r) {
  int bad = 0;
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
      Grid(1, 32)(r, "resource buffer", resource_buffer, d.dev, handle[i], 250 * (i + 1), &bad);
      r.check(bad == 0, "resource buffer %d: %d wrong", i, bad);
      memset(ncclGetResourceBufferLocalPointer(d.dev, handle[i]), 0x55, buffer[i].bufferSize);
    }
    Grid(1, 32)(r, "write", write_windows, d.dev, w.win, (void *)w.memory, &bad);
    r.check(bad == 0, "write_windows: %d wrong", bad);
    r.barrier();
    Grid(1, 32)(r, "read", read_windows, d.dev, w.win, &bad);
    r.check(bad == 0, "read_windows: %d wrong", bad);
    r.barrier();
    memset(w.memory, 0, 16384);
    r.barrier();
  }
  OK(ncclGroupStart()); /* in a group, together with another one and a window */
  ncclDevComm a = {}, b = {};
  ncclWindow_t again = nullptr;
  OK(ncclDevCommCreate(r.comm, &q, &a));
  OK(ncclCommWindowRegister(r.comm, other.memory, 4096, &again, NCCL_WIN_DEFAULT));
  q = requirements();
  OK(ncclDevCommCreate(r.comm, &q, &b));
  r.check(a.nRanks == 0 && b.nRanks == 0, "a group's device communicators are there before its end");
  OK(ncclGroupEnd());
  r.check(a.nRanks == r.nranks && b.nRanks == r.nranks && again, "a group's device communicators are not there");
  OK(ncclCommWindowDeregister(r.comm, again));
  OK(ncclDevCommDestroy(r.comm, &b));
  OK(ncclDevCommDestroy(r.comm, &a));
}
