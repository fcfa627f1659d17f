/* making.c: every way to make a communicator: by id, with a config, scalable, all in one process, several at once,
 * many in a row; and older forms of the config. */
#include <limits.h>
#include <stddef.h>

#include "suites.h"

static void facts(struct team *t, const ncclComm_t *comm) {
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i, n = -1, rank = -1, dev = -1;
    ncclResult_t state = ncclInternalError;
    OK(r, ncclCommCount(comm[i], &n));
    OK(r, ncclCommUserRank(comm[i], &rank));
    OK(r, ncclCommCuDevice(comm[i], &dev));
    OK(r, ncclCommGetAsyncError(comm[i], &state));
    TRUE(r, n == t->nranks && rank == r && dev >= 0 && state == ncclSuccess);
  }
}

static void with_config(struct team *t) {
  ncclComm_t comm[CONF_MAX_RANKS];
  ncclConfig_t cfg = NCCL_CONFIG_INITIALIZER;
  cfg.blocking = 1;
  cfg.minCTAs = 1;
  cfg.maxCTAs = 4;
  cfg.commName = "named";
  cfg.splitShare = 1;
  cfg.trafficClass = 3;
  if (team_init(t, comm, &cfg)) {
    facts(t, comm);
    coll_alive(t, comm);
    team_destroy(t, comm);
  }
  /* Only the lower bound: an accident of another library rejects it; here it is fine. */
  ncclConfig_t low = NCCL_CONFIG_INITIALIZER;
  low.minCTAs = 2;
  if (team_init(t, comm, &low)) {
    coll_alive(t, comm);
    team_destroy(t, comm);
  }
  /* A caller of version 2.14: the structure ends after blocking, what follows is not ours to read. */
  ncclConfig_t old;
  memset(&old, 0x7f, sizeof old);
  old.size = offsetof(ncclConfig_t, cgaClusterSize) + 4; /* tail padding of the old form */
  old.magic = NCCL_API_MAGIC;
  old.version = 21400;
  old.blocking = 1;
  if (team_init(t, comm, &old)) {
    coll_alive(t, comm);
    team_destroy(t, comm);
  }
}

static void bad_config(struct team *t) {
  struct {
    const char *field;
    size_t offset;
    int value;
  } bad[] = {
      {"blocking", offsetof(ncclConfig_t, blocking), 2},
      {"cgaClusterSize", offsetof(ncclConfig_t, cgaClusterSize), -1},
      {"minCTAs", offsetof(ncclConfig_t, minCTAs), 0},
      {"maxCTAs", offsetof(ncclConfig_t, maxCTAs), -3},
      {"splitShare", offsetof(ncclConfig_t, splitShare), 2},
      {"collnetEnable", offsetof(ncclConfig_t, collnetEnable), 7},
      {"CTAPolicy", offsetof(ncclConfig_t, CTAPolicy), 4},
      {"shrinkShare", offsetof(ncclConfig_t, shrinkShare), -1},
      {"nvlsCTAs", offsetof(ncclConfig_t, nvlsCTAs), 0},
      {"nChannelsPerNetPeer", offsetof(ncclConfig_t, nChannelsPerNetPeer), 65},
      {"graphUsageMode", offsetof(ncclConfig_t, graphUsageMode), 3},
      {"numRmaCtx", offsetof(ncclConfig_t, numRmaCtx), -1},
      {"maxP2pPeers", offsetof(ncclConfig_t, maxP2pPeers), 0},
      {"graphStreamOrdering", offsetof(ncclConfig_t, graphStreamOrdering), 2},
      {"nvlinkCentricSched", offsetof(ncclConfig_t, nvlinkCentricSched), 2},
      {"magic", offsetof(ncclConfig_t, magic), 1},
  };
  ncclUniqueId id;
  if (!team_id(t, &id)) return;
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    ncclConfig_t cfg = NCCL_CONFIG_INITIALIZER;
    memcpy((char *)&cfg + bad[k].offset, &bad[k].value, sizeof(int));
    ncclComm_t comm = (ncclComm_t)&cfg;
    conf_at(t->first, "config with a bad %s", bad[k].field);
    ncclResult_t rc = ncclCommInitRankConfig(&comm, t->nranks, id, t->first, &cfg);
    if (conf_rc(t->first, ncclInvalidArgument, rc, bad[k].field, "bad config", 0)) {
      if (!strstr(ncclGetLastError(NULL), bad[k].field))
        conf_fail(t->first, "config with %s %d: the last error does not name the field: \"%s\"", bad[k].field, bad[k].value,
                  ncclGetLastError(NULL));
    } else if (rc == ncclSuccess) {
      ncclCommAbort(comm);
    }
  }
}

