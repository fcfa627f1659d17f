/* The runtime by itself, against NVIDIA's headers: fields of structures, order on streams, events, when copies return, errors. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

static void devices(void) {
  int n = 0, d = -1, v = 0;
  CUDA(cudaGetDeviceCount(&n));
  TRUE(n == 3); /* GCCL_CUDART_DEVICES of the test */
  CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(n));
  CUDA_IS(cudaErrorInvalidDevice, cudaPeekAtLastError());
  CUDA_IS(cudaErrorInvalidDevice, cudaGetLastError());
  CUDA_IS(cudaSuccess, cudaGetLastError());
  CUDA(cudaSetDevice(2));
  CUDA(cudaGetDevice(&d));
  TRUE(d == 2);
  CUDA(cudaRuntimeGetVersion(&v));
  TRUE(v >= 12000);
  char text[32];
  CUDA(cudaDeviceGetPCIBusId(text, sizeof text, 2));
  CUDA(cudaDeviceGetByPCIBusId(&d, text));
  TRUE(d == 2);
  int can = 0;
  CUDA(cudaDeviceCanAccessPeer(&can, 0, 1));
  TRUE(can == 1);
  CUDA(cudaDeviceEnablePeerAccess(1, 0));
  CUDA_IS(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
  CUDA(cudaDeviceDisablePeerAccess(1));
  CUDA_IS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
}

/* The library writes by offsets of its own; here they are read by the headers' names. What follows the structure stays. */
static void properties(void) {
  struct {
    struct cudaDeviceProp p;
    unsigned char guard[64];
  } x;
  memset(&x, 0xa5, sizeof x);
  CUDA(cudaGetDeviceProperties(&x.p, 2));
  for (size_t i = 0; i < sizeof x.guard; i++) TRUE(x.guard[i] == 0xa5);
  int cpus = 0;
  CUDA(cudaDeviceGetAttribute(&cpus, cudaDevAttrMultiProcessorCount, 2));
  TRUE(strcmp(x.p.name, "GCCL host device 2") == 0);
  TRUE(strncmp(x.p.uuid.bytes, "gccl-host-2", 11) == 0);
  size_t free_bytes = 0, total = 0;
  CUDA(cudaMemGetInfo(&free_bytes, &total));
  TRUE(x.p.totalGlobalMem == total && total > 0 && free_bytes <= total);
  TRUE(x.p.warpSize == 1 && x.p.maxThreadsPerBlock == 1 && x.p.maxThreadsDim[2] == 1 && x.p.maxGridSize[0] == 1);
  TRUE(x.p.major == 0 && x.p.minor == 0);
  TRUE(x.p.multiProcessorCount == cpus && cpus > 0);
  TRUE(x.p.integrated == 1 && x.p.canMapHostMemory == 1 && x.p.concurrentKernels == 0);
  TRUE(x.p.pciBusID == 2 && x.p.pciDeviceID == 0 && x.p.pciDomainID == 0);
  TRUE(x.p.asyncEngineCount == 1 && x.p.unifiedAddressing == 1 && x.p.maxThreadsPerMultiProcessor == 1 && x.p.managedMemory == 1);
}

static void memory(void) {
  char *d = NULL, *h = NULL, *m = NULL;
  size_t before = 0, after = 0, total = 0;
  CUDA(cudaMemGetInfo(&before, &total));
  CUDA(cudaMalloc((void **)&d, 1 << 20));
  CUDA(cudaMemGetInfo(&after, &total));
  TRUE(before - after == 1 << 20);
  TRUE(((size_t)d & 255) == 0);
  CUDA(cudaMallocHost((void **)&h, 4096));
  CUDA(cudaMallocManaged((void **)&m, 4096, cudaMemAttachGlobal));
  struct {
    struct cudaPointerAttributes a;
    unsigned char guard[16];
  } x;
  memset(&x, 0xa5, sizeof x);
  CUDA(cudaPointerGetAttributes(&x.a, d + 100));
  TRUE(x.a.type == cudaMemoryTypeDevice && x.a.device == 2 && x.a.devicePointer == d + 100 && x.a.hostPointer == NULL);
  CUDA(cudaPointerGetAttributes(&x.a, h));
  TRUE(x.a.type == cudaMemoryTypeHost && x.a.hostPointer == h);
  CUDA(cudaPointerGetAttributes(&x.a, m));
  TRUE(x.a.type == cudaMemoryTypeManaged && x.a.hostPointer == m && x.a.devicePointer == m);
  CUDA(cudaPointerGetAttributes(&x.a, &x));
  TRUE(x.a.type == cudaMemoryTypeUnregistered && x.guard[0] == 0xa5);
  static char own[8192];
  CUDA(cudaHostRegister(own, sizeof own, cudaHostRegisterDefault));
  CUDA_IS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(own, sizeof own, cudaHostRegisterDefault));
  CUDA(cudaHostUnregister(own));
  CUDA_IS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(own));
  void *too_much = &own;
  CUDA_IS(cudaErrorMemoryAllocation, cudaMalloc(&too_much, total + 1));
  TRUE(too_much == &own);
  CUDA_IS(cudaErrorInvalidValue, cudaFree(own));
  CUDA_IS(cudaErrorInvalidValue, cudaFree(d + 1));
  CUDA(cudaFree(d));
  CUDA_IS(cudaErrorInvalidValue, cudaFree(d));
  CUDA(cudaFree(NULL));
  CUDA(cudaFree(m));
  CUDA(cudaFreeHost(h));
  CUDA(cudaMemGetInfo(&after, &total));
  TRUE(after == before);
  cudaGetLastError();
}

