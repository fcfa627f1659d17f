/* What makes programs hang on a real GPU, and kernels. */
#include <pthread.h>

#include "fc.h"

typedef struct {
  uint64_t word;
  uint32_t value, pad;
  uint64_t started;
} param;

static void launch(CUfunction f, unsigned grid, unsigned block, CUstream s, CUdeviceptr word, uint32_t value, CUdeviceptr started) {
  param p = {word, value, 0, started};
  void *params[] = {&p};
  OK(cu.LaunchKernel(f, grid, 1, 1, block, 1, 1, 0, s, params, NULL));
}

void case_memops(void) {
  fc_start();
  _Atomic uint32_t *w = fc_words();
  CUstream s = fc_stream(), t = fc_stream();
  CUdeviceptr d = 0;
  OK(cu.MemAlloc(&d, 64));
  OK(cu.MemsetD8Async(d, 0, 64, NULL));
  OK(cu.StreamSynchronize(NULL));
  /* A wait for device memory that another stream writes; a 0/1 word that its consumer resets. */
  CUstreamBatchMemOpParams b[3] = {0};
  b[0].value.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  b[0].value.address = d;
  b[0].value.value = 1;
  b[0].value.flags = CU_STREAM_WAIT_VALUE_EQ;
  b[1].value.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  b[1].value.address = d;
  b[2] = b[1];
  b[2].value.address = fc_at(&w[0]);
  b[2].value.value = 5;
  OK(cu.StreamBatchMemOp(s, 3, b, 0));
  OK(cu.StreamWriteValue32(t, d, 1, 0));
  OK(cu.StreamSynchronize(s));
  IS(5, atomic_load(&w[0]));
  IS(0, fc_peek(d));
  OK(cu.StreamWriteValue64(t, fc_at(&w[2]), 0x100000002ull, 0));
  OK(cu.StreamWaitValue64(s, fc_at(&w[2]), 0x100000001ull, CU_STREAM_WAIT_VALUE_GEQ));
  OK(cu.StreamSynchronize(s));
  static uint32_t plain[2];
  IS(CUDA_ERROR_INVALID_VALUE, cu.StreamWriteValue32(s, fc_at(plain), 1, 0));
  IS(CUDA_ERROR_INVALID_VALUE, cu.StreamWriteValue32(s, d + 2, 1, 0));
  IS(CUDA_ERROR_INVALID_VALUE, cu.StreamBatchMemOp(s, 256, b, 0));
  IS(CUDA_ERROR_INVALID_VALUE, cu.StreamBatchMemOp(s, 0, b, 0));
  IS(CUDA_ERROR_INVALID_VALUE, cu.StreamWriteValue64(t, d, 1, 1));
}

/* Eight queues: a wait in the first stream holds up the ninth. With CUDA_DEVICE_MAX_CONNECTIONS=32, argument of the test, it does not. */
void case_queues(void) {
  fc_start();
  _Atomic uint32_t *w = fc_words();
  CUstream s[9];
  for (int i = 0; i < 9; i++) s[i] = fc_stream();
  OK(cu.StreamWaitValue32(s[0], fc_at(&w[0]), 1, 0));
  for (int i = 1; i < 9; i++) OK(cu.StreamWriteValue32(s[i], fc_at(&w[i]), 1, 0));
  for (int i = 1; i < 8; i++) TRUE(fc_becomes(&w[i], 1));
  if (getenv("CUDA_DEVICE_MAX_CONNECTIONS")) {
    TRUE(fc_becomes(&w[8], 1));
  } else {
    TRUE(fc_stays(&w[8], 0));
    IS(CUDA_ERROR_NOT_READY, cu.StreamQuery(s[8]));
  }
  atomic_store(&w[0], 1);
  OK(cu.StreamSynchronize(s[8]));
  IS(1, atomic_load(&w[8]));
}

static struct {
  CUdeviceptr device;
  void *host, *registered;
  CUfunction lazy;
  CUstream stream;
  _Atomic uint32_t turn;
} block;

static void *calls(void *arg) {
  int which = (int)(intptr_t)arg;
  OK(cu.CtxSetCurrent(fc_ctx));
  CUmodule m;
  switch (which) {
  case 0: OK(cu.MemFree(block.device)); break;
  case 1: OK(cu.MemFreeHost(block.host)); break;
  case 2: OK(cu.MemHostUnregister(block.registered)); break;
  case 3: OK(cu.ModuleLoadData(&m, ".version 8.0")); break;
  case 4: {
    _Atomic uint32_t *w = fc_words();
    launch(block.lazy, 1, 32, block.stream, fc_at(&w[0]), 1, 0);
  }
  }
  atomic_store(&block.turn, (uint32_t)which + 1);
  return NULL;
}

