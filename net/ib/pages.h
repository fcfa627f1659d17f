/* Pages of queues that a device reaches: each is mapped once, and unmapped with its last user. A doorbell page, or one with records, belongs to
 * several queues. */
#ifndef GCCL_IB_PAGES_H
#define GCCL_IB_PAGES_H

#include "../transport/card.h"

/* Maps the pages of a range. *device is where the device sees `at`. Without an m kernels see memory as it is. */
int ib_pages_pin(const gccl_card_pages *m, void *at, uint64_t bytes, int io, void **device, char *why);
/* Preconditions: ib_pages_pin has succeeded for the same range. */
void ib_pages_unpin(const gccl_card_pages *m, void *at, uint64_t bytes);

#endif
