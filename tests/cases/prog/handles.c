/* handles.c: C20 bad handles, C22 two copies and private loading. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "cases.h"

static void *from_elsewhere(void *arg) {
  struct team *t = arg;
  coll_alive(t, t->comm); /* a thread that did not make the communicator */
  return NULL;
}

void c20(struct team *t) {
  int me = t->first, n = 0, x = 1, y = 2;
  ncclResult_t state;
  ncclComm_t c[CONF_MAX_RANKS], gone;
  if (!team_init(t, c, NULL)) return;
  gone = c[0];
  OK(me, ncclCommDestroy(gone));
  for (int k = 0; k < 3; k++) RC(me, ncclInvalidArgument, ncclCommDestroy(gone));
  RC(me, ncclInvalidArgument, ncclCommAbort(gone));
  RC(me, ncclInvalidArgument, ncclCommFinalize(gone));
  RC(me, ncclInvalidArgument, ncclCommCount(gone, &n));
  RC(me, ncclInvalidArgument, ncclCommGetAsyncError(gone, &state));
  RC(me, ncclInvalidArgument, ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, gone, NULL));
  TRUE(me, ncclGetLastError(gone) != NULL);
  TRUE(me, y == 2 && n == 0);
  /* Memory that is no communicator: zeros, a text, the middle of a real one. */
  static _Alignas(64) char zeros[8192];
  static _Alignas(64) char text[8192] = "this is no communicator";
  ncclComm_t bad[] = {(ncclComm_t)zeros, (ncclComm_t)text, (ncclComm_t)((char *)t->comm[0] + 8)};
  for (int k = 0; k < 3; k++) {
    RC(me, ncclInvalidArgument, ncclCommCount(bad[k], &n));
    RC(me, ncclInvalidArgument, ncclAllReduce(&x, &y, 1, ncclInt32, ncclSum, bad[k], NULL));
    RC(me, ncclInvalidArgument, ncclCommDestroy(bad[k]));
    TRUE(me, ncclGetLastError(bad[k]) != NULL);
  }
  for (int code = -1; code <= 50; code++) TRUE(me, ncclGetErrorString((ncclResult_t)code)[0] != 0);
  pthread_t th;
  if (TRUE(me, pthread_create(&th, NULL, from_elsewhere, t) == 0)) pthread_join(th, NULL);
}

/* The whole life of a one-rank communicator through one loaded copy. */
static int use_copy(int me, void *lib, const char *which) {
  ncclResult_t (*get_id)(ncclUniqueId *);
  ncclResult_t (*init)(ncclComm_t *, int, ncclUniqueId, int);
  ncclResult_t (*reduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
  ncclResult_t (*destroy)(ncclComm_t);
  const char *(*last)(ncclComm_t);
  *(void **)&get_id = dlsym(lib, "ncclGetUniqueId");
  *(void **)&init = dlsym(lib, "ncclCommInitRank");
  *(void **)&reduce = dlsym(lib, "ncclAllReduce");
  *(void **)&destroy = dlsym(lib, "pncclCommDestroy");
  *(void **)&last = dlsym(lib, "ncclGetLastError");
  if (!get_id || !init || !reduce || !destroy || !last) return conf_fail(me, "%s: a symbol is missing", which);
  ncclUniqueId id;
  ncclComm_t c = NULL;
  int32_t x = 5, y = 0;
  conf_at(me, "using %s", which);
  ncclResult_t rc = get_id(&id);
  if (rc == ncclSuccess) rc = init(&c, 1, id, 0);
  if (rc == ncclSuccess) rc = reduce(&x, &y, 1, ncclInt32, ncclSum, c, NULL);
  if (rc == ncclSuccess && y != 5) return conf_fail(me, "%s: want 5, got %d", which, y);
  if (rc == ncclSuccess) rc = destroy(c);
  if (rc != ncclSuccess && !last(NULL)[0]) return conf_fail(me, "%s: got %d without a text", which, rc);
  if (rc != ncclSuccess) conf_note("%s is refused: %s", which, last(NULL));
  return rc == ncclSuccess;
}

static int copy_file(const char *from, const char *to) {
  char buf[65536];
  int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
  ssize_t n = -1;
  while (in >= 0 && out >= 0 && (n = read(in, buf, sizeof buf)) > 0)
    if (write(out, buf, (size_t)n) != n) n = -1;
  if (in >= 0) close(in);
  if (out >= 0) close(out);
  return n == 0;
}

/* The linked library is used, then a second file of it is opened: it works or is refused with a text; the first goes on. */
void c22_copy(struct team *t) {
  int me = t->first;
  ncclComm_t c[CONF_MAX_RANKS];
  char dir[] = "/tmp/gccl-copy-XXXXXX", from[600], to[600];
  if (!team_init(t, c, NULL) || !TRUE(me, mkdtemp(dir) != NULL)) return;
  const char *path = gcclLibraryPath();
  const char *slash = strrchr(path, '/');
  int stem = slash ? (int)(slash - path) : 0;
  static const char *const files[] = {"libgccl.so", "libgccl_core.so"};
  for (int k = 0; k < 2; k++) {
    snprintf(from, sizeof from, "%.*s/%s", stem, path, files[k]);
    snprintf(to, sizeof to, "%s/%s", dir, files[k]);
    TRUE(me, copy_file(from, to));
  }
  snprintf(to, sizeof to, "%s/libgccl.so", dir);
  void *second = dlopen(to, RTLD_NOW | RTLD_LOCAL);
  if (!second)
    conf_fail(me, "dlopen of a second copy: %s", dlerror());
  else
    use_copy(me, second, "a second copy of the library");
  coll_alive(t, c);
  team_destroy(t, c);
  for (int k = 0; k < 2; k++) {
    snprintf(to, sizeof to, "%s/%s", dir, files[k]);
    unlink(to);
  }
  rmdir(dir);
}

/* The linked file opened again by path, RTLD_LOCAL: the same library, which must work. */
void c22_local(struct team *t) {
  int me = t->first;
  void *lib = dlopen(gcclLibraryPath(), RTLD_NOW | RTLD_LOCAL);
  if (!lib)
    conf_fail(me, "dlopen(%s): %s", gcclLibraryPath(), dlerror());
  else
    TRUE(me, use_copy(me, lib, "the library by its path"));
  if (lib) dlclose(lib);
}