/* While a stream waits these calls do not return; others do. */
void case_blocking(void) {
  fc_start();
  static char memory[4096];
  _Atomic uint32_t *w = fc_words();
  CUstream s = fc_stream();
  CUmodule m;
  block.stream = fc_stream();
  OK(cu.ModuleLoadData(&m, ".version 8.0"));
  OK(cu.ModuleGetFunction(&block.lazy, m, "add_value"));
  for (int which = 0; which < 5; which++) {
    OK(cu.MemAlloc(&block.device, 64));
    OK(cu.MemHostAlloc(&block.host, 64, 0));
    block.registered = memory;
    if (which <= 2) OK(cu.MemHostRegister(memory, sizeof memory, 0));
    atomic_store(&w[0], 0);
    OK(cu.StreamWaitValue32(s, fc_at(&w[0]), 1, CU_STREAM_WAIT_VALUE_EQ));
    pthread_t t;
    uint32_t before = atomic_load(&block.turn);
    pthread_create(&t, NULL, calls, (void *)(intptr_t)which);
    TRUE(fc_stays(&block.turn, before));
    CUdeviceptr p;
    void *h;
    CUstream made;
    CUevent e;
    OK(cu.MemAlloc(&p, 64)); /* these go on */
    OK(cu.MemHostAlloc(&h, 64, 0));
    OK(cu.StreamCreate(&made, 1));
    OK(cu.EventCreate(&e, 0));
    OK(cu.EventRecord(e, made));
    OK(cu.StreamDestroy(made));
    atomic_store(&w[0], 1); /* a plain store of the CPU ends the wait */
    pthread_join(t, NULL);
    IS(which + 1, atomic_load(&block.turn));
    if (which < 2) OK(cu.MemHostUnregister(memory));
  }
  /* Loaded once, the kernel no longer waits. */
  atomic_store(&w[0], 0);
  OK(cu.StreamWaitValue32(s, fc_at(&w[0]), 1, CU_STREAM_WAIT_VALUE_EQ));
  launch(block.lazy, 1, 32, block.stream, fc_at(&w[1]), 1, 0);
  TRUE(fc_becomes(&w[1], 1));
  atomic_store(&w[0], 1);
  OK(cu.StreamSynchronize(s));
}

void case_kernels(void) {
  fc_start();
  CUfunction f = fc_function("add_value"), none = NULL;
  CUstream s = fc_stream();
  CUmodule m;
  CUdeviceptr d = 0;
  int n = 0;
  OK(cu.ModuleLoadData(&m, ".version 8.0"));
  IS(CUDA_ERROR_NOT_FOUND, cu.ModuleGetFunction(&none, m, "no_such_kernel"));
  IS(CUDA_ERROR_INVALID_IMAGE, cu.ModuleLoadData(&m, "nonsense"));
  OK(cu.MemAlloc(&d, 64));
  OK(cu.MemsetD8Async(d, 0, 64, s));
  for (uint32_t i = 1; i <= 20; i++) launch(f, 2, 64, s, d, i, 0);
  OK(cu.StreamSynchronize(s));
  IS(420, fc_peek(d));
  param p = {d, 1, 0, 0};
  void *params[] = {&p};
  IS(CUDA_ERROR_INVALID_VALUE, cu.LaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, s, params, NULL));
  IS(CUDA_ERROR_INVALID_VALUE, cu.LaunchKernel(f, 0, 1, 1, 32, 1, 1, 0, s, params, NULL));
  IS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cu.LaunchCooperativeKernel(f, 10000, 1, 1, 1024, 1, 1, 0, s, params));
  CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
  CUlaunchConfig c = {.gridDimX = 3, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1, .hStream = s};
  c.attrs = &a;
  c.numAttrs = 1;
  OK(cu.LaunchKernelEx(&c, f, params, NULL));
  OK(cu.StreamSynchronize(s));
  IS(423, fc_peek(d));
  OK(cu.FuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
  IS(1024, n);
  OK(cu.OccupancyMaxActiveBlocks(&n, f, 512, 0));
  IS(4, n);
  OK(cu.ModuleUnload(m));
}

/* A kernel that fills the GPU holds up others, and copies on the device; not copies of pinned memory, nor writes of streams. */
void case_room(void) {
  fc_start();
  CUfunction wait = fc_function("wait_for_word"), add = fc_function("add_value");
  _Atomic uint32_t *w = fc_words();
  CUstream a = fc_stream(), b = fc_stream(), c = fc_stream(), d = fc_stream();
  CUdeviceptr mem = 0;
  OK(cu.MemAlloc(&mem, 8192));
  launch(wait, 100000, 1024, a, fc_at(&w[0]), 1, fc_at(&w[4]));
  TRUE(fc_becomes(&w[4], 1));
  launch(add, 1, 32, b, fc_at(&w[1]), 1, 0);
  OK(cu.MemcpyAsync(mem, mem + 4096, 4096, c));
  OK(cu.StreamWriteValue32(c, fc_at(&w[2]), 1, 0));
  OK(cu.MemcpyAsync(mem, fc_at(w), 4096, d));
  OK(cu.StreamWriteValue32(d, fc_at(&w[3]), 1, 0));
  TRUE(fc_becomes(&w[3], 1));
  TRUE(fc_stays(&w[1], 0));
  TRUE(fc_stays(&w[2], 0));
  atomic_store(&w[0], 1);
  OK(cu.CtxSynchronize());
  TRUE(atomic_load(&w[1]) == 1 && atomic_load(&w[2]) == 1);
}

/* After an illegal access every call of the context fails, and waits end. */
void case_sticky(void) {
  fc_start();
  CUfunction f = fc_function("bad_access");
  _Atomic uint32_t *w = fc_words();
  CUstream s = fc_stream(), t = fc_stream();
  CUdeviceptr d;
  OK(cu.StreamWaitValue32(t, fc_at(&w[0]), 1, 0));
  launch(f, 1, 32, s, fc_at(w), 1, 0);
  IS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.StreamSynchronize(s));
  IS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.StreamSynchronize(t));
  IS(CUDA_ERROR_ILLEGAL_ADDRESS, cu.MemAlloc(&d, 16));
  CUcontext fresh = NULL;
  OK(cu.CtxCreate(&fresh, 0, 0)); /* another context is not hurt */
  OK(cu.MemAlloc(&d, 16));
}
