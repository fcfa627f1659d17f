/* System calls that go wrong by a fixed seed: what tests put between a connection and its sockets. */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"

typedef struct {
  uint64_t state;
  gccl_socket_faults want;
  _Atomic uint64_t count[GCCL_FAULTS];
  _Atomic int64_t breaks; /* how many streams may still be broken */
} faults;

/* xorshift64*: any generator with a seed would do. */
static uint64_t next(faults *f) {
  f->state ^= f->state >> 12;
  f->state ^= f->state << 25;
  f->state ^= f->state >> 27;
  return f->state * 0x2545f4914f6cdd1dull;
}

static int happens(faults *f, int kind) {
  if (next(f) % 100000 >= f->want.per_100000[kind]) return 0;
  if ((kind == GCCL_FAULT_BREAK || kind == GCCL_FAULT_CORRUPT || kind == GCCL_FAULT_CLOSE) && atomic_fetch_sub(&f->breaks, 1) <= 0) {
    atomic_fetch_add(&f->breaks, 1);
    return 0;
  }
  atomic_fetch_add(&f->count[kind], 1);
  return 1;
}

/* What both calls have in common: -1 with errno set, or 0. */
static int before(faults *f, int fd) {
  if (happens(f, GCCL_FAULT_EINTR)) {
    errno = EINTR;
    return -1;
  }
  if (happens(f, GCCL_FAULT_EAGAIN)) {
    errno = EAGAIN;
    return -1;
  }
  if (happens(f, GCCL_FAULT_BREAK)) { /* the peer gets a reset, and we say that we got one */
    struct linger l = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    errno = ECONNRESET;
    return -1;
  }
  if (happens(f, GCCL_FAULT_CLOSE)) shutdown(fd, SHUT_RDWR); /* both see an end */
  return 0;
}

static ssize_t faulty_send(void *arg, int fd, const struct msghdr *m) {
  faults *f = arg;
  if (before(f, fd)) return -1;
  struct iovec first = m->msg_iov[0];
  struct msghdr one = {.msg_iov = &first, .msg_iovlen = 1};
  unsigned char copy[sizeof(frame)];
  if (first.iov_len == sizeof(frame) && happens(f, GCCL_FAULT_CORRUPT)) { /* a head with a wrong bit, lengths included */
    memcpy(copy, first.iov_base, sizeof copy);
    uint64_t bit = next(f) % (8 * sizeof copy);
    copy[bit / 8] ^= (unsigned char)(1u << bit % 8);
    first.iov_base = copy;
    return sendmsg(fd, &one, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (first.iov_len > 1 && happens(f, GCCL_FAULT_SHORT)) {
    first.iov_len = 1 + next(f) % (first.iov_len - 1);
    return sendmsg(fd, &one, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  return sendmsg(fd, m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static ssize_t faulty_receive(void *arg, int fd, const struct iovec *v, int n) {
  faults *f = arg;
  if (before(f, fd)) return -1;
  struct iovec first = v[0];
  struct msghdr m = {.msg_iov = (struct iovec *)v, .msg_iovlen = (size_t)n};
  if (first.iov_len > 1 && happens(f, GCCL_FAULT_SHORT)) {
    first.iov_len = 1 + next(f) % (first.iov_len < 100 ? first.iov_len - 1 : 99);
    m.msg_iov = &first;
    m.msg_iovlen = 1;
  }
  return recvmsg(fd, &m, MSG_DONTWAIT);
}

static const gccl_socket_io faulty_io = {faulty_send, faulty_receive};

void *gccl_socket_faults_set(gccl_net_ep *ep, const gccl_socket_faults *want) {
  faults *f = calloc(1, sizeof *f);
  if (!f) return NULL;
  f->state = want->seed * 0x9e3779b97f4a7c15ull | 1;
  f->want = *want;
  atomic_store(&f->breaks, want->breaks);
  gccl_socket_set_io(ep, &faulty_io, f);
  return f;
}

void gccl_socket_faults_allow(void *arg, int64_t breaks) { atomic_store(&((faults *)arg)->breaks, breaks); }
uint64_t gccl_socket_faults_count(void *arg, int kind) { return atomic_load(&((faults *)arg)->count[kind]); }
void gccl_socket_faults_free(void *arg) { free(arg); }
