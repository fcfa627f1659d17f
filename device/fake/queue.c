/* Hardware queues and the thread pool.
 *
 * A queue starts the operations of its streams in the order of their issue. Kernels and copies that need multiprocessors leave the
 * queue when they start; everything else is done in it, so a wait at its front holds up all streams that share it. The
 * front also waits for the operation before it in its own stream: that is the false dependency that makes kernels behind
 * one another hang from nine streams.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"

/* --- pool --- */

typedef struct task {
  struct task *next;
  void (*fn)(void *);
  void *arg;
} task;
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_work = PTHREAD_COND_INITIALIZER;
static task *tasks;
static int idle, waiting_tasks;

static void *pool_thread(void *arg) {
  (void)arg;
  fake_allow_device_memory();
  pthread_mutex_lock(&pool_lock);
  for (;;) {
    while (!tasks) {
      idle++;
      pthread_cond_wait(&pool_work, &pool_lock);
      idle--;
    }
    task *t = tasks;
    tasks = t->next;
    waiting_tasks--;
    pthread_mutex_unlock(&pool_lock);
    t->fn(t->arg);
    free(t);
    pthread_mutex_lock(&pool_lock);
  }
  return NULL;
}

static int start_thread(pthread_t *id, void *(*fn)(void *), void *arg) {
  pthread_attr_t a;
  pthread_attr_init(&a);
  pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&a, 1 << 20);
  int bad = pthread_create(id, &a, fn, arg);
  pthread_attr_destroy(&a);
  if (bad) fake_say("cannot start a thread: %s", strerror(bad));
  return bad;
}

/* One thread for each task that is not finished, because a kernel may wait for another. */
void fake_run(void (*fn)(void *), void *arg) {
  task *t = calloc(1, sizeof *t);
  t->fn = fn;
  t->arg = arg;
  pthread_mutex_lock(&pool_lock);
  t->next = tasks;
  tasks = t;
  waiting_tasks++;
  int more = waiting_tasks > idle;
  pthread_cond_signal(&pool_work);
  pthread_mutex_unlock(&pool_lock);
  pthread_t id;
  if (more) start_thread(&id, pool_thread, NULL);
}

/* Device memory carries a protection key that only threads of this file open: a CPU that touches it by mistake gets SIGSEGV, as
 * with a real device pointer. New threads of a program start with every key but 0 closed (Linux, protection keys). */
void fake_allow_device_memory(void) {
  int key = fake_memory_key();
  if (key > 0) pkey_set(key, 0);
}

/* --- the operations --- */

static void finish(fake_op *op) {
  op->stream->done = op->seq;
  op->stream->doing = NULL;
  fake_work_free(&op->work);
  free(op->points);
  free(op);
  pthread_cond_broadcast(&fake_changed);
}

static void fail(CUcontext c, CUresult code) {
  if (!c->sticky) c->sticky = code;
  pthread_cond_broadcast(&fake_changed);
}

static __thread int raised;
void gccl_fake_raise(int code) { raised = code; }

/* Takes room on the multiprocessors; several blocks of an ordinary kernel may follow one another, those of a cooperative one may
 * not. With the lock. */
static unsigned take_room(CUcontext c, unsigned grid, unsigned block, int cooperative) {
  unsigned long long need = (unsigned long long)grid * block, all = (unsigned)fake_setting("GCCL_FAKE_SMS", 8) * 2048u;
  if (need > all) need = all;
  while (c->room < (cooperative ? need : block < need ? block : need) && !c->sticky) pthread_cond_wait(&fake_changed, &fake_lock);
  if (need > c->room) need = c->room;
  c->room -= (unsigned)need;
  return (unsigned)need;
}

static void on_multiprocessors(void *arg) {
  fake_op *op = arg;
  CUcontext c = op->stream->ctx;
  fake_work *w = &op->work;
  int kernel = w->kind == DO_KERNEL;
  pthread_mutex_lock(&fake_lock);
  unsigned room = kernel ? take_room(c, w->kernel.grid, w->kernel.block, (int)w->kernel.cooperative) : take_room(c, 1, 1024, 0);
  int dead = c->sticky;
  pthread_mutex_unlock(&fake_lock);
  raised = 0;
  if (dead) {
  } else if (kernel) {
    w->kernel.function->run(w->kernel.param, w->kernel.grid, w->kernel.block);
  } else {
    memmove((void *)(uintptr_t)w->copy.to, (const void *)(uintptr_t)w->copy.from, w->copy.bytes);
  }
  pthread_mutex_lock(&fake_lock);
  if (raised) fail(c, raised);
  c->room += room;
  finish(op);
  pthread_mutex_unlock(&fake_lock);
}

