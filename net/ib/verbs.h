/* What the ib transport uses of libibverbs, which is opened at run time.
 *
 * Names and layouts are those of rdma-core, libibverbs/verbs.h (version 44, Debian 12; the ABI of IBVERBS_1.1 has been the
 * same since 2007). verbs_test.go compares every size, offset and number with that header where it is installed. Types that
 * are only pointed at stay incomplete. */
#ifndef GCCL_IB_VERBS_H
#define GCCL_IB_VERBS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vb_device vb_device;
typedef struct vb_pd vb_pd;
typedef struct vb_cq vb_cq;

typedef union {
  uint8_t raw[16];
  struct {
    uint64_t prefix, id; /* big-endian */
  } global;
} vb_gid;

typedef struct {
  char fw_ver[64];
  uint64_t node_guid, sys_image_guid, max_mr_size, page_size_cap;
  uint32_t vendor_id, vendor_part_id, hw_ver;
  int max_qp, max_qp_wr;
  unsigned int device_cap_flags;
  int max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom, max_qp_init_rd_atom,
      max_ee_init_rd_atom, atomic_cap, max_ee, max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethy_qp, max_mcast_grp, max_mcast_qp_attach,
      max_total_mcast_qp_attach, max_ah, max_fmr, max_map_per_fmr, max_srq, max_srq_wr, max_srq_sge;
  uint16_t max_pkeys;
  uint8_t local_ca_ack_delay, phys_port_cnt;
} vb_device_attr;

typedef struct {
  int state, max_mtu, active_mtu, gid_tbl_len;
  uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
  uint16_t pkey_tbl_len, lid, sm_lid;
  uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed, phys_state, link_layer, flags;
  uint16_t port_cap_flags2;
} vb_port_attr;

typedef struct {
  struct vb_context *context;
  vb_pd *pd;
  void *addr;
  size_t length;
  uint32_t handle, lkey, rkey;
} vb_mr;

typedef struct {
  uint64_t addr;
  uint32_t length, lkey;
} vb_sge;

typedef struct vb_send_wr {
  uint64_t wr_id;
  struct vb_send_wr *next;
  vb_sge *sg_list;
  int num_sge, opcode;
  unsigned int send_flags;
  uint32_t imm_data; /* big-endian */
  struct {
    uint64_t remote_addr;
    uint32_t rkey;
  } rdma;
  unsigned char other[72]; /* of operations that are not used here */
} vb_send_wr;

typedef struct vb_recv_wr {
  uint64_t wr_id;
  struct vb_recv_wr *next;
  vb_sge *sg_list;
  int num_sge;
} vb_recv_wr;

typedef struct {
  uint64_t wr_id;
  int status, opcode;
  uint32_t vendor_err, byte_len, imm_data, qp_num, src_qp;
  unsigned int wc_flags;
  uint16_t pkey_index, slid;
  uint8_t sl, dlid_path_bits;
} vb_wc;

typedef struct {
  uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
} vb_qp_cap;

typedef struct {
  void *qp_context;
  vb_cq *send_cq, *recv_cq;
  void *srq;
  vb_qp_cap cap;
  int qp_type, sq_sig_all;
} vb_qp_init_attr;

typedef struct {
  struct {
    vb_gid dgid;
    uint32_t flow_label;
    uint8_t sgid_index, hop_limit, traffic_class;
  } grh;
  uint16_t dlid;
  uint8_t sl, src_path_bits, static_rate, is_global, port_num;
} vb_ah_attr;

typedef struct {
  int qp_state, cur_qp_state, path_mtu, path_mig_state;
  uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
  unsigned int qp_access_flags;
  vb_qp_cap cap;
  vb_ah_attr ah_attr, alt_ah_attr;
  uint16_t pkey_index, alt_pkey_index;
  uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry,
      alt_port_num, alt_timeout;
  uint32_t rate_limit;
} vb_qp_attr;

typedef struct {
  struct vb_context *context;
  void *qp_context;
  vb_pd *pd;
  vb_cq *send_cq, *recv_cq;
  void *srq;
  uint32_t handle, qp_num;
} vb_qp; /* the head: more follows */

