/* Ports, and the states of a queue pair. */
#include <errno.h>

#include "conn.h"

static vb_context *open_named(const vb_library *vb, const char *name) {
  int n = 0;
  vb_device **list = vb->get_device_list(&n);
  vb_context *x = NULL;
  for (int d = 0; list && d < n && !x; d++)
    if (!strcmp(vb->get_device_name(list[d]), name)) x = vb->open_device(list[d]);
  if (list) vb->free_device_list(list);
  return x;
}

int rail_open(const vb_library *vb, rail *r, const char *name, int port, int gid_index, char *why) {
  memset(r, 0, sizeof *r);
  snprintf(r->name, sizeof r->name, "%s", name);
  r->port = (uint8_t)port;
  r->gid_index = gid_index;
  r->context = open_named(vb, name);
  if (!r->context) return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s cannot be opened: %s", name, strerror(errno));
  vb_port_attr p = {0};
  vb_device_attr d = {0};
  int rc = vb->query_device(r->context, &d);
  if (!rc) rc = vb->query_port(r->context, r->port, &p);
  if (!rc) rc = vb->query_gid(r->context, r->port, gid_index, &r->gid);
  if (!rc && !(r->pd = vb->alloc_pd(r->context))) rc = errno;
  if (rc) {
    vb->close_device(r->context);
    return gccl_net_why(why, GCCL_NET_ESYSTEM, "%s port %d, GID %d: %s", name, port, gid_index, strerror(rc > 0 ? rc : errno));
  }
  r->link = p.link_layer == VB_LINK_ETHERNET ? VB_LINK_ETHERNET : VB_LINK_INFINIBAND;
  r->lid = p.lid;
  r->mtu = (uint8_t)p.active_mtu;
  r->atomics = d.atomic_cap != 0;
  r->max_bytes = p.max_msg_sz && p.max_msg_sz < 1u << 30 ? p.max_msg_sz & ~4095u : 1u << 30;
  r->reads = (uint8_t)(d.max_qp_rd_atom < 16 ? d.max_qp_rd_atom : 16);
  return 0;
}

void rail_close(const vb_library *vb, rail *r) {
  vb->dealloc_pd(r->pd);
  vb->close_device(r->context);
}

void rail_address(const rail *r, const vb_qp *qp, gccl_ib_address *a) {
  *a = (gccl_ib_address){.qpn = qp->qp_num, .lid = r->lid, .mtu = r->mtu, .link = r->link};
  memcpy(a->gid, r->gid.raw, 16);
}

int qp_init(const vb_library *vb, const rail *r, vb_qp *qp, unsigned access) {
  vb_qp_attr a = {.qp_state = VB_QPS_INIT, .port_num = r->port, .qp_access_flags = access};
  return vb->modify_qp(qp, &a, VB_QP_STATE | VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS);
}

static int min_int(int a, int b) { return a < b ? a : b; }

int qp_ready_to_receive(const vb_library *vb, const rail *r, const gccl_ib_config *config, vb_qp *qp, const gccl_ib_address *to,
                        char *why) {
  if (to->mtu < 1 || to->mtu > 5) return gccl_net_why(why, GCCL_NET_EINVAL, "an MTU of code %u", to->mtu);
  vb_qp_attr a = {.qp_state = VB_QPS_RTR,
                  .path_mtu = min_int(r->mtu, to->mtu),
                  .dest_qp_num = to->qpn,
                  .max_dest_rd_atomic = r->reads,
                  .min_rnr_timer = 12}; /* 0.64 ms: a receiver without a buffer is rare here */
  a.ah_attr.port_num = r->port;
  a.ah_attr.dlid = to->lid;
  a.ah_attr.sl = (uint8_t)(config->service_level < 0 ? 0 : config->service_level);
  /* RoCE has no LIDs; InfiniBand needs the global route only between subnets. */
  if (r->link == VB_LINK_ETHERNET || memcmp(to->gid, r->gid.raw, 8)) {
    a.ah_attr.is_global = 1;
    memcpy(a.ah_attr.grh.dgid.raw, to->gid, 16);
    a.ah_attr.grh.sgid_index = (uint8_t)r->gid_index;
    a.ah_attr.grh.hop_limit = 255;
    a.ah_attr.grh.traffic_class = (uint8_t)(config->traffic_class < 0 ? 0 : config->traffic_class);
  }
  int rc = vb->modify_qp(
      qp, &a, VB_QP_STATE | VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER);
  return rc ? gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: queue pair to RTR: %s", r->name, strerror(rc)) : 0;
}

int qp_ready_to_send(const vb_library *vb, const rail *r, const gccl_ib_config *config, vb_qp *qp, char *why) {
  vb_qp_attr s = {.qp_state = VB_QPS_RTS,
                  .timeout = (uint8_t)config->timeout,
                  .retry_cnt = (uint8_t)config->retry_count,
                  .rnr_retry = 7, /* without end: credits keep it from happening, a stopped process must not fail */
                  .max_rd_atomic = r->reads};
  int rc = vb->modify_qp(qp, &s, VB_QP_STATE | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN | VB_QP_MAX_QP_RD_ATOMIC);
  return rc ? gccl_net_why(why, GCCL_NET_ESYSTEM, "%s: queue pair to RTS: %s", r->name, strerror(rc)) : 0;
}
