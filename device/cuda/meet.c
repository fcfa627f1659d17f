/* How long ranks of one process wait on the host for one another's calls.
 *
 * A call whose executor is another thread's rank waits until that thread has launched, so that events order the streams. It may wait
 * for ever: each thread may stand in a call of one communicator before the other's call of another one, or wait for the other by means
 * of its own. Then the rank leaves: it keeps its record, makes its stream wait for the executor's word, and returns.
 *
 * Threads that stand in calls of ours are known here, with the thread that each of them waits for: a circle of them has no end, and the
 * ranks in it leave at once, but for executors, who cannot. A circle of executors alone does not come about: each waits for a later
 * thread of one order of all threads, the same in all communicators. Who waits for something that we cannot see leaves after a second.
 * Leaving has a price, so it is not the rule: a kernel of one warp waits on the GPU, and a cooperative kernel that needs all of it
 * cannot start meanwhile.
 */
#include <stdlib.h>

#include "launch.h"

enum { LONGEST_NS = 1000000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gccl_cuda_meeting *all;

static __thread char self __attribute__((tls_model("initial-exec"))); /* its address is the thread's name */

static uint64_t *driver_of(const gccl_cuda_comm *d, int rank) { return (uint64_t *)(d->peer[rank].shared + d->layout.driver); }

gccl_cuda_creator *gccl_cuda_creator_self(void) {
  static gccl_cuda_creator *list;
  static __thread gccl_cuda_creator *me __attribute__((tls_model("initial-exec")));
  if (me || !(me = calloc(1, sizeof *me))) return me;
  pthread_mutex_lock(&lock);
  me->number = list ? list->number + 1 : 1;
  me->name = (uint64_t)(uintptr_t)&self;
  me->first = -1;
  me->next = list;
  list = me;
  pthread_mutex_unlock(&lock);
  return me;
}

static int earlier(const gccl_cuda_hello *a, const gccl_cuda_hello *b) {
  if (a->first != b->first) return a->first < b->first;
  return a->process != b->process ? a->process < b->process : a->thread < b->thread;
}

int gccl_cuda_leader(const gccl_cuda_hello *all, int nranks) {
  int leader = 0;
  for (int q = 1; q < nranks; q++)
    if (earlier(&all[q], &all[leader])) leader = q;
  return leader;
}

void gccl_cuda_driven(const gccl_cuda_comm *d, uint64_t me) {
  if (d->nranks == 1 || d->stage) return;
  uint64_t *at = driver_of(d, d->rank);
  if (!me) me = (uint64_t)(uintptr_t)&self;
  if (__atomic_load_n(at, __ATOMIC_RELAXED) != me) __atomic_store_n(at, me, __ATOMIC_RELAXED);
}

/* Whether what a thread waited for when it last looked has not come yet. */
static int still(const gccl_cuda_meeting *m) { return m->seq ? gccl_load(&m->record->seq) != m->seq : !gccl_cuda_is_taken(m->record); }

static const gccl_cuda_meeting *of_thread(uint64_t thread) {
  for (const gccl_cuda_meeting *m = all; m; m = m->next)
    if (m->thread == thread) return m;
  return NULL;
}

/* Follows who waits for whom from this thread; true if that comes back to it. */
static int in_circle(const gccl_cuda_meeting *me) {
  const gccl_cuda_meeting *m = me;
  for (int hops = 0; hops < GCCL_LEADER_RANKS && m && m->driver && still(m); hops++) {
    uint64_t next = __atomic_load_n(m->driver, __ATOMIC_RELAXED);
    if (next == me->thread) return 1;
    m = of_thread(next);
  }
  return 0;
}

int gccl_cuda_give_up(gccl_cuda_meeting *m, const gccl_cuda_batch *b, uint64_t waited_ns) {
  const gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  const gccl_op *x = b->blocked;
  if (x->kind == GCCL_DO_WAIT_SIGNAL) return 0;
  int executing = executor_of(x) == d->rank;
  pthread_mutex_lock(&lock);
  if (!m->thread) {
    m->next = all;
    all = m;
  }
  m->thread = (uint64_t)(uintptr_t)&self;
  m->record = gccl_cuda_record_of(d, x, executing ? b->blocked_on : d->rank);
  m->seq = executing ? x->seq : 0;
  m->driver = d->peer[b->blocked_on].same_process ? driver_of(d, b->blocked_on) : NULL;
  int r = waited_ns > LONGEST_NS || in_circle(m);
  pthread_mutex_unlock(&lock);
  return r;
}

void gccl_cuda_met(gccl_cuda_meeting *m) {
  if (!m->thread) return;
  pthread_mutex_lock(&lock);
  gccl_cuda_meeting **p = &all;
  while (*p != m) p = &(*p)->next;
  *p = m->next;
  m->thread = 0;
  pthread_mutex_unlock(&lock);
}
