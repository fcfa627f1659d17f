/* Opening the core; forks; error texts; the calls that need no core. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"
#include "result_text.gen.h"

gccl_core_api gccl_core;
int gccl_forked;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(int) ready;
static char process_last[1024];
static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;

/* The Go runtime of the core lives in threads that a child does not have: it may not be called there. */
static void in_child(void) { gccl_forked = 1; }

int gccl_core_ready(void) { return atomic_load_explicit(&ready, memory_order_acquire); }

const char *gccl_library_path(void) {
  static char path[PATH_MAX];
  Dl_info info;
  if (!path[0] && dladdr((void *)&gccl_core_open, &info) && info.dli_fname) {
    char *real = realpath(info.dli_fname, NULL);
    snprintf(path, sizeof path, "%s", real ? real : info.dli_fname);
    free(real);
  }
  return path;
}

ncclResult_t gccl_fail(ncclResult_t rc, const char *format, ...) {
  char text[1024] = "";
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  gccl_thread *t = gccl_thread_get();
  if (t) memcpy(t->last, text, sizeof t->last);
  if (!gccl_forked) { /* a lock held at the fork stays locked in the child */
    pthread_mutex_lock(&last_lock);
    memcpy(process_last, text, sizeof process_last);
    pthread_mutex_unlock(&last_lock);
    if (gccl_core_ready()) gccl_core.log(3 /* NCCL_LOG_INFO: the caller has the code and the text */, -1, text);
  }
  return rc;
}

const char *gccl_last_error(void) {
  gccl_thread *t = gccl_thread_get();
  if (!t) return "out of memory";
  if (t->last[0] || gccl_forked) return t->last;
  pthread_mutex_lock(&last_lock);
  memcpy(t->seen, process_last, sizeof t->seen);
  pthread_mutex_unlock(&last_lock);
  return t->seen;
}

static int32_t interrupted(void);

static gccl_front_api front = {
    .abi = GCCL_CORE_ABI,
    .size = sizeof(gccl_front_api),
    .done = gccl_job_done,
    .quiesce = gccl_quiesce,
    .retire = gccl_handle_retire,
    .interrupted = interrupted,
    .cuda = &gccl_cuda_device_api,
    .trace = &gccl_front_trace,
};

ncclResult_t gccl_core_open(const char *call) {
  if (__builtin_expect(gccl_forked, 0))
    return gccl_fail(ncclInvalidUsage,
                     "%s: this process was forked from one that had used GCCL already; its threads did not survive the fork: "
                     "fork before the first call, or start the child with exec",
                     call);
  if (gccl_core_ready()) return ncclSuccess;
  ncclResult_t rc = ncclSuccess;
  pthread_mutex_lock(&lock);
  if (!gccl_core_ready()) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s", gccl_library_path());
    char *slash = strrchr(path, '/');
    snprintf(slash ? slash + 1 : path, sizeof path - (size_t)(slash ? slash + 1 - path : 0), "libgccl_core.so");
    /* Lazily bound unless LD_BIND_NOW says otherwise; local, so that none of its names meets the program's. */
    void *h = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    gcclgo_open_fn open = h ? (gcclgo_open_fn)dlsym(h, "gcclgo_open") : NULL;
    front.path = gccl_library_path();
    front.simd = gccl_reduce_sets();
    if (!open) {
      const char *why = dlerror();
      rc = gccl_fail(ncclSystemError, "%s: cannot open the core %s: %s: libgccl_core.so must lie beside libgccl.so", call, path,
                     why ? why : "no gcclgo_open in it");
    } else if (open(&front, &gccl_core) != 0 || gccl_core.abi != GCCL_CORE_ABI || gccl_core.size != sizeof gccl_core) {
      rc = gccl_fail(ncclSystemError, "%s: the core %s is of another build (core ABI %u, this library wants %u): install both together",
                     call, path, gccl_core.abi, GCCL_CORE_ABI);
    } else {
      pthread_atfork(NULL, NULL, in_child);
      gccl_wait_init();
      atomic_store_explicit(&ready, 1, memory_order_release);
    }
  }
  pthread_mutex_unlock(&lock);
  return rc;
}

