/* The structures of the device API as the header versions have them (sizes and offsets: tests/abi/testdata/layouts.tsv).
 *
 * Requirements only ever grew at the end once they had a head (2.29.2), so their first size bytes are copied over defaults. Before, they had
 * none: bytes 8 … 11 are then half of a pointer to a list, which is aligned to 8 and so never NCCL_API_MAGIC. ncclDevComm changed shape
 * more often; each form is written from the newest one. */
#include <string.h>

#include "devcomm.h"

/* ---- Forms of ncclDevComm ---- */

/* What 2.28.7 to 2.30.4 have in common: 128 bytes. */
typedef struct {
  int rank, nRanks;
  uint32_t nRanks_rcp32;
  int lsaRank, lsaSize;
  uint32_t lsaSize_rcp32;
  void *windowTable, *resourceWindow;
  unsigned char inlined[72]; /* a prefix of ncclWindow_vidmem */
  ncclMultimemHandle_t lsaMultimem;
  ncclLsaBarrierHandle_t lsaBarrier;
} lsa_part;
_Static_assert(sizeof(lsa_part) == 128 && offsetof(lsa_part, lsaBarrier) == 120, "layouts.tsv: ncclDevComm 2.28.9");

typedef struct {
  int rank, nRanks;
  uint32_t nRanks_rcp32;
  int lsaRank, lsaSize;
  uint32_t lsaSize_rcp32;
  void *windowTable, *resourceWindow;
  unsigned char inlined[32];
  ncclMultimemHandle_t lsaMultimem;
  ncclLsaBarrierHandle_t lsaBarrier;
} form_22803;
_Static_assert(sizeof(form_22803) == 88 && offsetof(form_22803, lsaBarrier) == 80, "layouts.tsv: ncclDevComm 2.28.3");

/* 2.28.7 to 2.29.3; 2.29.2 renamed a field. */
typedef struct {
  lsa_part lsa;
  ncclGinBarrierHandle_t railGinBarrier;
  uint8_t ginContextCount, ginTypes[4];
  void *ginHandles[4];
  uint32_t ginSignalBase;
  int ginSignalCount;
  uint32_t ginCounterBase;
  int ginCounterCount;
  uint64_t *ginSignalShadows;
} form_22807;
_Static_assert(sizeof(form_22807) == 200 && offsetof(form_22807, ginSignalBase) == 176, "layouts.tsv: ncclDevComm 2.28.9");

typedef struct {
  form_22807 old;
  uint32_t ginContextCount, ginContextBase;
  bool ginIsRailed;
  uint32_t *abortFlag;
} form_22907;
_Static_assert(sizeof(form_22907) == 224 && offsetof(form_22907, abortFlag) == 216, "layouts.tsv: ncclDevComm 2.29.7");

/* 2.30.3 and 2.30.4. */
typedef struct {
  unsigned int magic, version;
  lsa_part lsa;
  ncclGinBarrierHandle_t railGinBarrier;
  uint8_t ginConnectionCount, ginNetDeviceTypes[4];
  void *ginHandles[4];
  int ginSignalCount, ginCounterCount;
  uint64_t *ginSignalShadows;
  uint32_t ginContextCount;
  bool ginIsRailed;
  uint32_t *abortFlag;
  ncclLsaBarrierHandle_t hybridLsaBarrier;
  ncclGinBarrierHandle_t hybridRailGinBarrier, worldGinBarrier;
} form_23003;
_Static_assert(sizeof(form_23003) == 240 && offsetof(form_23003, abortFlag) == 208, "layouts.tsv: ncclDevComm 2.30.3");
_Static_assert(sizeof(struct ncclDevComm) == 240 && offsetof(struct ncclDevComm, abortFlag) == 208, "layouts.tsv: ncclDevComm 2.30.7");
_Static_assert(sizeof(struct ncclDevComm) <= GCCL_DEVCOMM_COPY && sizeof(form_23003) <= GCCL_DEVCOMM_COPY, "every form fits the copy");

static void write_lsa(lsa_part *to, const struct ncclDevComm *d, const struct ncclWindow_vidmem *w) {
  *to = (lsa_part){.rank = d->rank,
                   .nRanks = d->nRanks,
                   .nRanks_rcp32 = d->nRanks_rcp32,
                   .lsaRank = d->lsaRank,
                   .lsaSize = d->lsaSize,
                   .lsaSize_rcp32 = d->lsaSize_rcp32,
                   .windowTable = d->windowTable,
                   .resourceWindow = d->resourceWindow,
                   .lsaMultimem = d->lsaMultimem,
                   .lsaBarrier = d->lsaBarrier};
  memcpy(to->inlined, w, sizeof to->inlined);
}

