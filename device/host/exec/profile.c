#include "profile.h"

/* NCCL 2.30.7, src/misc/profiler.cc. */
int gccl_profile_wanted(const gccl_profiler *f, int type) {
  enum {
    STEP = GCCL_PROFILE_PROXY_STEP | GCCL_PROFILE_NET_PLUGIN,
    OP = GCCL_PROFILE_PROXY_OP | STEP,
    TASK = OP | GCCL_PROFILE_KERNEL_CH,
    COLL = GCCL_PROFILE_COLL | TASK,
    P2P = GCCL_PROFILE_P2P | TASK,
    COLL_API = GCCL_PROFILE_COLL_API | COLL,
    P2P_API = GCCL_PROFILE_P2P_API | P2P,
  };
  int mask = __atomic_load_n(f->mask, __ATOMIC_RELAXED);
  switch (type) {
  case GCCL_PROFILE_GROUP_API: return mask & (GCCL_PROFILE_GROUP_API | COLL_API | P2P_API | GCCL_PROFILE_KERNEL_LAUNCH);
  case GCCL_PROFILE_COLL_API: return mask & COLL_API;
  case GCCL_PROFILE_P2P_API: return mask & P2P_API;
  case GCCL_PROFILE_GROUP: return mask & (GCCL_PROFILE_GROUP | COLL | P2P);
  case GCCL_PROFILE_COLL: return mask & COLL;
  case GCCL_PROFILE_P2P: return mask & P2P;
  case GCCL_PROFILE_PROXY_OP: return mask & OP;
  case GCCL_PROFILE_PROXY_STEP: return mask & STEP;
  default: return mask & type;
  }
}

void gccl_profile_start(const gccl_probe *p, gccl_profile_event *d, void *const *parents, void **handles) {
  d->rank = p->rank;
  for (int i = 0; i < p->nprofilers; i++) {
    const gccl_profiler *f = &p->profiler[i];
    handles[i] = NULL;
    if (!gccl_profile_wanted(f, (int)d->type)) continue;
    d->parent = parents ? parents[i] : NULL;
    f->start(f, &handles[i], d);
  }
}

void gccl_profile_state(const gccl_probe *p, void *const *handles, int what, const gccl_profile_args *args) {
  static const gccl_profile_args none;
  for (int i = 0; i < p->nprofilers; i++)
    if (handles[i]) p->profiler[i].state(&p->profiler[i], handles[i], what, args ? args : &none);
}

void gccl_profile_stop(const gccl_probe *p, void **handles) {
  for (int i = 0; i < p->nprofilers; i++) {
    if (handles[i]) p->profiler[i].stop(&p->profiler[i], handles[i]);
    handles[i] = NULL;
  }
}
