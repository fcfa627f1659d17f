/* What to say about an operation that does not end. Of a message or signals: who is waited for, how far that rank is, and whether
 * ranks wait for each other in a circle; all of it is read from the shared areas. Of a collective in host mode the core speaks
 * (comm/late.go). */
#include <stdio.h>
#include <time.h>

#include "exec.h"

/* Whom a rank sleeps on; -1 if it is awake or waits for several. A sleeper is awake for some microseconds between two naps,
 * often at the same time as the rank that looks, so one look is not enough. */
static int waits_for(const struct ncclComm *c, int q) {
  const gccl_area *a = gccl_area_of(c, q);
  struct timespec nap = {0, 1000000};
  for (int looks = 0; looks < 20; looks++) {
    if (__atomic_load_n(&a->asleep, __ATOMIC_ACQUIRE)) return __atomic_load_n(&a->asleep_on, __ATOMIC_RELAXED);
    nanosleep(&nap, NULL);
  }
  return -1;
}

/* "0 → 1 → 2 → 0" if the ranks that follow from this one come back to it. */
static int cycle(const struct ncclComm *c, int on, char *out, size_t size) {
  int n = snprintf(out, size, "%d", c->rank);
  for (int q = on, hops = 0; q >= 0 && hops < c->nranks && (size_t)n < size; hops++) {
    n += snprintf(out + n, size - (size_t)n, " -> %d", q);
    if (q == c->rank) return 1;
    q = waits_for(c, q);
  }
  return 0;
}

void gccl_late_report(const gccl_op *op, int turn, int32_t on, uint64_t waited) {
  const struct ncclComm *c = op->comm;
  char what[160], where[160], circle[160], text[768];
  if (op->kind == GCCL_DO_COLL)
    snprintf(what, sizeof what, "%s of %llu %s", gccl_coll_names[op->coll], (unsigned long long)op->count, gccl_type_names[op->dtype]);
  if (op->kind == GCCL_DO_COLL &&
      !c->cuda) { /* one rank speaks for all: the core finds out which, and asks those that cannot be read here */
    if (c->late) c->late(c, op->seq, turn, what, waited);
    return;
  }
  if (!c->report) return;
  if (op->kind == GCCL_DO_SEND || op->kind == GCCL_DO_RECV)
    snprintf(what, sizeof what, "message %llu %s rank %d (%llu %s)", (unsigned long long)op->seq, op->kind == GCCL_DO_SEND ? "to" : "from",
             op->root, (unsigned long long)op->count, gccl_type_names[op->dtype]);
  else if (op->kind != GCCL_DO_COLL)
    snprintf(what, sizeof what, "%llu signals of rank %d", (unsigned long long)op->count, op->root);
  if (on < 0 || c->nranks == 1) {
    on = -1;
    snprintf(where, sizeof where, "%s", c->nranks == 1 ? "itself" : "several ranks");
  } else if (c->absent) { /* its areas do not say how far it is */
    c->absent(op, where, sizeof where);
  } else {
    uint64_t p = gccl_load(&gccl_area_of(c, on)->progress) >> GCCL_STEP_BITS;
    snprintf(where, sizeof where, "rank %d, which has finished collective %llu", on, (unsigned long long)(p ? p - 1 : 0));
  }
  int round = on >= 0 && cycle(c, on, circle, sizeof circle);
  snprintf(text, sizeof text, "rank %d of %d waits since %llu s for %s, in %s%s%s%s", c->rank, c->nranks,
           (unsigned long long)(waited / 1000000000ull), where, what, round ? "; ranks wait for each other: " : "", round ? circle : "",
           round ? ": put the calls into one group" : "");
  c->report(c, text);
}
