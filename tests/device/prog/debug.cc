/* debug.cc: GCCL_DEVICE_DEBUG: a wrong argument stops the kernel with a text. */
#define GCCL_DEVICE_DEBUG 1
#include "frame.h"

static void local(ncclWindow_t w, size_t offset) { ncclGetLocalPointer(w, offset); }
static void lsa(ncclWindow_t w, size_t offset, int peer) { ncclGetLsaPointer(w, offset, peer); }
static void peer(ncclSymPtr<int> p, int rank) { p.peerPtr(rank); }
static void barrier(ncclDevComm comm, uint32_t index) {
  ncclLsaBarrierSession<ncclCoopCta> bar(ncclCoopCta(), comm, ncclTeamTagLsa(), index);
}
static void multimem(ncclDevComm comm, ncclWindow_t w) { ncclGetLsaMultimemPointer(w, 0, comm); }
static void a2a_element(ncclDevComm comm, ncclLLA2AHandle h, int element) {
  ncclLLA2ASession<ncclCoopCta> a2a(ncclCoopCta(), comm, ncclTeamLsa(comm), h, 0, 4);
  a2a.send(0, element, 1);
}
static void a2a_block(ncclDevComm comm, ncclLLA2AHandle h, uint32_t block) {
  ncclLLA2ASession<ncclCoopCta> a2a(ncclCoopCta(), comm, ncclTeamLsa(comm), h, block, 4);
}

void suite_debug(Rank &r) {
  Window w(r, 4096);
  ncclDevCommRequirements q = requirements();
  ncclLLA2AHandle_t h;
  ncclDevResourceRequirements_t req;
  q.lsaBarrierCount = 2;
  OK(ncclLLA2ACreateRequirement(1, 4, &h, &req));
  q.resourceRequirementsList = &req;
  DevComm d(r, q);
  alignas(128) static char notAWindow[256];
  char window[32];
  snprintf(window, sizeof window, "window %p", (void *)w.win);
  Grid g(1, 4);
  r.ok(g.run(K(local), w.win, 4095), "the last byte");
  r.refused(ncclInvalidUsage, g.run(K(local), w.win, 4096), g.error(), "offset 4096");
  r.check(strstr(g.error(), "debug.cc:") && strstr(g.error(), window) && strstr(g.error(), "past the end"), "the text is \"%s\"",
          g.error());
  r.refused(ncclInvalidUsage, g.run(K(local), (ncclWindow_t)notAWindow, 0), g.error(), "not a window");
  r.refused(ncclInvalidUsage, g.run(K(lsa), w.win, 0, r.nranks), g.error(), "not in the LSA team");
  r.refused(ncclInvalidUsage, g.run(K(peer), ncclSymPtr<int>(w.win, 4), -1), g.error(), "rank -1");
  r.ok(g.run(K(barrier), d.dev, 1), "the last barrier");
  r.refused(ncclInvalidUsage, g.run(K(barrier), d.dev, 2), g.error(), "past lsaBarrierCount");
  r.refused(ncclInvalidUsage, g.run(K(a2a_element), d.dev, h, 4), g.error(), "past its slots");
  r.refused(ncclInvalidUsage, g.run(K(a2a_block), d.dev, h, 1), g.error(), "past the end of its buffer");
  ncclComm_t child;
  OK(ncclCommSplit(r.comm, 0, r.rank, &child, NULL));
  ncclDevComm foreign;
  ncclDevCommRequirements none = requirements();
  OK(ncclDevCommCreate(child, &none, &foreign));
  r.refused(ncclInvalidUsage, g.run(K(multimem), foreign, w.win), g.error(), "another communicator");
  OK(ncclCommDestroy(child));
}
