/* Communicator handles.
 *
 * A handle is the address of its struct ncclComm in one reserved slab, so that a stray pointer is told apart without being
 * followed, and a destroyed handle stays recognisable: its slot is used again only after many others.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../device/cuda/cuda.h"
#include "front.h"

enum { PAGE = 4096, SLOT = GCCL_HANDLE_SLOT, SLOTS = GCCL_HANDLE_SLOTS, QUARANTINE = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic(char *) gccl_handle_slab;
static int used;                      /* slots handed out at least once */
static int ring[SLOTS], head, parked; /* retired slots, oldest first */

static char *slab_make(void) {
  char *s = atomic_load(&gccl_handle_slab);
  if (!s) {
    s = mmap(NULL, (size_t)SLOT * SLOTS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s == MAP_FAILED) return NULL;
    atomic_store(&gccl_handle_slab, s);
  }
  return s;
}

static void report(const struct ncclComm *c, const char *text) { gccl_core.log(2 /* NCCL_LOG_WARN */, c->rank, text); }

static void late(const struct ncclComm *c, uint64_t seq, int32_t turn, const char *what, uint64_t waited) {
  gccl_core.late((struct ncclComm *)(uintptr_t)c, seq, turn, what, waited);
}

struct ncclComm *gccl_handle_new(void) {
  pthread_mutex_lock(&lock);
  char *s = slab_make();
  int slot = -1;
  if (s && (parked > QUARANTINE || (used == SLOTS && parked > 0))) {
    slot = ring[head];
    head = (head + 1) % SLOTS;
    parked--;
  } else if (s && used < SLOTS) {
    slot = used++;
  }
  pthread_mutex_unlock(&lock);
  if (slot < 0) return NULL;
  struct ncclComm *c = (struct ncclComm *)(s + (size_t)slot * SLOT);
  memset(c, 0, sizeof *c);
  c->version = GCCL_COMM_VERSION;
  c->simd = gccl_reduce_best();
  c->report = report;
  c->late = late;
  c->blocking = 1;
  atomic_store(&c->state, GCCL_COMM_INIT);
  c->magic = GCCL_COMM_MAGIC;
  return c;
}

void gccl_handle_retire(struct ncclComm *c) {
  if (c->worker) gccl_stream_free(c->worker);
  gccl_registrations_drop(c);
  free(c->exec);
  gccl_cuda_comm_unref(c->cuda);
  c->cuda = NULL;
  atomic_store(&c->gpu_abort, NULL); /* its context may go */
  /* Give the pages back but keep the head, which says that this was a communicator. */
  madvise((char *)c + PAGE, SLOT - PAGE, MADV_DONTNEED);
  c->worker = c->exec = NULL;
  atomic_store(&c->state, GCCL_COMM_DEAD);
  pthread_mutex_lock(&lock);
  ring[(head + parked++) % SLOTS] = (int)(((char *)c - atomic_load(&gccl_handle_slab)) / SLOT);
  pthread_mutex_unlock(&lock);
}

int gccl_handle_known(const struct ncclComm *c) {
  if (!c || !gccl_handle_in_slab(c) || c->magic != GCCL_COMM_MAGIC) return 0;
  uint32_t s = atomic_load_explicit(&c->state, memory_order_acquire);
  return s != GCCL_COMM_FREE && s != GCCL_COMM_DEAD;
}

struct ncclComm *gccl_handle_at(int i, int *end) {
  pthread_mutex_lock(&lock);
  *end = used;
  pthread_mutex_unlock(&lock);
  struct ncclComm *c = i < *end ? (struct ncclComm *)(atomic_load(&gccl_handle_slab) + (size_t)i * SLOT) : NULL;
  return gccl_handle_known(c) ? c : NULL;
}

ncclResult_t gccl_handle_check(const struct ncclComm *c, const char *call) {
  if (__builtin_expect(gccl_forked, 0)) return gccl_core_open(call);
  if (gccl_handle_known(c)) return ncclSuccess;
  if (!c) return gccl_fail(ncclInvalidArgument, "%s: comm is NULL", call);
  if (gccl_handle_in_slab(c) && c->magic == GCCL_COMM_MAGIC)
    return gccl_fail(ncclInvalidArgument, "%s: comm %p has been destroyed", call, (const void *)c);
  return gccl_fail(ncclInvalidArgument, "%s: comm %p is not a communicator of this library", call, (const void *)c);
}

ncclResult_t gccl_comm_check_made(const struct ncclComm *c, const char *call) {
  ncclResult_t rc = gccl_handle_check(c, call);
  if (rc != ncclSuccess) return rc;
  int32_t e = atomic_load_explicit(&c->error, memory_order_acquire);
  if (e > 0) return gccl_fail((ncclResult_t)e, "%s: rank %d of %d: the communicator has failed: %s", call, c->rank, c->nranks, c->cause);
  uint32_t state = atomic_load_explicit(&c->state, memory_order_acquire);
  if (state == GCCL_COMM_INIT)
    return gccl_fail(ncclInvalidArgument, "%s: comm is still being initialised: wait until ncclCommGetAsyncError says ncclSuccess", call);
  if (state == GCCL_COMM_FAILED)
    return gccl_fail(ncclInvalidArgument, "%s: the initialisation of comm failed: only ncclCommAbort is allowed", call);
  return ncclSuccess;
}

ncclResult_t gccl_comm_check(const struct ncclComm *c, const char *call) {
  ncclResult_t rc = gccl_comm_check_made(c, call);
  if (rc != ncclSuccess) return rc;
  switch (atomic_load_explicit(&c->state, memory_order_acquire)) {
  case GCCL_COMM_READY: return ncclSuccess;
  case GCCL_COMM_FINALIZED: return gccl_fail(ncclInvalidUsage, "%s: rank %d: comm has been finalized", call, c->rank);
  default: return gccl_fail(ncclInvalidUsage, "%s: rank %d: comm has been revoked", call, c->rank);
  }
}
