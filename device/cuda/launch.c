/* Leader execution: the life of a batch, which is what one communicator does in one launch.
 *
 *   begin    its turn has come; its stream is ordered behind the communicator's last operation
 *   publish  "ready" is in the stream; the records of operations that another rank executes are out
 *   execute  operations of which this rank is the executor: wait (on the host) for the others' records, launch
 *   finish   the stream waits for the executors' ends: on the host until they have launched, if they are of this process (meet.c)
 *
 * All batches of a launch publish before any executes, and all execute before a stream waits for another executor, so that no stream
 * waits for something that is enqueued behind it. Nothing here waits for the device.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../host/exec/probe.h"
#include "launch.h"

int gccl_cuda_failed(struct ncclComm *c, CUresult e, const char *what) {
  const char *hint = "";
  if (e == CUDA_ERROR_ILLEGAL_ADDRESS || e == CUDA_ERROR_LAUNCH_FAILED)
    hint = ": a kernel of this process failed before, the program's own or one that was given memory that is not there; compute-sanitizer "
           "names it";
  else if (e == CUDA_ERROR_OUT_OF_MEMORY)
    hint = ": the device has no memory left";
  gccl_comm_latch(c, GCCL_RC_CUDA, "rank %d of %d, device %d: %s: error %d (%s)%s", c->rank, c->nranks, c->device, what, e,
                  gccl_cuda_text(e), hint);
  return GCCL_RC_CUDA;
}

CUresult gccl_cuda_memops_flush(gccl_cuda_memops *m, CUstream s) {
  if (m->n == 0) return CUDA_SUCCESS;
  unsigned n = m->n;
  m->n = 0;
  return gccl_cu.StreamBatchMemOp(s, n, m->op, 0);
}

static CUresult memop(gccl_cuda_memops *m, CUstream s, int operation, CUdeviceptr at, uint32_t value, unsigned flags) {
  if (m->n == MEMOPS) {
    CUresult e = gccl_cuda_memops_flush(m, s);
    if (e) return e;
  }
  CUstreamBatchMemOpParams *p = &m->op[m->n++];
  memset(p, 0, sizeof *p);
  p->value.operation = operation;
  p->value.address = at;
  p->value.value = value;
  p->value.flags = flags;
  return CUDA_SUCCESS;
}

CUresult gccl_cuda_say(gccl_cuda_memops *m, CUstream s, CUdeviceptr word, int slot, uint64_t number) {
  return memop(m, s, CU_STREAM_MEM_OP_WRITE_VALUE_32, word, slot ? 1 : (uint32_t)number, CU_STREAM_WRITE_VALUE_DEFAULT);
}

CUresult gccl_cuda_await(gccl_cuda_memops *m, CUstream s, CUdeviceptr word, int slot, uint64_t number) {
  if (!slot) return memop(m, s, CU_STREAM_MEM_OP_WAIT_VALUE_32, word, (uint32_t)number, CU_STREAM_WAIT_VALUE_GEQ);
  CUresult e = memop(m, s, CU_STREAM_MEM_OP_WAIT_VALUE_32, word, 1, CU_STREAM_WAIT_VALUE_EQ);
  return e ? e : memop(m, s, CU_STREAM_MEM_OP_WRITE_VALUE_32, word, 0, CU_STREAM_WRITE_VALUE_DEFAULT);
}

CUresult gccl_cuda_pass(gccl_cuda_memops *m, CUstream s, CUdeviceptr word, uint32_t bits, uint32_t value) {
  CUresult e = memop(m, s, CU_STREAM_MEM_OP_WAIT_VALUE_32, word, bits, CU_STREAM_WAIT_VALUE_AND);
  return e ? e : memop(m, s, CU_STREAM_MEM_OP_WRITE_VALUE_32, word, value, CU_STREAM_WRITE_VALUE_DEFAULT);
}

/* Why a wait of a launch that has another executor of this process is a kernel: meet.c. */
CUresult gccl_cuda_wait_launch(const gccl_cuda_comm *d, CUstream s, int executor, uint32_t number) {
  gccl_wait_work w = {.word = done_word(d, d->rank, executor, 0), .value = number};
  void *params[] = {&w};
  return gccl_cu.LaunchKernel(d->cx->wait, 1, 1, 1, 32, 1, 1, 0, s, params, NULL);
}

