#include "pair.h"

static int failed(char *why, const char *call, int rc) {
  gccl_net_why(why, -1, "%s: %s", call, np_result(rc));
  return -1;
}

int np_open_context(np_net *m, uint64_t comm, void **ctx, int *ndev, char *why) {
  int rc = m->init(m, ctx, comm);
  if (rc) return failed(why, "init", rc);
  *ndev = 0;
  if ((rc = m->devices(m, ndev)) || *ndev < 1) {
    m->finalize(m, *ctx);
    return rc ? failed(why, "devices", rc) : gccl_net_why(why, -1, "it has no device");
  }
  return 0;
}

int np_pair_listen(np_pair *p, char *why) {
  int rc = p->m->listen(p->m, p->ctx, p->dev, p->mine, &p->listen);
  if (rc || !p->listen) return failed(why, "listen", rc ? rc : NP_INTERNAL);
  return 0;
}

int np_pair_connect(np_pair *p, char *why) {
  int rc;
  if (!p->send && (rc = p->m->connect(p->m, p->ctx, p->dev, p->peer, &p->send))) return failed(why, "connect", rc);
  if (!p->recv && (rc = p->m->accept(p->m, p->listen, &p->recv))) return failed(why, "accept", rc);
  if (!p->send || !p->recv) return 0;
  p->m->close_listen(p->m, p->listen);
  p->listen = NULL;
  return 1;
}

int np_pair_token(np_pair *p, const unsigned char send[NP_TOKEN], unsigned char received[NP_TOKEN], char *why) {
  np_net *m = p->m;
  int rc, done;
  if (!p->token) {
    if (!(p->token = calloc(2, NP_TOKEN))) return failed(why, "memory", NP_SYSTEM);
    memcpy(p->token, send, NP_TOKEN);
    if ((rc = m->reg(m, p->send, p->token, NP_TOKEN, NP_PTR_HOST, &p->token_send))) return failed(why, "regMr", rc);
    p->registered = 1;
    if ((rc = m->reg(m, p->recv, p->token + NP_TOKEN, NP_TOKEN, NP_PTR_HOST, &p->token_recv))) return failed(why, "regMr", rc);
    p->registered = 2;
  }
  if (!p->sending && !p->sent && (rc = m->isend(m, p->send, p->token, NP_TOKEN, 0, p->token_send, NULL, &p->sending)))
    return failed(why, "isend", rc);
  if (!p->receiving && !p->received) {
    void *to = p->token + NP_TOKEN;
    size_t size = NP_TOKEN;
    int tag = 0;
    void *none = NULL;
    if ((rc = m->irecv(m, p->recv, 1, &to, &size, &tag, &p->token_recv, &none, &p->receiving))) return failed(why, "irecv", rc);
  }
  int sizes[NP_RECVS] = {0};
  if (p->sending) {
    if ((rc = m->test(m, p->sending, &done, sizes))) return failed(why, "test of a send", rc);
    if (done) p->sent = 1, p->sending = NULL;
  }
  if (p->receiving) {
    if ((rc = m->test(m, p->receiving, &done, sizes))) return failed(why, "test of a receive", rc);
    if (done && sizes[0] != NP_TOKEN && sizes[0]) /* 0: some plugins do not say */
      return gccl_net_why(why, -1, "a receive of %d bytes ended with %d: the plugin lost or added bytes", NP_TOKEN, sizes[0]);
    if (done) p->received = 1, p->receiving = NULL;
  }
  if (!p->sent || !p->received) return 0;
  memcpy(received, p->token + NP_TOKEN, NP_TOKEN);
  return 1;
}

void np_pair_deregister(np_pair *p) {
  if (p->registered > 0 && p->send) p->m->dereg(p->m, p->send, p->token_send);
  if (p->registered > 1 && p->recv) p->m->dereg(p->m, p->recv, p->token_recv);
  p->registered = 0;
}

void np_pair_close(np_pair *p) {
  np_net *m = p->m;
  np_pair_deregister(p);
  if (p->listen) m->close_listen(m, p->listen);
  if (p->send) m->close_send(m, p->send);
  if (p->recv) m->close_recv(m, p->recv);
  p->listen = p->send = p->recv = NULL;
  free(p->token);
  p->token = NULL;
}
