/* v13, under the name of gin or of rma: contexts for devices, of which nothing is used; every signal is a strong one. */
#include "rma.h"

#define T(m) ((const np_gin_v13 *)(m)->table)
#include "rma_adapt.h"

static int a_create(np_rma *m, void *coll, void **context) {
  np_gin_config_v13 config = {.nContexts = 1, .trafficClass = INT32_MIN};
  np_device_handle *device = NULL;
  return T(m)->createContext(coll, &config, context, &device);
}

static int a_reg(np_rma *m, void *coll, void *data, size_t bytes, uint64_t flags, void **mhandle) {
  void *device = NULL;
  return T(m)->regMrSym(coll, data, bytes, NP_PTR_HOST, flags, mhandle, &device);
}

static int a_put_signal(np_rma *m, void *context, uint64_t src, void *src_handle, size_t bytes, uint64_t dst, void *dst_handle,
                        uint32_t rank, uint64_t signal_off, void *signal_handle, uint64_t value, void **request) {
  *request = NULL;
  return T(m)->iputSignal(context, 0, src, src_handle, bytes, dst, dst_handle, rank, signal_off, signal_handle, value, NP_RMA_ADD, request);
}

static int a_progress(np_rma *m, void *context) { return T(m)->ginProgress ? T(m)->ginProgress(context) : NP_OK; }

void np_rma_adapt_v13(np_rma *m) { ADAPT_FILL; }
