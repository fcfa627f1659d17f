/* Contexts: the primary one with its count, own ones, and the stack of each thread. */
#include "fake.h"

enum { DEPTH = 16 };
static __thread struct {
  CUcontext ctx[DEPTH];
  int n;
} stack;
static CUcontext contexts;
static CUcontext primary[FAKE_MAX_DEVICES];

CUcontext fake_current(void) { return stack.n ? stack.ctx[stack.n - 1] : NULL; }

static int listed(CUcontext c) {
  for (CUcontext x = contexts; x; x = x->next)
    if (x == c) return 1;
  return 0;
}

int fake_ctx_ok(CUcontext c) {
  pthread_mutex_lock(&fake_lock);
  int ok = c && listed(c) && !c->dead;
  pthread_mutex_unlock(&fake_lock);
  return ok;
}

/* Contexts are never freed: a stale handle stays recognisable. */
static CUcontext context_new(CUdevice d, int is_primary) {
  static uint64_t last_id;
  CUcontext c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->magic = MAGIC_CTX;
  c->device = d;
  c->primary = is_primary;
  c->id = ++last_id;
  c->room = (unsigned)fake_setting("GCCL_FAKE_SMS", 8) * 2048u;
  /* CUDA C++ Programming Guide: 1 to 32, 8 by default. */
  c->nqueues = fake_setting("CUDA_DEVICE_MAX_CONNECTIONS", 8);
  if (c->nqueues < 1) c->nqueues = 1;
  if (c->nqueues > FAKE_MAX_QUEUES) c->nqueues = FAKE_MAX_QUEUES;
  for (int i = 0; i < c->nqueues; i++) {
    c->queue[i].last = &c->queue[i].first;
    c->queue[i].ctx = c;
    pthread_cond_init(&c->queue[i].wake, NULL);
  }
  c->legacy = fake_stream_new(c, 0);
  c->next = contexts;
  contexts = c;
  return c;
}

/* Waits for the work, then ends the streams and drops the memory. With the lock. */
static void context_end(CUcontext c) {
  if (!c->sticky) fake_await_idle(c, "the end of a context");
  c->dead = 1;
  for (CUstream s = c->streams; s; s = s->next) s->dead = 1;
  for (int i = 0; i < c->nqueues; i++) {
    c->queue[i].ending = 1;
    pthread_cond_signal(&c->queue[i].wake);
  }
  fake_memory_of_ctx_gone(c);
}

