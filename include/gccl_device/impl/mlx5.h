/* Send queues of mlx5 devices: work-queue entries, doorbells and completion entries, for whoever builds them (a GPU thread, a CPU
 * thread) and for whoever reads them. One C header for C, C++ and CUDA. Nothing here waits or allocates.
 *
 * Facts: rdma-core, providers/mlx5/mlx5dv.h (structures mlx5_wqe_ctrl_seg, _raddr_seg, _atomic_seg, _data_seg, mlx5_cqe64, mlx5_err_cqe,
 * and their enumerators), providers/mlx5/qp.c (doorbell) and providers/mlx5/cq.c (owner bit), read 2026-11-30. All fields are big-endian.
 *
 * An entry is one block of 64 bytes: segments of 16 bytes, counted by ds.
 *
 *   write         ctrl, remote address, data           ds 3; no data segment for 0 bytes (a byte count of 0 means 2^31): ds 2
 *   write inline  ctrl, remote address, inline data    ds 3 up to 12 bytes, 4 up to 28
 *   read          ctrl, remote address, data           ds 3
 *   fetch-add     ctrl, remote address, atomic, data   ds 4; data is where the old value goes, 8 bytes
 *   nop           ctrl                                 ds 1
 */
#ifndef GCCL_DEVICE_MLX5_H
#define GCCL_DEVICE_MLX5_H

#ifdef __CUDACC_RTC__
#include "rtc.h"
#else
#include <stdint.h>
#endif

#if defined(__CUDACC__)
#define GCCL_MLX5_FN static __host__ __device__ __forceinline__
#else
#define GCCL_MLX5_FN static inline
#endif

enum {
  GCCL_WQE_BYTES = 64, /* MLX5_SEND_WQE_BB */
  GCCL_CQE_BYTES = 64,
  GCCL_WQE_INLINE_MAX = 28, /* what one block holds */

  /* MLX5_OPCODE_*. */
  GCCL_WQE_NOP = 0x00,
  GCCL_WQE_WRITE = 0x08,
  GCCL_WQE_READ = 0x10,
  GCCL_WQE_FETCH_ADD = 0x12,

  /* fm_ce_se of the control segment. */
  GCCL_WQE_CQ_UPDATE = 2 << 2, /* a completion is written */
  GCCL_WQE_SOLICITED = 1 << 1,
  GCCL_WQE_FENCE = 4 << 5,       /* after all earlier reads and atomics */
  GCCL_WQE_SMALL_FENCE = 1 << 5, /* MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE */

  /* Doorbell record: two words, the second for the send queue (MLX5_SND_DBR). */
  GCCL_DBREC_SEND = 1,

  /* op_own of a completion: opcode << 4 | owner. */
  GCCL_CQE_OK = 0,         /* MLX5_CQE_REQ */
  GCCL_CQE_ERROR = 13,     /* MLX5_CQE_REQ_ERR */
  GCCL_CQE_INVALID = 15,   /* never written by the device */
  GCCL_CQE_SYNDROME = 55,  /* byte offsets */
  GCCL_CQE_COUNT = 44,     /* bytes that came: reads and atomics */
  GCCL_CQE_QPN = 56,       /* opcode of the entry << 24 | queue pair */
  GCCL_CQE_COUNTER = 60,   /* index of the entry, 16 bits */
  GCCL_CQE_SIGNATURE = 62,
  GCCL_CQE_OP_OWN = 63,

  /* MLX5_CQE_SYNDROME_*. */
  GCCL_SYNDROME_LENGTH = 0x01,
  GCCL_SYNDROME_QP_OP = 0x02,        /* the entry makes no sense */
  GCCL_SYNDROME_LOCAL_PROT = 0x04,   /* local key or range */
  GCCL_SYNDROME_FLUSH = 0x05,        /* an earlier entry has failed */
  GCCL_SYNDROME_REMOTE_INVAL = 0x12,
  GCCL_SYNDROME_REMOTE_ACCESS = 0x13, /* remote key or range */
  GCCL_SYNDROME_REMOTE_OP = 0x14,
  GCCL_SYNDROME_RETRY = 0x15, /* the peer did not answer */
  GCCL_SYNDROME_RNR = 0x16
};