/* Makes stream `to` wait for what is in `from` now. */
static CUresult join(gccl_cuda_context *x, CUstream from, CUstream to) {
  gccl_cuda_event *v = gccl_cuda_event_get(x);
  if (!v) return CUDA_ERROR_OUT_OF_MEMORY;
  atomic_store(&v->refs, 1);
  CUresult e = gccl_cu.EventRecord(v->event, from);
  if (!e) e = gccl_cu.StreamWaitEvent(to, v->event, 0);
  gccl_cuda_event_unref(v);
  return e;
}

/* The other streams of the batch, each once: their work so far comes before it, and what comes later after it. */
static CUresult join_streams(const gccl_cuda_batch *b, int before) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  CUresult e = CUDA_SUCCESS;
  for (int i = 1; i < b->nops && !e; i++) {
    int seen = b->streams[i] == b->stream;
    for (int k = 0; k < i && !seen; k++) seen = b->streams[k] == b->streams[i];
    if (!seen) e = before ? join(d->cx, b->streams[i], b->stream) : join(d->cx, b->stream, b->streams[i]);
  }
  return e;
}

/* Operations of a communicator run in the order of their calls. */
static CUresult behind_last(const gccl_cuda_batch *b) {
  const gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  const gccl_cuda_tail *t = &d->tail;
  if (t->capture != b->capture || t->stream == b->stream) return CUDA_SUCCESS;
  if (t->event) return gccl_cu.StreamWaitEvent(b->stream, t->event->event, 0);
  if (t->executor < 0 || launch_done(d, t->executor, t->number)) return CUDA_SUCCESS;
  if (t->executor != d->rank && d->peer[t->executor].same_process) return gccl_cuda_wait_launch(d, b->stream, t->executor, t->number);
  gccl_cuda_memops m = {.n = 0}; /* written by another process, or by a launch that is in its stream already */
  CUresult e = gccl_cuda_await(&m, b->stream, done_word(d, d->rank, t->executor, 0), 0, t->number);
  return e ? e : gccl_cuda_memops_flush(&m, b->stream);
}

int gccl_cuda_begin(gccl_cuda_batch *b) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  int status = CU_STREAM_CAPTURE_STATUS_NONE;
  b->stream = b->streams[0];
  b->capture = 0;
  CUresult e = gccl_cu.StreamGetCaptureInfo(b->stream, &status, &b->capture, &b->graph, NULL, NULL);
  if (e) return gccl_cuda_failed(c, e, "cuStreamGetCaptureInfo: is the stream alive, and of this device?");
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) b->capture = 0;
  if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
    gccl_comm_latch(c, GCCL_RC_USAGE,
                    "rank %d of %d: the capture of the stream has been invalidated by an earlier call: end it and begin anew", c->rank,
                    c->nranks);
    return GCCL_RC_USAGE;
  }
  gccl_cuda_driven(d, 0);
  b->executor = -1;
  b->meets = !b->capture && atomic_load(&d->meets);
  if ((e = behind_last(b))) return gccl_cuda_failed(c, e, "waiting for the communicator's last operation");
  if ((e = join_streams(b, 1))) return gccl_cuda_failed(c, e, "joining the streams of a group");
  for (int i = 0; i < b->nops; i++) {
    gccl_op *x = &b->ops[i];
    x->phase = OP_NEW;
    x->spins = 0;
    x->esize = (uint32_t)gccl_dtype_size(x->dtype);
    x->hash = gccl_call_hash(x);
    if (x->kind == GCCL_DO_COLL) {
      x->seq = d->colls + 1;
      gccl_cuda_joined(d, x);
      gccl_store(&d->colls, x->seq);
    }
    if (x->kind == GCCL_DO_SEND) x->seq = ++d->sent[x->root];
    if (x->kind == GCCL_DO_RECV) x->seq = ++d->received[x->root];
  }
  if (b->capture && (b->slot = gccl_cuda_slot(b)) < 0) return GCCL_RC_CUDA;
  b->spins = gccl_cuda_spin_choose(b);
  b->ready = NULL;
  b->phase = PH_PUBLISH;
  if (gccl_probed(c))
    for (int i = 0; i < b->nops; i++) gccl_probe_run(&b->ops[i]);
  return 0;
}

