/* main.cc: devgin [--memory cuda | --cubin FILE] RANKS [SUITE …]: runs the suites, or those that are named, on ranks that are threads. GCCL_TEST_SIGNALS,
 * GCCL_TEST_PUTS and GCCL_TEST_SOAK make the long ones longer; GCCL_TEST_SEED is the soak's; a launch may take GCCL_TEST_SECONDS. */
#include "frame.h"

#include <pthread.h>
#include <stdarg.h>
#include <string>
#include <thread>
#include <vector>

#include <gccl.h>

int gFailures;
long gSignals = 150, gPuts = 1000, gSeconds = 100, gSoak = 3000;
unsigned long long gSeed = 1;
static pthread_barrier_t gMeet;

void meet() { pthread_barrier_wait(&gMeet); }

void failed(Rank const &r, char const *suite, char const *format, ...) {
  char text[600];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (__atomic_fetch_add(&gFailures, 1, __ATOMIC_RELAXED) < 20) printf("not ok %s: rank %d: %s\n", suite, r.rank, text);
}

static void must(Rank const &r, char const *what, ncclResult_t rc) {
  if (rc == ncclSuccess) return;
  printf("not ok: rank %d: %s gives %d: %s\n", r.rank, what, (int)rc, ncclGetLastError(nullptr));
  fflush(stdout);
  exit(1); /* the others would wait for this rank */
}
#define MUST(CALL) must(r, #CALL, (CALL))

Bench::Bench(Rank &r_, char const *suite_, size_t bytes, ncclDevCommRequirements q) : r(r_), suite(suite_) {
  MUST(memory.make(bytes));
  mem = memory.mem;
  MUST(ncclCommWindowRegister(r.comm, memory.at, bytes, &win, NCCL_WIN_COLL_SYMMETRIC));
  MUST(ncclDevCommCreate(r.comm, &q, &dev));
  ok = true;
}
Bench::~Bench() {
  meet(); /* kernels of all ranks have ended */
  MUST(ncclDevCommDestroy(r.comm, &dev));
  MUST(ncclCommWindowDeregister(r.comm, win));
  MUST(memory.drop());
  meet();
}

static void rankMain(int rank, int n, ncclUniqueId id, std::vector<std::string> const *only) {
  Rank r{nullptr, rank, n};
  place::enter(rank);
  MUST(ncclCommInitRank(&r.comm, n, id, rank));
  for (int i = 0; i < gSuiteCount; i++) {
    bool wanted = only->empty() && !gSuites[i].asked;
    for (auto const &name : *only) wanted = wanted || name == gSuites[i].name;
    if (!wanted) continue;
    int before = gFailures;
    meet();
    gSuites[i].run(r);
    meet();
    if (rank == 0 && gFailures == before) {
      ncclCommProperties_t p = NCCL_COMM_PROPERTIES_INITIALIZER;
      MUST(ncclCommQueryProperties(r.comm, &p));
      printf("ok %s type %d\n", gSuites[i].name, (int)p.ginType);
    }
    fflush(stdout);
    meet();
    ncclResult_t async;
    MUST(ncclCommGetAsyncError(r.comm, &async));
    if (async != ncclSuccess) failed(r, gSuites[i].name, "the communicator has failed: %s", ncclGetLastError(r.comm));
  }
  meet();
  MUST(ncclCommDestroy(r.comm));
}

int main(int argc, char **argv) {
  place::arguments(argc, argv);
  place::start();
  int n = argc > 1 ? atoi(argv[1]) : 2;
  std::vector<std::string> only(argv + (argc > 2 ? 2 : argc), argv + argc);
  if (char const *s = getenv("GCCL_TEST_SIGNALS")) gSignals = atol(s);
  if (char const *s = getenv("GCCL_TEST_SECONDS")) gSeconds = atol(s);
  if (char const *s = getenv("GCCL_TEST_PUTS")) gPuts = atol(s);
  if (char const *s = getenv("GCCL_TEST_SOAK")) gSoak = atol(s);
  if (char const *s = getenv("GCCL_TEST_SEED")) gSeed = strtoull(s, nullptr, 0);
  pthread_barrier_init(&gMeet, nullptr, (unsigned)n);
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) return 1;
  std::vector<std::thread> ranks;
  for (int i = 0; i < n; i++) ranks.emplace_back(rankMain, i, n, id, &only);
  for (auto &t : ranks) t.join();
  if (gFailures) printf("not ok: %d checks failed\n", gFailures);
  return gFailures ? 1 : 0;
}
