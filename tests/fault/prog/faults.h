/* faults.h: shared steps of the fault scenarios. */
#ifndef FAULT_FAULTS_H
#define FAULT_FAULTS_H

#include "conf.h"

/* Seconds within which a fault is reported, and within which abort returns. The first is the promise. */
enum { REPORT_SECONDS = 5, ABORT_SECONDS = 5 };

/* Fails unless the text names the rank: "rank 2" and not as the start of a longer number. */
int names_rank(int me, const char *text, int rank, const char *where);
/* Aborts and checks the time. */
void bounded_abort(int rank, ncclComm_t comm);
/* Starts a thread that aborts *comm once note[word] is 1 and delay seconds have passed. */
struct aborter {
  pthread_t thread;
  int rank, word;
  double delay;
  ncclComm_t *comm;
  double took;
};
void aborter_start(struct aborter *, int rank, ncclComm_t *comm, int word, double delay);
void aborter_join(struct aborter *);

void fault_init_kill(struct team *);
void fault_init_kill_root(struct team *);
void fault_missing(struct team *);
void fault_coll_kill(struct team *);
void fault_coll_kill_stream(struct team *);
void fault_coll_stop(struct team *);
void fault_abort_waiting(struct team *);
void fault_abort_init(struct team *);
void fault_abort_recv(struct team *);
void fault_abort_alone(struct team *);
void fault_abort_busy(struct team *);
void fault_abort_queued(struct team *);
void fault_descriptors(struct team *);
void fault_fork_after(struct team *);
void fault_fork_before(struct team *);

#endif