/* What 2.28.7 to 2.29.7 have in common: one connection. */
static void write_22807(form_22807 *to, const struct ncclDevComm *d, const struct ncclWindow_vidmem *w) {
  *to = (form_22807){.railGinBarrier = d->railGinBarrier,
                     .ginContextCount = d->ginConnectionCount,
                     .ginTypes = {d->ginNetDeviceTypes[0]},
                     .ginHandles = {d->ginHandles[0]},
                     .ginSignalCount = d->ginSignalCount,
                     .ginCounterCount = d->ginCounterCount,
                     .ginSignalShadows = d->ginSignalShadows};
  write_lsa(&to->lsa, d, w);
}

void gccl_devcomm_write(void *out, enum gccl_devcomm_form form, const struct ncclDevComm *d, const struct ncclWindow_vidmem *w) {
  switch (form) {
  case GCCL_FORM_22803: {
    form_22803 *to = out;
    lsa_part l;
    write_lsa(&l, d, w);
    memcpy(to, &l, offsetof(form_22803, inlined) + sizeof to->inlined);
    to->lsaMultimem = l.lsaMultimem;
    to->lsaBarrier = l.lsaBarrier;
    return;
  }
  case GCCL_FORM_22807:
  case GCCL_FORM_22902: { /* a handle for each context */
    form_22807 *to = out;
    write_22807(to, d, w);
    to->ginContextCount = (uint8_t)d->ginContextCount;
    for (uint32_t i = 1; i < d->ginContextCount; i++) {
      to->ginTypes[i] = to->ginTypes[0];
      to->ginHandles[i] = (char *)to->ginHandles[0] + i * GCCL_PROXY_CONTEXT_OLD;
    }
    return;
  }
  case GCCL_FORM_22907: {
    form_22907 *to = out;
    *to = (form_22907){.ginContextCount = d->ginContextCount, .ginIsRailed = d->ginConnectionsRailed, .abortFlag = d->abortFlag};
    write_22807(&to->old, d, w);
    return;
  }
  case GCCL_FORM_23003: {
    form_23003 *to = out;
    *to = (form_23003){.magic = d->magic,
                       .version = d->version,
                       .railGinBarrier = d->railGinBarrier,
                       .ginConnectionCount = d->ginConnectionCount,
                       .ginSignalCount = d->ginSignalCount,
                       .ginCounterCount = d->ginCounterCount,
                       .ginSignalShadows = d->ginSignalShadows,
                       .ginContextCount = d->ginContextCount,
                       .ginIsRailed = d->ginConnectionsRailed,
                       .abortFlag = d->abortFlag,
                       .hybridLsaBarrier = d->hybridLsaBarrier,
                       .hybridRailGinBarrier = d->hybridRailGinBarrier,
                       .worldGinBarrier = d->worldGinBarrier};
    write_lsa(&to->lsa, d, w);
    memcpy(to->ginNetDeviceTypes, d->ginNetDeviceTypes, sizeof to->ginNetDeviceTypes);
    memcpy(to->ginHandles, d->ginHandles, sizeof to->ginHandles);
    return;
  }
  case GCCL_FORM_23007: memcpy(out, d, sizeof *d); return;
  }
}

const void *gccl_devcomm_window(const void *dev) {
  unsigned magic;
  memcpy(&magic, dev, sizeof magic);
  const void *w;
  size_t at = magic == NCCL_API_MAGIC ? offsetof(struct ncclDevComm, resourceWindow) : offsetof(lsa_part, resourceWindow);
  memcpy(&w, (const char *)dev + at, sizeof w);
  return w;
}

/* ---- Requirements ---- */

typedef struct {
  void *resourceRequirementsList, *teamRequirementsList;
  bool lsaMultimem;
  int lsaBarrierCount;
} reqs_22803;
_Static_assert(sizeof(reqs_22803) == 24, "layouts.tsv: ncclDevCommRequirements 2.28.3");

typedef struct {
  void *resourceRequirementsList, *teamRequirementsList;
  bool lsaMultimem;
  int barrierCount, lsaBarrierCount, railGinBarrierCount, lsaLLA2ABlockCount, lsaLLA2ASlotCount;
  bool ginForceEnable;
  int ginContextCount, ginSignalCount, ginCounterCount;
} reqs_22807;
_Static_assert(sizeof(reqs_22807) == 56 && offsetof(reqs_22807, ginContextCount) == 44, "layouts.tsv: ncclDevCommRequirements 2.28.9");
_Static_assert(sizeof(struct ncclDevCommRequirements) == 96, "layouts.tsv: ncclDevCommRequirements 2.30.7");

