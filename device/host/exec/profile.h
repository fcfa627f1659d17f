/* The profiler plugins of a communicator, told as one. Handles are arrays: one of each plugin, NULL where it does not follow the event. */
#ifndef GCCL_HOST_EXEC_PROFILE_H
#define GCCL_HOST_EXEC_PROFILE_H

#include "../../layout/probe.h"

/* Whether the activation mask has an event, or one that needs it as a parent. */
int gccl_profile_wanted(const gccl_profiler *, int type);
/* Opens an event for all plugins that want it. parents: the handles of its parent, or NULL. */
void gccl_profile_start(const gccl_probe *, gccl_profile_event *, void *const *parents, void **handles);
void gccl_profile_state(const gccl_probe *, void *const *handles, int what, const gccl_profile_args *); /* NULL: no arguments */
void gccl_profile_stop(const gccl_probe *, void **handles);

#endif
