/* What the provider of send queues uses of libmlx5, which is opened at run time.
 *
 * Names and layouts are those of rdma-core, providers/mlx5/mlx5dv.h (version 44, Debian 12: libibverbs-dev, infiniband/mlx5dv.h), structures
 * mlx5dv_qp, mlx5dv_cq and mlx5dv_obj. ib_test.go compares them with that header where it is installed. */
#ifndef GCCL_IB_MLX5DV_H
#define GCCL_IB_MLX5DV_H

#include "verbs.h"

typedef struct {
  uint32_t *dbrec; /* big-endian */
  struct {
    void *buf;
    uint32_t wqe_cnt, stride;
  } sq, rq;
  struct {
    void *reg;
    uint32_t size;
  } bf;
  uint64_t comp_mask;
  int64_t uar_mmap_offset;
  uint32_t tirn, tisn, rqn, sqn;
  uint64_t tir_icm_addr;
} dv_qp;

typedef struct {
  void *buf;
  uint32_t *dbrec;
  uint32_t cqe_cnt, cqe_size;
  void *cq_uar;
  uint32_t cqn;
  uint64_t comp_mask;
} dv_cq;

typedef struct {
  struct {
    vb_qp *in;
    dv_qp *out;
  } qp;
  struct {
    vb_cq *in;
    dv_cq *out;
  } cq;
  struct {
    void *in, *out;
  } srq, rwq, dm, ah, pd;
} dv_obj;

enum { DV_OBJ_QP = 1, DV_OBJ_CQ = 2 };

typedef struct {
  int (*init_obj)(dv_obj *, uint64_t type);   /* 0 or an error number */
  unsigned char (*is_supported)(vb_device *); /* bool */
} dv_library;

/* The library, opened at the first call, or NULL with a text of at most 256 bytes. */
const dv_library *dv_open(char *why);

#endif
