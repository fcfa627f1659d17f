/* deviceapi.c: the host functions of the device API are exported, so that programs link, but are refused with a text.
 * Their types belong to other headers; here only sizes matter, so the declarations use blocks of bytes. */
#include "suites.h"

typedef struct {
  int nRanks, rank, stride;
} team3; /* ncclTeam_t: passed and returned in two registers */

ncclResult_t ncclCommQueryProperties(ncclComm_t, void *);
ncclResult_t ncclDevCommCreate(ncclComm_t, const void *, void *);
ncclResult_t ncclDevCommDestroy(ncclComm_t, const void *);
ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t, size_t, int, void **);
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t, size_t, void **);
ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t, size_t, void *, void **);
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t, size_t, int, void **);
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t, team3, int, void *, void *);
ncclResult_t ncclGinInboxA2ACreateRequirement(team3, int, int, void *, void *);
ncclResult_t ncclGinOutboxCreateRequirement(int, int, void *, void *);
int ncclLLA2ACalcSlots(int, int);
ncclResult_t ncclLLA2ACreateRequirement(int, int, void *, void *);
ncclResult_t ncclLsaBarrierCreateRequirement(team3, int, void *, void *);
team3 ncclTeamWorld(ncclComm_t);
team3 ncclTeamLsa(ncclComm_t);
team3 ncclTeamRail(ncclComm_t);
int ncclTeamRankToWorld(ncclComm_t, team3, int);
int ncclTeamRankToLsa(ncclComm_t, team3, int);

/* Refused: the code, and a text that names the call. */
static void refused(int rank, const char *name, ncclResult_t rc) {
  if (!conf_rc(rank, ncclInvalidUsage, rc, name, "deviceapi.c", 0)) return;
  if (!strstr(ncclGetLastError(NULL), name)) conf_fail(rank, "%s: the text does not name the call: \"%s\"", name, ncclGetLastError(NULL));
}

void suite_deviceapi(struct team *t) {
  _Static_assert(sizeof(team3) == 12, "ncclTeam_t has twelve bytes");
  int r = t->first;
  ncclComm_t c = t->comm[0];
  _Alignas(16) unsigned char in[4096] = {0}, res[4096];
  memset(res, 0x77, sizeof res);
  team3 team = {t->nranks, r, 1};
  void *p = in;
  ncclWindow_t w = (ncclWindow_t)in;
  refused(r, "ncclCommQueryProperties", ncclCommQueryProperties(c, res));
  refused(r, "ncclDevCommCreate", ncclDevCommCreate(c, in, res));
  refused(r, "ncclDevCommDestroy", ncclDevCommDestroy(c, in));
  refused(r, "ncclGetLsaDevicePointer", ncclGetLsaDevicePointer(w, 0, 0, &p));
  refused(r, "ncclGetLsaMultimemDevicePointer", ncclGetLsaMultimemDevicePointer(w, 0, &p));
  refused(r, "ncclGetMultimemDevicePointer", ncclGetMultimemDevicePointer(w, 0, NULL, &p));
  refused(r, "ncclGetPeerDevicePointer", ncclGetPeerDevicePointer(w, 0, 0, &p));
  refused(r, "ncclGinBarrierCreateRequirement", ncclGinBarrierCreateRequirement(c, team, 1, res, res + 1024));
  refused(r, "ncclGinInboxA2ACreateRequirement", ncclGinInboxA2ACreateRequirement(team, 1, 4, res, res + 1024));
  refused(r, "ncclGinOutboxCreateRequirement", ncclGinOutboxCreateRequirement(1, 4, res, res + 1024));
  refused(r, "ncclLLA2ACreateRequirement", ncclLLA2ACreateRequirement(1, 4, res, res + 1024));
  refused(r, "ncclLsaBarrierCreateRequirement", ncclLsaBarrierCreateRequirement(team, 1, res, res + 1024));
  TRUE(r, p == in);
  for (size_t k = 0; k < sizeof res; k++)
    if (!TRUE(r, res[k] == 0x77)) break;
  /* These cannot refuse by code; they must not crash, with a NULL communicator either. */
  (void)ncclLLA2ACalcSlots(3, 8);
  team3 made[] = {ncclTeamWorld(c), ncclTeamLsa(c), ncclTeamRail(c), ncclTeamWorld(NULL), ncclTeamLsa(NULL), ncclTeamRail(NULL)};
  (void)ncclTeamRankToWorld(c, made[0], 0);
  (void)ncclTeamRankToLsa(c, made[0], 0);
  conf_barrier(t);
  coll_alive(t, t->comm);
}
