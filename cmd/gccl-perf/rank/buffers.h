/* A rank's send and receive buffers, with room for canaries on both sides. */
#ifndef GCCL_PERF_BUFFERS_H
#define GCCL_PERF_BUFFERS_H

#include <stddef.h>

#include "job.h"

#define PERF_GUARD_BYTES 4096 /* on each side; a page keeps the payload aligned for windows */
#define PERF_CANARY_BYTES 256 /* of the guard that touch the payload of the case */

struct perf_buffer {
  char *base; /* guard, payload, guard */
  char *payload;
  size_t total;
  ncclWindow_t window;
  void *registration;
};

/* Collective over the ranks of comm where kind asks for registration. On failure *failed_call
 * names the call; ncclSystemError with "malloc" where memory is short. */
ncclResult_t perf_buffer_open(struct perf_buffer *b, size_t payload_bytes, enum perf_buffers kind, ncclComm_t comm,
                              const char **failed_call);
/* Releases what open made, also after a failed open; the first failure is returned. */
ncclResult_t perf_buffer_close(struct perf_buffer *b, enum perf_buffers kind, ncclComm_t comm, const char **failed_call);

/* Marks the bytes before and after the first bytes of the payload. */
void perf_canary_set(struct perf_buffer *b, size_t bytes);
/* Number of marked bytes that changed. */
size_t perf_canary_wrong(const struct perf_buffer *b, size_t bytes);

#endif
