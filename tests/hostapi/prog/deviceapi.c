/* deviceapi.c: the host functions of the device API: properties, teams, pointers, and device communicators for callers of every header
 * version. Structures of versions before 2.30.7 are given as bytes at the offsets of tests/abi/testdata/layouts.tsv. */
#include "suites.h"

#include <gccl_device.h>
#undef ncclDevCommCreate

enum { ROOM = 512, FILL = 0x77 };

/* An error whose text names a word. */
static void refused(int rank, ncclResult_t want, ncclResult_t rc, const char *word) {
  if (!conf_rc(rank, want, rc, word, "deviceapi.c", 0)) return;
  if (!strstr(ncclGetLastError(NULL), word)) conf_fail(rank, "the text does not say \"%s\": \"%s\"", word, ncclGetLastError(NULL));
}

static int int_at(const unsigned char *p, size_t at) {
  int v;
  memcpy(&v, p + at, sizeof v);
  return v;
}
static void put(unsigned char *p, size_t at, int v) { memcpy(p + at, &v, sizeof v); }

/* One version: its head, where lsaBarrierCount is in the requirements, and where in ncclDevComm things are. */
static const struct form {
  const char *name;
  unsigned version;                  /* 0: no head */
  size_t reqs, count_at, out;        /* bytes of both structures */
  size_t rank_at, window_at, bar_at; /* rank, resourceWindow, lsaBarrier */
} forms[] = {
    {"2.28.9", 0, 56, 24, 200, 0, 32, 120},     {"2.29.3", 22903, 72, 40, 200, 0, 32, 120}, {"2.29.7", 22907, 88, 40, 224, 0, 32, 120},
    {"2.30.3", 23003, 96, 40, 240, 8, 40, 128}, {"2.30.4", 23004, 96, 40, 240, 8, 40, 128}, {"2.30.7", 23007, 96, 40, 240, 8, 40, 128},
};

static void each_form(struct team *t) {
  _Alignas(16) static _Thread_local unsigned char out[CONF_MAX_RANKS][ROOM];
  for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
    const struct form *v = &forms[f];
    _Alignas(16) unsigned char reqs[96] = {0};
    if (v->version) {
      memcpy(reqs, &v->reqs, 8);
      put(reqs, 8, (int)NCCL_API_MAGIC);
      put(reqs, 12, (int)v->version);
    }
    put(reqs, v->count_at, 3);
    memset(out, FILL, sizeof out);
    EACH(t, v->name, ncclDevCommCreate(t->comm[i], (const void *)reqs, (void *)out[i]));
    for (int i = 0; i < t->nlocal; i++) {
      int r = t->first + i;
      void *w;
      memcpy(&w, out[i] + v->window_at, sizeof w);
      conf_at(r, "form %s", v->name);
      TRUE(r, int_at(out[i], v->rank_at) == r && int_at(out[i], v->rank_at + 4) == t->nranks);
      TRUE(r, int_at(out[i], v->rank_at + 12) == r && int_at(out[i], v->rank_at + 16) == t->nranks); /* one LSA team */
      TRUE(r, int_at(out[i], v->bar_at + 4) == 3);
      TRUE(r, w && memcmp((char *)w + 8, out[i] + v->window_at + 16, 8) == 0); /* lsaFlatBase, in the window and inlined */
      for (size_t k = v->out; k < ROOM; k++)
        if (!TRUE(r, out[i][k] == FILL)) break;
      OK(r, ncclDevCommDestroy(t->comm[i], (const void *)out[i]));
      refused(r, ncclInvalidArgument, ncclDevCommDestroy(t->comm[i], (const void *)out[i]), "not of this communicator");
    }
  }
}

