/* The data of one checked call: what goes in, what must come out. */
#ifndef GCCL_PERF_VERIFY_H
#define GCCL_PERF_VERIFY_H

#include "buffers.h"
#include "job.h"

/* Where one case's data stands for one rank and place. */
struct perf_layout {
  char *send, *recv;
  size_t send_bytes, recv_bytes; /* of the whole buffers, not only of the blocks used */
  size_t used_bytes[2];          /* of the send and the receive buffer: where canaries follow */
};

void perf_layout_of(struct perf_layout *l, const struct perf_case *c, enum perf_place place, int rank, int nranks,
                    const struct perf_buffer *send, const struct perf_buffer *recv);

/* Writes fresh inputs, junk into outputs, and the canaries. */
void perf_verify_prepare(const struct perf_case *c, enum perf_place place, const struct perf_layout *l, int rank, int nranks, uint32_t seed,
                         struct perf_buffer *send, struct perf_buffer *recv);

/* Number of wrong elements, plus changed canary bytes and, out of place, changed inputs. */
long perf_verify_count(const struct perf_case *c, enum perf_place place, const struct perf_layout *l, int rank, int nranks, uint32_t seed,
                       const struct perf_buffer *send, const struct perf_buffer *recv);

#endif
