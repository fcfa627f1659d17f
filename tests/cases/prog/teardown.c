/* teardown.c: C33, ends in odd order. The frame's exit() runs the library's exit handlers. */
#include "cases.h"

static ncclComm_t exit_comm;

/* One rank ends without destroying; the others then destroy: an error or success, bounded, no crash. */
void c33_exit(struct team *t) {
  int me = t->first;
  ncclComm_t c[1];
  if (!team_init(t, c, NULL)) return;
  coll_alive(t, c);
  conf_barrier(t);
  if (me == t->nranks - 1) return; /* the process ends by exit(0) */
  conf_sleep(0.5);
  double start = conf_now();
  ncclResult_t rc = ncclCommDestroy(c[0]);
  if (conf_now() - start > 6) conf_fail(me, "ncclCommDestroy took %.1f s after a rank had left", conf_now() - start);
  conf_rc_any(me, rc, "ncclCommDestroy after a rank had left", 2, ncclSuccess, ncclRemoteError);
  if (rc != ncclSuccess) OK(me, ncclCommAbort(c[0])); /* abort after destroy failed */
}

/* One rank destroys and exits, the others do so 2 s later. */
void c33_late(struct team *t) {
  int me = t->first;
  ncclComm_t c[1];
  if (!team_init(t, c, NULL)) return;
  coll_alive(t, c);
  if (me != 0) conf_sleep(2);
  conf_at(me, "ncclCommDestroy");
  double start = conf_now();
  OK(me, ncclCommDestroy(c[0]));
  if (conf_now() - start > 6) conf_fail(me, "ncclCommDestroy took %.1f s", conf_now() - start);
}

static void at_exit(void) {
  int n = 0;
  ncclResult_t rc = ncclCommCount(exit_comm, &n);
  if (rc == ncclSuccess) rc = ncclCommDestroy(exit_comm);
  if (rc != ncclSuccess && !ncclGetLastError(NULL)[0]) conf_fail(0, "destroy in atexit: got %d without a text", rc);
}

/* Destroy in an exit handler that was registered before the library was used, so it runs after the library's own. */
void c33_atexit(struct team *t) {
  atexit(at_exit);
  if (!team_init(t, &exit_comm, NULL)) return;
  coll_alive(t, &exit_comm);
}

/* Nothing is destroyed: streams, windows, memory, communicators and an open group are left to the exit. */
void c33_nodestroy(struct team *t) {
  int me = t->first;
  ncclComm_t c[1];
  void *mem, *h;
  ncclWindow_t win;
  cudaStream_t s;
  static int32_t buf[100];
  if (!team_init(t, c, NULL)) return;
  OK(me, gcclStreamCreate(&s));
  OK(me, ncclMemAlloc(&mem, 8192));
  OK(me, ncclCommWindowRegister(c[0], mem, 8192, &win, 0));
  OK(me, ncclCommRegister(c[0], buf, sizeof buf, &h));
  OK(me, ncclAllReduce(buf, buf, 100, ncclInt32, ncclSum, c[0], s));
  OK(me, gcclStreamSynchronize(s));
  OK(me, ncclGroupStart());
}
