/* params.c: the settings interface: names, types, buffers, and what is refused. */
#define _GNU_SOURCE
#include <fcntl.h>

#include "suites.h"

static void typed(int r) {
  ncclParamHandle_t h = NULL;
  const char *s = NULL;
  int8_t i8;
  int16_t i16;
  int32_t i32;
  int64_t i64;
  uint8_t u8;
  uint16_t u16;
  uint32_t u32;
  uint64_t u64;
  if (!OK(r, ncclParamBind(&h, "NCCL_DEBUG_FILE"))) return;
  TRUE(r, h != NULL);
  ncclResult_t rc = ncclParamGetStr(h, &s);
  conf_rc(r, ncclSuccess, rc, "ncclParamGetStr(NCCL_DEBUG_FILE)", __FILE__, __LINE__);
  RC(r, ncclInvalidArgument, ncclParamGetI8(h, &i8));
  RC(r, ncclInvalidArgument, ncclParamGetI16(h, &i16));
  RC(r, ncclInvalidArgument, ncclParamGetI32(h, &i32));
  RC(r, ncclInvalidArgument, ncclParamGetI64(h, &i64));
  RC(r, ncclInvalidArgument, ncclParamGetU8(h, &u8));
  RC(r, ncclInvalidArgument, ncclParamGetU16(h, &u16));
  RC(r, ncclInvalidArgument, ncclParamGetU32(h, &u32));
  RC(r, ncclInvalidArgument, ncclParamGetU64(h, &u64));
  RC(r, ncclInvalidArgument, ncclParamGetStr(h, NULL));
  RC(r, ncclInvalidArgument, ncclParamGetI64(NULL, &i64));
  RC(r, ncclInvalidArgument, ncclParamGetStr(NULL, &s));
}

/* Each key can be bound and read raw, and by exactly one typed getter at most. */
static void all_keys(int r) {
  const char **keys = NULL;
  int n = -1, seen_debug = 0;
  if (!OK(r, ncclParamGetAllParameterKeys(&keys, &n))) return;
  TRUE(r, n > 0);
  char **copy = calloc((size_t)(n > 0 ? n : 1), sizeof *copy); /* the table lives until this thread asks again */
  for (int k = 0; k < n; k++) copy[k] = strdup(keys[k]);
  for (int k = 0; k < n; k++) {
    conf_at(r, "setting %s", copy[k]);
    ncclParamHandle_t h = NULL;
    const char *text = NULL;
    int len = -1, rawlen = -1, small = -1;
    char raw[4096];
    seen_debug |= !strcmp(copy[k], "NCCL_DEBUG");
    if (!OK(r, ncclParamBind(&h, copy[k]))) continue;
    OK(r, ncclParamGetParameter(copy[k], &text, &len));
    TRUE(r, text != NULL && len >= 0);
    OK(r, ncclParamGet(h, raw, sizeof raw, &rawlen));
    TRUE(r, rawlen >= 0 && rawlen <= (int)sizeof raw);
    RC(r, ncclInvalidArgument, ncclParamGet(h, raw, sizeof raw, NULL));
    if (rawlen > 1) {
      RC(r, ncclInvalidArgument, ncclParamGet(h, raw, rawlen - 1, &small));
      TRUE(r, small == 0);
    }
    int64_t v;
    int good = 0;
    const char *s;
    good += ncclParamGetI8(h, (int8_t *)&v) == ncclSuccess;
    good += ncclParamGetI16(h, (int16_t *)&v) == ncclSuccess;
    good += ncclParamGetI32(h, (int32_t *)&v) == ncclSuccess;
    good += ncclParamGetI64(h, &v) == ncclSuccess;
    good += ncclParamGetU8(h, (uint8_t *)&v) == ncclSuccess;
    good += ncclParamGetU16(h, (uint16_t *)&v) == ncclSuccess;
    good += ncclParamGetU32(h, (uint32_t *)&v) == ncclSuccess;
    good += ncclParamGetU64(h, (uint64_t *)&v) == ncclSuccess;
    good += ncclParamGetStr(h, &s) == ncclSuccess;
    if (good > 1) conf_fail(r, "setting %s answers %d typed getters", copy[k], good);
  }
  TRUE(r, seen_debug);
  for (int k = 0; k < n; k++) free(copy[k]);
  free(copy);
}

static void refused(int r) {
  ncclParamHandle_t h = NULL;
  const char *s = NULL, **table = NULL;
  int n = 0;
  RC(r, ncclInvalidArgument, ncclParamBind(&h, "NCCL_NO_SUCH_SETTING"));
  RC(r, ncclInvalidArgument, ncclParamBind(&h, NULL));
  RC(r, ncclInvalidArgument, ncclParamBind(NULL, "NCCL_DEBUG"));
  TRUE(r, h == NULL);
  RC(r, ncclInvalidArgument, ncclParamGetParameter("NCCL_NO_SUCH_SETTING", &s, &n));
  RC(r, ncclInvalidArgument, ncclParamGetParameter(NULL, &s, &n));
  RC(r, ncclInvalidArgument, ncclParamGetParameter("NCCL_DEBUG", NULL, &n));
  RC(r, ncclInvalidArgument, ncclParamGetParameter("NCCL_DEBUG", &s, NULL));
  RC(r, ncclInvalidArgument, ncclParamGetAllParameterKeys(NULL, &n));
  RC(r, ncclInvalidArgument, ncclParamGetAllParameterKeys(&table, NULL));
}

void suite_params(struct team *t) {
  int r = t->first;
  typed(r);
  all_keys(r);
  refused(r);
  conf_barrier(t);
  if (r == 0) { /* the dump goes to standard output: send it where it does not mix with the report */
    fflush(stdout);
    int keep = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);
    if (TRUE(r, keep >= 0 && null >= 0 && dup2(null, STDOUT_FILENO) >= 0)) {
      ncclParamDumpAll();
      pncclParamDumpAll();
      fflush(stdout);
      dup2(keep, STDOUT_FILENO);
    }
    close(keep);
    close(null);
  }
  conf_barrier(t);
}