/* The end of the batch in its stream, for the communicator's next operation on another one and for whoever waits for all work. */
int gccl_cuda_end(gccl_cuda_batch *b) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  gccl_cuda_tail t = {.event = b->end, .executor = b->executor, .stream = b->stream, .capture = b->capture, .seq = d->colls};
  CUresult e = join_streams(b, 0);
  b->end = NULL;
  if (t.executor >= 0) {
    t.number = (uint32_t)d->launches[t.executor];
  } else if (!e && !t.event) {
    t.event = gccl_cuda_event_get(d->cx);
    if (!t.event) e = CUDA_ERROR_OUT_OF_MEMORY;
    if (!e) {
      atomic_store(&t.event->refs, 1);
      e = gccl_cu.EventRecord(t.event->event, b->stream);
    }
  }
  if (e) {
    gccl_cuda_event_unref(t.event);
    return gccl_cuda_failed(c, e, "the end of an operation");
  }
  pthread_mutex_lock(&d->guard);
  gccl_cuda_tail_replace(d, &t);
  pthread_mutex_unlock(&d->guard);
  return 0;
}

static int aborted(const struct ncclComm *c) { return atomic_load_explicit(&c->abort, memory_order_seq_cst) != 0; }

static int failure_of(struct ncclComm *c) {
  int32_t e;
  while ((e = atomic_load_explicit(&c->error, memory_order_acquire)) == -1) sched_yield(); /* its text is being written */
  return e > 0 ? e : GCCL_RC_USAGE;
}

static void pass_on(gccl_cuda_batch *b) {
  gccl_cuda_event_unref(b->end);
  b->end = NULL;
  b->phase = PH_END;
  atomic_store_explicit(&b->comm->serving, b->ticket + 1, memory_order_release);
}

/* Batches that a thread drives, and the context that is current for them. */
typedef struct {
  gccl_cuda_batch *b;
  int n;
  const gccl_cuda_context *in;
  CUcontext before;
} many;

static void leave_context(many *m) {
  if (m->in) gccl_cuda_leave(m->in, m->before);
  m->in = NULL;
}

static CUresult enter_context(many *m, const gccl_cuda_context *x) {
  if (m->in == x) return CUDA_SUCCESS;
  leave_context(m);
  CUresult e = gccl_cuda_enter(x, &m->before);
  if (!e) m->in = x;
  return e;
}

/* Goes on with a batch as far as it can. Returns whether it moved. */
static int turn(many *m, gccl_cuda_batch *b, int up_to) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  int moved = 0;
  while (b->phase < up_to) {
    int r = 0, phase = b->phase;
    if (phase == PH_NEW && atomic_load_explicit(&c->serving, memory_order_acquire) != b->ticket) return moved;
    if (aborted(c)) {
      b->rc = failure_of(c);
      pass_on(b);
      return 1;
    }
    CUresult e = enter_context(m, d->cx);
    if (e) {
      r = gccl_cuda_failed(c, e, "the context of the communicator cannot be made current");
    } else {
      switch (phase) {
      case PH_NEW: r = gccl_cuda_begin(b); break;
      case PH_PUBLISH:
        if (b->spins && !b->announced && (r = gccl_cuda_spin(b))) break;
        if (b->spins == b->nops)
          b->phase = PH_FINISH;
        else if ((r = gccl_cuda_publish(b, m->b, m->n)) == 0)
          b->phase = PH_EXECUTE;
        break;
      case PH_EXECUTE:
        if ((r = gccl_cuda_execute(b)) == 0) b->phase = PH_FINISH;
        break;
      default:
        if ((r = gccl_cuda_finish(b)) == 0 && (r = gccl_cuda_end(b)) == 0) pass_on(b);
      }
    }
    if (r > 0) {
      b->rc = r;
      pass_on(b);
      return 1;
    }
    if (r == GCCL_BLOCKED) {
      int progress = b->blocked && b->blocked->moved;
      if (b->blocked && gccl_probed(c) && (b->told != b->blocked || b->told_on != b->blocked_on)) {
        b->told = b->blocked;
        b->told_on = b->blocked_on;
        gccl_probe_step(b->blocked, GCCL_WAIT_PEERS, NULL, b->blocked_on, NULL);
      }
      if (b->blocked) b->blocked->moved = 0;
      return moved | progress;
    }
    moved = 1;
  }
  return moved;
}

