/* cases.h: reproducible cases from the field, one suite a case. The number of ranks and the launch belong to the
 * case; cases_test.go holds the table. */
#ifndef CASES_CASES_H
#define CASES_CASES_H

#include "coll.h"
#include "conf.h"

/* A communicator of all ranks from the id in slot, where success is not a matter of course. Measures the time. */
ncclResult_t try_init(struct team *, const ncclUniqueId *, int nranks, int rank, ncclComm_t *, double *took);
/* The rank's last error holds the word. */
int says(int rank, const char *word, const char *where);
/* One all-reduce of int64 over value; returns the sum, or -1 after a failure that was recorded. */
int64_t sum_of(int rank, ncclComm_t, int64_t value);

void c02(struct team *);
void c03_own_id(struct team *);
void c03_twice(struct team *);
void c03_again(struct team *);
void c03_gone(struct team *);
void c03_zeros(struct team *);
void c04_arguments(struct team *);
void c04_duplicate(struct team *);
void c04_sizes(struct team *);
void alive(struct team *);
void refused_filter(struct team *);
void refused_setting(struct team *);
void no_windows(struct team *);
void c08(struct team *);
void c09_cycles(struct team *);
void c09_subsets(struct team *);
void c09_footprint(struct team *);
void c11(struct team *);
void c13(struct team *);
void disagree(struct team *);
void disagree_root(struct team *);
void disagree_message(struct team *);
void c13_lone(struct team *);
void c14(struct team *);
void c15(struct team *);
void c15_near(struct team *);
void c16(struct team *);
void c16_overflow(struct team *);
void c17(struct team *);
void c19(struct team *);
void c20(struct team *);
void c22_copy(struct team *);
void c22_local(struct team *);
void c23(struct team *);
void c25(struct team *);
void c27(struct team *);
void c29_seccomp(struct team *);
void c29_affinity(struct team *);
void c29_stack(struct team *);
void c31_idle(struct team *);
void c31_late(struct team *);
void c31_crowd(struct team *);
void c33_exit(struct team *);
void c33_late(struct team *);
void c33_atexit(struct team *);
void c33_nodestroy(struct team *);
void c34(struct team *);
void c34_parallel(struct team *);
void c35_exited(struct team *);
void c35_stuck(struct team *);
void c35_grow(struct team *);
void c37_many(struct team *);
void c37_threads(struct team *);
void c37_init(struct team *);
void c38_crossed(struct team *);
void c38_grid(struct team *);
void c38_shared(struct team *);
void c43(struct team *);
void c46_other(struct team *);
void c46_used(struct team *);

#endif