/* Requirements that all ranks refuse: an error at once, on each. */
static void wrong_requirements(struct team *t) {
  ncclDevComm_t out;
  ncclDevCommRequirements_t q = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER, base = q;
#define BAD(want, word, ...)                                                                                        \
  do {                                                                                                              \
    q = base;                                                                                                       \
    __VA_ARGS__;                                                                                                    \
    for (int i = 0; i < t->nlocal; i++) refused(t->first + i, want, ncclDevCommCreate(t->comm[i], &q, &out), word); \
  } while (0)
  BAD(ncclInvalidArgument, "lsaMultimem", q.lsaMultimem = true);
  BAD(ncclInvalidArgument, "lsaBarrierCount", q.lsaBarrierCount = -1);
  BAD(ncclInvalidArgument, "railGinBarrierCount", q.railGinBarrierCount = 1);
  BAD(ncclInvalidArgument, "ginSignalCount", q.ginSignalCount = 1);
  BAD(ncclInvalidUsage, "magic", q.magic = 0x12345677);
  BAD(ncclInvalidUsage, "newer", q.version = 23100);
  BAD(ncclInvalidUsage, "22904", q.version = 22904);
  BAD(ncclInvalidUsage, "bytes", q.size = 8);
  ncclTeamRequirements_t team = {NULL, {t->nranks, t->first, 1}, true, NULL};
  BAD(ncclInvalidArgument, "teamRequirementsList[0].multimem", q.teamRequirementsList = &team);
  ncclDevResourceRequirements_t res = {.bufferSize = 8, .bufferAlign = 3};
  BAD(ncclInvalidArgument, "bufferAlign", q.resourceRequirementsList = &res);
#undef BAD
  int r = t->first;
  ncclComm_t c = t->comm[0];
  refused(r, ncclInvalidArgument, ncclDevCommCreate(c, NULL, &out), "reqs");
  refused(r, ncclInvalidArgument, ncclDevCommCreate(c, &q, NULL), "outDevComm");
  refused(r, ncclInvalidUsage, gcclDevCommCreate(c, &base, &out, 99), "stamp");
  refused(r, ncclInvalidArgument, ncclDevCommDestroy(c, NULL), "devComm");
  refused(r, ncclInvalidArgument, ncclLsaBarrierCreateRequirement((ncclTeam_t){0, 0, 1}, 1, NULL, NULL), "ncclLsaBarrierCreateRequirement");
  refused(r, ncclInvalidArgument, ncclLLA2ACreateRequirement(0, 1, NULL, NULL), "ncclLLA2ACreateRequirement");
}

static void properties(struct team *t) {
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    ncclCommProperties_t p = NCCL_COMM_PROPERTIES_INITIALIZER;
    OK(r, ncclCommQueryProperties(t->comm[i], &p));
    TRUE(r, p.rank == r && p.nRanks == t->nranks && p.cudaDev == -1 && p.deviceApiSupport && !p.multimemSupport);
    TRUE(r, p.ginType == NCCL_GIN_TYPE_PROXY && p.nLsaTeams == 1 && p.hostRmaSupport);
    _Alignas(8) unsigned char old[ROOM];
    size_t size = 40;
    memset(old, FILL, sizeof old);
    memcpy(old, &size, 8);
    put(old, 8, (int)NCCL_API_MAGIC);
    put(old, 12, 22903);
    OK(r, ncclCommQueryProperties(t->comm[i], (void *)old));
    TRUE(r, int_at(old, 16) == r && int_at(old, 20) == t->nranks && old[32] == 1 && old[34] == NCCL_GIN_TYPE_PROXY);
    for (size_t k = 40; k < ROOM; k++)
      if (!TRUE(r, old[k] == FILL)) break;
    p.magic = 1;
    refused(r, ncclInvalidUsage, ncclCommQueryProperties(t->comm[i], &p), "NCCL_COMM_PROPERTIES_INITIALIZER");
    refused(r, ncclInvalidArgument, ncclCommQueryProperties(t->comm[i], NULL), "props");
  }
}

static void teams(struct team *t) {
  int r = t->first;
  ncclTeam_t world = ncclTeamWorld(t->comm[0]), lsa = ncclTeamLsa(t->comm[0]), rail = ncclTeamRail(t->comm[0]);
  TRUE(r, world.nRanks == t->nranks && world.rank == r && world.stride == 1);
  TRUE(r, lsa.nRanks == t->nranks && lsa.rank == r && rail.nRanks == 1 && rail.rank == 0 && rail.stride == t->nranks);
  TRUE(r, ncclTeamRankToWorld(t->comm[0], lsa, 0) == 0 && ncclTeamRankToLsa(t->comm[0], world, t->nranks - 1) == t->nranks - 1);
  TRUE(r, ncclTeamWorld(NULL).nRanks == 0 && ncclTeamRankToWorld(NULL, world, 0) == -1);
  TRUE(r, ncclLLA2ACalcSlots(3, 8) == 3 && ncclLLA2ACalcSlots(3, 9) == 6);
  /* Subsets of 12 ranks: every third from the first on, and one in the middle. */
  ncclTeam_t all = {12, 5, 1}, third = {4, 1, 3}; /* 2, 5, 8, 11 */
  static const int rest[] = {0, 1, 3, 4, 6, 7, 9, 10};
  for (int k = 0; k < 8; k++) TRUE(r, ncclTeamRankInDifference(all, third, k) == rest[k]);
  ncclTeam_t run = {2, 1, 1}; /* 4, 5 */
  TRUE(r, ncclTeamRankInDifference(all, run, 3) == 3 && ncclTeamRankInDifference(all, run, 4) == 6);
  TRUE(r, ncclTeamRankIsMember(third, all, 8) && !ncclTeamRankIsMember(third, all, 7) && ncclTeamRankToTeam(third, all, 11) == 3);
  ncclTeam_t inner = ncclTeamInnerFactor(all, 4), outer = ncclTeamOuterFactor(all, 4);
  TRUE(r, inner.nRanks == 4 && inner.rank == 1 && inner.stride == 1 && outer.nRanks == 3 && outer.rank == 1 && outer.stride == 4);
}

