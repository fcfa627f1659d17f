/* link.c: what the devices of an endpoint carry, for those who choose between them. */
#include "conn.h"

int gccl_socket_add_link(gccl_net_ep *ep, const char *name) {
  endpoint *e = (endpoint *)ep;
  if (ep->nlinks == GCCL_NET_LINKS) return -1;
  ep->link = e->link;
  snprintf(e->link[ep->nlinks].name, sizeof e->link[0].name, "%s", name);
  return ep->nlinks++;
}

/* A connection has work. */
void link_busy(conn *c) {
  endpoint *e = of(c);
  for (int i = 0; i < e->base.nlinks; i++)
    if (c->links >> i & 1 && !e->use[i].users++) e->use[i].since = c->busy_since;
}

/* It has none any more: count what went over its devices until now. Others may still use them. */
void link_rest(conn *c, uint64_t now) {
  endpoint *e = of(c);
  for (int i = 0; i < e->base.nlinks; i++) {
    if (!(c->links >> i & 1)) continue;
    gccl_net_count(&e->link[i].bytes, e->use[i].bytes);
    gccl_net_count(&e->link[i].busy_ns, now - e->use[i].since);
    e->use[i].bytes = 0;
    e->use[i].since = now;
    e->use[i].users--;
  }
}
