/* Modules, functions, launches. The code of a module is not looked at: its functions are those of the same name in the libraries
 * of GCCL_FAKE_KERNELS (a list with colons; libgccl_kernels_cpu.so beside this library or one folder up when unset). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fake.h"

enum { PARAM_BYTES = 4096, MAX_LIBS = 8 };

static void *libs[MAX_LIBS];
static int nlibs;

static void add_lib(const char *path, int must) {
  void *l = nlibs < MAX_LIBS ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (l)
    libs[nlibs++] = l;
  else if (must)
    fake_say("GCCL_FAKE_KERNELS: %s", dlerror());
}

static void open_libs(void) {
  const char *list = getenv("GCCL_FAKE_KERNELS");
  char text[2048], dir[1024];
  if (list && *list) {
    snprintf(text, sizeof text, "%s", list);
    char *save = NULL;
    for (char *p = strtok_r(text, ":", &save); p; p = strtok_r(NULL, ":", &save)) add_lib(p, 1);
    return;
  }
  Dl_info me;
  if (!dladdr((void *)open_libs, &me) || !me.dli_fname) return;
  snprintf(dir, sizeof dir, "%s", me.dli_fname);
  char *slash = strrchr(dir, '/');
  if (!slash) return;
  *slash = 0;
  snprintf(text, sizeof text, "%s/libgccl_kernels_cpu.so", dir);
  add_lib(text, 0);
  snprintf(text, sizeof text, "%s/../libgccl_kernels_cpu.so", dir);
  if (!nlibs) add_lib(text, 0);
}

static int module_ok(CUmodule m) { return m && m->magic == MAGIC_MODULE && !m->dead; }
static int function_ok(CUfunction f) { return f && f->magic == MAGIC_FUNCTION && module_ok(f->module); }

/* Blocks while any stream of the context waits (measured). */
CUresult fake_ModuleLoadData(CUmodule *out, const void *image) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  CUcontext ctx;
  CUresult rc = fake_enter("cuModuleLoadData", IN_CONTEXT | UNSAFE, &ctx);
  if (rc != CUDA_SUCCESS) return rc;
  if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
  /* A fat binary (fatbinary_section.h: 0x466243b1 around it, 0xba55ed50 inside), an ELF file, or PTX text. */
  uint32_t magic;
  memcpy(&magic, image, sizeof magic);
  if (magic != 0x466243b1 && magic != 0xba55ed50 && magic != 0x464c457f && !strstr(image, ".version")) return CUDA_ERROR_INVALID_IMAGE;
  pthread_once(&once, open_libs);
  CUmodule m = calloc(1, sizeof *m);
  *m = (struct CUmod_st){MAGIC_MODULE, ctx, 0};
  pthread_mutex_lock(&fake_lock);
  fake_await_idle(ctx, "cuModuleLoadData");
  pthread_mutex_unlock(&fake_lock);
  *out = m;
  return CUDA_SUCCESS;
}

CUresult fake_ModuleUnload(CUmodule m) {
  CUcontext ctx;
  CUresult rc = fake_enter("cuModuleUnload", IN_CONTEXT | UNSAFE, &ctx);
  if (rc != CUDA_SUCCESS) return rc;
  if (!module_ok(m)) return CUDA_ERROR_INVALID_HANDLE;
  pthread_mutex_lock(&fake_lock);
  fake_await_idle(ctx, "cuModuleUnload");
  m->dead = 1;
  pthread_mutex_unlock(&fake_lock);
  return CUDA_SUCCESS;
}

CUresult fake_ModuleGetFunction(CUfunction *out, CUmodule m, const char *name) {
  CUresult rc = fake_enter("cuModuleGetFunction", IN_CONTEXT, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!module_ok(m)) return CUDA_ERROR_INVALID_HANDLE;
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  fake_kernel run = NULL;
  for (int i = 0; i < nlibs && !run; i++) *(void **)&run = dlsym(libs[i], name);
  if (!run) return CUDA_ERROR_NOT_FOUND;
  CUfunction f = calloc(1, sizeof *f);
  f->magic = MAGIC_FUNCTION;
  f->module = m;
  f->run = run;
  snprintf(f->name, sizeof f->name, "%s", name);
  const char *loading = getenv("CUDA_MODULE_LOADING");
  f->loaded = loading && !strcmp(loading, "EAGER");
  *out = f;
  return CUDA_SUCCESS;
}

