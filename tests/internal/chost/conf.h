/* conf.h: the frame of the conformance programs. One world of shared memory, a supervisor process, ranks as
 * processes, threads, or all in one thread; failures and the present position of each rank are kept where the
 * supervisor sees them. Knows nothing of what the tests check. Plain C against the public header only. */
#ifndef CONF_H
#define CONF_H

#include <nccl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CONF_MAX_RANKS = 64, CONF_MAX_IDS = 2048, CONF_MAX_HASHES = 8192, CONF_AT_BYTES = 256 };

enum conf_launch { LAUNCH_THREADS, LAUNCH_PROCS, LAUNCH_GROUP };

struct conf_world {
  int nranks, launch;
  uint64_t seed;
  atomic_int failures, checks, skips;
  char at[CONF_MAX_RANKS][CONF_AT_BYTES]; /* what each rank does now; written by the rank, read by the supervisor */
  pthread_barrier_t barrier;              /* one participant per thread that drives ranks */
  atomic_int id_ready[CONF_MAX_IDS];      /* 0 not yet, 1 there, 2 failed */
  ncclUniqueId id[CONF_MAX_IDS];
  uint64_t hash[CONF_MAX_HASHES][CONF_MAX_RANKS];
  atomic_llong note[64];             /* free words for a test's ranks to talk through */
  _Atomic double when;               /* a moment that the ranks measure from */
  pid_t pid[CONF_MAX_RANKS];         /* of the rank's process, LAUNCH_PROCS only */
  atomic_int doomed[CONF_MAX_RANKS]; /* the process of this rank is meant to die by a signal */
};
extern struct conf_world *W;

/* The ranks that one thread drives: one of them, or all with LAUNCH_GROUP. */
struct team {
  int nranks, nlocal, first;
  int next_id, next_hash;
  ncclComm_t comm[CONF_MAX_RANKS]; /* by local index */
};

typedef void (*conf_fn)(struct team *);
struct conf_suite {
  const char *name;
  conf_fn fn;
  int makes_comms; /* team->comm is made before fn and destroyed after it */
};

/* Parses --ranks --launch --suite --seed --limit, runs and returns the exit code. The table ends with name NULL. */
int conf_main(int argc, char **argv, const struct conf_suite *suites);

/* Records one failure: a "not ok" line with the suite position. Always returns 0. */
int conf_fail(int rank, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A remark that is no failure. */
void conf_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Says that the machine lacks something named; counts as skipped. */
void conf_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Where this rank is now. */
void conf_at(int rank, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Compares a result code; on a difference prints the call, the rank and the last error. Returns whether it matched. */
int conf_rc(int rank, ncclResult_t want, ncclResult_t got, const char *call, const char *file, int line);
int conf_true(int rank, int cond, const char *text, const char *file, int line);
/* An error is expected, and the thread's last error must say something; got may be any code of the list. */
int conf_rc_any(int rank, ncclResult_t got, const char *call, int n, ...);

#define RC(rank, want, call) (conf_at(rank, "%s:%d %s", __FILE__, __LINE__, #call), conf_rc(rank, want, (call), #call, __FILE__, __LINE__))
#define OK(rank, call) RC(rank, ncclSuccess, call)
#define TRUE(rank, cond) conf_true(rank, (cond) != 0, #cond, __FILE__, __LINE__)

void conf_barrier(const struct team *);
/* Polls until note[word] is at least value; returns 0 when seconds are over. */
int conf_await(int word, long long value, double seconds);
double conf_now(void); /* seconds, monotonic */
void conf_sleep(double seconds);
uint64_t conf_rand(uint64_t *state); /* splitmix64 */
const char *conf_launch_name(void);
/* Reads the line that starts with key of /proc/self/status as a number; -1 when missing. */
long conf_proc_status(const char *key);
int conf_open_fds(void);

/* One more unique id that all ranks of the team take in the same order. Returns 0 when it could not be made. */
int team_id(struct team *, ncclUniqueId *id);
/* Makes one communicator of all ranks (into comm by local index). cfg may be NULL. Returns whether all came. */
int team_init(struct team *, ncclComm_t *comm, const ncclConfig_t *cfg);
/* Destroys and clears the communicators, in a group when there are several. */
void team_destroy(struct team *, ncclComm_t *comm);
/* Group brackets around one call per local rank; nothing when there is one rank only. */
void team_start(const struct team *);
int team_end(const struct team *, const char *what);
/* Polls until the communicator leaves ncclInProgress; returns the state, ncclTimeout after seconds. */
ncclResult_t team_wait(ncclComm_t comm, double seconds);

#endif