static int turns(many *m) {
  gccl_cuda_batch *b = m->b;
  int moved = 0, n = m->n;
  for (int phase = PH_EXECUTE; phase <= PH_END; phase++) {
    int behind = 0;
    for (int i = 0; i < n; i++) {
      moved |= turn(m, &b[i], phase);
      behind += b[i].phase < phase;
    }
    /* The records of those that have published are needed elsewhere; but a stream may be that of several batches, and what one executes
     * must not stand behind what another one waits for. */
    if (behind && phase == PH_FINISH) break;
  }
  return moved;
}

static int recheck(void *arg) { return turns(arg); }

/* Lets batches that wait for other threads' executors go. Not while this thread has something to execute itself, which somebody may
 * wait for; not in a capture, where only events of that capture order its streams; and not in the legacy stream, which may be the
 * executor's too and for which all blocking streams wait. */
static int leave(gccl_cuda_batch *b, int n) {
  int any = 0;
  for (int i = 0; i < n; i++)
    if (b[i].phase < PH_FINISH) return 0;
  for (int i = 0; i < n; i++)
    if (b[i].phase == PH_FINISH && !b[i].capture && !b[i].meets && b[i].stream && b[i].stream != CU_STREAM_LEGACY) any = b[i].leave = 1;
  return any;
}

enum { LOOK_AFTER_NS = 200000, LOOK_EVERY_NS = 1000000, LOOK_AT_WORDS_NS = 50000, LEFT_AFTER_NS = 200000000 };

int gccl_cuda_drive(gccl_cuda_batch *b, int n) {
  int rc = 0;
  gccl_idle idle = {0};
  gccl_cuda_meeting meeting = {0};
  many m = {.b = b, .n = n};
  for (;;) {
    int moved = turns(&m), left = 0;
    gccl_cuda_batch *waits = NULL;
    for (int i = 0; i < n; i++) {
      if (b[i].phase == PH_END) continue;
      left++;
      if (b[i].phase > PH_NEW && b[i].blocked && !waits) waits = &b[i];
    }
    if (!left) break;
    if (moved) {
      gccl_idle_reset(&idle);
      gccl_cuda_met(&meeting);
      continue;
    }
    if (waits && waits->comm->sleepers) {
      uint64_t waited = idle.since ? gccl_now_ns() - idle.since : 0;
      if (waited > LOOK_AFTER_NS && gccl_cuda_give_up(&meeting, waits, waited) && leave(b, n)) continue;
      if (waited > LEFT_AFTER_NS) gccl_cuda_left(waits->blocked);
      /* Several communicators: a peer of another one does not wake this sleeper. */
      uint64_t most = left > 1 ? LOOK_AFTER_NS : waits->meets ? LOOK_AT_WORDS_NS : waits->phase == PH_FINISH ? LOOK_EVERY_NS : UINT64_MAX;
      gccl_idle_wait(&idle, waits->blocked, waits->blocked_on, recheck, &m, most);
    } else { /* another thread is at work on the communicator */
      struct timespec t = {0, 20000};
      nanosleep(&t, NULL);
    }
  }
  gccl_cuda_met(&meeting);
  leave_context(&m);
  for (int i = 0; i < n; i++)
    if (b[i].rc) rc = b[i].rc;
  return rc;
}
