/* Leader execution: the life of a batch, which is what one communicator does in one launch.
 *
 *   begin    its turn has come; its stream is ordered behind the communicator's last operation
 *   publish  "ready" is in the stream; the records of operations that another rank executes are out
 *   execute  operations of which this rank is the executor: wait (on the host) for the others' records, launch
 *   finish   the stream waits for the executors' ends
 *
 * All batches of a launch publish before any executes, and all execute before a stream waits for another executor, so that no stream
 * waits for something that is enqueued behind it. Nothing here waits for the device.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launch.h"

enum { PH_NEW, PH_PUBLISH, PH_EXECUTE, PH_FINISH, PH_END };

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

CUresult gccl_cuda_memop(gccl_cuda_memops *m, CUstream s, int operation, CUdeviceptr at, uint32_t value) {
  if (m->n == MEMOPS) {
    CUresult e = gccl_cuda_memops_flush(m, s);
    if (e) return e;
  }
  CUstreamBatchMemOpParams *p = &m->op[m->n++];
  memset(p, 0, sizeof *p);
  p->value.operation = operation;
  p->value.address = at;
  p->value.value = value;
  p->value.flags = operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ? CU_STREAM_WAIT_VALUE_EQ : CU_STREAM_WRITE_VALUE_DEFAULT;
  return CUDA_SUCCESS;
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
  if (d->tail && d->tail_capture == b->capture && d->tail_stream != b->stream &&
      (e = gccl_cu.StreamWaitEvent(b->stream, d->tail->event, 0)))
    return gccl_cuda_failed(c, e, "cuStreamWaitEvent");
  if ((e = join_streams(b, 1))) return gccl_cuda_failed(c, e, "joining the streams of a group");
  for (int i = 0; i < b->nops; i++) {
    gccl_op *x = &b->ops[i];
    x->phase = OP_NEW;
    x->esize = (uint32_t)gccl_dtype_size(x->dtype);
    x->hash = gccl_call_hash(x);
    if (x->kind == GCCL_DO_COLL) x->seq = ++d->colls;
    if (x->kind == GCCL_DO_SEND) x->seq = ++d->sent[x->root];
    if (x->kind == GCCL_DO_RECV) x->seq = ++d->received[x->root];
  }
  if (b->capture && (b->slot = gccl_cuda_slot(b)) < 0) return GCCL_RC_CUDA;
  b->ready = NULL;
  b->phase = PH_PUBLISH;
  return 0;
}

/* The end of the batch in its stream, for the communicator's next operation on another one and for whoever waits for all work. */
int gccl_cuda_end(gccl_cuda_batch *b) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  CUresult e = join_streams(b, 0);
  gccl_cuda_event *v = e ? NULL : gccl_cuda_event_get(d->cx);
  if (!e && !v) e = CUDA_ERROR_OUT_OF_MEMORY;
  if (!e) {
    atomic_store(&v->refs, 1);
    e = gccl_cu.EventRecord(v->event, b->stream);
  }
  if (e) {
    if (v) gccl_cuda_event_unref(v);
    return gccl_cuda_failed(c, e, "the end of an operation");
  }
  pthread_mutex_lock(&d->guard);
  gccl_cuda_event_unref(d->tail);
  d->tail = v;
  d->tail_stream = b->stream;
  d->tail_capture = b->capture;
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
  b->phase = PH_END;
  atomic_store_explicit(&b->comm->serving, b->ticket + 1, memory_order_release);
}

/* Goes on with a batch as far as it can. Returns whether it moved. */
static int turn(gccl_cuda_batch *b, gccl_cuda_batch *all, int n, int up_to) {
  struct ncclComm *c = b->comm;
  gccl_cuda_comm *d = gccl_cuda_of(c);
  int moved = 0;
  CUcontext before;
  while (b->phase < up_to) {
    int r = 0, phase = b->phase;
    if (phase == PH_NEW && atomic_load_explicit(&c->serving, memory_order_acquire) != b->ticket) return moved;
    if (aborted(c)) {
      b->rc = failure_of(c);
      pass_on(b);
      return 1;
    }
    CUresult e = gccl_cuda_enter(d->cx, &before);
    if (e) {
      r = gccl_cuda_failed(c, e, "the context of the communicator cannot be made current");
    } else {
      switch (phase) {
      case PH_NEW: r = gccl_cuda_begin(b); break;
      case PH_PUBLISH:
        if ((r = gccl_cuda_publish(b, all, n)) == 0) b->phase = PH_EXECUTE;
        break;
      case PH_EXECUTE:
        if ((r = gccl_cuda_execute(b)) == 0) b->phase = PH_FINISH;
        break;
      default:
        if ((r = gccl_cuda_finish(b)) == 0 && (r = gccl_cuda_end(b)) == 0) pass_on(b);
      }
      gccl_cuda_leave(d->cx, before);
    }
    if (r > 0) {
      b->rc = r;
      pass_on(b);
      return 1;
    }
    if (r == GCCL_BLOCKED) {
      int progress = b->blocked && b->blocked->moved;
      if (b->blocked) b->blocked->moved = 0;
      return moved | progress;
    }
    moved = 1;
  }
  return moved;
}

typedef struct {
  gccl_cuda_batch *b;
  int n;
} many;

static int turns(gccl_cuda_batch *b, int n) {
  int moved = 0;
  for (int phase = PH_EXECUTE; phase <= PH_END; phase++) {
    int behind = 0;
    for (int i = 0; i < n; i++) {
      moved |= turn(&b[i], b, n, phase);
      behind += b[i].phase < phase;
    }
    /* The records of those that have published are needed elsewhere; but a stream may be that of several batches, and what one executes
     * must not stand behind what another one waits for. */
    if (behind && phase == PH_FINISH) break;
  }
  return moved;
}

static int recheck(void *arg) {
  many *m = arg;
  return turns(m->b, m->n);
}

int gccl_cuda_drive(gccl_cuda_batch *b, int n) {
  int rc = 0;
  gccl_idle idle = {0};
  for (;;) {
    int moved = turns(b, n), left = 0;
    gccl_cuda_batch *waits = NULL;
    for (int i = 0; i < n; i++) {
      if (b[i].phase == PH_END) continue;
      left++;
      if (b[i].phase > PH_NEW && b[i].blocked && !waits) waits = &b[i];
    }
    if (!left) break;
    if (moved) {
      gccl_idle_reset(&idle);
      continue;
    }
    if (waits && waits->comm->sleepers) {
      many m = {b, n};
      /* Several communicators: a peer of another one does not wake this sleeper. */
      gccl_idle_wait(&idle, waits->blocked, waits->blocked_on, recheck, &m, left > 1 ? 200000 : UINT64_MAX);
    } else { /* another thread is at work on the communicator */
      struct timespec t = {0, 20000};
      nanosleep(&t, NULL);
    }
  }
  for (int i = 0; i < n; i++)
    if (b[i].rc) rc = b[i].rc;
  return rc;
}