/* Every rank stores its number into its place of all others' windows, through the pointers that kernels get. */
static void pointers(struct team *t) {
  static _Thread_local int *mem[CONF_MAX_RANKS];
  ncclWindow_t win[CONF_MAX_RANKS];
  size_t bytes = 4096;
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclMemAlloc((void **)&mem[i], bytes));
  EACH(t, "register", ncclCommWindowRegister(t->comm[i], mem[i], bytes, &win[i], NCCL_WIN_COLL_SYMMETRIC));
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    for (int p = 0; p < t->nranks; p++) {
      int *at = NULL, *same = NULL;
      OK(r, ncclGetLsaDevicePointer(win[i], 4 * (size_t)r, p, (void **)&at));
      OK(r, ncclGetPeerDevicePointer(win[i], 4 * (size_t)r, p, (void **)&same));
      if (TRUE(r, at && at == same)) *at = 100 + r;
    }
    void *none = mem;
    OK(r, ncclGetLsaMultimemDevicePointer(win[i], 0, &none));
    TRUE(r, none == NULL);
    refused(r, ncclInvalidArgument, ncclGetLsaDevicePointer(win[i], 0, t->nranks, &none), "lsaRank");
    refused(r, ncclInvalidArgument, ncclGetLsaDevicePointer(win[i], bytes, 0, &none), "offset");
    refused(r, ncclInvalidArgument, ncclGetPeerDevicePointer((ncclWindow_t)mem, 0, 0, &none), "not a window");
    refused(r, ncclInvalidArgument, ncclGetPeerDevicePointer(NULL, 0, 0, &none), "not a window");
    refused(r, ncclInvalidArgument, ncclGetPeerDevicePointer(win[i], 0, 0, NULL), "outPtr");
  }
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++)
    for (int p = 0; p < t->nranks; p++) TRUE(t->first + i, mem[i][p] == 100 + p);
  conf_barrier(t);
  for (int i = 0; i < t->nlocal; i++) {
    OK(t->first + i, ncclCommWindowDeregister(t->comm[i], win[i]));
    OK(t->first + i, ncclMemFree(mem[i]));
  }
}

/* Ranks that ask for different things: an error on all of them, and the next one works. */
static void disagreement(struct team *t) {
  ncclDevCommRequirements_t q = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  static _Thread_local ncclDevComm_t out[CONF_MAX_RANKS];
  if (t->nranks > 1 && t->nlocal == 1) {
    q.lsaBarrierCount = t->first == 0 ? 100 : 1;
    refused(t->first, ncclInvalidUsage, ncclDevCommCreate(t->comm[0], &q, out), "other requirements");
    q.lsaMultimem = t->first == 0; /* rank 0 refuses alone: the others hear its reason */
    q.lsaBarrierCount = 1;
    refused(t->first, ncclInvalidArgument, ncclDevCommCreate(t->comm[0], &q, out), "lsaMultimem");
    q.lsaMultimem = false;
  }
  q.lsaBarrierCount = 2;
  EACH(t, "create", gcclDevCommCreate(t->comm[i], &q, &out[i], GCCL_DEVICE_STAMP));
  for (int i = 0; i < t->nlocal; i++) {
    void *copy = NULL;
    TRUE(t->first + i, out[i].lsaBarrier.nBarriers == 2);
    OK(t->first + i, gcclDevCommGetDevicePointer(t->comm[i], &out[i], &copy));
    TRUE(t->first + i, copy && memcmp(copy, &out[i], sizeof out[i]) == 0);
    refused(t->first + i, ncclInvalidArgument, gcclDevCommGetDevicePointer(t->comm[i], &out[i], NULL), "outPtr");
    ncclDevComm_t other = out[i];
    other.resourceWindow = NULL;
    refused(t->first + i, ncclInvalidArgument, gcclDevCommGetDevicePointer(t->comm[i], &other, &copy), "not of this communicator");
  } /* left for ncclCommDestroy */
}

void suite_deviceapi(struct team *t) {
  properties(t);
  teams(t);
  wrong_requirements(t);
  each_form(t);
  pointers(t);
  disagreement(t);
  conf_barrier(t);
  coll_alive(t, t->comm);
}
