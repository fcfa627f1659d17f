/* ncclParam*: the parameters that NCCL's registry publishes, answered by the core's table of settings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

/* ncclParamTypeId_t of NCCL 2.30.7. */
enum { T_I8 = 1, T_I16, T_I32, T_I64, T_U8, T_U16, T_U32, T_U64, T_BOOL, T_STRING };

/* A handle is the table index plus one, so that NULL stays invalid. */
static int index_of(ncclParamHandle_t h) { return (int)((uintptr_t)h - 1); }

void gccl_setting(const char *name, char *out, int max) {
  char text[GCCL_TEXT] = "";
  int32_t index, length = 0;
  out[0] = 0;
  if (gccl_core.param_find(name, &index, text) != ncclSuccess) return;
  if (gccl_core.param_get(index, NULL, NULL, out, max, &length, text) != ncclSuccess) out[0] = 0;
}

static ncclResult_t get(ncclParamHandle_t h, int32_t *type, int64_t *integer, char *value, int32_t max, int32_t *len, const char *call) {
  ncclResult_t rc = gccl_core_open(call);
  if (rc != ncclSuccess) return rc;
  if (!h || (uintptr_t)h > 4096) return gccl_fail(ncclInvalidArgument, "%s: %p is not a parameter handle", call, (void *)h);
  char text[GCCL_TEXT] = "";
  rc = (ncclResult_t)gccl_core.param_get(index_of(h), type, integer, value, max, len, text);
  return rc == ncclSuccess ? rc : gccl_fail(rc, "%s: %s", call, text);
}

GCCL_API(ncclResult_t, ncclParamBind, ncclParamHandle_t *out, const char *key) {
  if (!out || !key) return gccl_fail(ncclInvalidArgument, "ncclParamBind: out and key must be given");
  ncclResult_t rc = gccl_core_open("ncclParamBind");
  if (rc != ncclSuccess) return rc;
  int32_t index = 0;
  char text[GCCL_TEXT] = "";
  rc = (ncclResult_t)gccl_core.param_find(key, &index, text);
  if (rc != ncclSuccess) return gccl_fail(rc, "ncclParamBind: %s", text);
  *out = (ncclParamHandle_t)(uintptr_t)(index + 1);
  return ncclSuccess;
}

