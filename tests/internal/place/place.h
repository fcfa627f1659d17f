/* place.h: where a test program's memory is and where its kernels run: ordinary memory and the CPU; memory of CUDA's stand-in and the CPU,
 * which reaches it; or a GPU, whose kernels come by name from a file (--cubin). Programs are the same in all three.
 *
 * Memory for kernels has two addresses: where kernels see it, and where the host sees it, which on a GPU is a copy: push and pull. */
#ifndef TESTS_PLACE_H
#define TESTS_PLACE_H

#include <gccl.h>
#include <gccl_device/cpu.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define _Static_assert static_assert /* the header is in C */
#include "../../../device/cuda/driver.h"
#undef _Static_assert

namespace place {

enum Kind { host, standin, gpu };

struct State {
  Kind kind = host;
  char const *cubin = nullptr;
  void *driver = nullptr;
  int devices = 1; /* GCCL_TEST_DEVICES: ranks take them in turn */
  CUcontext context[8] = {};
  CUmodule module[8] = {};
};
inline State &state() {
  static State s;
  return s;
}
inline bool onCuda() { return state().kind != host; }
inline bool onGpu() { return state().kind == gpu; }

template <typename... P> CUresult driver(char const *name, P... p) {
  void *f = dlsym(state().driver, name);
  if (!f) {
    printf("not ok: no %s in libcuda.so.1\n", name);
    exit(2);
  }
  return reinterpret_cast<CUresult (*)(P...)>(f)(p...);
}
template <typename... P> void must(char const *name, P... p) {
  CUresult e = driver(name, p...);
  if (e) {
    printf("not ok: %s gives %d\n", name, e);
    fflush(stdout);
    _Exit(2);
  }
}

/* Takes --memory cuda and --cubin FILE out of the arguments. */
inline void arguments(int &argc, char **argv) {
  int n = 1;
  for (int i = 1; i < argc; i++) {
    if (i + 1 < argc && !strcmp(argv[i], "--memory")) {
      if (!strcmp(argv[++i], "cuda") && state().kind == host) state().kind = standin;
    } else if (i + 1 < argc && !strcmp(argv[i], "--cubin")) {
      state().kind = gpu;
      state().cubin = argv[++i];
    } else {
      argv[n++] = argv[i];
    }
  }
  argc = n;
}

/* The calling thread's device. */
inline int &device() {
  static thread_local int d = 0;
  return d;
}

/* Once in each process, after fork; enter in each thread. */
inline void start() {
  State &s = state();
  if (!onCuda()) return;
  s.driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!s.driver) {
    printf("not ok: %s\n", dlerror());
    exit(2);
  }
  if (char const *n = getenv("GCCL_TEST_DEVICES")) s.devices = atoi(n) < 1 ? 1 : atoi(n) > 8 ? 8 : atoi(n);
  must("cuInit", 0u);
  for (int i = s.devices; i-- > 0;) {
    CUdevice d;
    must("cuDeviceGet", &d, i);
    must("cuDevicePrimaryCtxRetain", &s.context[i], d);
    must("cuCtxSetCurrent", s.context[i]);
    if (onGpu()) must("cuModuleLoad", &s.module[i], s.cubin);
  }
}
inline void enter(int rank) {
  device() = rank % state().devices;
  if (onCuda()) must("cuCtxSetCurrent", state().context[device()]);
  (void)gcclSetDeviceKind(onCuda() ? gcclDeviceCuda : gcclDeviceHost);
}