GCCL_API(ncclResult_t, ncclGetVersion, int *version) {
  if (!version) return gccl_fail(ncclInvalidArgument, "ncclGetVersion: version is NULL");
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

GCCL_API(const char *, ncclGetErrorString, ncclResult_t result) {
  switch ((int)result) {
#define CASE(name, code, text) \
  case code: return text;
    GCCL_RESULTS(CASE)
#undef CASE
  default: return GCCL_RESULT_UNKNOWN_TEXT;
  }
}

GCCL_API(const char *, ncclGetLastError, ncclComm_t comm) {
  if (comm && gccl_handle_known(comm) && atomic_load_explicit(&comm->error, memory_order_acquire) > 0) return comm->cause;
  return gccl_last_error();
}

GCCL_API(void, ncclResetDebugInit, void) {
  if (gccl_core_ready() && !gccl_forked) gccl_core.log_reset();
}

__attribute__((visibility("default"))) void ncclResetDebugInitInternal(void);
void ncclResetDebugInitInternal(void) { pncclResetDebugInit(); }

GCCL_OWN_API const char *gcclLibraryPath(void) { return gccl_library_path(); }

GCCL_OWN_API ncclResult_t gcclSetInterrupt(gcclInterrupt_t ask, void *arg) {
  gccl_interrupt_self = (gccl_interrupt){.ask = ask, .arg = arg};
  return ncclSuccess;
}

/* For the core, on the calling thread: -1 if there is nothing to ask. */
static int32_t interrupted(void) { return gccl_interrupt_self.ask ? gccl_interrupted() != 0 : -1; }

GCCL_OWN_API ncclResult_t gcclSetDeviceKind(gcclDeviceKind_t kind) {
  if (kind != gcclDeviceAuto && kind != gcclDeviceHost && kind != gcclDeviceCuda)
    return gccl_fail(ncclInvalidArgument, "gcclSetDeviceKind: unknown device kind %d", (int)kind);
  if (kind == gcclDeviceCuda) {
    int32_t can = kind;
    ncclResult_t rc = gccl_core_open("gcclSetDeviceKind");
    if (rc != ncclSuccess || (rc = gccl_device_choose(&can, "gcclSetDeviceKind")) != ncclSuccess) return rc;
  }
  gccl_thread *t = gccl_thread_get();
  if (!t) return gccl_fail(ncclSystemError, "gcclSetDeviceKind: out of memory");
  t->device_kind = kind;
  return ncclSuccess;
}

GCCL_OWN_API ncclResult_t gcclCommGetStats(ncclComm_t comm, gcclCommStats_t *stats) {
  ncclResult_t rc = gccl_handle_check(comm, "gcclCommGetStats");
  if (rc != ncclSuccess) return rc;
  if (!stats || stats->magic != NCCL_API_MAGIC || stats->size < offsetof(gcclCommStats_t, calls))
    return gccl_fail(ncclInvalidArgument, "gcclCommGetStats: stats must be set to GCCL_COMM_STATS_INITIALIZER");
  gcclCommStats_t s = GCCL_COMM_STATS_INITIALIZER;
  s.calls = atomic_load_explicit(&comm->count.calls, memory_order_relaxed);
  s.tableMisses = atomic_load_explicit(&comm->count.misses, memory_order_relaxed);
  s.tableHits = atomic_load_explicit(&comm->count.hits, memory_order_relaxed);
  s.bytes = atomic_load_explicit(&comm->count.bytes, memory_order_relaxed);
  uint64_t samples = atomic_load_explicit(&comm->count.samples, memory_order_relaxed);
  if (samples) s.frontNanoseconds = atomic_load_explicit(&comm->count.front_ns, memory_order_relaxed) / samples;
  char text[GCCL_TEXT] = "";
  if ((rc = gccl_core_open("gcclCommGetStats")) != ncclSuccess) return rc;
  rc = gccl_core.stats_bytes(comm, &s.sharedBytes, &s.privateBytes, text);
  if (rc != ncclSuccess) return gccl_fail(rc, "gcclCommGetStats: %s", text);
  size_t n = stats->size < sizeof s ? stats->size : sizeof s;
  s.size = stats->size;
  s.version = stats->version;
  memcpy(stats, &s, n);
  return ncclSuccess;
}
