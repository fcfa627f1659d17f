#define _GNU_SOURCE
#include "handler.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int event = -1;
static pid_t owner;
static struct sigaction before;

/* Only what signal-safety(7) allows. A forked child has the parent's descriptor: it stays quiet. */
static void handler(int sig, siginfo_t *info, void *context) {
  int saved = errno;
  if (getpid() == owner) {
    uint64_t one = 1;
    ssize_t n = write(event, &one, sizeof one);
    (void)n; /* full: it is readable already */
  }
  if (before.sa_flags & SA_SIGINFO) {
    if (before.sa_sigaction) before.sa_sigaction(sig, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(sig);
  }
  errno = saved;
}

int gccl_onsignal_install(int sig) {
  if (sigaction(sig, NULL, &before) != 0) return -1;
  if ((event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) return -1;
  owner = getpid();
  struct sigaction now = {.sa_sigaction = handler};
  int had = before.sa_flags & SA_SIGINFO || (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN);
  now.sa_mask = before.sa_mask;
  /* The earlier handler keeps its ways; the Go runtime, which may be that one, wants its own stack. */
  now.sa_flags = SA_SIGINFO | SA_ONSTACK | (had ? before.sa_flags & (SA_RESTART | SA_NODEFER) : SA_RESTART);
  return sigaction(sig, &now, NULL) == 0 ? event : -1;
}