/* Copies between the host and memory of kernels, on a stream of the thread's own: the legacy one waits for others. */
inline void copy(void *to, void const *from, size_t n) {
  static thread_local CUstream s = nullptr;
  if (!onGpu()) {
    memcpy(to, from, n);
    return;
  }
  if (!s) must("cuStreamCreate", &s, 1u);
  must("cuMemcpyAsync", (CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, n, s);
  must("cuStreamSynchronize", s);
}
/* Waits for the legacy stream, in which collectives of the programs run. */
inline void settle() {
  if (onCuda()) must("cuStreamSynchronize", (CUstream) nullptr);
}

/* A value that kernels and the host see at one address. */
template <typename T> struct Shared {
  T *p = nullptr;
  explicit Shared(size_t n = 1) {
    if (onGpu())
      must("cuMemHostAlloc", (void **)&p, n * sizeof(T), 3u); /* portable, mapped */
    else
      p = static_cast<T *>(malloc(n * sizeof(T)));
    memset(p, 0, n * sizeof(T));
  }
  Shared(Shared const &) = delete;
  ~Shared() {
    if (!onGpu()) free(p); /* cuMemFreeHost waits for the kernels of all ranks, which may wait for this one */
  }
  operator T *() { return p; }
  T &operator*() { return *p; }
};

/* Memory of ncclMemAlloc: `mem` for the host, `at` for kernels and calls. */
struct Memory {
  char *mem = nullptr, *at = nullptr;
  size_t bytes = 0;
  ncclResult_t make(size_t n) {
    bytes = n;
    ncclResult_t rc = ncclMemAlloc((void **)&at, n);
    if (rc != ncclSuccess) return rc;
    mem = onGpu() ? static_cast<char *>(calloc(1, n)) : at;
    memset(mem, 0, n);
    push();
    return rc;
  }
  void push() {
    if (mem != at) copy(at, mem, bytes);
  }
  void pull() {
    if (mem != at) copy(mem, at, bytes);
  }
  ncclResult_t drop() {
    if (mem != at) free(mem);
    return ncclMemFree(at);
  }
};

/* A kernel as function and by name. */
template <typename... P> struct Kernel {
  void (*function)(P...);
  char const *name;
};
template <typename... P> Kernel<P...> named(void (*f)(P...), char const *name) { return {f, name}; }
#define K(KERNEL) place::named(KERNEL, #KERNEL)

/* A launch; deadlineNs ends its waits on the CPU, and the program on a GPU. */
struct Launch {
  gccl::cpu::Launch cpu;
  uint64_t deadlineNs = 0;
  CUstream stream = nullptr;
  char text[160] = "";
  Launch(dim3 grid, dim3 block) : cpu(grid, block) {}
  ~Launch() {
    if (stream) driver("cuStreamDestroy_v2", stream);
  }
  template <typename... P, typename... A> ncclResult_t start(Kernel<P...> k, A &&...a) {
    cpu.deadlineNs = deadlineNs;
    if (!onGpu()) return cpu.start(k.function, std::forward<A>(a)...);
    return submit(k.name, std::tuple<typename std::decay<P>::type...>(std::forward<A>(a)...), std::index_sequence_for<P...>());
  }
  ncclResult_t finish() {
    if (!onGpu()) return cpu.finish();
    for (uint64_t ns = 0;; ns += 100000) {
      CUresult e = driver("cuStreamQuery", stream);
      if (e == CUDA_SUCCESS) return ncclSuccess;
      if (e != CUDA_ERROR_NOT_READY || (deadlineNs && ns > deadlineNs)) {
        printf("not ok: a kernel %s (%d)\n", e == CUDA_ERROR_NOT_READY ? "does not end" : "has failed", e);
        fflush(stdout);
        _Exit(1); /* nothing can be done about it here */
      }
      timespec nap = {0, 100000};
      nanosleep(&nap, nullptr);
    }
  }
  template <typename... P, typename... A> ncclResult_t run(Kernel<P...> k, A &&...a) {
    ncclResult_t rc = start(k, std::forward<A>(a)...);
    return rc == ncclSuccess ? finish() : rc;
  }
  char const *error() const { return onGpu() ? text : gccl::cpu::Launch::error(); }

private:
  template <typename Tuple, size_t... i> ncclResult_t submit(char const *name, Tuple args, std::index_sequence<i...>) {
    CUfunction f;
    void *at[sizeof...(i) + 1] = {static_cast<void *>(&std::get<i>(args))...};
    (void)args; /* where there are none */
    CUresult e = driver("cuModuleGetFunction", &f, state().module[device()], name);
    if (!e && !stream) e = driver("cuStreamCreate", &stream, 1u);
    if (!e)
      e = driver("cuLaunchKernel", f, cpu.grid.x, cpu.grid.y, cpu.grid.z, cpu.block.x, cpu.block.y, cpu.block.z, (unsigned)cpu.sharedBytes,
                 stream, (void **)at, (void **)nullptr);
    snprintf(text, sizeof text, "%s: error %d", name, e);
    return e ? ncclUnhandledCudaError : ncclSuccess;
  }
};

} // namespace place

#endif
