/* Issue order and the driving loop.
 *
 * Operations of one communicator run in the order in which their calls took a ticket, whatever thread or stream runs
 * them. A launch that contains several communicators holds one ticket of each and drives each as soon as it is its turn,
 * so that ranks which share a thread never wait for each other behind a blocked call.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <time.h>

#include "probe.h"
#include "remote.h"

/* With the load in aborted() and the core's store of abort before gccl_order_quiesce, all sequentially consistent: a call either
 * is waited for by the quiesce that follows an abort, or sees the abort before it touches anything that is then freed. */
uint64_t gccl_order_take(struct ncclComm *c) { return atomic_fetch_add_explicit(&c->next, 1, memory_order_seq_cst); }

static inline int aborted(const struct ncclComm *c) {
  return __builtin_expect(atomic_load_explicit(&c->abort, memory_order_seq_cst) != 0, 0);
}

static inline int served(const struct ncclComm *c, uint64_t ticket) {
  return atomic_load_explicit(&c->serving, memory_order_acquire) == ticket;
}

static inline void pass_on(struct ncclComm *c, uint64_t ticket) { atomic_store_explicit(&c->serving, ticket + 1, memory_order_release); }

/* Waiting for a turn is waiting for another thread of this process: short yields, then naps. */
static void nap(struct ncclComm *c, unsigned *naps) {
  if ((*naps)++ < 200) {
    sched_yield();
    return;
  }
  struct timespec t = {0, *naps < 400 ? 50000 : 1000000};
  nanosleep(&t, NULL);
  gccl_interrupt_check(c);
}

static int failure_of(struct ncclComm *c) {
  int32_t e;
  while ((e = atomic_load_explicit(&c->error, memory_order_acquire)) == -1) sched_yield(); /* its text is being written */
  return e > 0 ? e : GCCL_RC_USAGE;
}

int gccl_order_quiesce(struct ncclComm *c, uint64_t timeout_ns) {
  uint64_t start = gccl_now_ns();
  uint64_t goal = atomic_load(&c->next);
  for (unsigned naps = 0; atomic_load_explicit(&c->serving, memory_order_acquire) < goal;) {
    nap(c, &naps);
    if (timeout_ns && gccl_now_ns() - start > timeout_ns) return GCCL_RC_TIMEOUT;
  }
  return GCCL_DONE;
}

typedef struct {
  gccl_op *op;
  int rc;
} one;

static int recheck_one(void *arg) {
  one *o = arg;
  o->op->moved = 0;
  o->rc = gccl_op_step(o->op);
  return o->rc != GCCL_BLOCKED || o->op->moved;
}

static inline int ended(gccl_op *op, uint64_t ticket, int r) {
  struct ncclComm *c = op->comm;
  if (gccl_probed(c)) gccl_probe_end(op, r);
  pass_on(c, ticket);
  return r;
}

int gccl_drive_begun(gccl_op *op, uint64_t ticket) {
  struct ncclComm *c = op->comm;
  gccl_idle idle = {0};
  int r;
  while ((r = gccl_op_step(op)) == GCCL_BLOCKED) {
    if (__builtin_expect(atomic_load_explicit(&c->abort, memory_order_relaxed), 0)) {
      r = failure_of(c);
      break;
    }
    if (op->moved) {
      op->moved = 0;
      gccl_idle_reset(&idle);
    }
    if (gccl_port_help(c)) continue;
    one o = {op, GCCL_BLOCKED};
    gccl_idle_wait(&idle, op, op->blocked_on, recheck_one, &o, UINT64_MAX);
    if (o.rc != GCCL_BLOCKED) { /* it ended in the recheck */
      r = o.rc;
      break;
    }
  }
  return ended(op, ticket, r);
}

int gccl_drive_one(gccl_op *op, uint64_t ticket) {
  struct ncclComm *c = op->comm;
  for (unsigned naps = 0; __builtin_expect(!served(c, ticket), 0);) nap(c, &naps);
  int r = aborted(c) ? failure_of(c) : gccl_op_begin(op);
  if (r == 0) return gccl_drive_begun(op, ticket);
  return ended(op, ticket, r);
}

