/* Work-queue entries of mlx5 devices as a device reads them: every field is checked. The builders, and where the facts come from, are
 * in include/gccl_device/impl/mlx5.h.
 */
#ifndef GCCL_GIN_WQE_H
#define GCCL_GIN_WQE_H

#include "../../include/gccl_device/impl/mlx5.h"
#include "../transport/transport.h"

/* An entry in clear. */
typedef struct {
  uint8_t opcode;   /* GCCL_WQE_NOP, _WRITE, _READ, _FETCH_ADD */
  uint8_t signaled; /* wants a completion */
  uint8_t fence;    /* after all earlier reads and atomics */
  uint8_t inlined;  /* the bytes are in data */
  uint32_t bytes;
  uint32_t lkey, rkey;
  uint64_t laddr, raddr, add;
  unsigned char data[GCCL_WQE_INLINE_MAX];
} wqe;

/* Reads the block of the entry with this index in a queue. 1, or 0 with a text that names the field; why has GCCL_NET_TEXT bytes. */
int wqe_read(const unsigned char block[GCCL_WQE_BYTES], uint32_t qpn, uint32_t index, wqe *, char *why);

/* Writes a completion, its last byte last (release). n is its number in a queue of `entries`. */
typedef struct {
  uint8_t opcode, syndrome; /* syndrome 0: success */
  uint32_t qpn, index, bytes;
} cqe;
void cqe_write(unsigned char *at, uint64_t n, uint32_t entries, const cqe *);
/* Reads one: 1, or 0 with a text. */
int cqe_read(const unsigned char at[GCCL_CQE_BYTES], cqe *, char *why);

const char *wqe_syndrome(uint8_t);

#endif