static void set(const fake_work *w) {
  char *to = (char *)(uintptr_t)w->set.to;
  for (size_t i = 0; i < w->set.n; i++) memcpy(to + i * w->set.width, &w->set.value, w->set.width);
}

static int satisfied(const CUstreamBatchMemOpParams *p) {
  int wide = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  uint64_t now = wide ? __atomic_load_n((uint64_t *)(uintptr_t)p->value.address, __ATOMIC_ACQUIRE)
                      : __atomic_load_n((uint32_t *)(uintptr_t)p->value.address, __ATOMIC_ACQUIRE);
  uint64_t want = wide ? p->value.value64 : p->value.value;
  switch (p->value.flags & 3) {
  case CU_STREAM_WAIT_VALUE_GEQ: return wide ? (int64_t)(now - want) >= 0 : (int32_t)((uint32_t)now - (uint32_t)want) >= 0;
  case CU_STREAM_WAIT_VALUE_EQ: return now == want;
  case CU_STREAM_WAIT_VALUE_AND: return (now & want) != 0;
  default: return wide ? ~(now | want) != 0 : (uint32_t) ~(now | want) != 0;
  }
}

/* Polls: the word may be written by any process. Without the lock. */
static void memops(CUcontext c, fake_work *w) {
  for (unsigned i = 0; i < w->memops.n; i++) {
    CUstreamBatchMemOpParams *p = &w->memops.list[i];
    switch (p->operation) {
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      __atomic_store_n((uint32_t *)(uintptr_t)p->value.address, p->value.value, __ATOMIC_RELEASE);
      break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      __atomic_store_n((uint64_t *)(uintptr_t)p->value.address, p->value.value64, __ATOMIC_RELEASE);
      break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      for (long turns = 0; !satisfied(p) && !__atomic_load_n(&c->sticky, __ATOMIC_RELAXED); turns++)
        if (turns < 200)
          sched_yield();
        else
          usleep(turns < 2000 ? 20 : 500);
      break;
    default: __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }
  }
}

/* Runs the front of a queue. With the lock; returns with it. */
static void run(fake_op *op) {
  fake_work *w = &op->work;
  CUcontext c = op->stream->ctx;
  if (c->sticky && w->kind != DO_LAUNCHED) {
    finish(op);
    return;
  }
  switch (w->kind) {
  case DO_KERNEL: fake_run(on_multiprocessors, op); return;
  case DO_COPY:
    if (w->copy.on_sms) {
      fake_run(on_multiprocessors, op);
      return;
    }
    pthread_mutex_unlock(&fake_lock);
    memmove((void *)(uintptr_t)w->copy.to, (const void *)(uintptr_t)w->copy.from, w->copy.bytes);
    pthread_mutex_lock(&fake_lock);
    break;
  case DO_SET:
    pthread_mutex_unlock(&fake_lock);
    set(w);
    pthread_mutex_lock(&fake_lock);
    break;
  case DO_MEMOPS:
    pthread_mutex_unlock(&fake_lock);
    memops(c, w);
    pthread_mutex_lock(&fake_lock);
    break;
  case DO_RECORD:
    if (w->record.event->generation == w->record.generation) clock_gettime(CLOCK_MONOTONIC, &w->record.event->when);
    break;
  case DO_HOST:
    pthread_mutex_unlock(&fake_lock);
    w->host.fn(w->host.arg);
    pthread_mutex_lock(&fake_lock);
    break;
  case DO_FREE: {
    fake_range *r = fake_range_of(w->free);
    if (r) fake_range_free(r);
    break;
  }
  case DO_LAUNCHED: fake_exec_unref(w->launched); break;
  case DO_NOTHING: break;
  }
  finish(op);
}

static int ready(const fake_op *op) {
  if (op->stream->done + 1 != op->seq) return 0;
  for (int i = 0; i < op->npoints; i++)
    if (!fake_reached(op->points[i])) return 0;
  return 1;
}

static void *queue_thread(void *arg) {
  fake_queue *q = arg;
  fake_allow_device_memory();
  pthread_mutex_lock(&fake_lock);
  while (!q->ending || q->first) {
    fake_op *op = q->first;
    if (!op) {
      pthread_cond_wait(&q->wake, &fake_lock);
      continue;
    }
    while (!ready(op)) pthread_cond_wait(&fake_changed, &fake_lock);
    q->first = op->next;
    if (!q->first) q->last = &q->first;
    op->stream->started = op->seq;
    op->stream->doing = op->work.call;
    run(op);
  }
  pthread_mutex_unlock(&fake_lock);
  return NULL;
}

void fake_queue_push(fake_queue *q, fake_op *op) {
  *q->last = op;
  q->last = &op->next;
  if (!q->started) q->started = start_thread(&q->thread, queue_thread, q) == 0;
  pthread_cond_signal(&q->wake);
}
