/* The seam of cards whose send queues kernels write themselves: what a provider of them offers, behind a table of C functions. Entries,
 * doorbells and completions are those of mlx5 devices (include/gccl_device/impl/mlx5.h); the provider makes the queues and takes no part in
 * the data path afterwards, but where it rings doorbells for kernels that cannot. */
#ifndef GCCL_NET_CARD_H
#define GCCL_NET_CARD_H

#include "transport.h"

enum { GCCL_CARD_ADDRESS = 32 };

struct gccl_card_ops;

/* A card that is open. */
typedef struct gccl_card {
  const struct gccl_card_ops *ops;
} gccl_card;

/* Memory that queues reach. Its addresses begin at 0. Keys in host order. */
typedef struct {
  gccl_card *card;
  uint32_t lkey, rkey;
} gccl_card_mr;

/* A queue pair's send side, as kernels use it. */
typedef struct {
  gccl_card *card;
  unsigned char *sq, *cq;
  uint32_t *dbrec;     /* two words: the send queue's is the second */
  uint32_t *cq_dbrec;  /* the first word takes how many completions were seen; NULL: nobody asks */
  uint64_t *doorbell;  /* where kernels ring */
  uint64_t *bell;      /* the register, where the CPU has to ring it: kernels ring in memory; NULL: doorbell is the register */
  uint64_t rung;       /* what was in memory the last time */
  uint32_t depth, qpn; /* depth: entries, a power of two */
  uint32_t cq_depth;   /* completions, a power of two, at least depth */
  unsigned char address[GCCL_CARD_ADDRESS]; /* for the other end */
} gccl_sendq;

/* why has GCCL_NET_TEXT bytes, and a text when the result is negative. Nothing here may be called at the same time for one card. */
typedef struct gccl_card_ops {
  const char *name;
  /* atomics: peers may do nothing else with it. base: at the beginning of a page. */
  int (*reg)(gccl_card *, void *base, uint64_t bytes, int atomics, gccl_card_mr **out, char *why);
  void (*dereg)(gccl_card_mr *);
  /* A queue of at least depth entries, which is not connected. */
  int (*open)(gccl_card *, uint32_t depth, gccl_sendq **out, char *why);
  int (*connect)(gccl_sendq *, const unsigned char address[GCCL_CARD_ADDRESS], char *why);
  void (*close_queue)(gccl_sendq *);
} gccl_card_ops;

/* How the memory of queues reaches the device whose kernels write them, page by page; there is none where kernels run on the CPU. Called
 * once for a page, however many queues lie in it. io: a page of registers. */
typedef struct gccl_card_pages {
  int (*map)(void *arg, void *page, uint64_t bytes, int io, void **device, char *why);
  void (*unmap)(void *arg, void *page);
  void *arg;
} gccl_card_pages;

#endif
