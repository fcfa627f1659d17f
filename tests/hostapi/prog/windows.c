/* windows.c: windows: making, asking, ending; flags, sizes that differ, groups, offsets, and what is refused. */
#include "suites.h"

static int make(struct team *t, void **buf, const size_t *bytes, ncclWindow_t *win, int flags) {
  int ok = 1;
  for (int i = 0; i < t->nlocal; i++) win[i] = (ncclWindow_t)win;
  team_start(t);
  for (int i = 0; i < t->nlocal; i++) ok &= OK(t->first + i, ncclCommWindowRegister(t->comm[i], buf[i], bytes[i], &win[i], flags));
  ok &= team_end(t, "ncclCommWindowRegister");
  for (int i = 0; i < t->nlocal; i++) ok &= TRUE(t->first + i, win[i] != NULL && win[i] != (ncclWindow_t)win);
  return ok;
}

static void lives(struct team *t) {
  void *buf[CONF_MAX_RANKS];
  size_t bytes[CONF_MAX_RANKS];
  ncclWindow_t win[2][CONF_MAX_RANKS];
  static const int flags[] = {NCCL_WIN_DEFAULT, NCCL_WIN_COLL_SYMMETRIC, NCCL_WIN_STRICT_ORDERING,
                              NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING};
  for (int f = 0; f < 4; f++) {
    for (int i = 0; i < t->nlocal; i++) {
      bytes[i] = 8192 + (size_t)(t->first + i) * 4096 * (f % 2 == 0); /* sizes may differ */
      if (mem_rank(t->first + i), !OK(t->first + i, ncclMemAlloc(&buf[i], bytes[i] + 4096))) return;
    }
    if (!make(t, buf, bytes, win[0], flags[f])) return;
    for (int i = 0; i < t->nlocal; i++) {
      void *user = NULL;
      OK(t->first + i, ncclWinGetUserPtr(t->comm[i], win[0][i], &user));
      TRUE(t->first + i, user == buf[i]);
      buf[i] = (char *)buf[i] + 4096; /* a second, overlapping window inside the same allocation */
    }
    if (make(t, buf, bytes, win[1], flags[f])) {
      for (int i = 0; i < t->nlocal; i++) {
        void *user = NULL;
        OK(t->first + i, ncclWinGetUserPtr(t->comm[i], win[1][i], &user));
        TRUE(t->first + i, user == buf[i]);
      }
    }
    coll_alive(t, t->comm);
    conf_barrier(t);
    for (int i = 0; i < t->nlocal; i++) {
      OK(t->first + i, ncclCommWindowDeregister(t->comm[i], win[f % 2][i]));
      OK(t->first + i, ncclCommWindowDeregister(t->comm[i], win[1 - f % 2][i]));
      OK(t->first + i, ncclMemFree((char *)buf[i] - 4096));
    }
  }
}

static void refused(struct team *t) {
  int r = t->first;
  ncclComm_t c = t->comm[0];
  void *mem, *user = NULL;
  ncclWindow_t win = (ncclWindow_t)&mem;
  if (!OK(r, ncclMemAlloc(&mem, 16384))) return;
  RC(r, ncclInvalidArgument, ncclCommWindowRegister(NULL, mem, 4096, &win, 0));
  RC(r, ncclInvalidArgument, ncclCommWindowRegister(c, NULL, 4096, &win, 0));
  RC(r, ncclInvalidArgument, ncclCommWindowRegister(c, mem, 0, &win, 0));
  RC(r, ncclInvalidArgument, ncclCommWindowRegister(c, mem, 4096, NULL, 0));
  /* Whether memory can be a window is decided together, so all ranks make the same mistake at the same time. */
  if (t->nlocal == 1) RC(r, ncclInvalidArgument, ncclCommWindowRegister(c, (char *)mem + 64, 4096, &win, 0));
  RC(r, ncclInvalidArgument, ncclWinGetUserPtr(c, NULL, &user));
  RC(r, ncclInvalidArgument, ncclWinGetUserPtr(c, (ncclWindow_t)mem, &user));
  TRUE(r, user == NULL);
  OK(r, ncclCommWindowDeregister(c, NULL));
  RC(r, ncclInvalidArgument, ncclCommWindowDeregister(c, (ncclWindow_t)mem));
  OK(r, ncclMemFree(mem));
}

/* Memory that is not of our allocator: all ranks get the same answer, an error that names the remedy, or, with the
 * default flags, success and no window. */
static void foreign(struct team *t) {
  struct buf buf[CONF_MAX_RANKS];
  ncclWindow_t win[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    if (!buf_new(&buf[i], t->first + i, 8192)) return;
    win[i] = NULL;
  }
  for (int flags = 0; flags < 2; flags++) {
    team_start(t);
    ncclResult_t rc = ncclSuccess;
    for (int i = 0; i < t->nlocal; i++) {
      conf_at(t->first + i, "ncclCommWindowRegister of other memory");
      rc = ncclCommWindowRegister(t->comm[i], buf[i].at, 8192, &win[i], flags);
      if (rc != ncclSuccess) break;
    }
    if (t->nlocal > 1) {
      ncclResult_t end = ncclGroupEnd();
      if (end != ncclSuccess) rc = end;
    }
    conf_rc_any(t->first, rc, "ncclCommWindowRegister of other memory", 2, ncclInvalidArgument, flags ? ncclInvalidArgument : ncclSuccess);
    for (int i = 0; i < t->nlocal; i++) TRUE(t->first + i, win[i] == NULL);
    if (rc != ncclSuccess) TRUE(t->first, strstr(ncclGetLastError(NULL), "ncclMemAlloc") != NULL);
    conf_barrier(t);
    coll_alive(t, t->comm);
  }
  for (int i = 0; i < t->nlocal; i++) buf_free(&buf[i], t->first + i);
}

/* Windows that are left over go with their communicator, and their memory can then be freed. */
static void left_over(struct team *t) {
  ncclComm_t comm[CONF_MAX_RANKS], keep[CONF_MAX_RANKS];
  void *buf[CONF_MAX_RANKS];
  size_t bytes[CONF_MAX_RANKS];
  ncclWindow_t win[CONF_MAX_RANKS];
  if (!team_init(t, comm, NULL)) return;
  for (int i = 0; i < t->nlocal; i++) {
    bytes[i] = 4096;
    if (mem_rank(t->first + i), !OK(t->first + i, ncclMemAlloc(&buf[i], 4096))) return;
  }
  memcpy(keep, t->comm, sizeof keep);
  memcpy(t->comm, comm, sizeof comm);
  make(t, buf, bytes, win, NCCL_WIN_COLL_SYMMETRIC);
  memcpy(t->comm, keep, sizeof keep);
  team_destroy(t, comm);
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclMemFree(buf[i]));
}

void suite_windows(struct team *t) {
  lives(t);
  refused(t);
  foreign(t);
  left_over(t);
  coll_alive(t, t->comm);
}
