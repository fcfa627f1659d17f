/* What the ranks of one communicator share in host mode: one area per rank, in its process's arena.
 *
 * Every word has one writer, named beside it. Offsets follow from gccl_geometry, which is a function of what
 * all ranks agreed on at init, so a rank computes a peer's addresses from the peer's area base alone.
 */
#ifndef GCCL_LAYOUT_SHARED_H
#define GCCL_LAYOUT_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include "lowered.h"

#define GCCL_SHARED_MAGIC 0x48534347u /* "GCSH" */
#define GCCL_SHARED_VERSION 1u

enum { GCCL_LINE = 64, GCCL_STEP_BITS = 24 };

/* Where a user buffer is, as its owner tells its peers. */
enum gccl_ref_kind {
  GCCL_BUF_NONE = 0,   /* nobody but the owner touches it in this call */
  GCCL_BUF_ARENA = 1,  /* addr is an offset in the owner process's arena */
  GCCL_BUF_LOCAL = 2,  /* addr is an address in the owner's process: reachable for ranks of that process */
  GCCL_BUF_INLINE = 3, /* the record itself carries the bytes */
  GCCL_BUF_STAGED = 4  /* peers need it and cannot reach it: its pieces pass through scratch */
};

/* The operation record: what differs from rank to rank in one operation, published by its owner once per
 * operation and read by peers' executors. seq is stored last (release; acquired in record_seen). Only one line of
 * the pair is used: processors fetch lines in pairs, and whatever shared the pair of a polled line would be taken
 * from its writer by every poll (measured: 60 ns of a call of 150). */
typedef struct {
  uint64_t seq;  /* operation number of the communicator, from 1 */
  uint32_t hash; /* of (coll, type, op class, root, count, class): what all ranks must agree on */
  uint8_t send_kind, recv_kind, scaled, pad0;
  union {
    struct {
      uint64_t send, recv;
    } buf;
    unsigned char data[48];
  } u;
  unsigned char pad[64];
} gccl_record;

/* What a record's call is, in full: read when hashes differ, or for the scale. Written before the record's seq. */
typedef struct {
  uint64_t count;
  uint8_t coll, dtype, op, cls;
  int32_t root;
  uint64_t scale; /* gccl_scalar bits, when scaled */
  unsigned char pad[40];
} gccl_call;

/* A point-to-point mailbox, one per ordered pair, in the area of the rank that writes it.
 * post: a sender's announcement to one receiver (area of the sender, index receiver);
 *       or a receiver's announcement to one sender (area of the receiver, index sender).
 * seq counts messages of the pair; done counts what the writer has consumed or produced of the present one. */
typedef struct {
  uint64_t seq;  /* message number of the pair, from 1; stored last */
  uint64_t done; /* seq << GCCL_STEP_BITS | pieces finished; all finished: (seq + 1) << GCCL_STEP_BITS */
  uint64_t bytes, addr;
  uint32_t hash; /* of (type): both sides must agree */
  uint8_t kind, pad[27];
} gccl_post;

/* Sync words of an in-edge of this rank, by Edge.Index. Values are seq << GCCL_STEP_BITS | n: n counts within the
 * operation, so that no count outlives it and another plan may give the edge to another peer. A sender writes
 * only after it has seen this rank's record of the operation. */
typedef struct {
  uint64_t data; /* sender: chunks put into the slots */
  unsigned char pad0[56];
  uint64_t credit; /* this rank: chunks consumed; polled by the sender */
  unsigned char pad1[56];
} gccl_edge_words;

enum { GCCL_MAX_EDGES = 32 }; /* in-edges of a rank; a plan has as many out-edges at most */