CUresult fake_DevicePrimaryCtxRetain(CUcontext *out, CUdevice d) {
  CUresult rc = fake_enter("cuDevicePrimaryCtxRetain", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (d < 0 || d >= fake_device_count()) return CUDA_ERROR_INVALID_DEVICE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  if (!primary[d]) primary[d] = context_new(d, 1);
  if (primary[d]) primary[d]->refs++;
  *out = primary[d];
  pthread_mutex_unlock(&fake_lock);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult release(CUdevice d, int all) {
  if (d < 0 || d >= fake_device_count()) return CUDA_ERROR_INVALID_DEVICE;
  CUresult rc = CUDA_SUCCESS;
  pthread_mutex_lock(&fake_lock);
  CUcontext c = primary[d];
  if (!c || c->refs == 0)
    rc = all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  else if (all || --c->refs == 0) {
    primary[d] = NULL;
    context_end(c);
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_DevicePrimaryCtxRelease(CUdevice d) {
  CUresult rc = fake_enter("cuDevicePrimaryCtxRelease_v2", 0, NULL);
  return rc == CUDA_SUCCESS ? release(d, 0) : rc;
}

CUresult fake_DevicePrimaryCtxReset(CUdevice d) {
  CUresult rc = fake_enter("cuDevicePrimaryCtxReset_v2", 0, NULL);
  return rc == CUDA_SUCCESS ? release(d, 1) : rc;
}

CUresult fake_DevicePrimaryCtxGetState(CUdevice d, unsigned *flags, int *active) {
  CUresult rc = fake_enter("cuDevicePrimaryCtxGetState", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (d < 0 || d >= fake_device_count()) return CUDA_ERROR_INVALID_DEVICE;
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  *flags = 0;
  *active = primary[d] != NULL;
  pthread_mutex_unlock(&fake_lock);
  return CUDA_SUCCESS;
}

static CUresult push(CUcontext c) {
  if (stack.n == DEPTH) return CUDA_ERROR_OUT_OF_MEMORY;
  stack.ctx[stack.n++] = c;
  return CUDA_SUCCESS;
}

CUresult fake_CtxCreate(CUcontext *out, unsigned flags, CUdevice d) {
  (void)flags;
  CUresult rc = fake_enter("cuCtxCreate_v2", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (d < 0 || d >= fake_device_count()) return CUDA_ERROR_INVALID_DEVICE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  *out = context_new(d, 0);
  pthread_mutex_unlock(&fake_lock);
  return *out ? push(*out) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fake_CtxDestroy(CUcontext c) {
  CUresult rc = fake_enter("cuCtxDestroy_v2", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!fake_ctx_ok(c) || c->primary) return CUDA_ERROR_INVALID_CONTEXT;
  pthread_mutex_lock(&fake_lock);
  context_end(c);
  pthread_mutex_unlock(&fake_lock);
  if (fake_current() == c) stack.n--;
  return CUDA_SUCCESS;
}

CUresult fake_CtxGetCurrent(CUcontext *out) {
  CUresult rc = fake_enter("cuCtxGetCurrent", 0, NULL);
  if (rc == CUDA_SUCCESS && !out) return CUDA_ERROR_INVALID_VALUE;
  if (rc == CUDA_SUCCESS) *out = fake_current();
  return rc;
}

CUresult fake_CtxSetCurrent(CUcontext c) {
  CUresult rc = fake_enter("cuCtxSetCurrent", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (c && !fake_ctx_ok(c)) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.n) stack.n--;
  return c ? push(c) : CUDA_SUCCESS;
}

CUresult fake_CtxPushCurrent(CUcontext c) {
  CUresult rc = fake_enter("cuCtxPushCurrent_v2", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  return fake_ctx_ok(c) ? push(c) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult fake_CtxPopCurrent(CUcontext *out) {
  CUresult rc = fake_enter("cuCtxPopCurrent_v2", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!stack.n) return CUDA_ERROR_INVALID_CONTEXT;
  CUcontext c = stack.ctx[--stack.n];
  if (out) *out = c;
  return CUDA_SUCCESS;
}

CUresult fake_CtxGetDevice(CUdevice *out) {
  CUresult rc = fake_enter("cuCtxGetDevice", 0, NULL);
  CUcontext c = fake_current();
  if (rc == CUDA_SUCCESS && !out) rc = CUDA_ERROR_INVALID_VALUE;
  if (rc == CUDA_SUCCESS && !c) rc = CUDA_ERROR_INVALID_CONTEXT;
  if (rc == CUDA_SUCCESS) *out = c->device;
  return rc;
}

CUresult fake_CtxGetId(CUcontext c, unsigned long long *id) {
  CUresult rc = fake_enter("cuCtxGetId", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!c) c = fake_current();
  if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  if (!fake_ctx_ok(c)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  *id = c->id;
  return CUDA_SUCCESS;
}

CUresult fake_CtxSynchronize(void) {
  CUcontext c;
  CUresult rc = fake_enter("cuCtxSynchronize", IN_CONTEXT | UNSAFE, &c);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  fake_await_idle(c, "cuCtxSynchronize");
  rc = c->sticky;
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_CtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  CUcontext c;
  CUresult rc = fake_enter("cuCtxEnablePeerAccess", IN_CONTEXT, &c);
  if (rc != CUDA_SUCCESS) return rc;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (!fake_ctx_ok(peer) || peer->device == c->device) return CUDA_ERROR_INVALID_CONTEXT;
  pthread_mutex_lock(&fake_lock);
  uint64_t bit = 1ull << peer->device;
  if (c->peers & bit) rc = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  c->peers |= bit;
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUcontext fake_contexts(void) { return contexts; }
