/* settings.c: C23 settings that differ between ranks, C25 what a run with logs prints. */
#include "cases.h"

/* One rank alone has a setting. Ranks agree on something that works, or all get an error with a table of who has
 * what; never a hang, never a wrong result. Ranks are processes, so each has an environment of its own. */
void c23(struct team *t) {
  static const struct {
    const char *name, *value;
  } odd[] = {{"NCCL_ALGO", "Tree"},       {"NCCL_PROTO", "LL"},          {"NCCL_BUFFSIZE", "65536"},
             {"NCCL_MAX_CTAS", "1"},      {"GCCL_STAGE_BYTES", "65536"}, {"GCCL_EAGER_BYTES", "16"},
             {"GCCL_DETERMINISTIC", "1"}, {"GCCL_CHECK", "0"},           {"NCCL_ALGO", "NoSuchAlgorithm"}};
  int me = t->first;
  for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
    ncclUniqueId id;
    ncclComm_t c[1] = {NULL};
    if (me == 1) setenv(odd[k].name, odd[k].value, 1);
    if (!team_id(t, &id)) return;
    conf_at(me, "init with %s=%s on rank 1 only", odd[k].name, odd[k].value);
    double start = conf_now();
    ncclResult_t rc = ncclCommInitRank(&c[0], t->nranks, id, me);
    if (conf_now() - start > 10) conf_fail(me, "%s on rank 1 only: init took %.1f s", odd[k].name, conf_now() - start);
    atomic_fetch_add(&W->note[k], rc == ncclSuccess ? 1 : 100);
    conf_barrier(t);
    long long all = atomic_load(&W->note[k]);
    if (all != t->nranks && all != 100 * t->nranks)
      conf_fail(me, "%s=%s on rank 1 only: some ranks succeed and some fail (this one: %d, \"%s\")", odd[k].name, odd[k].value, rc,
                ncclGetLastError(NULL));
    if (all == t->nranks) {
      coll_alive(t, c);
      OK(me, ncclCommDestroy(c[0]));
    } else {
      const char *text = ncclGetLastError(NULL);
      if (rc != ncclSuccess && (!strstr(text, odd[k].name) || !strstr(text, "rank 1") || !strstr(text, odd[k].value)))
        conf_fail(me, "%s on rank 1 only: the text does not name it, rank and value %s: \"%s\"", odd[k].name, odd[k].value, text);
      if (c[0]) OK(me, ncclCommAbort(c[0]));
      if (me == 0) conf_note("%s=%s on rank 1 only is refused: %s", odd[k].name, odd[k].value, ncclGetLastError(NULL));
    }
    if (me == 1) unsetenv(odd[k].name);
    conf_barrier(t);
  }
}

/* A setting that all ranks have cannot be obeyed: all get an error, whose text the caller of this program reads. */
void refused_setting(struct team *t) {
  int me = t->first;
  ncclUniqueId id;
  ncclComm_t c = NULL;
  if (!team_id(t, &id)) return;
  OK(me, gcclSetDeviceKind(gcclDeviceAuto)); /* what this program asks for would stand above GCCL_DEVICE */
  RC(me, ncclInvalidUsage, ncclCommInitRank(&c, t->nranks, id, me));
  conf_note("refused on rank %d: %s", me, ncclGetLastError(NULL));
  if (c) OK(me, ncclCommAbort(c));
}

/* NCCL_WIN_ENABLE is 0: registration succeeds and gives no window, whatever the flags. */
void no_windows(struct team *t) {
  int me = t->first;
  void *p = NULL;
  if (!OK(me, ncclMemAlloc(&p, 1 << 20))) return;
  for (int flags = 0; flags < 2; flags++) {
    ncclWindow_t w = (ncclWindow_t)p;
    OK(me, ncclCommWindowRegister(t->comm[0], p, 1 << 20, &w, flags ? NCCL_WIN_COLL_SYMMETRIC : NCCL_WIN_DEFAULT));
    TRUE(me, w == NULL);
    OK(me, ncclCommWindowDeregister(t->comm[0], w));
  }
  OK(me, ncclAllReduce(p, p, 1000, ncclFloat, ncclSum, t->comm[0], NULL));
  OK(me, ncclMemFree(p));
}

/* A run that has something to log; the last rank ends without saying goodbye. */
void c25(struct team *t) {
  coll_alive(t, t->comm);
  int x = 1;
  for (int i = 0; i < t->nlocal; i++) (void)ncclAllReduce(&x, &x, 1, (ncclDataType_t)77, ncclSum, t->comm[i], NULL);
  coll_alive(t, t->comm);
}