/* A host function that holds its stream until the test lets it go. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int gate;

static void hold(void *arg) {
  (void)arg;
  pthread_mutex_lock(&lock);
  while (!gate) pthread_cond_wait(&cond, &lock);
  pthread_mutex_unlock(&lock);
}

static void set_gate(int v) {
  pthread_mutex_lock(&lock);
  gate = v;
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&lock);
}

static void streams_and_events(void) {
  enum { N = 1000 };
  cudaStream_t a, b;
  cudaEvent_t start, stop, quiet;
  int *d, host[N], back[N];
  CUDA(cudaStreamCreate(&a));
  CUDA(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  unsigned flags = 9;
  CUDA(cudaStreamGetFlags(b, &flags));
  TRUE(flags == cudaStreamNonBlocking);
  CUDA(cudaEventCreate(&start));
  CUDA(cudaEventCreate(&stop));
  CUDA(cudaEventCreateWithFlags(&quiet, cudaEventDisableTiming));
  CUDA(cudaMalloc((void **)&d, 2 * sizeof host));
  CUDA(cudaMemset(d, 0, 2 * sizeof host));
  float ms = -1;
  CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, start, stop)); /* never recorded */
  CUDA_IS(cudaErrorInvalidResourceHandle, cudaGetLastError());
  CUDA(cudaEventQuery(stop));

  set_gate(0);
  CUDA(cudaLaunchHostFunc(a, hold, NULL));
  CUDA(cudaEventRecord(start, a));
  for (int i = 0; i < N; i++) host[i] = i;
  CUDA(cudaMemcpyAsync(d, host, sizeof host, cudaMemcpyHostToDevice, a));
  memset(host, 0xff, sizeof host); /* pageable: it has been read */
  CUDA(cudaEventRecord(stop, a));
  CUDA(cudaEventRecord(quiet, a));
  CUDA(cudaStreamWaitEvent(b, stop, 0));
  CUDA(cudaMemcpyAsync(d + N, d, sizeof host, cudaMemcpyDeviceToDevice, b)); /* only right after the copy on a */
  CUDA_IS(cudaErrorNotReady, cudaStreamQuery(a));
  CUDA_IS(cudaErrorNotReady, cudaStreamQuery(b));
  CUDA_IS(cudaErrorNotReady, cudaEventQuery(stop));
  CUDA_IS(cudaErrorNotReady, cudaEventElapsedTime(&ms, start, stop));
  CUDA(cudaGetLastError());
  set_gate(1);
  CUDA(cudaEventSynchronize(stop));
  CUDA(cudaEventElapsedTime(&ms, start, stop));
  TRUE(ms >= 0);
  CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, start, quiet));
  CUDA(cudaMemcpyAsync(back, d + N, sizeof back, cudaMemcpyDeviceToHost, b)); /* pageable: it is there */
  for (int i = 0; i < N; i++) TRUE(back[i] == i);

  /* The NULL stream waits for blocking streams of its device. */
  set_gate(0);
  CUDA(cudaLaunchHostFunc(a, hold, NULL));
  CUDA(cudaMemsetAsync(d, 1, sizeof host, a));
  set_gate(1);
  CUDA(cudaMemcpy(back, d, sizeof back, cudaMemcpyDeviceToHost));
  TRUE(back[0] == 0x01010101 && back[N - 1] == 0x01010101);

  int wide[4][8] = {{0}}, narrow[4][3];
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 8; j++) wide[i][j] = 10 * i + j;
  CUDA(cudaMemcpy2D(narrow, sizeof narrow[0], &wide[0][2], sizeof wide[0], sizeof narrow[0], 4, cudaMemcpyHostToHost));
  TRUE(narrow[0][0] == 2 && narrow[3][2] == 34);
  CUDA_IS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(d, host, 4, (enum cudaMemcpyKind)9));
  CUDA_IS(cudaErrorInvalidValue, cudaMemcpy(NULL, host, 4, cudaMemcpyHostToDevice));
  CUDA(cudaFreeAsync(d, a));
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaEventDestroy(start));
  CUDA(cudaEventDestroy(stop));
  CUDA(cudaEventDestroy(quiet));
  CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventDestroy(quiet));
  CUDA(cudaStreamDestroy(a));
  CUDA_IS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(a));
  CUDA_IS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(a));
  CUDA_IS(cudaErrorNotSupported, cudaStreamBeginCapture(b, cudaStreamCaptureModeGlobal));
  CUDA(cudaStreamDestroy(b));
}

int main(void) {
  devices();
  properties();
  memory();
  streams_and_events();
  TRUE(strcmp(cudaGetErrorName(cudaErrorNotSupported), "cudaErrorNotSupported") == 0);
  TRUE(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
  puts(failures ? "failed" : "passed");
  return failures != 0;
}
