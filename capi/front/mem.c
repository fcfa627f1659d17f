/* Memory, registration and windows. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

GCCL_API(ncclResult_t, ncclMemAlloc, void **ptr, size_t size) {
  if (!ptr) return gccl_fail(ncclInvalidArgument, "ncclMemAlloc: ptr is NULL");
  ncclResult_t rc = gccl_core_open("ncclMemAlloc");
  if (rc != ncclSuccess) return rc;
  if (size == 0) {
    *ptr = NULL;
    return ncclSuccess;
  }
  int done;
  void *memory = NULL;
  rc = gccl_device_mem_alloc(&memory, size, &done);
  if (done) {
    if (rc == ncclSuccess) *ptr = memory;
    return rc;
  }
  char text[GCCL_TEXT] = "";
  rc = (ncclResult_t)gccl_core.mem_alloc(&memory, size, text);
  if (rc != ncclSuccess) return gccl_fail(rc, "ncclMemAlloc: %zu bytes: %s", size, text);
  *ptr = memory;
  return ncclSuccess;
}

GCCL_API(ncclResult_t, ncclMemFree, void *ptr) {
  if (!ptr) return ncclSuccess;
  ncclResult_t rc = gccl_core_open("ncclMemFree");
  if (rc != ncclSuccess) return rc;
  char text[GCCL_TEXT] = "";
  if (gccl_device_mem_free(ptr)) return ncclSuccess;
  rc = (ncclResult_t)gccl_core.mem_free(ptr, text);
  return rc == ncclSuccess ? rc : gccl_fail(rc, "ncclMemFree: %p: %s", ptr, text);
}

/* Registration is a hint, and in host mode every buffer is used where it lies: a record only remembers what was registered,
 * so that a wrong handle is told apart. */
typedef struct registration {
  struct registration *next;
  const struct ncclComm *comm;
  char *buff;
  size_t size;
  int refs;
} registration;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static registration *list;

void gccl_registrations_drop(const struct ncclComm *comm) {
  pthread_mutex_lock(&lock);
  for (registration **p = &list; *p;) {
    registration *r = *p;
    if (r->comm == comm) {
      *p = r->next;
      free(r);
    } else {
      p = &r->next;
    }
  }
  pthread_mutex_unlock(&lock);
}

GCCL_API(ncclResult_t, ncclCommRegister, const ncclComm_t comm, void *buff, size_t size, void **handle) {
  ncclResult_t rc = gccl_comm_check(comm, "ncclCommRegister");
  if (rc != ncclSuccess) return rc;
  if (!buff || size == 0 || !handle)
    return gccl_fail(ncclInvalidArgument, "ncclCommRegister: rank %d: buff %p, size %zu and handle must be given", comm->rank, buff, size);
  pthread_mutex_lock(&lock);
  registration *r = list; /* a range inside an existing record shares it */
  while (r && !(r->comm == comm && r->buff <= (char *)buff && (char *)buff + size <= r->buff + r->size)) r = r->next;
  if (r) {
    r->refs++;
  } else if ((r = malloc(sizeof *r))) {
    *r = (registration){.next = list, .comm = comm, .buff = buff, .size = size, .refs = 1};
    list = r;
  }
  pthread_mutex_unlock(&lock);
  if (!r) return gccl_fail(ncclSystemError, "ncclCommRegister: rank %d: out of memory", comm->rank);
  *handle = r;
  return ncclSuccess;
}

GCCL_API(ncclResult_t, ncclCommDeregister, const ncclComm_t comm, void *handle) {
  ncclResult_t rc = gccl_handle_check(comm, "ncclCommDeregister");
  if (rc != ncclSuccess || !handle) return rc;
  int found = 0;
  pthread_mutex_lock(&lock);
  for (registration **p = &list; *p; p = &(*p)->next) {
    registration *r = *p;
    if (r != handle || r->comm != comm) continue;
    found = 1;
    if (--r->refs == 0) {
      *p = r->next;
      free(r);
    }
    break;
  }
  pthread_mutex_unlock(&lock);
  if (found) return ncclSuccess;
  return gccl_fail(ncclInvalidUsage, "ncclCommDeregister: rank %d: %p is not a registration of this communicator", comm->rank, handle);
}

/* --- windows --- */

gccl_window *gccl_window_of(const struct ncclComm *c, ncclWindow_t win) {
  for (unsigned i = 0; i < sizeof c->windows / sizeof *c->windows; i++) {
    if (!win || atomic_load_explicit(&c->handles[i], memory_order_acquire) != (void *)win) continue;
    gccl_window *w = atomic_load_explicit(&c->windows[i], memory_order_acquire);
    if (w && !w->resource) return w;
  }
  return NULL;
}

static ncclResult_t window_register(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int flags) {
  const char *call = "ncclCommWindowRegister";
  ncclResult_t rc = gccl_comm_check(comm, call);
  if (rc != ncclSuccess) return rc;
  if (!win) return gccl_fail(ncclInvalidArgument, "%s: rank %d: win is NULL", call, comm->rank);
  *win = NULL;
  if (!buff || size == 0)
    return gccl_fail(ncclInvalidArgument, "%s: rank %d: buff %p of %zu bytes is no buffer", call, comm->rank, buff, size);
  gccl_job j;
  memset(&j, 0, sizeof j);
  j.kind = GCCL_JOB_WINDOW;
  j.comm = comm;
  j.buff = buff;
  j.size = size;
  j.flags = flags;
  j.out = (void **)win;
  return gccl_submit_job(&j, call);
}

GCCL_API(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags) {
  return gccl_group_note(window_register(comm, buff, size, win, winFlags));
}

GCCL_API(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t win) {
  const char *call = "ncclCommWindowDeregister";
  ncclResult_t rc = gccl_handle_check(comm, call);
  if (rc != ncclSuccess || !win) return rc;
  gccl_window *w = gccl_window_of(comm, win);
  if (!w) return gccl_fail(ncclInvalidArgument, "%s: rank %d: %p is not a window of this communicator", call, comm->rank, (void *)win);
  char text[GCCL_TEXT] = "";
  rc = (ncclResult_t)gccl_core.window_deregister(comm, w, text);
  return rc == ncclSuccess ? rc : gccl_fail(rc, "%s: rank %d: %s", call, comm->rank, text);
}

GCCL_API(ncclResult_t, ncclWinGetUserPtr, ncclComm_t comm, ncclWindow_t win, void **outUserPtr) {
  const char *call = "ncclWinGetUserPtr";
  ncclResult_t rc = gccl_handle_check(comm, call);
  if (rc != ncclSuccess) return rc;
  if (!outUserPtr) return gccl_fail(ncclInvalidArgument, "%s: rank %d: outUserPtr is NULL", call, comm->rank);
  gccl_window *w = gccl_window_of(comm, win);
  if (!w) return gccl_fail(ncclInvalidArgument, "%s: rank %d: %p is not a window of this communicator", call, comm->rank, (void *)win);
  *outUserPtr = w->user;
  return ncclSuccess;
}
