/* Ranks as processes; one of them is absent from the fourth collective until a byte comes on standard input.
 *
 * late RANKS ABSENT [PER]: PER ranks to a process, all driven by its one thread (1). HOSTS=n in the environment spreads the processes over
 * n "hosts". ABSENT -1: nobody is. Prints "rank R pid P" for each rank, and at the end "handled N": how often a handler of SIGUSR2 ran
 * that the program had before the first call of the library. */
#define _GNU_SOURCE
#include <nccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 16, N = 1000, BEFORE = 3 };

static volatile sig_atomic_t handled;
static void on_signal(int sig) { handled += sig == SIGUSR2; }

static int ranks, absent, per = 1, hosts;
static ncclUniqueId id;

static int check(ncclResult_t rc, const char *what) {
  if (rc == ncclSuccess) return 1;
  fprintf(stderr, "%s: %s: %s\n", what, ncclGetErrorString(rc), ncclGetLastError(NULL));
  return 0;
}
#define DO(call) \
  if (!check(call, #call)) return 1

static int all_reduce(ncclComm_t *comm, float (*buffer)[N]) {
  DO(ncclGroupStart());
  for (int i = 0; i < per; i++) DO(ncclAllReduce(buffer[i], buffer[i], N, ncclFloat, ncclMax, comm[i], NULL));
  DO(ncclGroupEnd());
  return 0;
}

static int process(int p) {
  static float ordinary[MOST][N];
  float(*buffer)[N] = ordinary;
  ncclComm_t comm[MOST];
  if (hosts) {
    char text[16];
    snprintf(text, sizeof text, "host%d", p % hosts);
    setenv("NCCL_HOSTID", text, 1);
  }
  DO(ncclGroupStart());
  for (int i = 0; i < per; i++) DO(ncclCommInitRank(&comm[i], ranks, id, p * per + i));
  DO(ncclGroupEnd());
  const char *device = getenv("GCCL_DEVICE");
  if (device && !strcmp(device, "cuda")) DO(ncclMemAlloc((void **)&buffer, sizeof ordinary));
  for (int k = 0; k < BEFORE; k++)
    if (all_reduce(comm, buffer)) return 1;
  for (int i = 0; i < per; i++) printf("rank %d pid %d\n", p * per + i, (int)getpid());
  fflush(stdout);
  char c;
  if (absent >= 0 && absent / per == p)
    while (read(0, &c, 1) != 1) /* a signal may come */
      ;
  if (all_reduce(comm, buffer)) return 1;
  for (int k = 0; absent < 0 && k < 300; k++)
    if (all_reduce(comm, buffer)) return 1;
  for (int i = 0; i < per; i++) DO(ncclCommDestroy(comm[i]));
  if (buffer != ordinary) DO(ncclMemFree(buffer));
  printf("handled %d\n", (int)handled);
  fflush(stdout);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  ranks = atoi(argv[1]);
  absent = atoi(argv[2]);
  if (argc > 3) per = atoi(argv[3]);
  if (getenv("HOSTS")) hosts = atoi(getenv("HOSTS"));
  struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigaction(SIGUSR2, &a, NULL);
  int ends[MOST][2], n = ranks / per, bad = 0;
  for (int p = 1; p < n; p++) {
    if (pipe(ends[p])) return 1;
    if (fork() == 0) {
      if (read(ends[p][0], &id, sizeof id) != (ssize_t)sizeof id) _exit(1);
      _exit(process(p));
    }
  }
  DO(ncclGetUniqueId(&id));
  for (int p = 1; p < n; p++)
    if (write(ends[p][1], &id, sizeof id) != (ssize_t)sizeof id) return 1;
  bad = process(0);
  for (int p = 1; p < n; p++) {
    int status = 1;
    wait(&status);
    bad |= status != 0;
  }
  return bad;
}
