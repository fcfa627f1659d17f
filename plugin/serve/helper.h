/* A thread that moves the bytes of one connection while there are many of them: NCCL has one thread for all connections of a communicator,
 * and TCP costs a copy by a CPU at each end. It sleeps otherwise. */
#ifndef GCCL_PLUGIN_HELPER_H
#define GCCL_PLUGIN_HELPER_H

typedef struct helper helper;

/* work returns whether something moved; it is called by one thread at a time only if it sees to that itself. NULL: no thread could be had. */
helper *helper_start(int (*work)(void *), void *arg);
void helper_wake(helper *);
int helper_runs(helper *);  /* whether the caller may leave the work to it */
void helper_stop(helper *); /* when work has returned for the last time */

#endif