#define GCCL_WQE_INLINE 0x80000000u /* MLX5_INLINE_SEG, in the byte count */

GCCL_MLX5_FN uint32_t gccl_be32(uint32_t v) { return v << 24 | (v & 0xff00u) << 8 | (v >> 8 & 0xff00u) | v >> 24; }
GCCL_MLX5_FN uint64_t gccl_be64(uint64_t v) { return (uint64_t)gccl_be32((uint32_t)v) << 32 | gccl_be32((uint32_t)(v >> 32)); }

/* Two neighbouring 32-bit fields as a 64-bit word in memory order. */
GCCL_MLX5_FN uint64_t gccl_wqe_pair(uint32_t first, uint32_t second) { return gccl_be64((uint64_t)first << 32 | second); }

/* The block of an entry as eight words, all of which are stored. Keys are in host order here. */
typedef struct {
  uint64_t w[8];
} gccl_wqe;

/* index: running number of the entry, of which the low 16 bits count. */
GCCL_MLX5_FN void gccl_wqe_ctrl(gccl_wqe *e, uint32_t opcode, uint32_t index, uint32_t qpn, uint32_t ds, uint32_t fm_ce_se) {
  e->w[0] = gccl_wqe_pair((index & 0xffffu) << 8 | opcode, qpn << 8 | ds);
  e->w[1] = gccl_wqe_pair(fm_ce_se, 0);
  for (int i = 2; i < 8; i++) e->w[i] = 0;
}

GCCL_MLX5_FN void gccl_wqe_remote(gccl_wqe *e, uint64_t addr, uint32_t rkey) {
  e->w[2] = gccl_be64(addr);
  e->w[3] = gccl_wqe_pair(rkey, 0);
}

/* seg: 2 behind the remote address, 3 behind an atomic segment. */
GCCL_MLX5_FN void gccl_wqe_data(gccl_wqe *e, int seg, uint64_t addr, uint32_t lkey, uint32_t bytes) {
  e->w[2 * seg] = gccl_wqe_pair(bytes, lkey);
  e->w[2 * seg + 1] = gccl_be64(addr);
}

/* bytes < 2^31. */
GCCL_MLX5_FN void gccl_wqe_write(gccl_wqe *e, uint32_t index, uint32_t qpn, uint64_t raddr, uint32_t rkey, uint64_t laddr, uint32_t lkey,
                                 uint32_t bytes) {
  gccl_wqe_ctrl(e, GCCL_WQE_WRITE, index, qpn, bytes ? 3 : 2, GCCL_WQE_CQ_UPDATE);
  gccl_wqe_remote(e, raddr, rkey);
  if (bytes) gccl_wqe_data(e, 2, laddr, lkey, bytes);
}

/* Up to 8 bytes, the low ones of value in memory order of a little-endian machine. */
GCCL_MLX5_FN void gccl_wqe_write_value(gccl_wqe *e, uint32_t index, uint32_t qpn, uint64_t raddr, uint32_t rkey, uint64_t value, uint32_t bytes) {
  if (bytes < 8) value &= ((uint64_t)1 << 8 * bytes) - 1;
  gccl_wqe_ctrl(e, GCCL_WQE_WRITE, index, qpn, 3, GCCL_WQE_CQ_UPDATE);
  gccl_wqe_remote(e, raddr, rkey);
  e->w[4] = value << 32 | gccl_be32(GCCL_WQE_INLINE | bytes);
  e->w[5] = value >> 32;
}

GCCL_MLX5_FN void gccl_wqe_read(gccl_wqe *e, uint32_t index, uint32_t qpn, uint64_t raddr, uint32_t rkey, uint64_t laddr, uint32_t lkey,
                                uint32_t bytes) {
  gccl_wqe_ctrl(e, GCCL_WQE_READ, index, qpn, bytes ? 3 : 2, GCCL_WQE_CQ_UPDATE);
  gccl_wqe_remote(e, raddr, rkey);
  if (bytes) gccl_wqe_data(e, 2, laddr, lkey, bytes);
}

