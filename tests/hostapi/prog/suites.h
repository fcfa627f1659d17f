/* suites.h: the suites of the host-API conformance program. Each runs on every rank at once. */
#ifndef HOSTAPI_SUITES_H
#define HOSTAPI_SUITES_H

#include "coll.h"
#include "conf.h"

/* Same call for every local rank, bracketed as a group when there are several. */
#define EACH(t, what, call)                 \
  do {                                      \
    team_start(t);                          \
    for (int i = 0; i < (t)->nlocal; i++) { \
      int r = (t)->first + i;               \
      (void)r;                              \
      OK(r, call);                          \
    }                                       \
    team_end(t, what);                      \
  } while (0)

void suite_matrix(struct team *);
void suite_pairs(struct team *);
void suite_large(struct team *);
void suite_numbers(struct team *);
void suite_groups(struct team *);
void suite_streams(struct team *);
void suite_nonblocking(struct team *);
void suite_making(struct team *);
void suite_children(struct team *);
void suite_ending(struct team *);
void suite_windows(struct team *);
void suite_onesided(struct team *);
void suite_memory(struct team *);
void suite_library(struct team *);
void suite_params(struct team *);
void suite_badargs(struct team *);
void suite_deviceapi(struct team *);
void suite_interrupt(struct team *);

#endif
