#define _GNU_SOURCE
#include "buffers.h"

#include <stdlib.h>
#include <string.h>

#define CANARY 0xa5
#define PAGE 4096

ncclResult_t perf_buffer_open(struct perf_buffer *b, size_t payload_bytes, enum perf_buffers kind, ncclComm_t comm,
                              const char **failed_call) {
  memset(b, 0, sizeof *b);
  b->total = ((payload_bytes + PAGE - 1) & ~(size_t)(PAGE - 1)) + 2 * PERF_GUARD_BYTES;
  ncclResult_t result = ncclSuccess;
  void *p = NULL;
  if (kind == PERF_BUFFERS_WINDOW) {
    *failed_call = "ncclMemAlloc";
    result = ncclMemAlloc(&p, b->total);
  } else if (posix_memalign(&p, PAGE, b->total) != 0) {
    *failed_call = "malloc";
    result = ncclSystemError;
  }
  if (result != ncclSuccess) return result;
  b->base = p;
  b->payload = b->base + PERF_GUARD_BYTES;
  memset(b->base, 0, b->total); /* page faults belong to nobody's timing */
  if (kind == PERF_BUFFERS_WINDOW) {
    *failed_call = "ncclCommWindowRegister";
    result = ncclCommWindowRegister(comm, b->base, b->total, &b->window, NCCL_WIN_COLL_SYMMETRIC);
  } else if (kind == PERF_BUFFERS_REGISTERED) {
    *failed_call = "ncclCommRegister";
    result = ncclCommRegister(comm, b->base, b->total, &b->registration);
  }
  return result;
}

ncclResult_t perf_buffer_close(struct perf_buffer *b, enum perf_buffers kind, ncclComm_t comm, const char **failed_call) {
  ncclResult_t first = ncclSuccess, result;
  if (b->window && (result = ncclCommWindowDeregister(comm, b->window)) != ncclSuccess) {
    first = result;
    *failed_call = "ncclCommWindowDeregister";
  }
  if (b->registration && (result = ncclCommDeregister(comm, b->registration)) != ncclSuccess && first == ncclSuccess) {
    first = result;
    *failed_call = "ncclCommDeregister";
  }
  if (b->base && kind == PERF_BUFFERS_WINDOW) {
    if ((result = ncclMemFree(b->base)) != ncclSuccess && first == ncclSuccess) {
      first = result;
      *failed_call = "ncclMemFree";
    }
  } else {
    free(b->base);
  }
  memset(b, 0, sizeof *b);
  return first;
}

void perf_canary_set(struct perf_buffer *b, size_t bytes) {
  memset(b->payload - PERF_CANARY_BYTES, CANARY, PERF_CANARY_BYTES);
  memset(b->payload + bytes, CANARY, PERF_CANARY_BYTES);
}

static size_t changed(const char *at) {
  size_t n = 0;
  for (int i = 0; i < PERF_CANARY_BYTES; i++) n += (unsigned char)at[i] != CANARY;
  return n;
}

size_t perf_canary_wrong(const struct perf_buffer *b, size_t bytes) {
  return changed(b->payload - PERF_CANARY_BYTES) + changed(b->payload + bytes);
}
