/* main.cc: devgin [--memory cuda | --cubin FILE] [--procs | --hosts N] RANKS [SUITE …]: runs the suites, or those that are named, on ranks that are
 * threads, or processes, on one host or told to be on N. GCCL_TEST_SIGNALS,
 * GCCL_TEST_PUTS and GCCL_TEST_SOAK make the long ones longer; GCCL_TEST_SEED is the soak's; a launch may take GCCL_TEST_SECONDS. */
#include "frame.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gccl.h>

/* What all ranks share. */
static struct Common {
  pthread_barrier_t meet;
  int failures; /* checks */
  ncclUniqueId id;
  pid_t dying;
  double died; /* when */
} * gAll;
long gSignals = 150, gPuts = 1000, gSeconds = 100, gSoak = 3000;
unsigned long long gSeed = 1;

void meet() { pthread_barrier_wait(&gAll->meet); }

void failed(Rank const &r, char const *suite, char const *format, ...) {
  char text[600];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (__atomic_fetch_add(&gAll->failures, 1, __ATOMIC_RELAXED) < 20) printf("not ok %s: rank %d: %s\n", suite, r.rank, text);
}

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
void dieSoon() {
  gAll->dying = getpid();
  std::thread([] {
    usleep(500000);
    double t = now();
    __atomic_store(&gAll->died, &t, __ATOMIC_SEQ_CST);
    kill(getpid(), SIGKILL);
  }).detach();
}
double sinceDeath() {
  double t;
  __atomic_load(&gAll->died, &t, __ATOMIC_SEQ_CST);
  return t > 0 ? now() - t : 0;
}
void leaveNow() {
  fflush(stdout);
  _exit(0);
}

static void must(Rank const &r, char const *what, ncclResult_t rc) {
  if (rc == ncclSuccess) return;
  printf("not ok: rank %d: %s gives %d: %s\n", r.rank, what, (int)rc, ncclGetLastError(nullptr));
  fflush(stdout);
  _exit(1); /* the others would wait for this rank */
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

static void rankMain(int rank, int n, std::vector<std::string> const *only) {
  Rank r{nullptr, rank, n};
  place::enter(rank);
  MUST(ncclCommInitRank(&r.comm, n, gAll->id, rank));
  for (int i = 0; i < gSuiteCount; i++) {
    bool wanted = only->empty() && !gSuites[i].asked;
    for (auto const &name : *only) wanted = wanted || name == gSuites[i].name;
    if (!wanted) continue;
    meet();
    int before = gAll->failures;
    meet();
    gSuites[i].run(r);
    meet();
    if (rank == 0 && gAll->failures == before) {
      ncclCommProperties_t p = NCCL_COMM_PROPERTIES_INITIALIZER;
      MUST(ncclCommQueryProperties(r.comm, &p));
      if (!p.deviceApiSupport) failed(r, gSuites[i].name, "the properties say that there is no device API");
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

static void threads(int n, std::vector<std::string> const *only) {
  place::start();
  if (ncclGetUniqueId(&gAll->id) != ncclSuccess) _exit(1);
  std::vector<std::thread> ranks;
  for (int i = 0; i < n; i++) ranks.emplace_back(rankMain, i, n, only);
  for (auto &t : ranks) t.join();
}

static void processes(int n, int hosts, std::vector<std::string> const *only) {
  std::vector<pid_t> child;
  for (int i = 0; i < n; i++) {
    child.push_back(fork());
    if (child.back()) continue;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (hosts > 1) setenv("NCCL_HOSTID", std::to_string(i * hosts / n).c_str(), 1);
    if (i == 0 && ncclGetUniqueId(&gAll->id) != ncclSuccess) _exit(1);
    meet();
    place::start();
    rankMain(i, n, only);
    fflush(stdout);
    _exit(0);
  }
  for (int i = 0, status; i < n; i++) {
    pid_t who = wait(&status);
    if (!status || (who == gAll->dying && WIFSIGNALED(status) && gAll->died > 0)) continue;
    printf("not ok: a process ended with status %#x\n", status);
    fflush(stdout);
    __atomic_fetch_add(&gAll->failures, 1, __ATOMIC_RELAXED);
    for (pid_t p : child) kill(p, SIGKILL); /* they would wait for it */
  }
}

int main(int argc, char **argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0); /* what was done before a run that does not end */
  place::arguments(argc, argv);
  bool procs = argc > 1 && !strcmp(argv[1], "--procs");
  if (procs) argc--, argv++;
  int hosts = argc > 2 && !strcmp(argv[1], "--hosts") ? atoi(argv[2]) : 0;
  if (hosts) argc -= 2, argv += 2;
  int n = argc > 1 ? atoi(argv[1]) : 2;
  std::vector<std::string> only(argv + (argc > 2 ? 2 : argc), argv + argc);
  if (char const *s = getenv("GCCL_TEST_SIGNALS")) gSignals = atol(s);
  if (char const *s = getenv("GCCL_TEST_SECONDS")) gSeconds = atol(s);
  if (char const *s = getenv("GCCL_TEST_PUTS")) gPuts = atol(s);
  if (char const *s = getenv("GCCL_TEST_SOAK")) gSoak = atol(s);
  if (char const *s = getenv("GCCL_TEST_SEED")) gSeed = strtoull(s, nullptr, 0);
  gAll = static_cast<Common *>(mmap(nullptr, sizeof *gAll, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&gAll->meet, &shared, (unsigned)n);
  if (procs || hosts)
    processes(n, hosts, &only);
  else
    threads(n, &only);
  if (gAll->failures) printf("not ok: %d checks failed\n", gAll->failures);
  return gAll->failures ? 1 : 0;
}
