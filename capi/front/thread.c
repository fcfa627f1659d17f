/* Thread-local state: group, last error, device kind. */
#include <pthread.h>
#include <stdlib.h>

#include "front.h"

__thread gccl_thread *gccl_thread_self __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void forget(void *p) {
  gccl_thread *t = p;
  gccl_group_forget(&t->group);
  free(t->group.op);
  free(t->group.stream);
  free(t->group.job);
  free(t->param);
  free(t);
  gccl_thread_self = NULL;
}

static void make_key(void) { pthread_key_create(&key, forget); }

gccl_thread *gccl_thread_get(void) {
  if (gccl_thread_self) return gccl_thread_self;
  pthread_once(&once, make_key);
  gccl_thread *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  pthread_setspecific(key, t);
  return gccl_thread_self = t;
}
