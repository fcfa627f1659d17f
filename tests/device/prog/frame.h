/* frame.h: the frame of the device conformance program: n ranks as threads or processes, one suite, failures as "not ok" lines. */
#ifndef DEVICE_FRAME_H
#define DEVICE_FRAME_H

#include "../../internal/place/place.h"

#include <functional>
#include <stdio.h>
#include <string.h>
#include <string>
#include <vector>

/* One rank. Its communicator is made before the suite and destroyed after it. */
struct Rank {
  ncclComm_t comm;
  int rank, nranks, lsa; /* lsa: ranks that an LSA team must have */
  int failures = 0;
  place::Memory ones; /* for barrier */

  /* A failed check; says so once for each rank and text. */
  bool check(bool ok, const char *format, ...) __attribute__((format(printf, 3, 4)));
  /* A result code other than the wanted one is a failed check. */
  bool is(ncclResult_t want, ncclResult_t got, const char *what);
  bool ok(ncclResult_t got, const char *what) { return is(ncclSuccess, got, what); }
  /* An error whose text has a word in it. */
  void refused(ncclResult_t want, ncclResult_t got, const char *text, const char *word);
  /* Waits for all ranks; ncclAllReduce of one element. */
  void barrier();
};

/* A symmetric window over memory of the library, with a device communicator's life. */
struct Window {
  Rank &r;
  place::Memory memory;
  ncclWindow_t win = nullptr;
  Window(Rank &r, size_t bytes);
  ~Window();
  template <typename T> T *as() { return reinterpret_cast<T *>(memory.mem); }
};
struct DevComm {
  Rank &r;
  ncclDevComm dev;
  bool made;
  DevComm(Rank &r, const ncclDevCommRequirements &q);
  ~DevComm();
};
inline ncclDevCommRequirements requirements() { return NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER; }

/* A launch with the deadline of all tests. */
struct Grid : place::Launch {
  Grid(unsigned ctas, unsigned threads) : Launch(ctas, threads) { deadlineNs = 60000000000u; }
  template <typename... P, typename... A> void operator()(Rank &r, const char *what, place::Kernel<P...> kernel, A &&...a) {
    ncclResult_t rc = run(kernel, std::forward<A>(a)...);
    r.check(rc == ncclSuccess, "%s: launch gives %d: %s", what, (int)rc, rc ? error() : "");
  }
};

#define OK(CALL) r.ok((CALL), #CALL)

/* coops.cc */
void suite_cuda(Rank &);  /* shuffles, votes, barriers, shared memory, traps and deadlines */
void suite_race(Rank &);  /* a data race on purpose */
void suite_coops(Rank &); /* every group: rank, size, sync, broadcast */
/* pointers.cc */
void suite_teams(Rank &);
void suite_pointers(Rank &);
void suite_old(Rank &); /* with GCCL_DEVICE_HEADER=2.28.3 */
/* barriers.cc */
void suite_barriers(Rank &);
void suite_failures(Rank &);
/* a2a.cc */
void suite_a2a(Rank &);
/* reduce.cc */
void suite_reduce(Rank &);
void suite_allreduce(Rank &);
/* foreign.cc, on a GPU */
void suite_foreign(Rank &);
void suite_foreign_gin(Rank &);
/* speed.cc */
void suite_speed(Rank &);
/* debug.cc, compiled with GCCL_DEVICE_DEBUG */
void suite_debug(Rank &);

#endif