static void scalable(struct team *t) {
  int nid = t->nranks > 3 ? 3 : t->nranks;
  ncclUniqueId ids[3];
  ncclComm_t comm[CONF_MAX_RANKS];
  for (int k = 0; k < nid; k++)
    if (!team_id(t, &ids[k])) return;
  EACH(t, "ncclCommInitRankScalable", ncclCommInitRankScalable(&comm[i], t->nranks, r, nid, ids, NULL));
  facts(t, comm);
  coll_alive(t, comm);
  team_destroy(t, comm);
  ncclComm_t none = NULL;
  RC(t->first, ncclInvalidArgument, ncclCommInitRankScalable(&none, t->nranks, t->first, 0, ids, NULL));
  RC(t->first, ncclInvalidArgument, ncclCommInitRankScalable(&none, t->nranks, t->first, t->nranks + 1, ids, NULL));
}

/* Each thread that drives ranks makes a whole communicator of its own. */
static void all_in_one(struct team *t) {
  ncclComm_t comm[CONF_MAX_RANKS];
  int n = t->nranks, devs[CONF_MAX_RANKS] = {0};
  mem_rank(0); /* all of them on device 0 */
  /* Without a list rank i is on device i: with CUDA the machine may have fewer. */
  for (int pass = mem_cuda(); pass < 2; pass++) {
    if (!OK(t->first, ncclCommInitAll(comm, n, pass ? devs : NULL))) return;
    struct buf sum[CONF_MAX_RANKS];
    for (int i = 0; i < n; i++) {
      if (!buf_new(&sum[i], 0, sizeof(int32_t))) return;
      *(int32_t *)sum[i].copy = i + 1;
      buf_put(&sum[i], 0, sizeof(int32_t));
    }
    OK(t->first, ncclGroupStart());
    for (int i = 0; i < n; i++) {
      int rank = -1;
      OK(t->first, ncclCommUserRank(comm[i], &rank));
      TRUE(t->first, rank == i);
      OK(t->first, ncclAllReduce(sum[i].at, sum[i].at, 1, ncclInt32, ncclSum, comm[i], mem_null));
    }
    OK(t->first, ncclGroupEnd());
    OK(t->first, mem_stream_sync(mem_null));
    for (int i = 0; i < n; i++) {
      buf_get(&sum[i], 0, sizeof(int32_t));
      TRUE(t->first, *(int32_t *)sum[i].copy == n * (n + 1) / 2);
      buf_free(&sum[i], 0);
    }
    OK(t->first, ncclGroupStart());
    for (int i = 0; i < n; i++) OK(t->first, ncclCommDestroy(comm[i]));
    OK(t->first, ncclGroupEnd());
  }
  mem_rank(t->first);
  RC(t->first, ncclInvalidArgument, ncclCommInitAll(comm, -1, NULL));
  RC(t->first, ncclInvalidArgument, ncclCommInitAll(NULL, n, NULL));
}

/* Two communicators made in one group, and a row of short lives. */
static void several(struct team *t) {
  ncclUniqueId a, b;
  ncclComm_t ca[CONF_MAX_RANKS], cb[CONF_MAX_RANKS];
  if (!team_id(t, &a) || !team_id(t, &b)) return;
  OK(t->first, ncclGroupStart());
  for (int i = 0; i < t->nlocal; i++) {
    OK(t->first + i, ncclCommInitRank(&ca[i], t->nranks, a, t->first + i));
    OK(t->first + i, ncclCommInitRank(&cb[i], t->nranks, b, t->first + i));
  }
  if (!OK(t->first, ncclGroupEnd())) return;
  coll_alive(t, cb);
  coll_alive(t, ca);
  team_destroy(t, ca);
  coll_alive(t, cb);
  team_destroy(t, cb);
  for (int k = 0; k < 10; k++) {
    if (!team_init(t, ca, NULL)) return;
    coll_alive(t, ca);
    team_destroy(t, ca);
  }
}

void suite_making(struct team *t) {
  ncclComm_t comm[CONF_MAX_RANKS];
  if (!team_init(t, comm, NULL)) return;
  facts(t, comm);
  coll_alive(t, comm);
  team_destroy(t, comm);
  with_config(t);
  bad_config(t);
  scalable(t);
  several(t);
  all_in_one(t);
  OK(t->first, gcclSetDeviceKind(mem_cuda() ? gcclDeviceCuda : gcclDeviceHost));
  if (team_init(t, comm, NULL)) {
    coll_alive(t, comm);
    team_destroy(t, comm);
  }
  RC(t->first, ncclInvalidArgument, gcclSetDeviceKind((gcclDeviceKind_t)17));
  if (!mem_cuda()) OK(t->first, gcclSetDeviceKind(gcclDeviceAuto));
}
