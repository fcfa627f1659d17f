/* Contexts of the caller: kernels, events, pinned memory.
 *
 * A communicator works in the context that was current in the thread that made it, whatever made that one current. All
 * kernels are loaded and looked up here, because the first use of a kernel that is loaded lazily waits for the device,
 * and a stream of ours may be waiting then (tried on driver 580).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "image.h"
#include "kernels/kernels.h"

int gccl_cuda_standin;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gccl_cuda_context *list;

static const unsigned folding[3] = {GCCL_ALL_REDUCE, GCCL_REDUCE_SCATTER, GCCL_REDUCE};

CUfunction gccl_cuda_kernel(const gccl_cuda_context *x, unsigned coll, unsigned dtype, unsigned op) {
  for (int i = 0; i < 3; i++)
    if (folding[i] == coll) return x->fold[i][dtype][op];
  return x->plain[coll];
}

static CUresult find(gccl_cuda_context *x, const char *name, CUfunction *out) {
  int threads;
  CUresult e = gccl_cu.ModuleGetFunction(out, x->module, name);
  if (!e && gccl_cu.FuncLoad) e = gccl_cu.FuncLoad(*out);
  if (!e) e = gccl_cu.FuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, *out);
  return e;
}

static CUresult find_leader(gccl_cuda_context *x, unsigned coll, unsigned dtype, unsigned op, CUfunction *out, char *name) {
  if (gccl_leader_kernel_name(name, coll, dtype, op)) return CUDA_SUCCESS; /* there is none */
  return find(x, name, out);
}

static CUresult load(gccl_cuda_context *x, char *text, size_t max) {
  char name[GCCL_KERNEL_NAME] = "cuModuleLoadData";
  const void *image = gccl_cuda_image();
  if (!image) {
    snprintf(text, max, "this build has no kernels: it was made without nvcc (make cuda-toolchain fetches it)");
    return CUDA_ERROR_NOT_FOUND;
  }
  CUresult e = gccl_cu.ModuleLoadData(&x->module, image);
  for (unsigned coll = 0; coll < GCCL_NUM_COLLS && !e; coll++)
    if (!gccl_coll_folds(coll)) e = find_leader(x, coll, 0, 0, &x->plain[coll], name);
  for (int i = 0; i < 3 && !e; i++)
    for (unsigned type = 0; type < 12 && !e; type++)
      for (unsigned op = 0; op < GCCL_WORK_OPS && !e; op++) e = find_leader(x, folding[i], type, op, &x->fold[i][type][op], name);
  if (!e) {
    snprintf(name, sizeof name, "%s", gccl_wait_kernel_name);
    e = find(x, name, &x->wait);
  }
  if (e) snprintf(text, max, "%s on device %d (%s): error %d (%s)", name, x->ordinal, x->name, e, gccl_cuda_text(e));
  return e;
}

static const unsigned spin_folding[2] = {GCCL_ALL_REDUCE, GCCL_REDUCE_SCATTER}, spin_copying[2] = {GCCL_ALL_GATHER, GCCL_ALL_TO_ALL};

CUfunction gccl_cuda_spin_kernel(const gccl_cuda_context *x, int method, unsigned coll, unsigned dtype, unsigned op) {
  for (int i = 0; i < 2; i++) {
    if (spin_folding[i] == coll) return x->spin[method].fold[i][dtype][op];
    if (spin_copying[i] == coll) return x->spin[method].plain[i];
  }
  return NULL;
}

static CUresult find_spin(gccl_cuda_context *x, int method, unsigned coll, unsigned dtype, unsigned op, CUfunction *out, char *name) {
  if (gccl_spin_kernel_name(name, method, coll, dtype, op)) return CUDA_SUCCESS; /* there is none */
  return find(x, name, out);
}

