/* fork_before_use [version]: forks after loading and before the first use that needs the core; parent and child
 * both work afterwards, and so does a child of the child. With "version" the parent asks for the version first,
 * which is no use in that sense. */
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host_rank.h"

static void reap(pid_t child, const char *who) {
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child, "%s: waitpid failed", who);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s ended with wait status 0x%x", who, status);
}

int main(int argc, char **argv) {
  (void)argv;
  if (argc > 1) {
    int version;
    TRY(ncclGetVersion(&version));
  }
  pid_t child = fork();
  CHECK(child >= 0, "fork failed");
  if (child == 0) {
    alarm(30);
    pid_t grandchild = fork();
    CHECK(grandchild >= 0, "fork in the child failed");
    if (grandchild == 0) {
      alarm(25);
      host_round();
      return 0;
    }
    host_round();
    reap(grandchild, "grandchild");
    return 0;
  }
  host_round();
  reap(child, "child");
  return 0;
}
