/* A profiler plugin of any version (-DV=1 … 6) that writes down every call: one line each into $WATCHER_FILE.PID.NAME. The test checks the
 * order, the parents and the contents. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/profiler/abi.h"

#ifndef NAME
#define NAME "watcher"
#endif
#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define DESCR PASTE(profiler_descr_v, V)
#define TABLE PASTE(profiler_table_v, V)
#if V < 4
typedef profiler_args_v1 args;
#else
typedef profiler_args_v4 args;
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static long last; /* handles are numbers from 1 */

static void begin_line(void) {
  pthread_mutex_lock(&lock);
  if (out) return;
  char path[512];
  snprintf(path, sizeof path, "%s.%d." NAME, getenv("WATCHER_FILE"), (int)getpid());
  out = fopen(path, "a");
  if (!out) abort();
}

static void end_line(void) {
  fputc('\n', out);
  fflush(out);
  pthread_mutex_unlock(&lock);
}

static int fails(void) { return getenv("WATCHER_FAILS") != NULL; }

static int start_mask(int *mask) {
  const char *m = getenv("WATCHER_MASK");
  *mask = m ? (int)strtol(m, NULL, 0) : 0xfdf;
  return fails() ? 3 : 0;
}

#if V < 4
static int init(void **context, int *mask) {
  begin_line();
  if (!getenv("WATCHER_NO_CONTEXT")) *context = (void *)++last;
  fprintf(out, "init %ld", last);
  end_line();
  return start_mask(mask);
}
#elif V == 4
static int init(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks, int rank, void *log) {
  (void)log;
  begin_line();
  if (!getenv("WATCHER_NO_CONTEXT")) *context = (void *)++last;
  fprintf(out, "init %ld name %s hash %d nodes %d ranks %d rank %d", last, name ? name : "-", hash != 0, nodes, ranks, rank);
  end_line();
  return start_mask(mask);
}
#else
static int init(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks, int rank, void *log) {
  (void)log;
  begin_line();
  if (!getenv("WATCHER_NO_CONTEXT")) *context = (void *)++last;
  fprintf(out, "init %ld name %s hash %d nodes %d ranks %d rank %d", last, name ? name : "-", hash != 0, nodes, ranks, rank);
  end_line();
  return start_mask(mask);
}
#endif

static int start(void *context, void **handle, DESCR *d) {
  begin_line();
  *handle = (void *)++last;
#if V < 5
  void *parent = d->parentObj;
#else
  void *parent = d->parent;
#endif
  fprintf(out, "start %ld context %ld type %d parent %ld rank %d", last, (long)context, (int)d->type, (long)parent, d->rank);
  switch ((int)d->type) {
  case 2:
#if V == 1
    fprintf(out, " coll func %d count %zu type %d algo %d proto %d seq %d hash %d channels %d", d->coll.func, d->coll.count,
            d->coll.datatype, d->coll.algo, d->coll.proto, d->coll.seqNumber != 0, d->coll.commHash != 0, d->coll.nMaxChannels);
#elif V < 4
    fprintf(out, " coll func %s count %zu type %s algo %s proto %s seq %d hash %d channels %d", d->coll.func, d->coll.count,
            d->coll.datatype, d->coll.algo, d->coll.proto, d->coll.seqNumber != 0, d->coll.commHash != 0, d->coll.nMaxChannels);
#elif V == 4
    fprintf(out, " coll func %s count %zu type %s algo %s proto %s seq %d channels %d", d->coll.func, d->coll.count, d->coll.datatype,
            d->coll.algo, d->coll.proto, d->coll.seqNumber != 0, d->coll.nChannels);
#else
    fprintf(out, " coll func %s count %zu type %s algo %s proto %s seq %d channels %d group %ld", d->u.coll.func, d->u.coll.count,
            d->u.coll.datatype, d->u.coll.algo, d->u.coll.proto, d->u.coll.number != 0, d->u.coll.nchannels, (long)d->u.coll.group);
#endif
    break;
  case 4:
#if V == 1
    fprintf(out, " p2p func %d count %zu type %d peer %d", d->p2p.func, d->p2p.count, d->p2p.datatype, d->p2p.peer);
#elif V < 5
    fprintf(out, " p2p func %s count %zu type %s peer %d", d->p2p.func, d->p2p.count, d->p2p.datatype, d->p2p.peer);
#else
    fprintf(out, " p2p func %s count %zu type %s peer %d group %ld", d->u.p2p.func, d->u.p2p.count, d->u.p2p.datatype, d->u.p2p.peer,
            (long)d->u.p2p.group);
#endif
    break;
  case 8:
#if V < 5
    fprintf(out, " proxy mine %d peer %d steps %d send %d", d->proxyOp.pid == getpid(), d->proxyOp.peer, d->proxyOp.nSteps,
            d->proxyOp.isSend);
#else
    fprintf(out, " proxy mine %d peer %d steps %d send %d", d->u.proxy_op.pid == getpid(), d->u.proxy_op.peer, d->u.proxy_op.nsteps,
            d->u.proxy_op.is_send);
#endif
    break;
#if V == 3 || V == 4
  case 128: fprintf(out, " net id %llx data %d", (unsigned long long)d->netPlugin.id, d->netPlugin.data != NULL); break;
#endif
#if V >= 5
  case 128: fprintf(out, " net id %llx data %d", (unsigned long long)d->u.net_plugin.id, d->u.net_plugin.data != NULL); break;
  case 512: fprintf(out, " collapi func %s count %zu type %s", d->u.coll_api.func, d->u.coll_api.count, d->u.coll_api.datatype); break;
  case 1024: fprintf(out, " p2papi func %s count %zu type %s", d->u.p2p_api.func, d->u.p2p_api.count, d->u.p2p_api.datatype); break;
  case 256: fprintf(out, " groupapi depth %d", d->u.group_api.depth); break;
  case 64: fprintf(out, " channel %d timer %d", d->u.kernel_ch.channel, d->u.kernel_ch.timer != 0); break;
#endif
  default: break;
  }
  end_line();
  return 0;
}

static int stop(void *handle) {
  begin_line();
  fprintf(out, "stop %ld", (long)handle);
  end_line();
  return 0;
}

static int state(void *handle, int s, args *a) {
  (void)a;
  begin_line();
  fprintf(out, "state %ld %d", (long)handle, s);
  end_line();
  return 0;
}

static int finalize(void *context) {
  if (!context) abort();
  begin_line();
  fprintf(out, "finalize %ld", (long)context);
  end_line();
  return 0;
}

TABLE PASTE(ncclProfiler_v, V) = {NAME, init, start, stop, state, finalize};