CUresult gccl_cuda_spin_load(gccl_cuda_context *x, int method, char *text, size_t max) {
  char name[GCCL_KERNEL_NAME] = "";
  CUresult e = CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 2 && !x->spin[method].loaded && !e; i++) {
    e = find_spin(x, method, spin_copying[i], 0, 0, &x->spin[method].plain[i], name);
    for (unsigned type = 0; type < 12 && !e; type++)
      for (unsigned op = 0; op < GCCL_WORK_OPS && !e; op++)
        e = find_spin(x, method, spin_folding[i], type, op, &x->spin[method].fold[i][type][op], name);
  }
  x->spin[method].loaded |= !e;
  pthread_mutex_unlock(&lock);
  if (e) snprintf(text, max, "%s on device %d (%s): error %d (%s)", name, x->ordinal, x->name, e, gccl_cuda_text(e));
  return e;
}

/* What is current, or the primary context of a device. Preconditions: lock is held. */
static CUresult choose(int device, CUcontext *ctx, CUdevice *dev, int *retained) {
  CUresult e = CUDA_SUCCESS;
  *retained = 0;
  *ctx = NULL;
  if (device < 0) {
    if ((e = gccl_cu.CtxGetCurrent(ctx))) return e;
    if (*ctx) return gccl_cu.CtxGetDevice(dev);
    device = 0;
  }
  if ((e = gccl_cu.DeviceGet(dev, device))) return e;
  *retained = 1;
  return gccl_cu.DevicePrimaryCtxRetain(ctx, *dev);
}

static void drop(gccl_cuda_context *x) {
  while (x->free) {
    gccl_cuda_event *v = x->free;
    x->free = v->next;
    gccl_cu.EventDestroy(v->event);
    free(v);
  }
  if (x->module) gccl_cu.ModuleUnload(x->module);
  gccl_cuda_service_drop(x);
  pthread_mutex_destroy(&x->lock);
}

/* CUDA C++ Programming Guide, CUDA_DEVICE_MAX_CONNECTIONS: 1 to 32, 8 by default; MPS documentation: 2 by default. The driver read the
 * variable when it was opened. */
static int hardware_queues(CUdevice dev) {
  const char *v = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  int n = v ? atoi(v) : 0, mps = 0;
  if (n > 0) return n < 32 ? n : 32;
  if (gccl_cu.DeviceGetAttribute(&mps, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, dev)) mps = 0; /* unknown before CUDA 12.2 */
  return mps ? 2 : 8;
}

static gccl_cuda_context *make(CUcontext ctx, CUdevice dev, char *text, size_t max) {
  gccl_cuda_context *x = calloc(1, sizeof *x);
  if (!x) {
    snprintf(text, max, "out of memory");
    return NULL;
  }
  int sms = 0;
  x->ctx = ctx;
  x->device = dev;
  x->ordinal = dev; /* an ordinal is what a CUdevice is */
  pthread_mutex_init(&x->lock, NULL);
  pthread_mutex_init(&x->service.lock, NULL);
  pthread_mutex_init(&x->tickets.lock, NULL);
  if (gccl_cu.CtxGetId) gccl_cu.CtxGetId(ctx, &x->id);
  CUresult e = gccl_cu.DeviceGetUuid((CUuuid *)x->uuid, dev);
  if (!e) e = gccl_cu.DeviceGetName(x->name, sizeof x->name, dev);
  if (!e) e = gccl_cu.DeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev);
  x->sms = (unsigned)sms;
  x->queues = hardware_queues(dev);
  if (e)
    snprintf(text, max, "device %d cannot be asked what it is: error %d (%s)", dev, e, gccl_cuda_text(e));
  else
    e = load(x, text, max);
  if (!e) return x;
  drop(x);
  free(x);
  return NULL;
}

gccl_cuda_context *gccl_cuda_context_get(int device, char *text, size_t max) {
  CUcontext ctx, before;
  CUdevice dev = 0;
  int retained, mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* another thread's capture must not forbid what is done here */
  pthread_mutex_lock(&lock);
  gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
  gccl_cuda_context *x = NULL;
  CUresult e = choose(device, &ctx, &dev, &retained);
  if (e) {
    snprintf(text, max, "device %d has no context: error %d (%s)", device < 0 ? 0 : device, e, gccl_cuda_text(e));
  } else {
    unsigned long long id = 0;
    if (gccl_cu.CtxGetId) gccl_cu.CtxGetId(ctx, &id);
    for (x = list; x && (x->ctx != ctx || x->id != id); x = x->next) {
    }
    if (!x) {
      gccl_cuda_context at = {.ctx = ctx};
      if ((e = gccl_cuda_enter(&at, &before))) {
        snprintf(text, max, "the context of device %d cannot be made current: error %d (%s)", dev, e, gccl_cuda_text(e));
      } else {
        if ((x = make(ctx, dev, text, max))) {
          x->next = list;
          list = x;
        }
        gccl_cuda_leave(&at, before);
      }
    }
    if (x) {
      x->refs++;
      x->retained += retained;
    } else if (retained) {
      gccl_cu.DevicePrimaryCtxRelease(dev);
    }
  }
  gccl_cu.ThreadExchangeStreamCaptureMode(&mode);
  pthread_mutex_unlock(&lock);
  return x;
}

