/* Devices, contexts, streams, events, copies. */
#include <pthread.h>

#include "fc.h"

/* GCCL_FAKE_DEVICES=2,mig3: two whole GPUs and three instances of a third. */
void case_devices(void) {
  int n = 0, a[5], b = 0, can = 9;
  CUdevice d;
  CUuuid u[5];
  char name[64];
  IS(CUDA_ERROR_NOT_INITIALIZED, cu.DeviceGetCount(&n));
  OK(cu.Init(0));
  OK(cu.Init(0));
  OK(cu.DeviceGetCount(&n));
  IS(5, n);
  IS(CUDA_ERROR_INVALID_DEVICE, cu.DeviceGet(&d, 5));
  IS(CUDA_ERROR_INVALID_DEVICE, cu.DeviceGet(&d, -1));
  for (int i = 0; i < 5; i++) {
    OK(cu.DeviceGetUuid(&u[i], i));
    OK(cu.DeviceGetAttribute(&a[i], CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
    for (int k = 0; k < i; k++) TRUE(memcmp(&u[i], &u[k], sizeof u[i]));
  }
  TRUE(a[0] != a[1] && a[1] != a[2] && a[2] == a[3] && a[3] == a[4]);
  OK(cu.DeviceGetName(name, sizeof name, 3));
  TRUE(strstr(name, "MIG"));
  OK(cu.DeviceCanAccessPeer(&can, 0, 1));
  IS(1, can);
  OK(cu.DeviceCanAccessPeer(&can, 2, 3));
  IS(0, can);
  OK(cu.DeviceGetAttribute(&b, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
  IS(0, b);
  OK(cu.DriverGetVersion(&b));
  IS(13000, b);
  const char *text = NULL;
  OK(cu.GetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  TRUE(text && !strcmp(text, "out of memory"));
  IS(CUDA_ERROR_INVALID_VALUE, cu.GetErrorString(12345, &text));
  void *f = NULL;
  int status = 9;
  OK(cu.GetProcAddress("cuMemAlloc", &f, 12080, 0, &status));
  TRUE(f == (void *)cu.MemAlloc && status == 0);
  IS(CUDA_ERROR_NOT_FOUND, cu.GetProcAddress("cuMulticastCreate", &f, 12080, 0, &status));
}

void case_contexts(void) {
  CUcontext p = NULL, q = NULL, own = NULL, now = (void *)1;
  CUdeviceptr m = 0;
  unsigned flags;
  int active = 9;
  CUdevice d = 9;
  OK(cu.Init(0));
  OK(cu.CtxGetCurrent(&now));
  TRUE(!now);
  IS(CUDA_ERROR_INVALID_CONTEXT, cu.MemAlloc(&m, 16));
  IS(CUDA_ERROR_INVALID_CONTEXT, cu.CtxGetDevice(&d));
  IS(CUDA_ERROR_INVALID_CONTEXT, cu.CtxPopCurrent(&now));
  OK(cu.DevicePrimaryCtxGetState(0, &flags, &active));
  IS(0, active);
  OK(cu.DevicePrimaryCtxRetain(&p, 0));
  OK(cu.DevicePrimaryCtxRetain(&q, 0));
  TRUE(p == q);
  OK(cu.CtxGetCurrent(&now));
  TRUE(!now); /* retaining does not make it current */
  OK(cu.CtxPushCurrent(p));
  OK(cu.CtxGetDevice(&d));
  IS(0, d);
  OK(cu.CtxCreate(&own, 0, 1));
  OK(cu.CtxGetDevice(&d));
  IS(1, d);
  CUstream s = fc_stream();
  OK(cu.CtxPopCurrent(&now));
  TRUE(now == own);
  IS(CUDA_ERROR_INVALID_HANDLE, cu.StreamWriteValue32(s, 0, 0, 0)); /* a stream of another context */
  CUcontext of = NULL;
  OK(cu.StreamGetCtx(s, &of));
  TRUE(of == own);
  OK(cu.CtxEnablePeerAccess(own, 0));
  IS(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cu.CtxEnablePeerAccess(own, 0));
  OK(cu.CtxDestroy(own));
  IS(CUDA_ERROR_INVALID_CONTEXT, cu.CtxPushCurrent(own));
  IS(CUDA_ERROR_INVALID_HANDLE, cu.StreamQuery(s));
  OK(cu.DevicePrimaryCtxRelease(0));
  OK(cu.MemAlloc(&m, 16));
  OK(cu.DevicePrimaryCtxRelease(0));
  IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cu.MemAlloc(&m, 16));
  IS(CUDA_ERROR_INVALID_CONTEXT, cu.DevicePrimaryCtxRelease(0));
}

static void *other_thread(void *arg) {
  _Atomic uint32_t *w = arg;
  OK(cu.CtxSetCurrent(fc_ctx));
  /* The per-thread stream of this thread is not that of the other. */
  OK(cu.StreamWriteValue32(CU_STREAM_PER_THREAD, fc_at(&w[6]), 1, 0));
  OK(cu.StreamSynchronize(CU_STREAM_PER_THREAD));
  return NULL;
}

void case_streams(void) {
  fc_start();
  _Atomic uint32_t *w = fc_words();
  CUstream s = fc_stream(), blocking = NULL;
  OK(cu.StreamCreate(&blocking, 0));
  OK(cu.StreamQuery(s));
  OK(cu.StreamWaitValue32(s, fc_at(&w[0]), 1, CU_STREAM_WAIT_VALUE_EQ));
  OK(cu.StreamWriteValue32(s, fc_at(&w[1]), 7, 0));
  IS(CUDA_ERROR_NOT_READY, cu.StreamQuery(s));
  /* The legacy stream does not wait for a non-blocking one … */
  OK(cu.StreamWriteValue32(NULL, fc_at(&w[2]), 1, 0));
  OK(cu.StreamSynchronize(NULL));
  IS(1, atomic_load(&w[2]));
  IS(0, atomic_load(&w[1]));
  atomic_store(&w[0], 1);
  OK(cu.StreamSynchronize(s));
  IS(7, atomic_load(&w[1]));
  /* … but for a blocking one, and that one for it. */
  OK(cu.StreamWaitValue32(blocking, fc_at(&w[3]), 1, 0));
  OK(cu.StreamWriteValue32(CU_STREAM_LEGACY, fc_at(&w[4]), 1, 0));
  OK(cu.StreamWriteValue32(blocking, fc_at(&w[5]), 1, 0));
  TRUE(fc_stays(&w[4], 0));
  IS(CUDA_ERROR_NOT_READY, cu.StreamQuery(NULL));
  atomic_store(&w[3], 1);
  OK(cu.StreamSynchronize(blocking));
  IS(1, atomic_load(&w[4]));
  IS(1, atomic_load(&w[5]));
  /* Streams of threads. */
  OK(cu.StreamWaitValue32(CU_STREAM_PER_THREAD, fc_at(&w[7]), 1, 0));
  pthread_t t;
  pthread_create(&t, NULL, other_thread, (void *)w);
  pthread_join(t, NULL);
  IS(1, atomic_load(&w[6]));
  atomic_store(&w[7], 1);
  OK(cu.StreamSynchronize(CU_STREAM_PER_THREAD));
  /* A destroyed stream finishes its work; its handle is dead. */
  OK(cu.StreamWaitValue32(s, fc_at(&w[8]), 1, 0));
  OK(cu.StreamWriteValue32(s, fc_at(&w[9]), 1, 0));
  OK(cu.StreamDestroy(s));
  IS(CUDA_ERROR_INVALID_HANDLE, cu.StreamQuery(s));
  IS(CUDA_ERROR_INVALID_HANDLE, cu.StreamDestroy(s));
  atomic_store(&w[8], 1);
  TRUE(fc_becomes(&w[9], 1));
}

void case_events(void) {
  fc_start();
  _Atomic uint32_t *w = fc_words();
  CUstream a = fc_stream(), b = fc_stream();
  CUevent e = NULL, f = NULL, untimed = NULL;
  float ms = -1;
  OK(cu.EventCreate(&e, 0));
  OK(cu.EventCreate(&f, 0));
  OK(cu.EventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  OK(cu.EventQuery(e)); /* never recorded: nothing to wait for */
  OK(cu.StreamWaitEvent(b, e, 0));
  OK(cu.StreamWaitValue32(a, fc_at(&w[0]), 1, 0));
  OK(cu.EventRecord(e, a));
  IS(CUDA_ERROR_NOT_READY, cu.EventQuery(e));
  OK(cu.StreamWaitEvent(b, e, 0));
  OK(cu.EventRecord(untimed, a));
  OK(cu.StreamWriteValue32(b, fc_at(&w[1]), 1, 0));
  TRUE(fc_stays(&w[1], 0));
  atomic_store(&w[0], 1);
  OK(cu.EventSynchronize(e));
  OK(cu.StreamSynchronize(b));
  IS(1, atomic_load(&w[1]));
  OK(cu.EventRecord(f, b));
  OK(cu.EventSynchronize(f));
  OK(cu.EventElapsedTime(&ms, e, f));
  TRUE(ms >= 0);
  IS(CUDA_ERROR_INVALID_HANDLE, cu.EventElapsedTime(&ms, e, untimed));
  OK(cu.EventDestroy(e));
  IS(CUDA_ERROR_INVALID_HANDLE, cu.EventRecord(e, a));
  IS(CUDA_ERROR_INVALID_HANDLE, cu.EventDestroy(e));
}

/* Calls fail as the environment says: GCCL_FAKE_FAIL=cuMemAlloc_v2:2:2,cuStreamCreate:0:304. */
void case_script(void) {
  fc_start();
  CUdeviceptr p;
  CUstream s;
  OK(cu.MemAlloc(&p, 16));
  IS(CUDA_ERROR_OUT_OF_MEMORY, cu.MemAlloc(&p, 16));
  OK(cu.MemAlloc(&p, 16));
  IS(CUDA_ERROR_OPERATING_SYSTEM, cu.StreamCreate(&s, 0));
  IS(CUDA_ERROR_OPERATING_SYSTEM, cu.StreamCreate(&s, 0));
}
