/* The floor over TCP: two pinned processes exchange a buffer over plain streams of the loopback interface and add the two. No
 * library, no framing, no credits: both send all they have, read all that comes, and add when it is there.
 *
 *   exchange STREAMS SPEC...
 *
 * SPEC is bytes:warmup:iterations. Prints one JSON line a SPEC, each figure the mean over both ranks of that rank's figure. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "pin.h"
#include "samples.h"
#include "shbarrier.h"

enum { STREAMS_MAX = 64, TIMEOUT_S = 60 };

static int fail(const char *what) {
  fprintf(stderr, "exchange: %s: %s\n", what, strerror(errno));
  return 1;
}

/* One end of `streams` connections: rank 0 listens, rank 1 dials. The port travels through shared memory. */
static int join(int rank, int streams, _Atomic(int) *port, int *fd) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int one = 1, listener = -1;
  if (rank == 0) {
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (void *)&at, size) || listen(listener, streams) || getsockname(listener, (void *)&at, &size))
      return -1;
    atomic_store(port, ntohs(at.sin_port));
  }
  for (int waited = 0; !atomic_load(port); waited++) {
    if (waited > TIMEOUT_S * 1000) return -1;
    usleep(1000);
  }
  at.sin_port = htons((uint16_t)atomic_load(port));
  for (int i = 0; i < streams; i++) {
    if (rank == 0) {
      fd[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    } else {
      fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd[i] >= 0 && connect(fd[i], (void *)&at, sizeof at)) return -1;
    }
    if (fd[i] < 0 || setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)) return -1;
  }
  if (listener >= 0) close(listener);
  return 0;
}

/* Sends and receives n bytes, stream i its share of them, both at once. */
static int exchange(const int *fd, int streams, const char *out, char *in, size_t n) {
  size_t sent[STREAMS_MAX] = {0}, got[STREAMS_MAX] = {0}, share = (n / (size_t)streams) & ~(size_t)7, left = 2 * n;
  uint64_t end = 0;
  for (unsigned long turns = 1; left; turns++) {
    for (int i = 0; i < streams; i++) {
      size_t at = share * (size_t)i, all = i == streams - 1 ? n - at : share;
      ssize_t k = sent[i] < all ? send(fd[i], out + at + sent[i], all - sent[i], MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
      ssize_t r = got[i] < all ? recv(fd[i], in + at + got[i], all - got[i], MSG_DONTWAIT) : 0;
      if ((k < 0 && errno != EAGAIN) || (r < 0 && errno != EAGAIN) || (r == 0 && got[i] < all)) return -1;
      if (k > 0) sent[i] += (size_t)k, left -= (size_t)k;
      if (r > 0) got[i] += (size_t)r, left -= (size_t)r;
    }
    if (turns % 65536) continue;
    if (!end) end = perf_now_ns() + (uint64_t)TIMEOUT_S * 1000000000u;
    if (perf_now_ns() > end) {
      errno = ETIMEDOUT;
      return -1;
    }
  }
  return 0;
}

static int measure(struct perf_barrier *b, const int *fd, int streams, long bytes, int warmup, int iterations, double *mine, long *wrong) {
  size_t n = (size_t)bytes / sizeof(float);
  float *own = NULL, *other = NULL, *sum = NULL;
  uint64_t *ns = calloc((size_t)iterations, sizeof *ns);
  if (!ns || posix_memalign((void **)&own, 4096, (size_t)bytes) || posix_memalign((void **)&other, 4096, (size_t)bytes) ||
      posix_memalign((void **)&sum, 4096, (size_t)bytes))
    return fail("out of memory");
  memset(other, 0, (size_t)bytes);
  memset(sum, 0, (size_t)bytes);
  for (int it = -warmup; it < iterations; it++) {
    float value = (float)(1 + (it + warmup) % 60);
    for (size_t i = 0; i < n; i++) own[i] = value;
    if (perf_barrier_wait(b) >= 0) return fail("barrier timed out");
    uint64_t start = perf_now_ns();
    if (exchange(fd, streams, (const char *)own, (char *)other, (size_t)bytes)) return fail("a stream broke");
    for (size_t i = 0; i < n; i++) sum[i] = own[i] + other[i];
    if (it >= 0) ns[it] = perf_now_ns() - start;
    *wrong += (sum[0] != 2 * value) + (sum[n - 1] != 2 * value);
  }
  struct perf_summary s = perf_summarise(ns, (size_t)iterations);
  mine[0] = s.p50_us, mine[1] = s.mean_us, mine[2] = s.p99_us;
  free(own);
  free(other);
  free(sum);
  free(ns);
  return 0;
}

struct shared {
  struct perf_barrier_line lines[2];
  _Atomic(int) port;
  double figures[2][3];
  long wrong[2];
};

static int run(int rank, struct shared *sh, int streams, char **specs, int nspecs, const cpu_set_t *allowed) {
  int fd[STREAMS_MAX];
  if (perf_pin(allowed, rank) < 0) return fail("cannot pin");
  if (join(rank, streams, &sh->port, fd)) return fail("cannot connect");
  struct perf_barrier b;
  perf_barrier_init(&b, sh->lines, rank, 2, CPU_COUNT(allowed), TIMEOUT_S);
  for (int i = 0; i < nspecs; i++) {
    long bytes;
    int warmup, iterations;
    if (sscanf(specs[i], "%ld:%d:%d", &bytes, &warmup, &iterations) != 3 || bytes < 4 || iterations < 1)
      return fail("bad bytes:warmup:iterations");
    sh->wrong[rank] = 0;
    if (measure(&b, fd, streams, bytes, warmup, iterations, sh->figures[rank], &sh->wrong[rank])) return 1;
    if (perf_barrier_wait(&b) >= 0) return fail("barrier timed out");
    if (rank == 0) {
      double(*f)[3] = sh->figures;
      printf("{\"what\":\"exchange\",\"bytes\":%ld,\"p50\":%.4f,\"mean\":%.4f,\"p99\":%.4f,\"wrong\":%ld}\n", bytes,
             (f[0][0] + f[1][0]) / 2, (f[0][1] + f[1][1]) / 2, (f[0][2] + f[1][2]) / 2, sh->wrong[0] + sh->wrong[1]);
      fflush(stdout);
    }
    if (perf_barrier_wait(&b) >= 0) return fail("barrier timed out"); /* before the figures are written anew */
  }
  return 0;
}

int main(int argc, char **argv) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int streams = argc > 2 ? atoi(argv[1]) : 0;
  if (streams < 1 || streams > STREAMS_MAX) {
    fprintf(stderr, "usage: exchange STREAMS bytes:warmup:iterations...\n");
    return 2;
  }
  struct shared *sh = mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (sh == MAP_FAILED) return fail("mmap");
  pid_t child = fork();
  if (child < 0) return fail("fork");
  int rc = run(child ? 0 : 1, sh, streams, argv + 2, argc - 2, &allowed);
  if (!child) _exit(rc);
  int status = 0;
  waitpid(child, &status, 0);
  return rc || status;
}
