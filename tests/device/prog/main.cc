/* main.cc: device [--memory cuda | --cubin FILE] --suite S --ranks N --launch threads|procs [--lsa ranks of a team] [--hosts H, of N/H processes each] */
#include "frame.h"

#include <atomic>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static const struct {
  const char *name;
  void (*run)(Rank &);
} suites[] = {{"cuda", suite_cuda},
              {"coops", suite_coops},
              {"teams", suite_teams},
              {"pointers", suite_pointers},
              {"barriers", suite_barriers},
              {"failures", suite_failures},
              {"a2a", suite_a2a},
              {"reduce", suite_reduce},
              {"allreduce", suite_allreduce},
              {"debug", suite_debug},
              {"speed", suite_speed},
              {"foreign", suite_foreign},
              {"foreign_gin", suite_foreign_gin},
              {"race", suite_race},
              {"old", suite_old}};

bool Rank::check(bool ok, const char *format, ...) {
  if (ok) return true;
  if (++failures > 20) return false;
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  printf("not ok - rank %d of %d: %s\n", rank, nranks, text);
  fflush(stdout);
  return false;
}

bool Rank::is(ncclResult_t want, ncclResult_t got, const char *what) {
  return check(got == want, "%s gives %d instead of %d: %s", what, (int)got, (int)want, ncclGetLastError(NULL));
}

void Rank::refused(ncclResult_t want, ncclResult_t got, const char *text, const char *word) {
  check(got == want && strstr(text, word), "wanted result %d with \"%s\", got %d with \"%s\"", (int)want, word, (int)got, text);
}

void Rank::barrier() {
  if (!ones.mem && !ok(ones.make(8), "memory")) return;
  int *v = reinterpret_cast<int *>(ones.mem);
  v[0] = 1;
  v[1] = 0;
  ones.push();
  ok(ncclAllReduce(ones.at, ones.at + 4, 1, ncclInt, ncclSum, comm, NULL), "barrier");
  place::settle();
  ones.pull();
  check(v[1] == nranks, "barrier: %d ranks of %d", v[1], nranks);
}

Window::Window(Rank &r_, size_t bytes) : r(r_) {
  if (OK(memory.make(bytes))) OK(ncclCommWindowRegister(r.comm, memory.at, bytes, &win, NCCL_WIN_COLL_SYMMETRIC));
}
Window::~Window() {
  OK(ncclCommWindowDeregister(r.comm, win));
  OK(memory.drop());
}

DevComm::DevComm(Rank &r_, const ncclDevCommRequirements &q) : r(r_), dev() { made = OK(ncclDevCommCreate(r.comm, &q, &dev)); }
DevComm::~DevComm() {
  if (made) OK(ncclDevCommDestroy(r.comm, &dev));
}

static int lsa, hosts = 1;

static int run(void (*suite)(Rank &), const ncclUniqueId &id, int rank, int nranks) {
  Rank r;
  r.lsa = lsa ? lsa : nranks / hosts;
  r.rank = rank;
  r.nranks = nranks;
  place::enter(rank);
  if (!OK(ncclCommInitRank(&r.comm, nranks, id, rank))) return 1;
  suite(r);
  if (r.ones.mem) r.ok(r.ones.drop(), "memory");
  ncclResult_t broken = ncclSuccess; /* a suite may break its communicator on purpose */
  ncclCommGetAsyncError(r.comm, &broken);
  if (broken == ncclSuccess)
    OK(ncclCommDestroy(r.comm));
  else
    OK(ncclCommAbort(r.comm));
  return r.failures != 0;
}

static int processes(void (*suite)(Rank &), int nranks) {
  struct Shared {
    std::atomic<int> ready;
    ncclUniqueId id;
  };
  Shared *s = (Shared *)mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  std::vector<pid_t> child;
  for (int rank = 0; rank < nranks; rank++) {
    pid_t pid = fork();
    if (pid) {
      child.push_back(pid);
      continue;
    }
    if (rank == 0) {
      if (ncclGetUniqueId(&s->id) != ncclSuccess) _exit(1);
      s->ready = 1;
    }
    for (int i = 0; !s->ready; i++) { /* 30 s */
      if (i == 30000) _exit(1);
      usleep(1000);
    }
    if (hosts > 1) setenv("NCCL_HOSTID", std::to_string(rank * hosts / nranks).c_str(), 1);
    place::start();
    int bad = run(suite, s->id, rank, nranks);
    fflush(stdout);
    _exit(bad);
  }
  int bad = 0;
  for (pid_t pid : child) {
    int status = 0;
    waitpid(pid, &status, 0);
    if (status) printf("not ok - process %d ended with status %#x\n", (int)pid, status);
    bad |= status != 0;
  }
  return bad;
}

int main(int argc, char **argv) {
  place::arguments(argc, argv);
  std::string name, launch = "threads";
  int nranks = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--suite")) name = argv[i + 1];
    if (!strcmp(argv[i], "--launch")) launch = argv[i + 1];
    if (!strcmp(argv[i], "--ranks")) nranks = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--lsa")) lsa = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--hosts")) hosts = atoi(argv[i + 1]);
  }
  void (*suite)(Rank &) = nullptr;
  for (auto &s : suites)
    if (name == s.name) suite = s.run;
  if (!suite || nranks < 1) {
    printf("not ok - no suite %s\n", name.c_str());
    return 2;
  }
  if (launch == "procs") return processes(suite, nranks);
  place::start();
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) return 2;
  std::vector<std::thread> threads;
  std::atomic<int> bad{0};
  for (int rank = 0; rank < nranks; rank++) threads.emplace_back([&, rank] { bad += run(suite, id, rank, nranks); });
  for (auto &t : threads) t.join();
  return bad != 0;
}