/* Adds to 8 aligned bytes there; the old value goes to 8 bytes here. */
GCCL_MLX5_FN void gccl_wqe_fetch_add(gccl_wqe *e, uint32_t index, uint32_t qpn, uint64_t raddr, uint32_t rkey, uint64_t add, uint64_t laddr,
                                     uint32_t lkey) {
  gccl_wqe_ctrl(e, GCCL_WQE_FETCH_ADD, index, qpn, 4, GCCL_WQE_CQ_UPDATE);
  gccl_wqe_remote(e, raddr, rkey);
  e->w[4] = gccl_be64(add);
  e->w[5] = 0; /* compare: not used */
  gccl_wqe_data(e, 3, laddr, lkey, 8);
}

GCCL_MLX5_FN void gccl_wqe_nop(gccl_wqe *e, uint32_t index, uint32_t qpn) { gccl_wqe_ctrl(e, GCCL_WQE_NOP, index, qpn, 1, GCCL_WQE_CQ_UPDATE); }

/* What the doorbell record holds when entries below `next` may be executed. It is stored before the doorbell rings. */
GCCL_MLX5_FN uint32_t gccl_dbrec_value(uint32_t next) { return gccl_be32(next & 0xffffu); }
/* What is stored to the doorbell register: the first 8 bytes of the last entry. */
GCCL_MLX5_FN uint64_t gccl_doorbell_value(const gccl_wqe *last) { return last->w[0]; }

/* Whether the last byte of a completion entry says that it is the one number n of a queue of `entries` (a power of two). */
GCCL_MLX5_FN int gccl_cqe_is(uint8_t op_own, uint64_t n, uint32_t entries) {
  return op_own >> 4 != GCCL_CQE_INVALID && (op_own & 1) == ((n & entries) != 0);
}

/* A queue pair's send side as its producers see it. The queue, the records and the completion queue are memory that the device reads
 * and writes too; the state is the producers' own. */
typedef struct {
  unsigned char *sq;           /* depth entries */
  volatile uint32_t *dbrec;    /* two words */
  volatile uint32_t *cq_dbrec; /* takes how many completions were seen, 24 bits; NULL: nobody asks */
  volatile uint64_t *doorbell; /* the register, or memory where the CPU rings it: written only */
  const unsigned char *cq;     /* cq_depth completions; completion n stands for entry n, because every entry asks for one; cq_depth ≥ depth, and
                                  entry n + depth is not posted before n has completed, so that none is lost */
  uint32_t depth, qpn;         /* depth: a power of two, at most 32768, because indices have 16 bits */
  uint32_t cq_depth;           /* a power of two */
  uint32_t *counter;           /* by slot: the counter that a completion raises, plus 1; 0 none */
  uint32_t error;              /* first syndrome; 0 none. Any poller */
  uint32_t lock, polling;      /* of the doorbell; of completions */
  uint64_t claimed;            /* entries given out */
  uint64_t ready;              /* entries complete in the queue, all of them below */
  uint64_t rung;               /* entries that the device has been told of */
  uint64_t done;               /* entries whose completion has been seen */
} gccl_gdaki_qp;

/* A window's keys: NCCL's ncclGinGdakiMemHandle (2.28.9 to 2.30.7). All big-endian; addresses are offsets in the window. */
typedef struct {
  uint32_t *rkeys; /* by rank */
  uint32_t lkey;
  uint32_t pad;
} gccl_gdaki_mem;

#define GCCL_GDAKI_VERSION 2u

/* A context: what ncclDevComm.ginHandles points at, one for each context id. Ours alone: kernels that were compiled against NVIDIA's
 * header get the proxy. */
typedef struct {
  uint32_t version, size;
  int32_t nranks;
  uint32_t nsignals, ncounters;
  uint32_t sink_lkey;       /* of `sink`: where the old values of atomics go. Host order, as signal_rkeys */
  uint64_t sink;            /* its address for the device */
  gccl_gdaki_qp *qp;        /* by rank */
  uint32_t *signal_rkeys;   /* by rank: of its table of signals, zero-based */
  uint64_t *signals;        /* this rank's; written by the device alone */
  uint64_t *signal_offsets; /* what a reset has left: value = signals - offsets */
  uint64_t *counters;
} gccl_gdaki_context;

#endif