/* One turn of a batch: returns GCCL_DONE when it has ended (rc says how), else GCCL_BLOCKED. moved says whether anything changed. */
static int turn(gccl_batch *b, int *moved) {
  struct ncclComm *c = b->comm;
  if (b->left < 0) return GCCL_DONE;
  if (!b->begun) {
    if (!served(c, b->ticket)) return GCCL_BLOCKED;
    b->begun = 1;
    b->coll = -1;
    b->left = b->nops;
    *moved = 1;
    for (int i = 0; i < b->nops && !aborted(c); i++)
      if (b->ops[i].kind != GCCL_DO_COLL) b->ops[i].fold = 0, b->rc = gccl_op_begin(&b->ops[i]);
  }
  if (aborted(c)) {
    b->rc = failure_of(c);
    b->left = -1;
    for (int i = 0; i < b->nops && gccl_probed(c); i++)
      if (!b->ops[i].finished) gccl_probe_end(&b->ops[i], b->rc);
    pass_on(c, b->ticket);
    *moved = 1;
    return GCCL_DONE;
  }
  for (int i = 0; i < b->nops; i++) {
    gccl_op *op = &b->ops[i];
    if (op->finished) continue;
    if (op->kind == GCCL_DO_COLL) { /* the first unfinished collective only */
      if (b->coll >= 0 && b->coll != i) continue;
      if (b->coll < 0) {
        b->coll = i;
        if ((b->rc = gccl_op_begin(op)) != 0) continue; /* latched: the next turn ends the batch */
      }
    }
    op->moved = 0;
    int r = gccl_op_step(op);
    *moved |= op->moved;
    if (r == GCCL_BLOCKED) continue;
    *moved = 1;
    if (r != GCCL_DONE) continue; /* latched */
    op->finished = 1;
    if (gccl_probed(c)) gccl_probe_end(op, 0);
    b->left--;
    if (op->kind == GCCL_DO_COLL) b->coll = -1;
  }
  if (b->left > 0) {
    *moved |= gccl_port_help(c);
    return GCCL_BLOCKED;
  }
  b->rc = 0;
  b->left = -1;
  pass_on(c, b->ticket);
  return GCCL_DONE;
}

typedef struct {
  gccl_batch *b;
  int n;
} many;

/* blocked: an operation that waits for a peer, NULL if all wait for their turn. */
static int all_turns(many *m, int *active, const gccl_op **blocked, int *on) {
  int moved = 0;
  *active = 0;
  *blocked = NULL;
  for (int i = 0; i < m->n; i++) {
    gccl_batch *b = &m->b[i];
    if (b->left < 0 || turn(b, &moved) == GCCL_DONE) continue;
    ++*active;
    if (b->begun && !*blocked) {
      for (int k = 0; k < b->nops && !*blocked; k++)
        if (!b->ops[k].finished && (b->ops[k].kind != GCCL_DO_COLL || b->coll == k)) *blocked = &b->ops[k];
      *on = b->left == 1 && *blocked ? (*blocked)->blocked_on : -1;
    }
  }
  return moved;
}

static int recheck_many(void *arg) {
  int active, on;
  const gccl_op *blocked;
  return all_turns(arg, &active, &blocked, &on) || active == 0;
}

/* The first batch that has not ended. */
static int waiting(const gccl_batch *b, int n) {
  int i = 0;
  while (i < n - 1 && b[i].left < 0) i++;
  return i;
}

int gccl_drive(gccl_batch *batches, int n) {
  many m = {batches, n};
  gccl_idle idle = {0};
  unsigned naps = 0;
  for (int i = 0; i < n; i++) {
    batches[i].begun = batches[i].left = batches[i].rc = 0;
    for (int k = 0; k < batches[i].nops; k++) batches[i].ops[k].finished = 0;
  }
  for (;;) {
    int active, on = -1;
    const gccl_op *blocked;
    int moved = all_turns(&m, &active, &blocked, &on);
    if (!active) break;
    if (moved) {
      gccl_idle_reset(&idle);
      naps = 0;
      continue;
    }
    if (!blocked || blocked->comm->nranks == 1)
      nap(blocked ? blocked->comm : batches[waiting(batches, n)].comm, &naps);
    else /* a sleeper on one communicator's word does not hear the others: sleep briefly unless it is the only one */
      gccl_idle_wait(&idle, blocked, active == 1 ? on : -1, recheck_many, &m, active == 1 ? UINT64_MAX : 500000);
  }
  int rc = 0;
  for (int i = 0; i < n; i++)
    if (batches[i].rc) rc = batches[i].rc;
  return rc;
}
