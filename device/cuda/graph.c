/* Graphs: a captured batch gets a pair of words of its own, which goes back when the graph and all that was made of it are gone. */
#include <stdlib.h>

#include "launch.h"

typedef struct {
  gccl_cuda_comm *d;
  int slot;
} hold;

/* Called by the driver when the last graph has gone; it may not call the driver. */
static void graph_gone(void *arg) {
  hold *h = arg;
  atomic_store(&h->d->slot[h->slot], 0);
  gccl_cuda_comm_unref(h->d);
  free(h);
}

int gccl_cuda_graphs(const gccl_cuda_comm *d) {
  for (int i = 1; i < GCCL_CUDA_SLOTS; i++)
    if (atomic_load(&d->slot[i])) return 1;
  return 0;
}

int gccl_cuda_slot(gccl_cuda_batch *b) {
  gccl_cuda_comm *d = gccl_cuda_of(b->comm);
  int at = 0;
  for (int i = 1; i < GCCL_CUDA_SLOTS; i++) {
    if (atomic_load(&d->slot[i]) == b->capture) return i;
    if (!at && atomic_load(&d->slot[i]) == 0) at = i;
  }
  if (!at) {
    at = GCCL_CUDA_SLOTS - 1;
    if (b->comm->report)
      b->comm->report(b->comm, "more than 126 graphs with operations of the communicator are alive: those beyond share sync words and must "
                               "not be replayed at the same time");
  }
  hold *h = malloc(sizeof *h);
  CUuserObject o;
  CUresult e = h ? gccl_cu.UserObjectCreate(&o, h, graph_gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) : CUDA_ERROR_OUT_OF_MEMORY;
  if (e) {
    free(h);
    gccl_cuda_failed(b->comm, e, "cuUserObjectCreate");
    return -1;
  }
  *h = (hold){d, at};
  atomic_fetch_add(&d->refs, 1);
  atomic_store(&d->slot[at], b->capture);
  if ((e = gccl_cu.GraphRetainUserObject(b->graph, o, 1, CU_GRAPH_USER_OBJECT_MOVE))) {
    gccl_cu.UserObjectRelease(o, 1);
    gccl_cuda_failed(b->comm, e, "cuGraphRetainUserObject");
    return -1;
  }
  return at;
}
