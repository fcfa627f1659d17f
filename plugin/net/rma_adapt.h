/* What adapters of rma tables have in common; T(m) is the table. Included by rma_vN.c only. */

static int a_init(np_rma *m, void **ctx, uint64_t comm) {
  pthread_mutex_lock(&m->lock);
  int rc = T(m)->init(ctx, comm, m->log);
  pthread_mutex_unlock(&m->lock);
  return rc;
}
static int a_finalize(np_rma *m, void *ctx) {
  pthread_mutex_lock(&m->lock);
  int rc = T(m)->finalize(ctx);
  pthread_mutex_unlock(&m->lock);
  return rc;
}
static int a_devices(np_rma *m, int *n) { return T(m)->devices(n); }
static int a_properties(np_rma *m, int dev, np_props_v12 *p) { return T(m)->getProperties(dev, p); }
static int a_listen(np_rma *m, void *ctx, int dev, void *handle, void **listen) { return T(m)->listen(ctx, dev, handle, listen); }
static int a_connect(np_rma *m, void *ctx, void *handles[], int nranks, int rank, void *listen, void **coll) {
  return T(m)->connect(ctx, handles, nranks, rank, listen, coll);
}
static int a_destroy(np_rma *m, void *context) { return T(m)->destroyContext(context); }
static int a_dereg(np_rma *m, void *coll, void *mhandle) { return T(m)->deregMrSym(coll, mhandle); }
static int a_test(np_rma *m, void *coll, void *request, int *done) { return T(m)->test(coll, request, done); }
static int a_error(np_rma *m, void *context, bool *has) { return T(m)->queryLastError(context, has); }
static int a_close_coll(np_rma *m, void *coll) { return T(m)->closeColl(coll); }
static int a_close_listen(np_rma *m, void *listen) { return T(m)->closeListen(listen); }

#define ADAPT_FILL                                                                                                  \
  m->name = T(m)->name;                                                                                             \
  m->init = a_init, m->finalize = a_finalize, m->devices = a_devices, m->properties = a_properties;                 \
  m->listen = a_listen, m->connect = a_connect, m->create = a_create, m->destroy = a_destroy, m->reg = a_reg;       \
  m->dereg = a_dereg, m->put_signal = a_put_signal, m->test = a_test, m->progress = a_progress, m->error = a_error; \
  m->close_coll = a_close_coll, m->close_listen = a_close_listen
