/* library.c: version, texts of codes, last error, path, symbols under their second names. */
#define _GNU_SOURCE
#include "suites.h"

struct elsewhere {
  int rank;
  ncclComm_t comm;
};

static void *other_thread(void *arg) {
  struct elsewhere *e = arg;
  int n = 0;
  /* A thread that made no error of its own still finds the process's last one; its calls work as its creator's. */
  TRUE(e->rank, ncclGetLastError(NULL) != NULL);
  OK(e->rank, ncclCommCount(e->comm, &n));
  TRUE(e->rank, n == W->nranks);
  return NULL;
}

void suite_library(struct team *t) {
  int r = t->first, v = 0, n = -5;
  OK(r, ncclGetVersion(&v));
  TRUE(r, v == NCCL_VERSION_CODE);
  OK(r, pncclGetVersion(&v));
  RC(r, ncclInvalidArgument, ncclGetVersion(NULL));
  for (int code = -1; code <= 50; code++) {
    const char *s = ncclGetErrorString((ncclResult_t)code);
    if (!TRUE(r, s && s[0])) break;
    if (code >= 0 && code < ncclNumResults)
      for (int k = 0; k < code; k++) TRUE(r, strcmp(s, ncclGetErrorString((ncclResult_t)k)) != 0);
  }
  TRUE(r, strcmp(ncclGetErrorString(ncclSuccess), "no error") == 0);
  TRUE(r, gcclLibraryPath() && strstr(gcclLibraryPath(), "lib"));

  /* A communicator without a failure has no text, whatever the thread did; the thread's text names call and value. */
  RC(r, ncclInvalidArgument, ncclBcast(&n, 1, ncclInt32, 12345, t->comm[0], NULL));
  const char *last = ncclGetLastError(NULL);
  if (!strstr(last, "Bcast") || !strstr(last, "12345")) conf_fail(r, "last error names neither call nor value: \"%s\"", last);
  TRUE(r, ncclGetLastError(t->comm[0]) != NULL);
  ncclResult_t state = ncclInternalError;
  OK(r, ncclCommGetAsyncError(t->comm[0], &state));
  TRUE(r, state == ncclSuccess); /* a refused argument is no failure of the communicator */
  RC(r, ncclInvalidArgument, ncclCommGetAsyncError(t->comm[0], NULL));
  RC(r, ncclInvalidArgument, ncclCommGetAsyncError(NULL, &state));

  struct elsewhere e = {r, t->comm[0]};
  pthread_t th;
  if (TRUE(r, pthread_create(&th, NULL, other_thread, &e) == 0)) pthread_join(th, NULL);
  ncclResetDebugInit();
  pncclResetDebugInit();

  /* The second names do the same work. */
  struct buf b[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    if (!buf_new(&b[i], r + i, 2 * sizeof(int32_t))) return;
    *(int32_t *)b[i].copy = 2;
    buf_put(&b[i], 0, sizeof(int32_t));
  }
  OK(r, pncclGroupStart());
  for (int i = 0; i < t->nlocal; i++)
    OK(r + i, pncclAllReduce(b[i].at, b[i].at + sizeof(int32_t), 1, ncclInt32, ncclSum, t->comm[i], mem_null));
  OK(r, pncclGroupEnd());
  for (int i = 0; i < t->nlocal; i++) {
    mem_rank(r + i);
    OK(r + i, mem_stream_sync(mem_null));
    buf_get(&b[i], 0, b[i].bytes);
    TRUE(r + i, ((int32_t *)b[i].copy)[1] == 2 * t->nranks);
    buf_free(&b[i], r + i);
  }
  coll_alive(t, t->comm);
}
