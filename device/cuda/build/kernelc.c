/* The kernel compiler's driver: CUDA C++ to PTX by NVRTC, and code for several architectures into one fat binary by nvFatbin.
 *
 *   kernelc ptx LIBNVRTC OUT SOURCE OPTION…
 *   kernelc fatbin LIBNVFATBIN OUT sm_90=FILE.cubin … compute_80=FILE.ptx …
 *
 * Both libraries are opened at run time: their headers are not needed (prototypes: NVRTC 12.8 and nvFatbin 12.8 manuals). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *object, const char *why) {
  fprintf(stderr, "kernelc: %s %s: %s\n", what, object, why);
  exit(1);
}

static void *symbol(void *lib, const char *name) {
  void *f = dlsym(lib, name);
  if (!f) die("symbol", name, "not in the library: a toolkit 12.8 or later is needed");
  return f;
}

static void *library(const char *path) {
  void *lib = dlopen(path, RTLD_NOW);
  if (!lib) die("cannot open", path, dlerror());
  return lib;
}

/* The file with a 0 behind it; *size without that. */
static char *contents(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  if (!f) die("cannot read", path, "no such file");
  char *data = NULL;
  size_t room = 0, n = 0, got;
  do {
    if (n + 1 >= room) data = realloc(data, room = room ? 2 * room : 1 << 16);
    if (!data) die("cannot read", path, "out of memory");
    got = fread(data + n, 1, room - n - 1, f);
    n += got;
  } while (got);
  fclose(f);
  data[n] = 0;
  *size = n;
  return data;
}

static void save(const char *path, const void *data, size_t size) {
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(data, 1, size, f) != size || fclose(f)) die("cannot write", path, "no room or no such folder");
}

static int ptx(const char *lib, const char *out, const char *source, int nopts, char **opts) {
  void *l = library(lib);
  typedef void *program;
  int (*create)(program *, const char *, const char *, int, const char *const *, const char *const *) = symbol(l, "nvrtcCreateProgram");
  int (*compile)(program, int, const char *const *) = symbol(l, "nvrtcCompileProgram");
  int (*log_size)(program, size_t *) = symbol(l, "nvrtcGetProgramLogSize");
  int (*log_text)(program, char *) = symbol(l, "nvrtcGetProgramLog");
  int (*ptx_size)(program, size_t *) = symbol(l, "nvrtcGetPTXSize");
  int (*ptx_text)(program, char *) = symbol(l, "nvrtcGetPTX");
  const char *(*text)(int) = symbol(l, "nvrtcGetErrorString");
  size_t n;
  char *code = contents(source, &n);
  program p;
  int rc = create(&p, code, source, 0, NULL, NULL);
  if (rc) die("nvrtc", source, text(rc));
  rc = compile(p, nopts, (const char *const *)opts);
  if (!log_size(p, &n) && n > 1) {
    char *log = malloc(n);
    if (log && !log_text(p, log)) fputs(log, stderr);
    free(log);
  }
  if (rc) die("nvrtc", source, text(rc));
  if ((rc = ptx_size(p, &n))) die("nvrtc", source, text(rc));
  char *result = malloc(n);
  if (!result || (rc = ptx_text(p, result))) die("nvrtc", source, text(rc));
  save(out, result, n - 1);
  free(result), free(code);
  return 0;
}

static int fatbin(const char *lib, const char *out, int n, char **parts) {
  void *l = library(lib);
  typedef void *handle;
  int (*create)(handle *, const char **, size_t) = symbol(l, "nvFatbinCreate");
  int (*add_cubin)(handle, const void *, size_t, const char *, const char *) = symbol(l, "nvFatbinAddCubin");
  int (*add_ptx)(handle, const char *, size_t, const char *, const char *, const char *) = symbol(l, "nvFatbinAddPTX");
  int (*size)(handle, size_t *) = symbol(l, "nvFatbinSize");
  int (*get)(handle, void *) = symbol(l, "nvFatbinGet");
  const char *(*text)(int) = symbol(l, "nvFatbinGetErrorString");
  handle h;
  const char *options[] = {"-64", "-host=linux", "-compress-all"}; /* without it nothing was compressed */
  int rc = create(&h, options, sizeof options / sizeof *options);
  for (int i = 0; i < n && !rc; i++) {
    char *file = strchr(parts[i], '=');
    char *arch = strchr(parts[i], '_'); /* the number alone is what nvFatbin takes */
    if (!file || !arch || arch > file) die("bad argument", parts[i], "want sm_NN=FILE or compute_NN=FILE");
    *file++ = 0;
    size_t bytes;
    char *data = contents(file, &bytes);
    rc = !strncmp(parts[i], "sm_", 3) ? add_cubin(h, data, bytes, arch + 1, file) : add_ptx(h, data, bytes + 1, arch + 1, file, "");
    if (rc) die("nvfatbin", file, text(rc));
  }
  size_t total = 0;
  if (!rc) rc = size(h, &total);
  void *data = malloc(total + 1);
  if (!rc && data) rc = get(h, data);
  if (rc || !data) die("nvfatbin", out, text(rc));
  save(out, data, total);
  free(data);
  return 0;
}

int main(int argc, char **argv) {
  if (argc >= 5 && !strcmp(argv[1], "ptx")) return ptx(argv[2], argv[3], argv[4], argc - 5, argv + 5);
  if (argc >= 5 && !strcmp(argv[1], "fatbin")) return fatbin(argv[2], argv[3], argc - 4, argv + 4);
  fputs("usage: kernelc ptx LIBNVRTC OUT SOURCE OPTION… | kernelc fatbin LIBNVFATBIN OUT sm_NN=CUBIN|compute_NN=PTX…\n", stderr);
  return 2;
}
