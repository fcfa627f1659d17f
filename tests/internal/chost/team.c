/* team.c: ids, communicators and group brackets for the ranks that one thread drives. */
#include "conf.h"

void conf_barrier(const struct team *t) {
  (void)t;
  pthread_barrier_wait(&W->barrier);
}

int team_id(struct team *t, ncclUniqueId *id) {
  int slot = t->next_id++ % CONF_MAX_IDS;
  if (t->first == 0) {
    int ok = OK(0, ncclGetUniqueId(&W->id[slot]));
    atomic_store(&W->id_ready[slot], ok ? 1 : 2);
  }
  conf_at(t->first, "waiting for unique id %d", slot);
  while (atomic_load(&W->id_ready[slot]) == 0) conf_sleep(0.0005);
  *id = W->id[slot];
  return atomic_load(&W->id_ready[slot]) == 1;
}

void team_start(const struct team *t) {
  if (t->nlocal > 1) OK(t->first, ncclGroupStart());
}

int team_end(const struct team *t, const char *what) {
  if (t->nlocal <= 1) return 1;
  conf_at(t->first, "ncclGroupEnd of %s", what);
  ncclResult_t rc = ncclGroupEnd();
  atomic_fetch_add(&W->checks, 1);
  if (rc == ncclSuccess) return 1;
  return conf_fail(t->first, "ncclGroupEnd of %s: got %d (%s); last error \"%s\"", what, rc, ncclGetErrorString(rc),
                   ncclGetLastError(NULL));
}

int team_init(struct team *t, ncclComm_t *comm, const ncclConfig_t *cfg) {
  ncclUniqueId id;
  if (!team_id(t, &id)) return 0;
  int ok = 1;
  team_start(t);
  for (int i = 0; i < t->nlocal; i++) {
    ncclConfig_t c;
    if (cfg) c = *cfg;
    int r = t->first + i;
    comm[i] = NULL;
    if (cfg)
      ok &= OK(r, ncclCommInitRankConfig(&comm[i], t->nranks, id, r, &c));
    else
      ok &= OK(r, ncclCommInitRank(&comm[i], t->nranks, id, r));
  }
  ok &= team_end(t, "ncclCommInitRank");
  return ok;
}

void team_destroy(struct team *t, ncclComm_t *comm) {
  team_start(t);
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclCommDestroy(comm[i]));
  team_end(t, "ncclCommDestroy");
  for (int i = 0; i < t->nlocal; i++) comm[i] = NULL;
}

ncclResult_t team_wait(ncclComm_t comm, double seconds) {
  double end = conf_now() + seconds;
  for (;;) {
    ncclResult_t state;
    ncclResult_t rc = ncclCommGetAsyncError(comm, &state);
    if (rc != ncclSuccess) return rc;
    if (state != ncclInProgress) return state;
    if (conf_now() > end) return ncclTimeout;
    conf_sleep(0.0005);
  }
}
