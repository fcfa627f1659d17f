/* Initialisation, devices, errors by name, and the beginning of every call. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <unistd.h>

#include "fake.h"

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;

static int initialised; /* pid of the process that called cuInit */

/* GCCL_FAKE_DEVICES: "4", or a list such as "1,mig3": migN is N instances of one GPU, which have its place on the bus but a name
 * and a UUID of their own. */
static struct { int gpu, instance; /* instance 0: the whole GPU */ } device[FAKE_MAX_DEVICES];
static int ndevices;

int fake_setting(const char *name, int otherwise) {
  const char *v = getenv(name);
  return v && *v ? atoi(v) : otherwise;
}

void fake_say(const char *fmt, ...) {
  char line[512];
  va_list ap;
  va_start(ap, fmt);
  int n = snprintf(line, sizeof line, "fake cuda[%d]: ", (int)getpid());
  n += vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
  va_end(ap);
  if (n > (int)sizeof line - 2) n = (int)sizeof line - 2;
  line[n++] = '\n';
  if (write(STDERR_FILENO, line, (size_t)n) < 0) return;
}

static void find_devices(void) {
  const char *list = getenv("GCCL_FAKE_DEVICES");
  struct {
    int gpu, instance;
  } all[FAKE_MAX_DEVICES];
  int n = 0, gpu = 0;
  char text[128];
  snprintf(text, sizeof text, "%s", list && *list ? list : "1");
  char *save = NULL;
  for (char *p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
    int mig = !strncmp(p, "mig", 3), count = atoi(mig ? p + 3 : p);
    for (int i = 0; i < count && n < FAKE_MAX_DEVICES; i++) {
      all[n].gpu = gpu;
      all[n++].instance = mig ? i + 1 : 0;
      if (!mig) gpu++;
    }
    if (mig) gpu++;
  }
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  ndevices = 0;
  if (!visible) {
    for (; ndevices < n; ndevices++) {
      device[ndevices].gpu = all[ndevices].gpu;
      device[ndevices].instance = all[ndevices].instance;
    }
    return;
  }
  /* Numbers only; the first one that is no device ends the list (CUDA C++ Programming Guide, environment variables). */
  for (const char *p = visible; *p && ndevices < FAKE_MAX_DEVICES;) {
    char *end;
    long i = strtol(p, &end, 10);
    if (end == p || i < 0 || i >= n) break;
    device[ndevices].gpu = all[i].gpu;
    device[ndevices++].instance = all[i].instance;
    p = *end == ',' ? end + 1 : end;
  }
}

int fake_device_count(void) { return ndevices; }
size_t fake_device_bytes(void) { return (size_t)fake_setting("GCCL_FAKE_MEMORY_MIB", 16384) << 20; }

const void *fake_thread(void) {
  static __thread char here;
  return &here;
}

/* GCCL_FAKE_FAIL="cuMemCreate:3:2": the third call of cuMemCreate returns 2; "name:0:code": every call. Several, divided by commas. */
static CUresult scripted(const char *call) {
  const char *script = getenv("GCCL_FAKE_FAIL");
  if (!script) return CUDA_SUCCESS;
  static struct {
    char name[64];
    int calls;
  } seen[32];
  size_t len = strlen(call);
  for (const char *p = script; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
    if (strncmp(p, call, len) || p[len] != ':') continue;
    int nth = 0, code = 0, slot = 0, calls = 0;
    if (sscanf(p + len, ":%d:%d", &nth, &code) != 2) continue;
    pthread_mutex_lock(&fake_lock);
    while (slot < 31 && seen[slot].name[0] && strcmp(seen[slot].name, call)) slot++;
    snprintf(seen[slot].name, sizeof seen[slot].name, "%s", call);
    calls = ++seen[slot].calls;
    pthread_mutex_unlock(&fake_lock);
    if (nth == 0 || calls == nth) return code;
  }
  return CUDA_SUCCESS;
}

static struct {
  const char *name;
  unsigned long n;
} counted[256];
static _Atomic(int) counting;
static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;

void gccl_fake_count(void) {
  pthread_mutex_lock(&count_lock);
  memset(counted, 0, sizeof counted);
  counting = 1;
  pthread_mutex_unlock(&count_lock);
}

