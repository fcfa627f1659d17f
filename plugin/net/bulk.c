#include "carry.h"

/* Tags agree at both ends because both count the transfers; those of one group must differ. */
static int tag_of(uint32_t number) { return (int)(number % 256); }

static int broken(np_conn *c, const char *call, int rc) {
  np_fail(c, "%s: %s", call, np_result(rc));
  return -1;
}

/* The plugin's handle of a registration of ours, made at its first use. 0, or the connection has failed. */
static int handle_of(np_conn *c, gccl_mrt_entry *mr, int recv, void **out) {
  np_bulk *b = c->bulk;
  if (mr->index >= b->nhandles) {
    uint32_t n = mr->index + 64;
    struct np_handles *more = realloc(b->handles, n * sizeof *more);
    if (!more) {
      np_fail(c, "out of memory");
      return -1;
    }
    memset(more + b->nhandles, 0, (n - b->nhandles) * sizeof *more);
    b->handles = more;
    b->nhandles = n;
  }
  struct np_handles *h = &b->handles[mr->index];
  void **at = recv ? &h->recv : &h->send, *comm = recv ? b->recv : b->send;
  uint8_t *has = recv ? &h->has_recv : &h->has_send;
  if (*has) {
    *out = *at;
    return 0;
  }
  struct np_dmabuf *d = &((np_ep *)c->base.ep)->dmabuf[mr->index];
  int rc = d->fd ? b->m->reg_dmabuf(b->m, comm, mr->mr.addr, mr->mr.bytes, NP_PTR_CUDA, d->offset, d->fd - 1, at)
                 : b->m->reg(b->m, comm, mr->mr.addr, mr->mr.bytes, NP_PTR_HOST, at);
  if (rc) {
    np_fail(c, "%s of %llu bytes: %s", d->fd ? "regMrDmaBuf" : "regMr", (unsigned long long)mr->mr.bytes, np_result(rc));
    return -1;
  }
  *has = 1;
  *out = *at;
  return 0;
}

int np_bulk_room(const np_bulk *b) { return b->tx_announced - b->tx_finished < (uint32_t)b->m->requests; }

int np_bulk_send(np_conn *c, np_op *o, uint64_t at, uint64_t bytes) {
  np_bulk *b = c->bulk;
  void *h;
  if (handle_of(c, o->local, 0, &h)) return -1;
  uint32_t i = b->tx_announced++ % NP_REQUESTS;
  b->tx[i].op = o;
  b->tx[i].data = o->local->mr.addr + o->loff + at;
  b->tx[i].bytes = bytes;
  b->tx[i].mhandle = h;
  b->tx[i].step = o->step;
  b->tx[i].request = NULL;
  o->pending++;
  return 0;
}

int np_bulk_expect(np_conn *c, const np_record *r) {
  np_bulk *b = c->bulk;
  if (b->rx_announced - b->rx_done == NP_BULK) return 0;
  gccl_mrt_entry *mr = (gccl_mrt_entry *)gccl_mrt_find(&((np_ep *)c->base.ep)->mrs, r->key);
  void *h;
  if (handle_of(c, mr, 1, &h)) return -1;
  uint32_t i = b->rx_announced++ % NP_BULK;
  b->rx[i].mr = mr;
  b->rx[i].data = mr->mr.addr + r->off;
  b->rx[i].bytes = r->bytes;
  b->rx[i].mhandle = h;
  b->rx[i].id = r->id;
  b->rx[i].got = r->kind == NP_BULKGOT;
  return 1;
}

static int send_side(np_conn *c) {
  np_bulk *b = c->bulk;
  for (; b->tx_started != b->tx_announced; b->tx_started++) {
    uint32_t i = b->tx_started % NP_REQUESTS;
    int rc = b->m->isend(b->m, b->send, b->tx[i].data, b->tx[i].bytes, tag_of(b->tx_started), b->tx[i].mhandle, np_step(b->tx[i].step),
                         &b->tx[i].request);
    if (rc) return broken(c, "isend", rc);
    if (!b->tx[i].request) break; /* again later */
  }
  for (; b->tx_finished != b->tx_started; b->tx_finished++) {
    uint32_t i = b->tx_finished % NP_REQUESTS;
    int done = 0, size = -1, rc = b->m->test(b->m, b->tx[i].request, &done, &size);
    if (rc) return broken(c, "test of a send", rc);
    if (!done) break;
    b->tx[i].op->pending--;
  }
  return 0;
}

