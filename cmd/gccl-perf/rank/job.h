/* What the front-end asks for: read from the control pipe, the same on every rank. */
#ifndef GCCL_PERF_JOB_H
#define GCCL_PERF_JOB_H

#include <stddef.h>

#include "colls.h"
#include "nccl.h"
#include "oracle.h"
#include "types.h"

enum perf_place { PERF_OUT_OF_PLACE, PERF_IN_PLACE, PERF_PLACES };
enum perf_buffers { PERF_BUFFERS_MALLOC, PERF_BUFFERS_REGISTERED, PERF_BUFFERS_WINDOW };

struct perf_case {
  const struct perf_coll *coll;
  const struct perf_type *type;
  enum perf_op op;
  int root;
  size_t count; /* nccl-tests' "count": elements of one block */
  int iterations, warmup, checks;
  int places; /* bit mask of 1 << perf_place */
};

struct perf_job {
  int first_rank, nranks, nthreads;
  enum perf_buffers buffers;
  int latency;     /* time each call by itself, with a barrier before it */
  int host_stream; /* use a stream of the library instead of the NULL stream */
  int pin;
  double timeout_s;
  ncclUniqueId id;
  struct perf_case *cases;
  int ncases;
};

/* Reads lines from fd up to "go". A wrong line, or the end of the stream, gives -1 and a
 * text in why. id_known: this process made the id itself. */
int perf_job_read(struct perf_job *job, int fd, int id_known, char *why, size_t why_bytes);

#endif
