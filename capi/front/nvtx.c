/* The part of NVTX version 3 that ranges need, by its injection interface: the file that NVTX_INJECTION64_PATH names is loaded, gets tables
 * of places for functions, and puts its own into them. Facts from nvidia-nvtx-cu12 12.9.79 (PyPI), nvtx3/nvToolsExt.h,
 * nvtxDetail/nvtxTypes.h and nvtxInit.h (load sequence 2), 2026-11-30. */
#include "nvtx.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "front.h"

int gccl_nvtx_state = GCCL_NVTX_UNKNOWN;

typedef void (*function)(void);

enum { CORE = 1, CORE2 = 5, MODULES = 7, SLOTS = 16 };        /* NvtxCallbackModule */
enum { RANGE_PUSH = 4, RANGE_POP = 5, DOMAIN_CREATE_A = 12 }; /* NvtxCallbackIdCore2 */
enum { CALLBACKS = 1, VERSION_INFO = 3 };                     /* NvtxExportTableID */

/* nvtxEventAttributes_v2 */
typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const char *message;
} attributes;
_Static_assert(sizeof(attributes) == 48 && offsetof(attributes, message) == 40, "nvtxEventAttributes_v2");

/* Where the tool's functions are, by module: only those of domains are used. The sizes are those of the enumerations. */
static function installed[MODULES][SLOTS];
static function *tables[MODULES][SLOTS];
static const unsigned sizes[MODULES] = {0, 16, 9, 15, 7, 16, 7};

static int get_module(int module, function ***table, unsigned *size) {
  if (module < CORE || module >= MODULES) return 0;
  for (int i = 0; i < SLOTS; i++) tables[module][i] = &installed[module][i];
  if (table) *table = tables[module];
  if (size) *size = sizes[module];
  return 1;
}

static void set_version(uint32_t version) { (void)version; } /* the tool's: of no use here, as in NVTX's own header */

static const struct {
  size_t size;
  int (*get_module)(int, function ***, unsigned *);
} callbacks = {sizeof callbacks, get_module};
static const struct {
  size_t size;
  uint32_t version, reserved;
  void (*set_version)(uint32_t);
} version_info = {sizeof version_info, 3, 0, set_version};

static const void *export_table(uint32_t id) {
  if (id == CALLBACKS) return &callbacks;
  return id == VERSION_INFO ? (const void *)&version_info : NULL;
}

static void *domain;
static int (*push)(void *, const attributes *);
static int (*pop)(void *);

static void say(const char *format, const char *file, const char *why) {
  char text[1024];
  snprintf(text, sizeof text, format, file, why);
  if (gccl_core_ready()) gccl_core.log(3 /* NCCL_LOG_INFO */, -1, text);
}

/* Loads the tool. 1 if it wants ranges. */
static int load(const char *file) {
  char off[8];
  if (gccl_core_open("NVTX") != ncclSuccess) return 0; /* the call that comes next says why */
  gccl_setting("NCCL_NVTX_DISABLE", off, sizeof off);
  if (off[0] && off[0] != '0') return 0;
  void *h = dlopen(file, RTLD_LAZY);
  int (*init)(const void *(*)(uint32_t)) = NULL;
  if (h) *(void **)&init = dlsym(h, "InitializeInjectionNvtx2");
  if (!init) {
    const char *why = dlerror();
    say("no NVTX ranges: NVTX_INJECTION64_PATH is %s: %s", file, why ? why : "no InitializeInjectionNvtx2 in it");
  } else if (!init(export_table)) {
    say("no NVTX ranges: NVTX_INJECTION64_PATH is %s: %s", file, "its InitializeInjectionNvtx2 has failed");
  } else {
    push = (int (*)(void *, const attributes *))installed[CORE2][RANGE_PUSH];
    pop = (int (*)(void *))installed[CORE2][RANGE_POP];
    void *(*create)(const char *) = (void *(*)(const char *))installed[CORE2][DOMAIN_CREATE_A];
    if (push && pop && create) domain = create("NCCL"); /* the name that tools know */
    return push && pop && create;
  }
  if (h) dlclose(h);
  return 0;
}

/* Meanwhile other threads go on without ranges, and so does this one if the tool calls the library. */
static int look(void) {
  int unknown = GCCL_NVTX_UNKNOWN;
  if (!__atomic_compare_exchange_n(&gccl_nvtx_state, &unknown, GCCL_NVTX_OFF, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return unknown == GCCL_NVTX_ON;
  const char *file = getenv("NVTX_INJECTION64_PATH"); /* NVTX's own, no setting of this library */
  if (!file || !*file || !load(file)) return 0;
  __atomic_store_n(&gccl_nvtx_state, GCCL_NVTX_ON, __ATOMIC_RELEASE); /* acquired in gccl_nvtx_push */
  return 1;
}

int gccl_nvtx_push(const char *name, uint64_t count, int dtype) {
  if (__atomic_load_n(&gccl_nvtx_state, __ATOMIC_ACQUIRE) != GCCL_NVTX_ON && !look()) return 0;
  attributes a = {.version = 3, .size = sizeof a, .message_type = 1 /* ASCII */, .message = name};
  if (dtype >= 0 && dtype < ncclNumTypes) {
    a.payload_type = 1; /* unsigned, 64 bits */
    a.payload = count * gccl_dtype_size((unsigned)dtype);
  }
  push(domain, &a);
  return 1;
}

void gccl_nvtx_pop(void) { pop(domain); }
