/* barriers.cc: LSA barriers, and waits that would not end. */
#include "frame.h"
#include "kernels.h"

void suite_barriers(Rank &r) {
  place::Shared<int> bad;
  Window w(r, 8 * 4096);
  ncclDevCommRequirements q = requirements();
  ncclLsaBarrierHandle_t own;
  ncclDevResourceRequirements_t req;
  q.lsaBarrierCount = 8;
  q.barrierCount = r.lsa == r.nranks; /* inside one LSA team it needs no network */
  OK(ncclLsaBarrierCreateRequirement(ncclTeamLsa(r.comm), 3, &own, &req));
  q.resourceRequirementsList = &req;
  DevComm d(r, q);
  bool counts = d.dev.lsaBarrier.nBarriers == 8 && own.nBarriers == 3 && d.dev.hybridLsaBarrier.nBarriers == q.barrierCount;
  r.check(counts, "numbers of barriers");
  for (int again = 0; again < 2; again++) {
    Grid(4, 32)(r, "CTA barriers", K(cta_barriers), d.dev, w.win, 5, bad);
    Grid(1, 96)(r, "warp barriers", K(warp_barriers), d.dev, own, w.win, 5, bad);
    Grid(1, 8)(r, "thread barriers", K(thread_barriers), d.dev, w.win, 5, bad);
    r.check(*bad == 0, "barriers: %d wrong values", *bad);
  }
  r.barrier();
  Grid(1, 1)(r, "epochs", K(set_epochs), d.dev, 0xfffffffcu);
  r.barrier();
  Grid(1, 16)(r, "barriers over the wrap", K(cta_barriers), d.dev, w.win, 10, bad);
  r.check(*bad == 0, "barriers over the wrap: %d wrong values", *bad);
}

/* Rank 0 waits for the others, who do not come. */
void suite_failures(Rank &r) {
  ncclDevCommRequirements q = requirements();
  q.lsaBarrierCount = 1;
  DevComm d(r, q);
  place::Shared<int> result;
  if (r.rank == 0) {
    Grid(1, 8)(r, "a barrier with a timeout", K(lonely_barrier), d.dev, 5000000, result);
    r.check(*result == ncclTimeout || r.nranks == 1, "a barrier with a timeout gives %d", *result);
    Grid late(1, 8);
    late.deadlineNs = 20000000; /* of the launcher */
    if (r.nranks > 1 && !place::onGpu())
      r.refused(ncclTimeout, late.run(K(lonely_barrier), d.dev, 0, result), late.error(), "LSA barrier 0 of rank ");
  }
  if (r.nranks == 1) return;
  r.barrier();
  if (r.rank == 0) {
    Grid stopped(1, 4);
    r.ok(stopped.start(K(lonely_barrier), d.dev, 0, result), "start");
    OK(ncclCommRevoke(r.comm, NCCL_REVOKE_DEFAULT)); /* the kernel's wait ends with the communicator */
    ncclResult_t ended = stopped.finish();           /* on a GPU nobody says why */
    if (!place::onGpu()) r.refused(ncclRemoteError, ended, stopped.error(), "the communicator has failed");
  }
}
