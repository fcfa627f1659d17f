/* How a rank waits: spin while that is cheap, then yield, then sleep.
 *
 * Sleeping: a rank that gives up spinning stores asleep = 1, counts itself in the communicator's sleepers word, runs an
 * expedited membarrier and looks once more before it sleeps on the futex. A signaller stores its word and then
 * loads sleepers without a fence; the sleeper's membarrier stands in for it: either the signaller's load sees the
 * sleeper, or the sleeper's second look sees the signal. So a steady signal costs one load of a line that nobody writes.
 * Where membarrier is refused (seccomp), sleeps are cut to a millisecond instead and nothing is lost but time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "exec.h"

static _Atomic(int) membarrier_works = -1;

uint64_t gccl_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

void gccl_wait_init(void) {
  if (atomic_load(&membarrier_works) >= 0) return;
  /* membarrier(2): REGISTER_GLOBAL_EXPEDITED since Linux 4.16. */
  int ok = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  atomic_store(&membarrier_works, ok);
}

static int order_against_signallers(void) {
  if (atomic_load_explicit(&membarrier_works, memory_order_relaxed) == 1 &&
      syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0)
    return 1;
  atomic_thread_fence(memory_order_seq_cst);
  return 0;
}

static void futex_sleep(uint32_t *word, uint64_t ns) {
  struct timespec t = {.tv_sec = (time_t)(ns / 1000000000ull), .tv_nsec = (long)(ns % 1000000000ull)};
  syscall(SYS_futex, word, FUTEX_WAIT, 1, &t, NULL, 0);
}

static void wake_word(gccl_area *a) {
  if (__atomic_exchange_n(&a->asleep, 0, __ATOMIC_ACQ_REL)) syscall(SYS_futex, &a->asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void gccl_wake_slow(struct ncclComm *comm) {
  for (int q = 0; q < comm->nranks; q++) {
    gccl_area *a = gccl_area_of(comm, q);
    if (q == comm->rank || !__atomic_load_n(&a->asleep, __ATOMIC_ACQUIRE)) continue; /* asleep_on is stored before it */
    int32_t on = __atomic_load_n(&a->asleep_on, __ATOMIC_RELAXED);
    if (on < 0 || on == comm->rank) wake_word(a);
  }
}

void gccl_wake_self(struct ncclComm *comm) {
  if (comm->nranks > 1 && comm->self.area) wake_word((gccl_area *)comm->self.area);
}

__thread gccl_interrupt gccl_interrupt_self __attribute__((tls_model("initial-exec")));

int gccl_interrupted(void) {
  gccl_interrupt *i = &gccl_interrupt_self;
  if (!i->ask) return 0;
  uint64_t now = gccl_now_ns();
  if (now - i->asked_ns < 20000000ull) return 0; /* naps may be much shorter than what asking costs */
  i->asked_ns = now;
  return i->ask(i->arg);
}

void gccl_interrupt_check(struct ncclComm *comm) {
  if (!gccl_interrupted()) return;
  gccl_comm_latch(comm, GCCL_RC_SYSTEM, "rank %d of %d: a wait was interrupted by its own process (gcclSetInterrupt)", comm->rank,
                  comm->nranks);
}

void gccl_idle_reset(gccl_idle *w) {
  w->since = 0;
  w->spins = 0;
  w->naps = 0;
  w->reports = 0;
}

/* A wait is reported when it is as long as late_ns, and at some multiples of it. */
static int is_late(const gccl_idle *w, const struct ncclComm *comm, uint64_t waited) {
  static const uint8_t late[] = {1, 6, 30};
  return comm->late_ns && w->reports < sizeof late && waited > late[w->reports] * comm->late_ns;
}

void gccl_idle_wait(gccl_idle *w, const gccl_op *op, int32_t on, int (*recheck)(void *), void *arg, uint64_t max_sleep_ns) {
  struct ncclComm *comm = op->comm;
  if (comm->spin_ns && w->spins < 64) { /* about a microsecond before the clock is read for the first time */
    w->spins++;
    gccl_relax();
    return;
  }
  uint64_t now = gccl_now_ns();
  if (!w->since) w->since = now;
  uint64_t waited = now - w->since;
  if (waited < comm->spin_ns) {
    w->spins = 32;
    gccl_relax();
    return;
  }
  if (waited < (uint64_t)comm->spin_ns + comm->yield_ns) {
    sched_yield();
    return;
  }
  gccl_area *self = (gccl_area *)comm->self.area;
  if (self) __atomic_store_n(&self->asleep_on, on, __ATOMIC_RELAXED);
  if (is_late(w, comm, waited)) {
    if (self) __atomic_store_n(&self->asleep, 1, __ATOMIC_RELEASE); /* ranks that report at the same time see each other wait */
    w->reports++;
    gccl_late_report(op, (int)w->reports, on, waited);
  }
  if (!self) { /* one rank, which waits for a signal of its own: only an abort ends that */
    struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
    gccl_interrupt_check(comm);
    return;
  }
  __atomic_store_n(&self->asleep, 1, __ATOMIC_RELEASE);
  atomic_fetch_add(comm->sleepers, 1);
  uint64_t limit = order_against_signallers() ? 50000000ull : 1000000ull;
  if (max_sleep_ns < limit) limit = max_sleep_ns;
  if (!recheck(arg) && !atomic_load(&comm->abort)) futex_sleep(&self->asleep, limit);
  __atomic_store_n(&self->asleep, 0, __ATOMIC_RELEASE);
  atomic_fetch_sub(comm->sleepers, 1);
  w->naps++;
  gccl_interrupt_check(comm);
}