/* The head of a rank's area. */
typedef struct {
  uint32_t magic, version;
  int32_t rank, nranks;
  unsigned char pad0[48];
  uint64_t progress; /* owner: seq << GCCL_STEP_BITS | step; (seq + 1) << GCCL_STEP_BITS when seq is done */
  unsigned char pad1[56];
  uint32_t asleep;   /* owner sets 1 before it sleeps on this futex; whoever wakes it stores 0 */
  int32_t asleep_on; /* rank waited for, -1 any */
  unsigned char pad2[56];
  uint32_t sleepers; /* in the area of a clique's first rank only: how many of the clique may be asleep (atomic) */
  unsigned char pad3[60];
} gccl_area;

enum { GCCL_RECORDS = 16 }; /* records and eager slots of a rank; a power of two */

/* Offsets from a rank's area base, equal on all ranks. */
typedef struct {
  uint64_t records;            /* GCCL_RECORDS × gccl_record */
  uint64_t calls;              /* GCCL_RECORDS × gccl_call */
  uint64_t send_posts;         /* nranks × gccl_post */
  uint64_t recv_posts;         /* nranks × gccl_post */
  uint64_t edges;              /* GCCL_MAX_EDGES × gccl_edge_words */
  uint64_t eager, eager_bytes; /* GCCL_RECORDS × eager_bytes */
  uint64_t stage, stage_bytes; /* pieces of the send buffer; also the slots of edges */
  uint64_t out, out_bytes;     /* the computed piece of a round */
  uint64_t p2p, p2p_bytes;     /* two halves of scratch for messages whose buffers cannot be reached, one message at a time */
  uint64_t signals; /* nranks × 64: one-sided signal words towards this rank (ncclPutSignal), word of peer q at q × 64, written by q */
  uint64_t device, device_bytes; /* what ranks of another device kind share; nothing in host mode */
  uint64_t size;
} gccl_geometry;

static inline uint64_t gccl_align(uint64_t v, uint64_t a) { return (v + a - 1) / a * a; }

static inline void gccl_geometry_init(gccl_geometry *g, uint32_t nranks, uint64_t eager_bytes, uint64_t stage_bytes,
                                      uint64_t device_bytes) {
  uint64_t at = sizeof(gccl_area);
  g->eager_bytes = gccl_align(eager_bytes, GCCL_LINE);
  g->stage_bytes = gccl_align(stage_bytes, 4096);
  g->out_bytes = g->stage_bytes;
  g->p2p_bytes = g->stage_bytes;
  g->device_bytes = gccl_align(device_bytes, 4096);
  g->records = at, at += GCCL_RECORDS * sizeof(gccl_record);
  g->calls = at, at += GCCL_RECORDS * sizeof(gccl_call);
  g->send_posts = at, at += (uint64_t)nranks * sizeof(gccl_post);
  g->recv_posts = at, at += (uint64_t)nranks * sizeof(gccl_post);
  g->edges = at, at += GCCL_MAX_EDGES * sizeof(gccl_edge_words);
  g->signals = at, at += (uint64_t)nranks * GCCL_LINE;
  at = gccl_align(at, 4096);
  g->device = at, at += g->device_bytes;
  g->eager = at, at += GCCL_RECORDS * g->eager_bytes;
  at = gccl_align(at, 4096);
  g->stage = at, at += g->stage_bytes;
  g->out = at, at += g->out_bytes;
  g->p2p = at, at += g->p2p_bytes;
  g->size = gccl_align(at, 4096);
}

GCCL_LAYOUT_ASSERT(sizeof(gccl_record) == 128 && offsetof(gccl_record, pad) == 64, "gccl_record");
GCCL_LAYOUT_ASSERT(sizeof(gccl_call) == 64, "gccl_call");
GCCL_LAYOUT_ASSERT(sizeof(gccl_post) == 64, "gccl_post");
GCCL_LAYOUT_ASSERT(sizeof(gccl_edge_words) == 128, "gccl_edge_words");
GCCL_LAYOUT_ASSERT(sizeof(gccl_area) == 256 && offsetof(gccl_area, progress) == 64, "gccl_area");

#endif