/* Lazy loading: the first use of a function loads it, and that waits for the context (measured). */
static void load(CUfunction f, CUcontext ctx, const char *call) {
  pthread_mutex_lock(&fake_lock);
  if (!f->loaded) fake_await_idle(ctx, call);
  f->loaded = 1;
  pthread_mutex_unlock(&fake_lock);
}

static CUresult touch(const char *call, CUfunction f) {
  CUcontext ctx;
  CUresult rc = fake_enter(call, IN_CONTEXT, &ctx);
  if (rc == CUDA_SUCCESS && !function_ok(f)) rc = CUDA_ERROR_INVALID_HANDLE;
  if (rc == CUDA_SUCCESS) load(f, ctx, call);
  return rc;
}

CUresult fake_FuncLoad(CUfunction f) { return touch("cuFuncLoad", f); }

CUresult fake_FuncGetAttribute(int *value, int attribute, CUfunction f) {
  CUresult rc = touch("cuFuncGetAttribute", f);
  if (rc != CUDA_SUCCESS) return rc;
  if (!value || attribute < 0) return CUDA_ERROR_INVALID_VALUE;
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 32 : 0;
  return CUDA_SUCCESS;
}

CUresult fake_OccupancyMaxActiveBlocks(int *n, CUfunction f, int threads, size_t shared) {
  CUresult rc = touch("cuOccupancyMaxActiveBlocksPerMultiprocessor", f);
  if (rc != CUDA_SUCCESS) return rc;
  if (!n || threads < 1) return CUDA_ERROR_INVALID_VALUE;
  *n = threads > 1024 || shared > (227u << 10) ? 0 : 2048 / threads;
  return CUDA_SUCCESS;
}

static CUresult launch(const char *call, CUfunction f, const unsigned d[6], unsigned shared, CUstream handle, void **params, void **extra,
                       int cooperative) {
  CUstream s;
  CUresult rc = fake_enter_stream(call, handle, &s);
  if (rc != CUDA_SUCCESS) return rc;
  if (!function_ok(f) || f->module->ctx != s->ctx) return CUDA_ERROR_INVALID_HANDLE;
  unsigned long long grid = (unsigned long long)d[0] * d[1] * d[2], block = (unsigned long long)d[3] * d[4] * d[5];
  if (!grid || !block || block > 1024 || grid > 0x7fffffff || shared > (227u << 10)) return CUDA_ERROR_INVALID_VALUE;
  if (!params || !params[0] || extra) return CUDA_ERROR_INVALID_VALUE; /* kernels here have one parameter, a structure */
  if (cooperative && grid * block > (unsigned)fake_setting("GCCL_FAKE_SMS", 8) * 2048ull) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  /* The real driver knows how long the structure is. Here it is taken up to the limit of a kernel's parameters, or to where the
   * caller's memory ends. */
  void *param = calloc(1, PARAM_BYTES);
  struct iovec to = {param, PARAM_BYTES}, from[2] = {{params[0], PARAM_BYTES}, {NULL, 0}};
  size_t to_page = 4096 - (uintptr_t)params[0] % 4096;
  from[0].iov_len = to_page;
  from[1] = (struct iovec){(char *)params[0] + to_page, PARAM_BYTES - to_page};
  if (process_vm_readv(getpid(), &to, 1, from, 2, 0) < 0) memcpy(param, params[0], to_page);
  if (!s->capture) load(f, s->ctx, call);
  return fake_submit(
      s, (fake_work){.kind = DO_KERNEL, .call = f->name, .kernel = {f, (unsigned)grid, (unsigned)block, (unsigned)cooperative, param}},
      NULL);
}

CUresult fake_LaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                           CUstream s, void **params, void **extra) {
  return launch("cuLaunchKernel", f, (unsigned[]){gx, gy, gz, bx, by, bz}, shared, s, params, extra, 0);
}

CUresult fake_LaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                      unsigned shared, CUstream s, void **params) {
  return launch("cuLaunchCooperativeKernel", f, (unsigned[]){gx, gy, gz, bx, by, bz}, shared, s, params, NULL, 1);
}

CUresult fake_LaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra) {
  if (!c || (c->numAttrs && !c->attrs)) return CUDA_ERROR_INVALID_VALUE;
  int cooperative = 0;
  for (unsigned i = 0; i < c->numAttrs; i++) {
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) cooperative = c->attrs[i].value.cooperative;
  }
  unsigned d[] = {c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ};
  return launch("cuLaunchKernelEx", f, d, c->sharedMemBytes, c->hStream, params, extra, cooperative);
}
