/* Graphs, their launch, and user objects. */
#include "fake.h"

CUgraph fake_graph_new(void) {
  CUgraph g = calloc(1, sizeof *g);
  g->magic = MAGIC_GRAPH;
  return g;
}

CUgraphNode fake_graph_add(CUgraph g, fake_work w, CUgraphNode *after, size_t nafter) {
  CUgraphNode n = calloc(1, sizeof *n);
  n->magic = MAGIC_NODE;
  n->graph = g;
  n->index = g->n;
  n->work = w;
  n->nafter = nafter;
  n->after = malloc((nafter + 1) * sizeof *n->after);
  if (nafter) memcpy(n->after, after, nafter * sizeof *n->after);
  g->node = realloc(g->node, ((size_t)g->n + 1) * sizeof *g->node);
  g->node[g->n++] = n;
  return n;
}

/* --- user objects --- */

static void destroy_object(void *arg) {
  CUuserObject o = arg;
  o->destroy(o->ptr);
  o->magic = 0;
  free(o);
}

/* The destructor runs on a thread of the driver and may not call it (cuUserObjectCreate). With the lock. */
static void object_unref(CUuserObject o, unsigned count) {
  o->refs -= count;
  if (!o->refs) fake_run(destroy_object, o);
}

static void drop_holds(fake_hold *h) {
  while (h) {
    fake_hold *next = h->next;
    object_unref(h->object, h->count);
    free(h);
    h = next;
  }
}