enum gccl_devcomm_form gccl_devcomm_unversioned(void) {
  char value[16] = "", text[GCCL_TEXT];
  int32_t index;
  if (gccl_core_open("the device API") == ncclSuccess && gccl_core.param_find("GCCL_DEVICE_HEADER", &index, text) == 0)
    gccl_core.param_get(index, NULL, NULL, value, sizeof value, NULL, text);
  return strcmp(value, "2.28.3") == 0 ? GCCL_FORM_22803 : GCCL_FORM_22807;
}

static void read_unversioned(struct ncclDevCommRequirements *to, enum gccl_devcomm_form form, const void *reqs) {
  const reqs_22807 *r = reqs;
  to->resourceRequirementsList = r->resourceRequirementsList;
  to->teamRequirementsList = r->teamRequirementsList;
  to->lsaMultimem = r->lsaMultimem;
  if (form == GCCL_FORM_22803) {
    to->lsaBarrierCount = ((const reqs_22803 *)reqs)->lsaBarrierCount;
    return;
  }
  to->barrierCount = r->barrierCount;
  to->lsaBarrierCount = r->lsaBarrierCount;
  to->railGinBarrierCount = r->railGinBarrierCount;
  to->lsaLLA2ABlockCount = r->lsaLLA2ABlockCount;
  to->lsaLLA2ASlotCount = r->lsaLLA2ASlotCount;
  to->ginForceEnable = r->ginForceEnable;
  to->ginContextCount = r->ginContextCount;
  to->ginSignalCount = r->ginSignalCount;
  to->ginCounterCount = r->ginCounterCount;
}

/* Before 2.30 hybrid barriers share those of the LSA team and the rail (NCCL 2.28.9 and 2.29.7, src/dev_runtime.cc). */
static void share_barriers(struct ncclDevCommRequirements *r, enum gccl_devcomm_form form) {
  if (form < GCCL_FORM_23003 && r->lsaBarrierCount < r->barrierCount) r->lsaBarrierCount = r->barrierCount;
}

ncclResult_t gccl_devcomm_read(struct ncclDevCommRequirements *to, enum gccl_devcomm_form *form, const void *reqs, const char *call) {
  *to = (struct ncclDevCommRequirements)NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  struct {
    uint64_t size;
    unsigned magic, version;
  } head;
  memcpy(&head, reqs, sizeof head);
  if (head.magic != NCCL_API_MAGIC) {
    if (head.magic % 8 != 0) /* no half of a pointer to a list either */
      return gccl_fail(ncclInvalidUsage, "%s: reqs has no magic (0x%x): set it to NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER", call,
                       head.magic);
    *form = gccl_devcomm_unversioned();
    read_unversioned(to, *form, reqs);
    to->version = *form == GCCL_FORM_22803 ? 22803 : 22807;
    share_barriers(to, *form);
    return ncclSuccess;
  }
  /* The versions whose structures are known (NCCL 2.30.7, src/dev_runtime.cc, accepts the same). */
  unsigned v = head.version;
  if (v > NCCL_VERSION_CODE)
    return gccl_fail(ncclInvalidUsage,
                     "%s: reqs is of version %u.%u.%u, newer than this library's %d.%d.%d: compile with this library's header", call,
                     v / 10000, v / 100 % 100, v % 100, NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
  if (v == 22902 || v == 22903)
    *form = GCCL_FORM_22902;
  else if (22905 <= v && v <= 22907)
    *form = GCCL_FORM_22907;
  else if (23000 <= v && v <= 23004)
    *form = GCCL_FORM_23003;
  else if (23005 <= v)
    *form = GCCL_FORM_23007;
  else
    return gccl_fail(ncclInvalidUsage, "%s: reqs says that it is of version %u: known are 2.29.2-2.29.3, 2.29.5-2.29.7 and 2.30", call, v);
  if (head.size < offsetof(struct ncclDevCommRequirements, ginConnectionType) || head.size > 4096)
    return gccl_fail(ncclInvalidUsage, "%s: reqs says that it has %llu bytes: set it to NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER", call,
                     (unsigned long long)head.size);
  memcpy(to, reqs, head.size < sizeof *to ? head.size : sizeof *to);
  share_barriers(to, *form);
  return ncclSuccess;
}

void gccl_devcomm_read_resource(ncclDevResourceRequirements_t *to, const void *from, enum gccl_devcomm_form form) {
  *to = (ncclDevResourceRequirements_t){0};
  memcpy(to, from, form == GCCL_FORM_22803 ? offsetof(ncclDevResourceRequirements_t, ginSignalCount) : sizeof *to);
}
