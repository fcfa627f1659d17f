/* The software NIC: executes send queues in the format of mlx5 devices (wqe.h) over the object's connections. It belongs to whoever
 * serves the object. Queues, records and completions are host memory.
 *
 * Order of a queue pair, as of a reliable connection: writes and atomics take effect at the peer in their order, seen from any later
 * atomic; a read sees all earlier writes; an atomic comes after all earlier reads; writes may pass earlier reads and atomics unless
 * they are fenced. Completions come in order. Reads among each other have no order here (a device orders them).
 * An entry that makes no sense, a key or range that does not exist, a peer that does not answer: a completion with an error, the
 * queue pair stops, and what is behind completes as flushed. The reason is in the object's fault.
 */
#ifndef GCCL_GIN_NIC_H
#define GCCL_GIN_NIC_H

#include "../transport/card.h"
#include "wqe.h"

enum {
  NIC_KEY_WINDOW = 0x51,  /* of a key, the low byte; the rest is the number of a window */
  NIC_KEY_SIGNALS = 0x52, /* the signals of a context; atomics of peers alone */
  NIC_KEY_SINK = 0x53,    /* 8 bytes of a context; atomics' old values alone */
  NIC_FETCHES = 16,       /* atomics of a queue pair without an answer: a device's max_rd_atomic */
  NIC_RETRIES = 7,        /* of an entry that is lost on the way: a device's retry_cnt */
  NIC_DEPTH_MAX = 1 << 15 /* indices have 16 bits */
};

static inline uint32_t nic_key(unsigned kind, uint32_t number) { return number << 8 | kind; }

typedef struct {
  uint8_t wait; /* enum in nic.c */
  uint8_t opcode, signaled, syndrome;
  uint32_t bytes;
  char *old; /* where an atomic's old value goes */
} nic_slot;

/* A queue pair as the device sees it. Indices are running numbers, of which entries carry the low 16 bits. */
typedef struct {
  gccl_sendq q;                            /* as kernels see it; rung is the last doorbell that was seen */
  uint32_t posted;                         /* entries below may be executed */
  uint32_t next;                           /* started below */
  uint32_t carried;                        /* the connection has completed what was started below */
  uint32_t told;                           /* completed below */
  uint64_t ncq;                            /* completions written */
  uint32_t last_write, visible, last_read; /* writes below; of them, visible at the peer; reads below */
  uint32_t fetches, lost;
  uint8_t failed, probing;
  uint64_t not_before_ns;
  nic_slot *slot; /* depth */
} nic_qp;

/* What the device is told to do wrong, for tests. */
typedef struct {
  uint64_t delay_ns; /* between a doorbell and its entries */
  uint32_t drop;     /* so many starts of entries are lost, each time they are tried */
  uint8_t fail;      /* the next entry of any queue fails with this syndrome */
  uint64_t shuffle;  /* not 0: queue pairs in any order, writes between two atomics too. State of the generator */
} nic_orders;

#endif
