/* The error latch: the first cause of a communicator's failure is kept, every wait ends. */
#include <stdarg.h>
#include <stdio.h>

#include "exec.h"

void gccl_comm_latch(struct ncclComm *comm, int32_t rc, const char *format, ...) {
  int32_t none = 0;
  /* -1 claims the latch while the text is written, so that whoever sees a code also sees its cause. */
  if (atomic_compare_exchange_strong(&comm->error, &none, -1)) {
    va_list args;
    va_start(args, format);
    vsnprintf(comm->cause, sizeof comm->cause, format, args);
    va_end(args);
    atomic_store_explicit(&comm->async, rc, memory_order_relaxed);
    atomic_store_explicit(&comm->error, rc, memory_order_release);
  }
  gccl_abort_raise(comm);
  gccl_wake_self(comm);
  if (comm->release) comm->release(comm);
}
