/* trace: programs whose trace, or whose plugins, a test looks at. What they do is fixed, so that the test knows how many calls there
 * are. */
#include <signal.h>

#include "conf.h"
#include "mem.h"

enum { COUNT = 5000, ROUNDS = 20 };

static float send_buf[CONF_MAX_RANKS][COUNT], recv_buf[CONF_MAX_RANKS][COUNT];

static void all_reduce(struct team *t, size_t count, cudaStream_t *stream) {
  team_start(t);
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    OK(r, ncclAllReduce(send_buf[r], recv_buf[r], count, ncclFloat32, ncclSum, t->comm[i], stream ? stream[i] : NULL));
  }
  team_end(t, "all-reduce");
}

/* Of each rank: ROUNDS all-reduces of a few bytes and ROUNDS large ones, as many on a stream; ROUNDS groups of a send, a receive and a
 * broadcast; a signal around the ring. */
static void work(struct team *t) {
  cudaStream_t stream[CONF_MAX_RANKS];
  for (int i = 0; i < t->nlocal; i++) {
    int r = t->first + i;
    for (int k = 0; k < COUNT; k++) send_buf[r][k] = (float)(k % 7 + r);
    OK(r, gcclStreamCreate(&stream[i]));
  }
  for (int k = 0; k < ROUNDS; k++) all_reduce(t, 2, NULL);
  for (int k = 0; k < ROUNDS; k++) {
    all_reduce(t, COUNT, NULL);
    for (int i = 0; i < t->nlocal; i++)
      TRUE(t->first + i, recv_buf[t->first + i][8] == (float)(t->nranks + t->nranks * (t->nranks - 1) / 2));
  }
  for (int k = 0; k < ROUNDS; k++) all_reduce(t, COUNT / 2, stream);
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, gcclStreamSynchronize(stream[i]));
  for (int k = 0; k < ROUNDS; k++) {
    ncclGroupStart();
    for (int i = 0; i < t->nlocal; i++) {
      int r = t->first + i, to = (r + 1) % t->nranks, from = (r + t->nranks - 1) % t->nranks;
      OK(r, ncclSend(send_buf[r], COUNT, ncclFloat32, to, t->comm[i], NULL));
      OK(r, ncclRecv(recv_buf[r], COUNT, ncclFloat32, from, t->comm[i], NULL));
      OK(r, ncclBroadcast(send_buf[r], send_buf[r], 10, ncclFloat32, 0, t->comm[i], NULL));
    }
    OK(t->first, ncclGroupEnd());
  }
  team_start(t);
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, ncclSignal((t->first + i + 1) % t->nranks, 0, 0, 0, t->comm[i], NULL));
  team_end(t, "signal");
  ncclWaitSignalDesc_t d = {.opCnt = 1};
  team_start(t);
  for (int i = 0; i < t->nlocal; i++) {
    d.peer = (t->first + i + t->nranks - 1) % t->nranks;
    OK(t->first + i, ncclWaitSignal(1, &d, t->comm[i], NULL));
  }
  team_end(t, "wait signal");
  for (int i = 0; i < t->nlocal; i++) OK(t->first + i, gcclStreamDestroy(stream[i]));
}

/* Rank 0 waits for rank 1, which never calls, until it aborts. */
static ncclComm_t waiting;
static void *abort_later(void *arg) {
  (void)arg;
  conf_await(0, 1, 20);
  conf_sleep(0.2);
  OK(0, ncclCommAbort(waiting));
  return NULL;
}

static void aborted(struct team *t) {
  pthread_t th;
  all_reduce(t, COUNT, NULL);
  conf_barrier(t);
  if (t->first == 0) {
    waiting = t->comm[0];
    pthread_create(&th, NULL, abort_later, NULL);
    atomic_store(&W->note[0], 1);
    ncclResult_t rc = ncclAllReduce(send_buf[0], recv_buf[0], COUNT, ncclFloat32, ncclSum, t->comm[0], NULL);
    TRUE(0, rc != ncclSuccess);
    pthread_join(th, NULL);
    t->comm[0] = NULL;
  }
  conf_barrier(t);
  if (t->first != 0) {
    OK(t->first, ncclCommAbort(t->comm[0]));
    t->comm[0] = NULL;
  }
}

/* Whether the trace of a process, GCCL_TRACE being NAME.json, has a wait that has not ended. */
static int trace_waits(pid_t pid) {
  static char text[1 << 20];
  char host[256] = "", path[1024];
  const char *name = getenv("GCCL_TRACE");
  gethostname(host, sizeof host - 1);
  snprintf(path, sizeof path, "%.*s.%s.%d.json", (int)strlen(name) - 5, name, host, (int)pid);
  FILE *f = fopen(path, "r");
  size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
  if (f) fclose(f);
  text[n] = 0;
  for (const char *line = text; (line = strstr(line, "\"cat\":\"wait\"")); line++) {
    const char *end = strchr(line, '\n'), *open = strstr(line, "\"unfinished\":true");
    if (open && (!end || open < end)) return 1;
  }
  return 0;
}

/* Rank 1 dies by SIGKILL while it waits for rank 0, once its trace says so. */
static void killed(struct team *t) {
  for (int k = 0; k < ROUNDS; k++) all_reduce(t, COUNT, NULL);
  conf_barrier(t);
  if (t->first == 1) {
    atomic_store(&W->doomed[1], 1);
    atomic_store(&W->note[0], 1);
    ncclAllReduce(send_buf[1], recv_buf[1], COUNT, ncclFloat32, ncclSum, t->comm[0], NULL);
    conf_fail(1, "outlived its death");
  }
  conf_await(0, 1, 20);
  if (t->first == 0) {
    double end = conf_now() + 40;
    while (!trace_waits(W->pid[1]) && conf_now() < end) conf_sleep(0.02);
    kill(W->pid[1], SIGKILL);
  }
  ncclResult_t rc = ncclSuccess;
  for (int k = 0; k < 1000 && rc == ncclSuccess; k++) {
    ncclCommGetAsyncError(t->comm[0], &rc);
    conf_sleep(0.05);
  }
  TRUE(t->first, rc == ncclRemoteError);
  OK(t->first, ncclCommAbort(t->comm[0]));
  t->comm[0] = NULL;
}

/* Ends with its communicator alive, by exit. */
static void left(struct team *t) {
  for (int k = 0; k < ROUNDS; k++) all_reduce(t, COUNT, NULL);
  conf_barrier(t);
  fflush(NULL);
  exit(0);
}

/* More than a ring holds, faster than it is emptied. */
static void fast(struct team *t) {
  for (int k = 0; k < 4000; k++) all_reduce(t, 2, NULL);
}

int main(int argc, char **argv) {
  static const struct conf_suite suites[] = {{"work", work, 1}, {"aborted", aborted, 1}, {"killed", killed, 1},
                                             {"left", left, 1}, {"fast", fast, 1},       {NULL, NULL, 0}};
  return conf_main(argc, argv, suites);
}