/* The operations of a context that the header calls inline. */
typedef struct vb_context {
  vb_device *device;
  struct {
    void *a[11];
    int (*poll_cq)(vb_cq *, int n, vb_wc *);
    void *b[13];
    int (*post_send)(vb_qp *, vb_send_wr *, vb_send_wr **bad);
    int (*post_recv)(vb_qp *, vb_recv_wr *, vb_recv_wr **bad);
    void *c[5];
  } ops;
  int cmd_fd, async_fd, num_comp_vectors;
} vb_context; /* the head: more follows */

enum { VB_PORT_ACTIVE = 4, VB_LINK_INFINIBAND = 1, VB_LINK_ETHERNET = 2 };
enum { VB_WR_RDMA_WRITE = 0, VB_WR_SEND = 2, VB_WR_RDMA_READ = 4 };
enum { VB_SEND_FENCE = 1, VB_SEND_SIGNALED = 2, VB_SEND_INLINE = 8 };
enum { VB_ACCESS_LOCAL_WRITE = 1, VB_ACCESS_REMOTE_WRITE = 2, VB_ACCESS_REMOTE_READ = 4, VB_ACCESS_REMOTE_ATOMIC = 8 };
enum {
  VB_WC_SUCCESS = 0,
  VB_WC_WR_FLUSH_ERR = 5,
  VB_WC_REM_ACCESS_ERR = 10,
  VB_WC_RETRY_EXC_ERR = 12,
  VB_WC_RNR_RETRY_EXC_ERR = 13,
  VB_WC_RECV = 128
};
enum { VB_QPT_RC = 2, VB_QPS_INIT = 1, VB_QPS_RTR = 2, VB_QPS_RTS = 3, VB_QPS_ERR = 6 };
enum {
  VB_QP_STATE = 1 << 0,
  VB_QP_ACCESS_FLAGS = 1 << 3,
  VB_QP_PKEY_INDEX = 1 << 4,
  VB_QP_PORT = 1 << 5,
  VB_QP_AV = 1 << 7,
  VB_QP_PATH_MTU = 1 << 8,
  VB_QP_TIMEOUT = 1 << 9,
  VB_QP_RETRY_CNT = 1 << 10,
  VB_QP_RNR_RETRY = 1 << 11,
  VB_QP_RQ_PSN = 1 << 12,
  VB_QP_MAX_QP_RD_ATOMIC = 1 << 13,
  VB_QP_MIN_RNR_TIMER = 1 << 15,
  VB_QP_SQ_PSN = 1 << 16,
  VB_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
  VB_QP_DEST_QPN = 1 << 20,
};

/* The functions of the library. reg_dmabuf_mr and reg_mr_iova are NULL where the library does not have them (rdma-core before 34 and 26). */
typedef struct {
  vb_device **(*get_device_list)(int *n);
  void (*free_device_list)(vb_device **);
  const char *(*get_device_name)(vb_device *);
  vb_context *(*open_device)(vb_device *);
  int (*close_device)(vb_context *);
  int (*query_device)(vb_context *, vb_device_attr *);
  int (*query_port)(vb_context *, uint8_t port, vb_port_attr *);
  int (*query_gid)(vb_context *, uint8_t port, int index, vb_gid *);
  vb_pd *(*alloc_pd)(vb_context *);
  int (*dealloc_pd)(vb_pd *);
  vb_mr *(*reg_mr)(vb_pd *, void *, size_t, int access);
  vb_mr *(*reg_mr_iova)(vb_pd *, void *, size_t, uint64_t iova, int access);
  vb_mr *(*reg_dmabuf_mr)(vb_pd *, uint64_t offset, size_t, uint64_t iova, int fd, int access);
  int (*dereg_mr)(vb_mr *);
  vb_cq *(*create_cq)(vb_context *, int cqe, void *cq_context, void *channel, int vector);
  int (*destroy_cq)(vb_cq *);
  vb_qp *(*create_qp)(vb_pd *, vb_qp_init_attr *);
  int (*modify_qp)(vb_qp *, vb_qp_attr *, int mask);
  int (*destroy_qp)(vb_qp *);
  int (*fork_init)(void);
  const char *(*wc_status_str)(int);
} vb_library;

/* The library, opened at the first call, or NULL with a text of at most 256 bytes. */
const vb_library *vb_open(char *why);

#endif
