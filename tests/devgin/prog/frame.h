/* frame.h: ranks as threads of one process, or as processes; a suite of kernels for each; what is wrong is printed as "not ok". */
#ifndef DEVGIN_FRAME_H
#define DEVGIN_FRAME_H

#include "../../internal/place/place.h"

struct Rank {
  ncclComm_t comm;
  int rank, n;
};

void failed(Rank const &r, char const *suite, char const *format, ...) __attribute__((format(printf, 3, 4)));
/* Meets all ranks on the host. */
void meet();
/* For the suite about a process that dies: this one, in half a second; seconds since then, 0 before; this process without its dead peer. */
void dieSoon();
double sinceDeath();
void leaveNow();
/* How often the long tests repeat; the deadline of a launch. */
extern long gSignals, gPuts, gSeconds, gSoak;
extern unsigned long long gSeed; /* of the soak */
void soak(Rank &r);

/* A window and a device communicator; ends both. */
struct Bench {
  Rank &r;
  char const *suite;
  place::Memory memory;
  char *mem = nullptr; /* of the window, as the host sees it between launches */
  ncclWindow_t win = nullptr;
  ncclDevComm dev;
  bool ok = false;
  Bench(Rank &r, char const *suite, size_t bytes, ncclDevCommRequirements q);
  ~Bench();
  /* What the host has written is there when all ranks have met. */
  void ready() {
    memory.push();
    meet();
  }
  /* What the ranks have put is in mem. */
  void settled() {
    meet();
    memory.pull();
  }
  /* Launches and waits; a failure is a failed check. */
  template <typename... P, typename... A> void run(dim3 grid, dim3 block, place::Kernel<P...> kernel, A &&...a) {
    place::Launch l(grid, block);
    l.deadlineNs = (uint64_t)gSeconds * 1000000000u;
    ncclResult_t rc = l.run(kernel, std::forward<A>(a)...);
    if (rc != ncclSuccess) failed(r, suite, "the launch gives %d: %s", (int)rc, l.error());
  }
};

inline ncclDevCommRequirements wants(int signals, int counters = 0, int contexts = 1, int depth = 0) {
  ncclDevCommRequirements q = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  q.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
  q.ginSignalCount = signals;
  q.ginCounterCount = counters;
  q.ginContextCount = contexts;
  q.ginQueueDepth = depth;
  return q;
}

#define CHECK(OK, ...)                            \
  do {                                            \
    if (!(OK)) failed(b.r, b.suite, __VA_ARGS__); \
  } while (0)

struct Suite {
  char const *name;
  void (*run)(Rank &);
  bool asked; /* runs only when it is named */
};
extern Suite const gSuites[];
extern int const gSuiteCount;

#endif
