/* main.cc: mistakes [--memory cuda] NAME: two ranks, of which rank 0 makes a mistake in a kernel; prints how each launch ended, and what the communicator
 * says. Compiled with and without GCCL_DEVICE_DEBUG. */
#include "../../internal/place/place.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <thread>
#include <unistd.h>

enum { BYTES = 1 << 16, SIGNALS = 4 };

struct Case {
  char const *name;
  void (*kernel)(ncclDevComm, ncclWindow_t);
};

static void makeAndWait(ncclDevComm comm, void (*mistake)(ncclGin const &, ncclTeam)) {
  ncclGin gin(comm, 0);
  if (comm.rank == 0) mistake(gin, ncclTeamWorld(comm));
  gin.waitSignal(ncclCoopThread(), 0, 1); /* which never comes */
}
static thread_local ncclWindow_t gWin;
#define MISTAKE(NAME, ...)                                     \
  static void NAME(ncclDevComm comm, ncclWindow_t w) {         \
    gWin = w;                                                  \
    makeAndWait(comm, [](ncclGin const &gin, ncclTeam world) { \
      (void)world;                                             \
      __VA_ARGS__;                                             \
    });                                                        \
  }
MISTAKE(source, gin.put(world, 1, gWin, 0, gWin, BYTES - 7, 8))
MISTAKE(destination, gin.put(world, 1, gWin, BYTES - 7, gWin, 0, 8))
MISTAKE(signal, gin.signal(world, 1, ncclGin_StrongSignalInc{SIGNALS + 100}))
MISTAKE(unaligned, gin.signal(world, 1, ncclGin_StrongVASignalInc{gWin, 4}))
MISTAKE(window, gin.put(world, 1, gWin, 0, (ncclWindow_t)gin.comm.windowTable, 0, 8))
MISTAKE(context, ncclGin(gin.comm, 9))
MISTAKE(barrier, ncclGinBarrier(ncclCoopThread(), gin, ncclTeamTagWorld(), 100))
MISTAKE(nothing, (void)gin)
static Case const kCases[] = {{"source", source}, {"destination", destination}, {"signal", signal},   {"unaligned", unaligned},
                              {"window", window}, {"context", context},         {"barrier", barrier}, {"nothing", nothing}};

static pthread_barrier_t gMeet;

static void rankMain(int rank, ncclUniqueId id, Case const *c) {
  ncclComm_t comm;
  void *mem;
  ncclWindow_t win;
  ncclDevComm dev;
  ncclDevCommRequirements q = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  q.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
  q.ginSignalCount = SIGNALS;
  q.ginContextCount = 1;
  q.worldGinBarrierCount = 1;
  place::enter(rank);
  if (ncclCommInitRank(&comm, 2, id, rank) || ncclMemAlloc(&mem, BYTES) ||
      ncclCommWindowRegister(comm, mem, BYTES, &win, NCCL_WIN_COLL_SYMMETRIC) || ncclDevCommCreate(comm, &q, &dev)) {
    printf("not ok: %s\n", ncclGetLastError(nullptr));
    fflush(stdout);
    _exit(1);
  }
  gccl::cpu::Launch l(1, 1);
#ifdef GCCL_DEVICE_DEBUG
  l.deadlineNs = 1000000000u; /* the other rank hears nothing of a trap */
#else
  l.deadlineNs = strcmp(c->name, "nothing") == 0 ? 300000000u : 30000000000u;
#endif
  ncclResult_t rc = l.run(c->kernel, dev, win);
  char text[1024];
  snprintf(text, sizeof text, "%s", l.error());
  pthread_barrier_wait(&gMeet);
  printf("rank %d launch %d: %s\n", rank, (int)rc, text);
  ncclResult_t async = ncclSuccess;
  ncclCommGetAsyncError(comm, &async);
  printf("rank %d communicator %d: %s\n", rank, (int)async, async ? ncclGetLastError(comm) : "");
  fflush(stdout);
  pthread_barrier_wait(&gMeet);
  ncclCommAbort(comm);
}

int main(int argc, char **argv) {
  place::arguments(argc, argv);
  place::start();
  Case const *c = nullptr;
  for (Case const &k : kCases)
    if (argc > 1 && strcmp(argv[1], k.name) == 0) c = &k;
  ncclUniqueId id;
  if (!c || ncclGetUniqueId(&id)) return 2;
  pthread_barrier_init(&gMeet, nullptr, 2);
  std::thread other(rankMain, 1, id, c);
  rankMain(0, id, c);
  other.join();
  return 0;
}