const char *gccl_fake_calls(unsigned i, unsigned long *n) {
  if (i >= sizeof counted / sizeof *counted) return NULL;
  *n = counted[i].n;
  return counted[i].name;
}

static void count(const char *call) {
  if (!counting) return;
  pthread_mutex_lock(&count_lock);
  unsigned i = 0;
  while (i < 255 && counted[i].name && strcmp(counted[i].name, call)) i++;
  counted[i].name = call;
  counted[i].n++;
  pthread_mutex_unlock(&count_lock);
}

CUresult fake_enter(const char *call, int needs, CUcontext *ctx) {
  CUresult rc = scripted(call);
  count(call);
  if (rc != CUDA_SUCCESS || needs & ANY_TIME) return rc;
  if (initialised != getpid()) return CUDA_ERROR_NOT_INITIALIZED; /* also in the child of a process that had called cuInit */
  if (needs & IN_CONTEXT) {
    CUcontext c = fake_current();
    if (!c) return CUDA_ERROR_INVALID_CONTEXT;
    if (!fake_ctx_ok(c)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (c->sticky) return c->sticky;
    if (ctx) *ctx = c;
  }
  if (needs & UNSAFE) {
    pthread_mutex_lock(&fake_lock);
    rc = fake_capture_forbids();
    pthread_mutex_unlock(&fake_lock);
  }
  return rc;
}

CUresult fake_enter_stream(const char *call, CUstream handle, CUstream *s) {
  CUcontext ctx;
  CUresult rc = fake_enter(call, IN_CONTEXT, &ctx);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  *s = fake_stream_of(ctx, handle);
  pthread_mutex_unlock(&fake_lock);
  if (!*s) return CUDA_ERROR_INVALID_HANDLE;
  return (*s)->ctx == ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult fake_Init(unsigned flags) {
  CUresult rc = fake_enter("cuInit", ANY_TIME, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  if (!initialised) {
    find_devices();
    if (ndevices) initialised = getpid();
  }
  int here = initialised == getpid();
  pthread_mutex_unlock(&fake_lock);
  return here ? CUDA_SUCCESS : initialised ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_NO_DEVICE;
}

CUresult fake_DriverGetVersion(int *version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = fake_setting("GCCL_FAKE_DRIVER_VERSION", 13000);
  return fake_enter("cuDriverGetVersion", ANY_TIME, NULL);
}

CUresult fake_DeviceGetCount(int *n) {
  CUresult rc = fake_enter("cuDeviceGetCount", 0, NULL);
  if (rc == CUDA_SUCCESS && !n) return CUDA_ERROR_INVALID_VALUE;
  if (rc == CUDA_SUCCESS) *n = ndevices;
  return rc;
}

static CUresult check(const char *call, CUdevice d, const void *out) {
  CUresult rc = fake_enter(call, 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (d < 0 || d >= ndevices) return CUDA_ERROR_INVALID_DEVICE;
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_DeviceGet(CUdevice *out, int ordinal) {
  CUresult rc = check("cuDeviceGet", ordinal, out);
  if (rc == CUDA_SUCCESS) *out = ordinal;
  return rc;
}

CUresult fake_DeviceGetName(char *name, int len, CUdevice d) {
  CUresult rc = check("cuDeviceGetName", d, name);
  if (rc != CUDA_SUCCESS) return rc;
  if (len <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, (size_t)len, device[d].instance ? "Fake GPU MIG 1g.2gb" : "Fake GPU");
  return CUDA_SUCCESS;
}

CUresult fake_DeviceGetUuid(CUuuid *u, CUdevice d) {
  CUresult rc = check("cuDeviceGetUuid_v2", d, u);
  if (rc != CUDA_SUCCESS) return rc;
  memcpy(u->bytes, "fake gpu uuid 00", 16);
  u->bytes[14] = (char)('A' + device[d].gpu);
  u->bytes[15] = (char)('0' + device[d].instance);
  return CUDA_SUCCESS;
}

CUresult fake_DeviceGetPCIBusId(char *text, int len, CUdevice d) {
  CUresult rc = check("cuDeviceGetPCIBusId", d, text);
  if (rc != CUDA_SUCCESS) return rc;
  if (len < 13) return CUDA_ERROR_INVALID_VALUE;
  snprintf(text, (size_t)len, "0000:%02X:00.0", 0x40 + device[d].gpu);
  return CUDA_SUCCESS;
}

CUresult fake_DeviceTotalMem(size_t *bytes, CUdevice d) {
  CUresult rc = check("cuDeviceTotalMem_v2", d, bytes);
  if (rc == CUDA_SUCCESS) *bytes = fake_device_bytes();
  return rc;
}

CUresult fake_DeviceCanAccessPeer(int *can, CUdevice from, CUdevice to) {
  CUresult rc = check("cuDeviceCanAccessPeer", from, can);
  if (rc == CUDA_SUCCESS && (to < 0 || to >= ndevices)) rc = CUDA_ERROR_INVALID_DEVICE;
  /* MIG instances cannot reach each other (MIG user guide, application considerations). */
  if (rc == CUDA_SUCCESS) *can = from != to && !device[from].instance && !device[to].instance && !fake_setting("GCCL_FAKE_NO_PEER", 0);
  return rc;
}

CUresult fake_DeviceGetAttribute(int *value, int attribute, CUdevice d) {
  CUresult rc = check("cuDeviceGetAttribute", d, value);
  if (rc != CUDA_SUCCESS) return rc;
  switch (attribute) {
  case 1: *value = 1024; break;     /* threads per block */
  case 8: *value = 48 << 10; break; /* shared memory per block */
  case 10: *value = 32; break;      /* warp */
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = fake_setting("GCCL_FAKE_SMS", 8); break;
  case 31: /* concurrent kernels */
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case 90: /* compute preemption */
  case 91: /* host pointer for registered memory */
  case 92: /* stream memory operations, old and new */
  case 93:
  case 95: /* cooperative launch */
  case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
  case 115: /* memory pools */
  case 122:
  case 123: *value = 1; break;
  case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *value = 0x40 + device[d].gpu; break;
  case 39: *value = 2048; break;      /* threads per multiprocessor */
  case 40: *value = 3; break;         /* copy engines */
  case 97: *value = 227 << 10; break; /* shared memory by request */
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
  /* No fabric, no multicast, no dmabuf: what is not modelled is not offered. */
  default: *value = 0;
  }
  return CUDA_SUCCESS;
}

/* --- errors by name --- */

static const struct {
  int code;
  const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {CUDA_ERROR_STUB_LIBRARY, "CUDA_ERROR_STUB_LIBRARY", "the driver is a stub library"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_MAP_FAILED, "CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed"},
    {CUDA_ERROR_ALREADY_MAPPED, "CUDA_ERROR_ALREADY_MAPPED", "resource already mapped"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for the device"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "unsupported PTX version"},
    {CUDA_ERROR_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "the primary context is active"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "host memory already registered"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "host memory is not registered"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate captures"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency on uncaptured work"},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "implicit dependency on the legacy stream"},
    {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capture"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "capture ended by another thread"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"}};

CUresult fake_GetErrorName(CUresult code, const char **text) {
  for (size_t i = 0; text && i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == code) {
      *text = errors[i].name;
      return CUDA_SUCCESS;
    }
  if (text) *text = NULL;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_GetErrorString(CUresult code, const char **text) {
  for (size_t i = 0; text && i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == code) {
      *text = errors[i].text;
      return CUDA_SUCCESS;
    }
  if (text) *text = NULL;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_GetProcAddress(const char *symbol, void **out, int version, uint64_t flags, int *status) {
  static const struct {
    const char *name;
    void *address;
  } all[] = {
#define ROW(member, name, parameters) {name, (void *)fake_##member},
      GCCL_CUDA_FUNCTIONS(ROW) GCCL_CUDA_OPTIONAL(ROW) FAKE_EXTRA(ROW)
#undef ROW
  };
  (void)version, (void)flags;
  if (!symbol || !out) return CUDA_ERROR_INVALID_VALUE;
  size_t n = strlen(symbol);
  *out = NULL;
  /* Callers give the name without the version of the ABI. */
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!strncmp(all[i].name, symbol, n) && (!all[i].name[n] || !strncmp(all[i].name + n, "_v", 2))) *out = all[i].address;
  if (status) *status = *out ? 0 : 1; /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
  return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
