/* rma v14: contexts without a device's part, weak and strong signals. */
#include "rma.h"

#define T(m) ((const np_rma_v14 *)(m)->table)
#include "rma_adapt.h"

static int a_create(np_rma *m, void *coll, void **context) {
  np_rma_config_v14 config = {.nContexts = 1, .trafficClass = INT32_MIN, .rankStride = 1};
  return T(m)->createContext(coll, &config, context);
}

static int a_reg(np_rma *m, void *coll, void *data, size_t bytes, uint64_t flags, void **mhandle) {
  return T(m)->regMrSym(coll, data, bytes, NP_PTR_HOST, flags, mhandle);
}

static int a_put_signal(np_rma *m, void *context, uint64_t src, void *src_handle, size_t bytes, uint64_t dst, void *dst_handle,
                        uint32_t rank, uint64_t signal_off, void *signal_handle, uint64_t value, void **request) {
  *request = NULL;
  return T(m)->iputSignal(context, 0, src, src_handle, bytes, dst, dst_handle, rank, signal_off, signal_handle, value, NP_RMA_ADD, true,
                          request);
}

static int a_progress(np_rma *m, void *context) { return T(m)->rmaProgress ? T(m)->rmaProgress(context) : NP_OK; }

void np_rma_adapt_v14(np_rma *m) { ADAPT_FILL; }