/* Posts receives, as many in one request as are known and the plugin takes. */
static int post_receives(np_conn *c) {
  np_bulk *b = c->bulk;
  while (b->rx_posted != b->rx_announced && b->group_last - b->group_first < (uint32_t)b->m->requests) {
    void *data[NP_RECVS], *handles[NP_RECVS], *steps[NP_RECVS], *request = NULL;
    size_t sizes[NP_RECVS];
    int tags[NP_RECVS], n = 0;
    for (uint32_t k = b->rx_posted; k != b->rx_announced && n < b->recvs; k++, n++) {
      uint32_t i = k % NP_BULK;
      data[n] = b->rx[i].data;
      handles[n] = b->rx[i].mhandle;
      sizes[n] = b->rx[i].bytes;
      tags[n] = tag_of(k);
      steps[n] = np_step(np_step_waiting(b->rx[i].data));
    }
    int rc = b->m->irecv(b->m, b->recv, n, data, sizes, tags, handles, steps, &request);
    if (rc) return broken(c, "irecv", rc);
    if (!request) break;
    uint32_t g = b->group_last++ % NP_REQUESTS;
    b->group[g].request = request;
    b->group[g].n = n;
    b->group[g].flushing = 0;
    b->rx_posted += (uint32_t)n;
  }
  return 0;
}

/* Makes visible to devices what arrived in their memory. 1: there is a request to test, 0: there is none, -1: it failed. */
static int flush_group(np_conn *c, int n, void **request) {
  np_bulk *b = c->bulk;
  void *data[NP_RECVS], *handles[NP_RECVS];
  int sizes[NP_RECVS], k = 0;
  for (int j = 0; j < n; j++) {
    uint32_t i = (b->rx_done + (uint32_t)j) % NP_BULK;
    if (!np_is_device((np_ep *)c->base.ep, b->rx[i].mr)) continue;
    data[k] = b->rx[i].data;
    handles[k] = b->rx[i].mhandle;
    sizes[k++] = (int)b->rx[i].bytes;
  }
  *request = NULL;
  int rc = k ? b->m->flush(b->m, b->recv, k, data, sizes, handles, request) : NP_OK;
  if (rc) return broken(c, "iflush", rc);
  return *request != NULL;
}

static int receive_side(np_conn *c) {
  np_bulk *b = c->bulk;
  if (post_receives(c)) return -1;
  while (b->group_first != b->group_last) {
    uint32_t g = b->group_first % NP_REQUESTS;
    int done = 0, n = b->group[g].n, sizes[NP_RECVS] = {0};
    int rc = b->m->test(b->m, b->group[g].request, &done, sizes);
    if (rc) return broken(c, b->group[g].flushing ? "test of a flush" : "test of a receive", rc);
    if (!done) break;
    if (!b->group[g].flushing) {
      for (int j = 0; j < n; j++) {
        uint64_t want = b->rx[(b->rx_done + (uint32_t)j) % NP_BULK].bytes;
        if ((uint64_t)sizes[j] == want || !sizes[j]) continue; /* 0: some plugins do not say */
        np_fail(c, "a receive of %llu bytes ended with %d: the plugin lost or added bytes", (unsigned long long)want, sizes[j]);
        return -1;
      }
      int more = flush_group(c, n, &b->group[g].request);
      if (more < 0) return -1;
      b->group[g].flushing = more;
      if (more) continue;
    }
    for (int j = 0; j < n; j++) {
      uint32_t i = (b->rx_done + (uint32_t)j) % NP_BULK;
      gccl_net_count(&c->base.stats.rx_bytes, b->rx[i].bytes);
      if (b->rx[i].got) np_got(c, b->rx[i].id, b->rx[i].bytes);
    }
    b->rx_done += (uint32_t)n;
    b->group_first++;
  }
  return 0;
}

void np_bulk_progress(np_conn *c) {
  if (gccl_net_faulted(&c->base.fault) || send_side(c)) return;
  receive_side(c);
}

static void drop_comms(np_bulk *b) {
  if (b->send) b->m->close_send(b->m, b->send);
  if (b->recv) b->m->close_recv(b->m, b->recv);
  b->send = b->recv = NULL;
}

static void drop_handle(np_bulk *b, struct np_handles *h) {
  if (h->has_send && b->send) b->m->dereg(b->m, b->send, h->send);
  if (h->has_recv && b->recv) b->m->dereg(b->m, b->recv, h->recv);
  *h = (struct np_handles){0};
}

/* What is under way from or into the memory would outlive it: then the connection is no more. */
void np_bulk_forget(np_conn *c, gccl_mrt_entry *mr) {
  np_bulk *b = c->bulk;
  int used = 0;
  for (uint32_t k = b->rx_done; k != b->rx_announced; k++) used |= b->rx[k % NP_BULK].mr == mr;
  for (uint32_t k = b->tx_finished; k != b->tx_announced; k++) used |= b->tx[k % NP_REQUESTS].op->local == mr;
  if (used) { /* a device then refuses what is under way, and the plugin abandons its requests */
    np_fail(c, "memory was deregistered while a transfer used it");
    for (uint32_t i = 0; i < b->nhandles; i++) drop_handle(b, &b->handles[i]);
    drop_comms(b);
  } else if (mr->index < b->nhandles) {
    drop_handle(b, &b->handles[mr->index]);
  }
}

void np_bulk_close(np_bulk *b) {
  for (uint32_t i = 0; i < b->nhandles; i++) drop_handle(b, &b->handles[i]);
  drop_comms(b);
  free(b->handles);
  free(b);
}