#define INTEGER(NAME, CTYPE, TYPE)                                                                                                   \
  GCCL_API(ncclResult_t, NAME, ncclParamHandle_t h, CTYPE *out) {                                                                    \
    int32_t type = 0, len = 0;                                                                                                       \
    int64_t v = 0;                                                                                                                   \
    if (!out) return gccl_fail(ncclInvalidArgument, #NAME ": out is NULL");                                                          \
    ncclResult_t rc = get(h, &type, &v, NULL, 0, &len, #NAME);                                                                       \
    if (rc != ncclSuccess) return rc;                                                                                                \
    if (type != TYPE) return gccl_fail(ncclInvalidArgument, #NAME ": the parameter is of another type (%d, wanted %d)", type, TYPE); \
    *out = (CTYPE)v;                                                                                                                 \
    return ncclSuccess;                                                                                                              \
  }

INTEGER(ncclParamGetI8, int8_t, T_I8)
INTEGER(ncclParamGetI16, int16_t, T_I16)
INTEGER(ncclParamGetI32, int32_t, T_I32)
INTEGER(ncclParamGetI64, int64_t, T_I64)
INTEGER(ncclParamGetU8, uint8_t, T_U8)
INTEGER(ncclParamGetU16, uint16_t, T_U16)
INTEGER(ncclParamGetU32, uint32_t, T_U32)
INTEGER(ncclParamGetU64, uint64_t, T_U64)

/* Texts that a thread was given: each lives until the same thread asks the same function again. Not in thread-local arrays:
 * a library that is loaded late has little room for those (static TLS). */
enum { KEYS = 64 };
struct gccl_param_texts {
  char get[1024], parameter[1024];
  char names[KEYS][48];
  const char *keys[KEYS];
};

static struct gccl_param_texts *texts(const char *call) {
  gccl_thread *t = gccl_thread_get();
  if (t && !t->param) t->param = calloc(1, sizeof *t->param);
  if (!t || !t->param) {
    gccl_fail(ncclSystemError, "%s: out of memory", call);
    return NULL;
  }
  return t->param;
}

GCCL_API(ncclResult_t, ncclParamGetStr, ncclParamHandle_t h, const char **out) {
  int32_t type = 0, len = 0;
  int64_t v;
  if (!out) return gccl_fail(ncclInvalidArgument, "ncclParamGetStr: out is NULL");
  struct gccl_param_texts *t = texts("ncclParamGetStr");
  if (!t) return ncclSystemError;
  ncclResult_t rc = get(h, &type, &v, t->get, sizeof t->get, &len, "ncclParamGetStr");
  if (rc != ncclSuccess) return rc;
  if (type != T_STRING) return gccl_fail(ncclInvalidArgument, "ncclParamGetStr: the parameter is not a string (type %d)", type);
  *out = t->get;
  return ncclSuccess;
}

GCCL_API(ncclResult_t, ncclParamGet, ncclParamHandle_t h, void *out, int maxLen, int *len) {
  static const int8_t size[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 1};
  const char *call = "ncclParamGet";
  if (!out || !len) return gccl_fail(ncclInvalidArgument, "%s: out and len must be given", call);
  *len = 0;
  int32_t type = 0, n = 0;
  int64_t v = 0;
  char value[1024];
  ncclResult_t rc = get(h, &type, &v, value, sizeof value, &n, call);
  if (rc != ncclSuccess) return rc;
  const void *from = &v;
  int bytes = (unsigned)type < sizeof size ? size[type] : type == T_STRING ? (int)strlen(value) + 1 : 4 /* enumerations */;
  if (type == T_STRING) from = value;
  if (bytes > maxLen) return gccl_fail(ncclInvalidArgument, "%s: the value takes %d bytes and the buffer has %d", call, bytes, maxLen);
  memcpy(out, from, (size_t)bytes);
  *len = bytes;
  return ncclSuccess;
}

GCCL_API(ncclResult_t, ncclParamGetParameter, const char *key, const char **value, int *valueLen) {
  if (!value || !valueLen) return gccl_fail(ncclInvalidArgument, "ncclParamGetParameter: value and valueLen must be given");
  ncclParamHandle_t h;
  ncclResult_t rc = pncclParamBind(&h, key);
  if (rc != ncclSuccess) return rc;
  int32_t type, len = 0;
  int64_t v;
  struct gccl_param_texts *t = texts("ncclParamGetParameter");
  if (!t) return ncclSystemError;
  rc = get(h, &type, &v, t->parameter, sizeof t->parameter, &len, "ncclParamGetParameter");
  if (rc != ncclSuccess) return rc;
  *value = t->parameter;
  *valueLen = len;
  return ncclSuccess;
}

GCCL_API(ncclResult_t, ncclParamGetAllParameterKeys, const char ***table, int *tableLen) {
  if (!table || !tableLen) return gccl_fail(ncclInvalidArgument, "ncclParamGetAllParameterKeys: table and tableLen must be given");
  ncclResult_t rc = gccl_core_open("ncclParamGetAllParameterKeys");
  if (rc != ncclSuccess) return rc;
  struct gccl_param_texts *t = texts("ncclParamGetAllParameterKeys");
  if (!t) return ncclSystemError;
  int32_t count = 0, n = 0;
  for (int32_t i = 0; i == 0 || i < count; i++) {
    if (n == KEYS || gccl_core.param_key(i, t->names[n], sizeof t->names[n], &count) != ncclSuccess) break;
    t->keys[n] = t->names[n];
    n++;
  }
  *table = t->keys;
  *tableLen = n;
  return ncclSuccess;
}

GCCL_API(void, ncclParamDumpAll, void) {
  if (gccl_core_open("ncclParamDumpAll") != ncclSuccess) return;
  int64_t len = 0;
  if (gccl_core.param_dump(NULL, 0, &len) != ncclSuccess) return;
  char *text = malloc((size_t)len + 1);
  if (text && gccl_core.param_dump(text, len + 1, &len) == ncclSuccess) {
    fwrite(text, 1, (size_t)len, stdout); /* the one function whose contract is standard output */
    fflush(stdout);
  }
  free(text);
}