CUresult fake_UserObjectCreate(CUuserObject *out, void *ptr, CUhostFn destroy, unsigned refs, unsigned flags) {
  CUresult rc = fake_enter("cuUserObjectCreate", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  if (!out || !destroy || !refs || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) return CUDA_ERROR_INVALID_VALUE;
  CUuserObject o = calloc(1, sizeof *o);
  *o = (struct CUuserObject_st){MAGIC_OBJECT, ptr, destroy, refs};
  *out = o;
  return CUDA_SUCCESS;
}

CUresult fake_UserObjectRelease(CUuserObject o, unsigned count) {
  CUresult rc = fake_enter("cuUserObjectRelease", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  if (!o || o->magic != MAGIC_OBJECT || !count || count > o->refs)
    rc = CUDA_ERROR_INVALID_VALUE;
  else
    object_unref(o, count);
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

static int graph_ok(CUgraph g) { return g && g->magic == MAGIC_GRAPH && !g->dead; }

CUresult fake_GraphRetainUserObject(CUgraph g, CUuserObject o, unsigned count, unsigned flags) {
  CUresult rc = fake_enter("cuGraphRetainUserObject", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  int move = flags == CU_GRAPH_USER_OBJECT_MOVE;
  if (!graph_ok(g) || !o || o->magic != MAGIC_OBJECT || !count || flags > 1 || (move && count > o->refs)) {
    rc = CUDA_ERROR_INVALID_VALUE;
  } else {
    fake_hold *h = calloc(1, sizeof *h);
    *h = (fake_hold){g->holds, o, count};
    g->holds = h;
    if (!move) o->refs += count;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

/* --- graphs --- */

/* Graphs are not freed, only what they hold: stale handles stay recognisable. */
void fake_graph_free(CUgraph g) {
  g->dead = 1;
  for (int i = 0; i < g->n; i++) {
    fake_work_free(&g->node[i]->work);
    free(g->node[i]->after);
    g->node[i]->magic = 0;
    free(g->node[i]);
  }
  free(g->node);
  g->node = NULL;
  g->n = 0;
  drop_holds(g->holds);
  g->holds = NULL;
}

CUresult fake_GraphDestroy(CUgraph g) {
  CUresult rc = fake_enter("cuGraphDestroy", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  if (graph_ok(g) && !g->captured)
    fake_graph_free(g);
  else
    rc = CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

CUresult fake_GraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
  CUresult rc = fake_enter("cuGraphGetNodes", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  if (!graph_ok(g) || !n) {
    rc = CUDA_ERROR_INVALID_VALUE;
  } else {
    for (size_t i = 0; nodes && i < *n; i++) nodes[i] = i < (size_t)g->n ? g->node[i] : NULL;
    if (!nodes || *n > (size_t)g->n) *n = (size_t)g->n;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

/* Chains of operations that follow one another; each is like a stream. Chain 0 runs in the stream of the launch. */
static void divide(CUgraphExec x) {
  char *followed = calloc((size_t)x->n + 1, 1);
  for (int i = 0; i < x->n; i++) {
    x->node[i].chain = -1;
    for (int k = 0; k < x->node[i].nafter && x->node[i].chain < 0; k++) {
      int before = x->node[i].after[k];
      if (followed[before]) continue;
      followed[before] = 1;
      x->node[i].chain = x->node[before].chain;
    }
    if (x->node[i].chain < 0) x->node[i].chain = x->nchains++;
  }
  free(followed);
}

CUresult fake_GraphInstantiate(CUgraphExec *out, CUgraph g, unsigned long long flags) {
  CUcontext ctx;
  CUresult rc = fake_enter("cuGraphInstantiateWithFlags", IN_CONTEXT | UNSAFE, &ctx); /* measured */
  (void)flags;
  if (rc != CUDA_SUCCESS) return rc;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  if (!graph_ok(g) || g->captured) {
    pthread_mutex_unlock(&fake_lock);
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUgraphExec x = calloc(1, sizeof *x);
  x->magic = MAGIC_EXEC;
  x->refs = 1;
  x->ctx = ctx;
  x->n = g->n;
  x->node = calloc((size_t)g->n + 1, sizeof *x->node);
  for (int i = 0; i < g->n; i++) {
    CUgraphNode n = g->node[i];
    x->node[i].work = fake_work_copy(&n->work);
    x->node[i].nafter = (int)n->nafter;
    x->node[i].after = calloc(n->nafter + 1, sizeof(int));
    for (size_t k = 0; k < n->nafter; k++) x->node[i].after[k] = n->after[k]->index;
  }
  divide(x);
  x->inner = calloc((size_t)x->nchains + 1, sizeof *x->inner);
  for (int c = 1; c < x->nchains; c++) {
    x->inner[c] = fake_stream_new(ctx, CU_STREAM_NON_BLOCKING);
    x->inner[c]->inner = 1;
  }
  for (fake_hold *h = g->holds; h; h = h->next) {
    fake_hold *mine = calloc(1, sizeof *mine);
    *mine = (fake_hold){x->holds, h->object, h->count};
    h->object->refs += h->count;
    x->holds = mine;
  }
  pthread_mutex_unlock(&fake_lock);
  *out = x;
  return CUDA_SUCCESS;
}

void fake_exec_unref(CUgraphExec x) {
  if (--x->refs) return;
  for (int i = 0; i < x->n; i++) {
    fake_work_free(&x->node[i].work);
    free(x->node[i].after);
  }
  free(x->node);
  x->node = NULL;
  for (int c = 1; c < x->nchains; c++) x->inner[c]->dead = 1;
  free(x->inner);
  drop_holds(x->holds);
  x->holds = NULL;
}

/* A destroyed graph that still runs goes when it has run. */
CUresult fake_GraphExecDestroy(CUgraphExec x) {
  CUresult rc = fake_enter("cuGraphExecDestroy", 0, NULL);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  if (x && x->magic == MAGIC_EXEC && !x->dead) {
    x->dead = 1;
    fake_exec_unref(x);
  } else {
    rc = CUDA_ERROR_INVALID_VALUE;
  }
  pthread_mutex_unlock(&fake_lock);
  return rc;
}

static CUresult launch(CUgraphExec x, CUstream s) {
  /* One launch of a graph after the other, whatever streams they are in. */
  fake_point begin = fake_issue(s, (fake_work){.kind = DO_NOTHING, .call = "cuGraphLaunch"}, &x->end, 1);
  fake_point *at = calloc((size_t)x->n + 1, sizeof *at), *need = calloc((size_t)x->n + 2, sizeof *need);
  for (int i = 0; i < x->n; i++) {
    int chain = x->node[i].chain, n = 0;
    if (chain) need[n++] = begin;
    for (int k = 0; k < x->node[i].nafter; k++)
      if (x->node[x->node[i].after[k]].chain != chain) need[n++] = at[x->node[i].after[k]];
    at[i] = fake_issue(chain ? x->inner[chain] : s, fake_work_copy(&x->node[i].work), need, n);
  }
  int n = 0;
  for (int i = 0; i < x->n; i++)
    if (x->node[i].chain) need[n++] = at[i];
  x->refs++;
  x->end = fake_issue(s, (fake_work){.kind = DO_LAUNCHED, .call = "the end of a graph", .launched = x}, need, n);
  free(at);
  free(need);
  return CUDA_SUCCESS;
}

CUresult fake_GraphLaunch(CUgraphExec x, CUstream handle) {
  CUstream s;
  CUresult rc = fake_enter_stream("cuGraphLaunch", handle, &s);
  if (rc != CUDA_SUCCESS) return rc;
  pthread_mutex_lock(&fake_lock);
  if (!x || x->magic != MAGIC_EXEC || x->dead)
    rc = CUDA_ERROR_INVALID_VALUE;
  else if (s->ctx != x->ctx)
    rc = CUDA_ERROR_INVALID_VALUE;
  else if (s->capture)
    rc = CUDA_ERROR_NOT_SUPPORTED; /* child graphs: not modelled */
  else
    rc = launch(x, s);
  pthread_mutex_unlock(&fake_lock);
  return rc;
}
