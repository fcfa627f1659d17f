#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>

#include "fc.h"

fc_driver cu;
CUcontext fc_ctx;
int fc_bad;

int fc_fail(const char *file, int line, const char *text, long want, long got) {
  const char *name = strrchr(file, '/'), *a = NULL, *b = NULL;
  cu.GetErrorName((CUresult)want, &a);
  cu.GetErrorName((CUresult)got, &b);
  printf("not ok - %s:%d: %s: want %ld (%s), got %ld (%s)\n", name ? name + 1 : file, line, text, want, a ? a : "-", got, b ? b : "-");
  fc_bad = 1;
  return 0;
}

void fc_start(void) {
  OK(cu.Init(0));
  OK(cu.DevicePrimaryCtxRetain(&fc_ctx, 0));
  OK(cu.CtxSetCurrent(fc_ctx));
}

CUfunction fc_function(const char *name) {
  static CUmodule m;
  CUfunction f = NULL;
  if (!m) OK(cu.ModuleLoadData(&m, ".version 8.0"));
  OK(cu.ModuleGetFunction(&f, m, name));
  OK(cu.FuncLoad(f));
  return f;
}

CUstream fc_stream(void) {
  CUstream s = NULL;
  OK(cu.StreamCreate(&s, CU_STREAM_NON_BLOCKING));
  return s;
}

_Atomic uint32_t *fc_words(void) {
  void *p = NULL;
  OK(cu.MemHostAlloc(&p, 4096, CU_MEMHOST_PORTABLE | CU_MEMHOST_DEVICEMAP));
  return p;
}

uint32_t fc_peek(CUdeviceptr at) {
  uint32_t v = 0;
  OK(cu.MemcpyDtoH(&v, at, sizeof v));
  return v;
}

static int poll_word(_Atomic uint32_t *word, uint32_t value, int ms, int stay) {
  for (int i = 0; i < ms; i++) {
    if ((atomic_load(word) == value) != stay) return !stay;
    struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
  }
  return stay;
}
int fc_becomes(_Atomic uint32_t *word, uint32_t value) { return poll_word(word, value, 10000, 0); }
int fc_stays(_Atomic uint32_t *word, uint32_t value) { return poll_word(word, value, 50, 1); }

static const struct {
  const char *name;
  void (*fn)(void);
} cases[] = {
#define CASE(x) \
  { #x, case_##x }
    CASE(devices), CASE(contexts), CASE(memory), CASE(pointers), CASE(vmm),     CASE(ipc),    CASE(streams),
    CASE(events),  CASE(memops),   CASE(queues), CASE(blocking), CASE(kernels), CASE(room),   CASE(sticky),
    CASE(capture), CASE(broken),   CASE(graphs), CASE(branches), CASE(script),  CASE(forked), CASE(protected),
};

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  void *lib = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (!lib) {
    puts(dlerror());
    return 2;
  }
#define LOAD(member, symbol, parameters) \
  if (!(*(void **)&cu.member = dlsym(lib, symbol))) return printf("no %s\n", symbol), 2;
  GCCL_CUDA_FUNCTIONS(LOAD)
  GCCL_CUDA_OPTIONAL(LOAD) FAKE_EXTRA(LOAD) for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) if (!strcmp(cases[i].name, argv[2])) {
    cases[i].fn();
    puts(fc_bad ? "failed" : "ok");
    return fc_bad;
  }
  return 2;
}
