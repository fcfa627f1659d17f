/* Cards whose send queues kernels write: mlx5 devices. */
#ifndef GCCL_IB_MLX5_H
#define GCCL_IB_MLX5_H

#include "../transport/card.h"
#include "ib.h"

/* Who rings the doorbell: kernels where they can, else the CPU; or one of the two. */
enum gccl_card_ring { GCCL_CARD_RING_AUTO, GCCL_CARD_RING_KERNEL, GCCL_CARD_RING_CPU };

/* Opens a port, and proves that its queues do what they should. NULL with a text that names the step. pages stays valid until the card is closed. */
gccl_card *gccl_ib_card_open(const char *name, int port, int gid_index, const gccl_ib_config *, const gccl_card_pages *pages, int ring,
                             char *why);
/* Why the CPU rings, empty if it was told to; NULL if kernels do. */
const char *gccl_ib_card_relayed(const gccl_card *);
void gccl_ib_card_close(gccl_card *); /* Preconditions: nothing of it is left */

#endif
