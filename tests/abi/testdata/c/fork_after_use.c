/* A child forked after the first use gets errors with a reason, never a hang; the parent is not disturbed. */
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host_rank.h"

static void refused(const char *call, ncclResult_t rc) {
  CHECK(rc != ncclSuccess && rc != ncclInProgress, "%s in the child gives \"%s\", want an error", call,
        ncclGetErrorString(rc));
  const char *why = ncclGetLastError(NULL);
  CHECK(why != NULL && strstr(why, "fork") != NULL, "%s in the child: the last error \"%s\" does not speak of fork",
        call, why ? why : "(null)");
}

static void child_main(ncclComm_t comm, ncclUniqueId id) {
  int n = 0;
  float x[4] = {1, 2, 3, 4};
  ncclComm_t other = NULL;
  ncclUniqueId fresh;
  alarm(20); /* the deadline: SIGALRM ends a child that hangs, and the parent sees it */
  CHECK(ncclGetVersion(&n) == ncclSuccess && n == NCCL_VERSION_CODE, "version in the child is %d", n);
  refused("ncclGetUniqueId", ncclGetUniqueId(&fresh));
  refused("ncclCommInitRank", ncclCommInitRank(&other, 1, id, 0));
  refused("ncclCommInitAll", ncclCommInitAll(&other, 1, NULL));
  refused("ncclAllReduce", ncclAllReduce(x, x, 4, ncclFloat, ncclSum, comm, NULL));
  refused("ncclCommSplit", ncclCommSplit(comm, 0, 0, &other, NULL));
  /* What these return is free; that they return is not. */
  (void)ncclGroupStart();
  (void)ncclAllReduce(x, x, 4, ncclFloat, ncclSum, comm, NULL);
  (void)ncclGroupEnd();
  (void)ncclCommGetAsyncError(comm, (ncclResult_t *)&n);
  (void)ncclCommAbort(comm);
  exit(0); /* not _exit: handlers of the library must not hang either */
}

int main(void) {
  ncclComm_t comm = host_comm();
  host_all_reduce(comm);
  ncclUniqueId id;
  TRY(ncclGetUniqueId(&id));
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0, "fork failed");
  if (child == 0) child_main(comm, id);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child, "waitpid failed");
  CHECK(!(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM), "the child hung");
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with wait status 0x%x", status);
  host_all_reduce(comm);
  TRY(ncclCommDestroy(comm));
  host_round();
  return 0;
}
