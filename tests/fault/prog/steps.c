/* steps.c: see faults.h. */
#include "faults.h"

#include <ctype.h>

int names_rank(int me, const char *text, int rank, const char *where) {
  char want[24];
  int n = snprintf(want, sizeof want, "rank %d", rank);
  for (const char *s = text; (s = strstr(s, want)); s += n)
    if (!isdigit((unsigned char)s[n])) return 1;
  /* Lists: "ranks 2 and 3", "ranks 1, 2". */
  for (const char *s = text; (s = strstr(s, "ranks "));)
    for (s += 6; isdigit((unsigned char)*s) || (*s && strchr(", and", *s)); s++)
      if (isdigit((unsigned char)*s) && !isdigit((unsigned char)s[-1]) && strtol(s, NULL, 10) == rank) return 1;
  return conf_fail(me, "%s: the text does not name rank %d: \"%s\"", where, rank, text);
}

void bounded_abort(int rank, ncclComm_t comm) {
  double start = conf_now();
  OK(rank, ncclCommAbort(comm));
  double took = conf_now() - start;
  if (took > ABORT_SECONDS) conf_fail(rank, "ncclCommAbort took %.1f s", took);
}

static void *aborter_main(void *arg) {
  struct aborter *a = arg;
  conf_await(a->word, 1, 30);
  conf_sleep(a->delay);
  double start = conf_now();
  ncclResult_t rc = ncclCommAbort(*a->comm);
  a->took = conf_now() - start;
  conf_rc(a->rank, ncclSuccess, rc, "ncclCommAbort from another thread", __FILE__, __LINE__);
  return NULL;
}

void aborter_start(struct aborter *a, int rank, ncclComm_t *comm, int word, double delay) {
  *a = (struct aborter){.rank = rank, .word = word, .delay = delay, .comm = comm};
  if (pthread_create(&a->thread, NULL, aborter_main, a)) conf_fail(rank, "pthread_create failed");
}

void aborter_join(struct aborter *a) {
  pthread_join(a->thread, NULL);
  if (a->took > ABORT_SECONDS) conf_fail(a->rank, "ncclCommAbort from another thread took %.1f s", a->took);
}
