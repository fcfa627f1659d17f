/* check.c: the conformance kernels of the device API (tests/device/prog/kernels.h) on a GPU.
 *
 *   device-check CUBIN [RANKS]
 *
 * The library makes no device communicators on CUDA yet, so this program makes by hand what kernels see of them: the ranks are streams of
 * one GPU, each with memory of its own in one flat range, 4 GiB apart. Prints a line for each kernel; ends with 1 if any counted something
 * wrong. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../device/cuda/driver.h"
#include <gccl_device.h>

enum { MOST = 8, PART = 4 << 20, WIN = 1 << 20 }; /* of a rank's memory: two windows of WIN bytes, then its resource buffer */
static const uint64_t STRIDE = 4ull << 30;

#define CU(NAME, ...)                                                          \
  do {                                                                         \
    CUresult rc_ = ((CUresult(*)())symbol(#NAME))(__VA_ARGS__);                \
    if (rc_) {                                                                 \
      fprintf(stderr, "%s:%d: %s gives %d\n", __FILE__, __LINE__, #NAME, rc_); \
      exit(2);                                                                 \
    }                                                                          \
  } while (0)

static void *symbol(const char *name) {
  static void *lib;
  if (!lib) lib = dlopen("libcuda.so.1", RTLD_NOW);
  void *f = lib ? dlsym(lib, name) : NULL;
  if (!f) {
    fprintf(stderr, "no %s in libcuda.so.1\n", name);
    exit(2);
  }
  return f;
}

static int nranks = 2, failures;
static CUmodule module;
static CUstream stream[MOST];
static struct ncclDevComm dev[MOST];
static CUdeviceptr flat, window[2][MOST], bad, count;
static uint32_t *abort_word;

static char *part(int rank, uint64_t at) { return (char *)(uintptr_t)(flat + (uint64_t)rank * STRIDE + at); }

static CUdeviceptr on_device(const void *from, size_t n) {
  CUdeviceptr p;
  CU(cuMemAlloc_v2, &p, n);
  CU(cuMemcpyHtoD_v2, p, from, n);
  return p;
}

static void make_ranks(void) {
  CUmemAllocationProp prop = {.type = 1, .location = {1, 0}}; /* pinned, on device 0 */
  CUmemAccessDesc access = {.location = {1, 0}, .flags = 3};  /* read and write */
  CU(cuMemAddressReserve, &flat, (size_t)(STRIDE * (uint64_t)nranks), (size_t)0, (CUdeviceptr)0, 0ull);
  CU(cuMemHostAlloc, &abort_word, (size_t)4, 2u); /* mapped: with one address space the device has the same pointer */
  *abort_word = 0;
  for (int r = 0; r < nranks; r++) {
    CUmemGenericAllocationHandle h;
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)part(r, 0);
    CU(cuMemCreate, &h, (size_t)PART, &prop, 0ull);
    CU(cuMemMap, at, (size_t)PART, (size_t)0, h, 0ull);
    CU(cuMemSetAccess, at, (size_t)PART, &access, (size_t)1);
    CU(cuMemsetD8_v2, at, 0, (size_t)PART);
    CU(cuStreamCreate, &stream[r], 1u);
  }
  for (int r = 0; r < nranks; r++) {
    struct ncclDevCommWindowTable table = {0};
    CUdeviceptr resource = 0;
    for (int w = 0; w < 3; w++) {
      struct gcclWindow_device d = {.nccl = {.lsaFlatBase = part(0, (uint64_t)w * WIN), .lsaRank = r, .worldRank = r, .stride4G = 1},
                                    .magic = GCCL_DEVICE_WINDOW_MAGIC,
                                    .size = WIN,
                                    .lsaSize = nranks};
      CUdeviceptr p = on_device(&d, sizeof d);
      table.entries[w].base = (uintptr_t)part(r, (uint64_t)w * WIN);
      table.entries[w].size = WIN;
      table.entries[w].window = (struct ncclWindow_vidmem *)(uintptr_t)p;
      if (w < 2)
        window[w][r] = p;
      else
        resource = p;
    }
    dev[r] = (struct ncclDevComm){.magic = NCCL_API_MAGIC,
                                  .version = NCCL_VERSION_CODE,
                                  .rank = r,
                                  .nRanks = nranks,
                                  .nRanks_rcp32 = UINT32_MAX / (unsigned)nranks + ((nranks & (nranks - 1)) == 0),
                                  .lsaRank = r,
                                  .lsaSize = nranks,
                                  .windowTable = (void *)(uintptr_t)on_device(&table, sizeof table),
                                  .resourceWindow = (void *)(uintptr_t)resource,
                                  .resourceWindow_inlined = {.lsaFlatBase = part(0, 2 * WIN), .stride4G = 1},
                                  .lsaBarrier = {0, 8}, /* 16 KiB at the beginning of the resource buffer are enough */
                                  .abortFlag = abort_word};
    dev[r].lsaSize_rcp32 = dev[r].nRanks_rcp32;
  }
}

/* Runs a kernel on all ranks at once; arg[k] of rank r is at args(r)[k]. Ends the program when it does not end. */
typedef void **(*args_of)(int rank);
static void launch(const char *name, unsigned ctas, unsigned threads, int ranks, args_of args) {
  CUfunction f;
  int wrong = 0, running = 1;
  CU(cuModuleGetFunction, &f, module, name);
  CU(cuMemsetD8_v2, bad, 0, (size_t)4);
  CU(cuMemsetD8_v2, count, 0, (size_t)4);
  CU(cuCtxSynchronize);
  for (int r = 0; r < ranks; r++) CU(cuLaunchKernel, f, ctas, 1u, 1u, threads, 1u, 1u, 0u, stream[r], args(r), NULL);
  for (int ms = 0; running; ms++) {
    running = 0;
    for (int r = 0; r < ranks; r++) running |= ((CUresult(*)())symbol("cuStreamQuery"))(stream[r]) == 600; /* not ready */
    if (running && ms > 20000) {
      __atomic_store_n(abort_word, 1, __ATOMIC_RELEASE);
      printf("%s: does not end\n", name);
      exit(1);
    }
    if (running) nanosleep(&(struct timespec){0, 1000000}, NULL);
  }
  CU(cuCtxSynchronize);
  CU(cuMemcpyDtoH_v2, &wrong, bad, (size_t)4);
  printf("%-22s %2u x %4u threads, %d ranks: %s", name, ctas, threads, ranks, wrong ? "" : "ok\n");
  if (wrong) printf("%d wrong\n", wrong);
  failures += wrong != 0;
}

static void *slot[MOST][8];
static int rounds, form;
static CUdeviceptr memory;
static uint32_t epoch;
static ncclLsaBarrierHandle_t bars = {512, 3}; /* handles: units of 128 bytes in the resource buffer */
static ncclLLA2AHandle_t some, sum;
static size_t n;
static CUdeviceptr mine[MOST];

static void **a_bad(int r) { return slot[r][0] = &bad, slot[r]; }
static void **a_count(int r) { return slot[r][0] = &count, slot[r][1] = &bad, slot[r]; }
static void **a_memory(int r) { return slot[r][0] = &memory, slot[r][1] = &bad, slot[r]; }
static void **a_write(int r) {
  mine[r] = (CUdeviceptr)(uintptr_t)part(r, 0);
  return slot[r][0] = &dev[r], slot[r][1] = &window[0][r], slot[r][2] = &mine[r], slot[r][3] = &bad, slot[r];
}
static void **a_read(int r) { return slot[r][0] = &dev[r], slot[r][1] = &window[0][r], slot[r][2] = &bad, slot[r]; }
static void **a_barriers(int r) {
  return slot[r][0] = &dev[r], slot[r][1] = &window[0][r], slot[r][2] = &rounds, slot[r][3] = &bad, slot[r];
}
static void **a_warps(int r) {
  return slot[r][0] = &dev[r], slot[r][1] = &bars, slot[r][2] = &window[0][r], slot[r][3] = &rounds, slot[r][4] = &bad, slot[r];
}
static void **a_epoch(int r) { return slot[r][0] = &dev[r], slot[r][1] = &epoch, slot[r]; }
static void **a_a2a(int r) {
  return slot[r][0] = &dev[r], slot[r][1] = form ? &sum : &some, slot[r][2] = &rounds, slot[r][3] = &bad, slot[r];
}
static void **a_a2a_epoch(int r) { return slot[r][0] = &dev[r], slot[r][1] = &some, slot[r][2] = &epoch, slot[r]; }
static void **a_reduce(int r) {
  slot[r][0] = &dev[r], slot[r][1] = &window[0][r], slot[r][2] = &window[1][r], slot[r][3] = &n;
  if (form) {
    mine[r] = (CUdeviceptr)(uintptr_t)part(r, 3 * WIN);
    slot[r][3] = &mine[r], slot[r][4] = &n;
  }
  return slot[r];
}

static void all_reduce(const char *name, unsigned ctas, unsigned threads) {
  static float v[WIN / 4];
  for (int r = 0; r < nranks; r++) {
    for (size_t i = 0; i < WIN / 4; i++) v[i] = (float)(i % 1000) + (float)r;
    CU(cuMemcpyHtoD_v2, (CUdeviceptr)(uintptr_t)part(r, 0), v, (size_t)WIN);
    CU(cuMemsetD8_v2, (CUdeviceptr)(uintptr_t)part(r, WIN), 0xff, (size_t)WIN);
  }
  launch(name, ctas, threads, nranks, a_reduce);
  size_t wrong = 0;
  for (int r = 0; r < nranks; r++) {
    CU(cuMemcpyDtoH_v2, v, (CUdeviceptr)(uintptr_t)part(r, WIN), (size_t)WIN);
    for (size_t i = 0; i < n; i++) wrong += v[i] != (float)(nranks * (int)(i % 1000) + nranks * (nranks - 1) / 2);
  }
  if (wrong) printf("  %zu of %zu sums are wrong\n", wrong, n * (size_t)nranks);
  failures += wrong != 0;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  if (argc > 2) nranks = atoi(argv[2]);
  if (nranks < 1 || nranks > MOST) return 2;
  CUdevice d;
  CUcontext context;
  CU(cuInit, 0u);
  CU(cuDeviceGet, &d, 0);
  CU(cuDevicePrimaryCtxRetain, &context, d);
  CU(cuCtxSetCurrent, context);
  CU(cuModuleLoad, &module, argv[1]);
  CU(cuMemAlloc_v2, &bad, (size_t)4);
  CU(cuMemAlloc_v2, &count, (size_t)4);
  CU(cuMemAlloc_v2, &memory, (size_t)1 << 20);
  make_ranks();
  some = (ncclLLA2AHandle_t){1024, (uint32_t)(2 * nranks * 3)}; /* elements of 20 bytes */
  sum = (ncclLLA2AHandle_t){3072, (uint32_t)nranks * 24};

  for (unsigned t = 1; t <= 256; t = t == 1 ? 5 : t == 5 ? 32 : t == 32 ? 33 : t * 2) launch("warp_functions", 2, t, 1, a_bad);
  launch("shared_memory", 3, 96, 1, a_bad);
  launch("grid_barrier", 8, 64, 1, a_count);
  launch("groups", 2, 96, 1, a_bad);
  launch("local_reduces", 1, 40, 1, a_memory);
  launch("local_reduces", 1, 256, 1, a_memory);
  launch("write_windows", 1, 32, nranks, a_write);
  launch("read_windows", 1, 32, nranks, a_read);
  rounds = 200;
  for (int again = 0; again < 2; again++) {
    launch("cta_barriers", 4, 64, nranks, a_barriers);
    launch("warp_barriers", 1, 96, nranks, a_warps);
    launch("thread_barriers", 1, 8, nranks, a_barriers);
  }
  epoch = 0xfffffffcu;
  launch("set_epochs", 1, 1, nranks, a_epoch);
  launch("cta_barriers", 1, 32, nranks, a_barriers);
  for (int again = 0; again < 2; again++) {
    launch("ll_a2a", 2, 32, nranks, a_a2a);
    form = 1;
    launch("ll_sum", 2, 24, nranks, a_a2a);
    form = 0;
  }
  epoch = 0xfffffffau;
  launch("set_a2a_epoch", 1, 1, nranks, a_a2a_epoch);
  launch("ll_a2a", 1, 32, nranks, a_a2a);
  for (n = 0; n <= WIN / 4; n = n ? n * 8 + 5 : 1) {
    form = 0;
    all_reduce("lsa_all_reduce", 3, 128);
    form = 1;
    all_reduce("lsa_all_reduce_twice", 1, 256);
  }
  printf("%d ranks on one GPU: %s\n", nranks, failures ? "FAILED" : "all right");
  return failures != 0;
}
