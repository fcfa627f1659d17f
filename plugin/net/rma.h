/* An rma plugin as the rest of this package sees it: the calls of rma v14, with the module as first argument. Tables of v13 are those of
 * gin v13 and count only if their devices are of the proxy kind. */
#ifndef GCCL_PLUGIN_NET_RMA_H
#define GCCL_PLUGIN_NET_RMA_H

#include <pthread.h>

#include "abi.h"
#include "lane.h"

typedef struct np_rma np_rma;

struct np_rma {
  const void *table;
  int version;
  const char *name;
  np_logger log;
  pthread_mutex_t lock; /* init, devices and finalize come one at a time */

  int (*init)(np_rma *, void **ctx, uint64_t comm);
  int (*finalize)(np_rma *, void *ctx);
  int (*devices)(np_rma *, int *ndev);
  int (*properties)(np_rma *, int dev, np_props_v12 *);
  int (*listen)(np_rma *, void *ctx, int dev, void *handle, void **listen);
  int (*connect)(np_rma *, void *ctx, void *handles[], int nranks, int rank, void *listen, void **coll); /* may block until all are there */
  int (*create)(np_rma *, void *coll, void **context);
  int (*destroy)(np_rma *, void *context);
  int (*reg)(np_rma *, void *coll, void *data, size_t bytes, uint64_t flags, void **mhandle); /* host memory; collective */
  int (*dereg)(np_rma *, void *coll, void *mhandle);
  /* A put and a strong signal behind it, which adds value to the word at signal_off. */
  int (*put_signal)(np_rma *, void *context, uint64_t src, void *src_handle, size_t bytes, uint64_t dst, void *dst_handle, uint32_t rank,
                    uint64_t signal_off, void *signal_handle, uint64_t value, void **request);
  int (*test)(np_rma *, void *coll, void *request, int *done);
  int (*progress)(np_rma *, void *context);
  int (*error)(np_rma *, void *context, bool *failed);
  int (*close_coll)(np_rma *, void *coll);
  int (*close_listen)(np_rma *, void *listen);
};

enum { NP_RMA_FORCE_SO = 1, NP_RMA_ADD = 2 };

/* Fills a module of a table, of gin v13 if gin is set. 0, or a text of what is wrong with it. */
const char *np_rma_open(np_rma *, const void *table, int version, int gin, np_logger log);
void np_rma_adapt_v13(np_rma *);
void np_rma_adapt_v14(np_rma *);

int np_rma_context(np_rma *, uint64_t comm, void **ctx, char *why); /* init, and what device 0 must be */

/* What a connection of two ranks is being made of. */
typedef struct {
  np_rma *m;
  void *ctx;
  unsigned char handle[2][NP_HANDLE]; /* by rank in the pair */
  void *listen;
} np_rma_pair;

int np_rma_listen(np_rma_pair *, unsigned char mine[NP_HANDLE], char *why);
/* Connects, registers and makes a lane; blocks as long as the plugin does. The listener is closed. NULL with why. */
np_lane *np_rma_lane(np_rma_pair *, int rank, char *why);
void np_rma_pair_close(np_rma_pair *);

#endif
