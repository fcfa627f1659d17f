/* gpu.h: what the suites for CUDA alone share: kernels of a user, rounds, buffers of counters. */
#ifndef CUDA_GPU_H
#define CUDA_GPU_H

#include "conf.h"
#include "cuda.h"
#include "mem.h"

#define EACH(t, what, call)                 \
  do {                                      \
    team_start(t);                          \
    for (int i = 0; i < (t)->nlocal; i++) { \
      int r = (t)->first + i;               \
      (void)r;                              \
      mem_rank(r);                          \
      OK(r, call);                          \
    }                                       \
    team_end(t, what);                      \
  } while (0)

/* Rounds of a stress case: GCCL_TEST_ROUNDS, or a tenth of what a GPU machine runs. */
int gpu_rounds(int on_gpu);

/* A user's kernel that takes the whole GPU for a time, or until a word of pinned memory has the value. Loaded once a process, by
 * gpu_load, which must come before anything waits on the device. */
struct gpu_busy {
  uint64_t word;
  uint32_t value, pad;
  uint64_t started; /* address of a word that it sets to 1; 0: none */
  uint64_t ns;      /* the longest that it runs */
};
int gpu_load(int rank);
void *gpu_function(int rank); /* the kernel, after gpu_load */
int gpu_busy(int rank, void *stream, const struct gpu_busy *, int cooperative);
/* For us microseconds, filling the GPU. */
int gpu_fill(int rank, void *stream, int us, int cooperative);

/* Whether small collectives are asked for as kernels of all ranks: calls wait for nobody on the host (spin.c). */
int gpu_spins(void);

/* Pinned words, 0 at first; freed with the process. */
_Atomic uint32_t *gpu_words(int rank, int n);

/* int32 buffers of one value: every rank puts v + rank, the sum is checked. */
struct sums {
  struct buf buf[CONF_MAX_RANKS];
  int n, pool;
};
int sums_new(struct sums *, const struct team *, int n);
void sums_free(struct sums *, const struct team *); /* all ranks together */
int sums_pool(struct sums *, const struct team *);  /* moves them to memory of the stream-ordered allocator */
void sums_put(struct sums *, const struct team *, int v);
int sums_check(struct sums *, const struct team *, int v, const char *what); /* of the sum over all ranks, in place */
/* One in-place sum for local rank i. */
ncclResult_t sums_call(const struct sums *, int i, ncclComm_t, void *stream);

/* A graph of each local rank, captured in a stream of its own, which begin makes where there is none (graphs.c). */
struct graph {
  void *stream, *exec;
};
int graphs_begin(struct team *, struct graph *);
int graphs_end(struct team *, struct graph *);
void graphs_replay(struct team *, struct graph *);
void graphs_settle(struct team *, struct graph *);
void graphs_drop(struct team *, struct graph *);
/* Ends captures in which a call has failed, and their communicators. */
void graphs_give_up(struct team *, struct graph *, const ncclComm_t *);

void suite_fill(struct team *);
void suite_between(struct team *);
void suite_manystreams(struct team *);
void suite_onequeue(struct team *);
void suite_crossed(struct team *);
void suite_later(struct team *);
void suite_idle(struct team *);
void suite_capture(struct team *);
void suite_mixing(struct team *);
void suite_firstcapture(struct team *);
void suite_twocomms(struct team *);
void suite_endings(struct team *);
void suite_forkjoin(struct team *);
void suite_fewqueues(struct team *);
void suite_replayabort(struct team *);
void suite_killed(struct team *);
void suite_bad(struct team *);
void suite_pool(struct team *);
void suite_poolcapture(struct team *);
void suite_farlimits(struct team *);
void suite_farchunks(struct team *);
void suite_footprint(struct team *);
void suite_probe(struct team *);
void suite_speed(struct team *);
void suite_calls(struct team *);
void suite_signals(struct team *);
void suite_signalsapart(struct team *);
void suite_signalabort(struct team *);
void suite_zerocta(struct team *);
void suite_waits(struct team *);
void suite_tardy(struct team *);
void suite_killedleader(struct team *);
void suite_spin(struct team *);

#endif