void gccl_cuda_context_ref(gccl_cuda_context *x) {
  pthread_mutex_lock(&lock);
  x->refs++;
  pthread_mutex_unlock(&lock);
}

/* Kernels and events stay for the next communicator: unloading waits for the whole device. The program's own context may go before
 * we do; a new one at the same address has another id. */
void gccl_cuda_context_put(gccl_cuda_context *x) {
  pthread_mutex_lock(&lock);
  x->refs--;
  pthread_mutex_unlock(&lock);
}

CUresult gccl_cuda_enter(const gccl_cuda_context *x, CUcontext *before) {
  CUresult e = gccl_cu.CtxGetCurrent(before);
  if (e || *before == x->ctx) return e;
  return gccl_cu.CtxSetCurrent(x->ctx);
}

void gccl_cuda_leave(const gccl_cuda_context *x, CUcontext before) {
  if (before != x->ctx) gccl_cu.CtxSetCurrent(before);
}

gccl_cuda_event *gccl_cuda_event_get(gccl_cuda_context *x) {
  pthread_mutex_lock(&x->lock);
  gccl_cuda_event *v = x->free;
  if (v) x->free = v->next;
  pthread_mutex_unlock(&x->lock);
  if (v) return v;
  if (!(v = calloc(1, sizeof *v))) return NULL;
  v->owner = x;
  if (!gccl_cu.EventCreate(&v->event, CU_EVENT_DISABLE_TIMING)) return v;
  free(v);
  return NULL;
}

void gccl_cuda_event_unref(gccl_cuda_event *v) {
  if (!v || atomic_fetch_sub(&v->refs, 1) > 1) return;
  pthread_mutex_lock(&v->owner->lock);
  v->next = v->owner->free;
  v->owner->free = v;
  pthread_mutex_unlock(&v->owner->lock);
}

/* --- pinned shared memory --- */

typedef struct pin {
  struct pin *next;
  void *ptr;
  CUdeviceptr at;
  int refs;
} pin;
static pin *pins;

CUdeviceptr gccl_cuda_pin(void *ptr, size_t bytes, CUresult *e) {
  CUdeviceptr at = 0;
  *e = CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  pin *p = pins;
  while (p && p->ptr != ptr) p = p->next;
  if (p) {
    p->refs++;
    at = p->at;
  } else if (!(p = calloc(1, sizeof *p))) {
    *e = CUDA_ERROR_OUT_OF_MEMORY;
  } else if ((*e = gccl_cu.MemHostRegister(ptr, bytes, CU_MEMHOST_PORTABLE | CU_MEMHOST_DEVICEMAP))) {
    free(p);
  } else if ((*e = gccl_cu.MemHostGetDevicePointer(&at, ptr, 0))) {
    gccl_cu.MemHostUnregister(ptr);
    free(p);
  } else {
    *p = (pin){.next = pins, .ptr = ptr, .at = at, .refs = 1};
    pins = p;
  }
  pthread_mutex_unlock(&lock);
  return at;
}

void gccl_cuda_unpin(void *ptr) {
  pthread_mutex_lock(&lock);
  for (pin **q = &pins; *q; q = &(*q)->next) {
    pin *p = *q;
    if (p->ptr != ptr) continue;
    if (--p->refs == 0) {
      *q = p->next;
      gccl_cu.MemHostUnregister(ptr);
      free(p);
    }
    break;
  }
  pthread_mutex_unlock(&lock);
}
