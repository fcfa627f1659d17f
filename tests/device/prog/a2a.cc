/* a2a.cc: LL all-to-all. */
#include "frame.h"
#include "kernels.h"

void suite_a2a(Rank &r) {
  int n = r.nranks, width = 24;
  place::Shared<int> bad;
  ncclDevCommRequirements q = requirements();
  ncclLLA2AHandle_t some, sum;
  ncclDevResourceRequirements_t someReq, sumReq;
  OK(ncclLLA2ACreateRequirement(2, ncclLLA2ACalcSlots(2 * n, sizeof(Element)), &some, &someReq));
  OK(ncclLLA2ACreateRequirement(2, ncclLLA2ACalcSlots(n * width, sizeof(double)), &sum, &sumReq));
  someReq.next = &sumReq;
  q.resourceRequirementsList = &someReq;
  DevComm d(r, q);
  for (int again = 0; again < 2; again++) { /* a session goes on where the last one stopped */
    Grid(2, 7)(r, "all-to-all", K(ll_a2a), d.dev, some, 9, bad);
    Grid(2, (unsigned)width)(r, "sum", K(ll_sum), d.dev, sum, 9, bad);
    r.check(*bad == 0, "all-to-all: %d wrong values", *bad);
  }
  r.barrier();
  Grid(1, 1)(r, "epochs", K(set_a2a_epoch), d.dev, some, 0xfffffffau);
  r.barrier();
  Grid(1, 7)(r, "all-to-all over the wrap", K(ll_a2a), d.dev, some, 12, bad);
  r.check(*bad == 0, "all-to-all over the wrap: %d wrong values", *bad);
}
