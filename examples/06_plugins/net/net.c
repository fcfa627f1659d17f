/* A net plugin over TCP, small enough to read: one device, one socket for each connection, no threads. It is for learning how a plugin is
 * built, and the tests of this library use it; it is not fast.
 *
 * Life of a connection: the receiver listens and its handle travels to the sender by other ways; the sender connects, the
 * receiver accepts. Both calls return at once and are repeated until they give a connection. Then sends and receives are
 * posted, and test, called again and again, moves the bytes: nothing here ever blocks.
 *
 * On the wire a message is its head (tag and bytes) and the bytes. The receiver looks at a head only when a receive is posted. */
#define _GNU_SOURCE
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECVS = EXAMPLE_RECVS, SENDS = NP_REQUESTS * RECVS, MAGIC = 0x474e4558 };

typedef struct {
  uint32_t magic;
  int32_t tag;
  uint64_t bytes;
} head;

/* What the handle carries: where to connect to, and the socket of a connect that is not finished, as the same handle comes again. */
typedef struct {
  struct sockaddr_in address;
  int connecting; /* descriptor + 1 */
} handle;
_Static_assert(sizeof(handle) <= NP_HANDLE, "handles have 128 bytes");

typedef struct comm comm;

typedef struct {
  comm *c;
  int used, n, failed, sends;
  uint64_t done; /* bytes written, or read for the message that is coming in */
  head h;        /* of a send */
  const char *from;
  int left; /* messages that are still to come */
  struct {
    char *to;
    size_t room;
    int tag, got, bytes;
    void *event; /* of profilers */
  } at[RECVS];
} request;

struct comm {
  int fd, sends;
  uint64_t first, last; /* requests [first, last) are not finished */
  request req[SENDS];
  head h; /* of the message that is coming in */
  size_t head_bytes;
  int into; /* which buffer it goes to */
};

typedef struct {
  char *base;
  size_t bytes;
  void *mapped; /* of a dma-buf */
} region;

static np_logger say;
static struct sockaddr_in here;
static char name[IF_NAMESIZE];

int example_devices(int *n) {
  *n = 1;
  return NP_OK;
}

/* The first interface that is up and not the loopback, or the loopback. */
int example_init(np_logger log) {
  say = log;
  struct ifaddrs *list, *i;
  if (getifaddrs(&list)) return NP_SYSTEM;
  here = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  strcpy(name, "lo");
  for (i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK) continue;
    here.sin_addr = ((struct sockaddr_in *)i->ifa_addr)->sin_addr;
    strncpy(name, i->ifa_name, sizeof name - 1);
    break;
  }
  freeifaddrs(list);
  if (say) say(3, 1 | 16, __FILE__, __LINE__, "example plugin: TCP over %s, %s", name, inet_ntoa(here.sin_addr));
  return NP_OK;
}

int example_properties(int dev, np_props_v12 *p) {
  if (dev != 0) return NP_INTERNAL;
  *p = (np_props_v12){.name = name,
                      .ptrSupport = NP_PTR_HOST | NP_PTR_DMABUF,
                      .regIsGlobal = 1,
                      .speed = 10000,
                      .maxComms = 65536,
                      .maxRecvs = RECVS,
                      .netDeviceType = NP_DEVICE_HOST,
                      .vProps = {.ndevs = 1},
                      .maxP2pBytes = EXAMPLE_P2P,
                      .maxCollBytes = EXAMPLE_P2P,
                      .maxMultiRequestSize = 1,
                      .railId = -1,
                      .planeId = -1};
  return NP_OK;
}

static int tcp(void) { return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

int example_listen(int dev, void *to_peer, void **listening) {
  if (dev != 0) return NP_INTERNAL;
  handle h = {.address = here};
  socklen_t len = sizeof h.address;
  int fd = tcp();
  if (fd < 0 || bind(fd, (struct sockaddr *)&h.address, len) || listen(fd, 8) || getsockname(fd, (struct sockaddr *)&h.address, &len)) {
    if (fd >= 0) close(fd);
    return NP_SYSTEM;
  }
  int *l = malloc(sizeof *l);
  if (!l) {
    close(fd);
    return NP_SYSTEM;
  }
  *l = fd;
  memset(to_peer, 0, NP_HANDLE);
  memcpy(to_peer, &h, sizeof h);
  *listening = l;
  return NP_OK;
}

static int made(int fd, int sends, void **out) {
  int one = 1;
  comm *c = calloc(1, sizeof *c);
  if (!c) {
    close(fd);
    return NP_SYSTEM;
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  c->fd = fd;
  c->sends = sends;
  *out = c;
  return NP_OK;
}

int example_connect(int dev, void *from_peer, void **send_comm) {
  handle *h = from_peer;
  *send_comm = NULL;
  if (dev != 0) return NP_INTERNAL;
  if (!h->connecting) {
    int fd = tcp();
    if (fd < 0) return NP_SYSTEM;
    h->connecting = fd + 1;
  }
  int fd = h->connecting - 1;
  if (connect(fd, (struct sockaddr *)&h->address, sizeof h->address) && errno != EISCONN) {
    if (errno == EINPROGRESS || errno == EALREADY || errno == EINTR) return NP_OK; /* call again */
    if (say) say(2, 16, __FILE__, __LINE__, "example plugin: connect: %s", strerror(errno));
    close(fd);
    h->connecting = 0;
    return NP_SYSTEM;
  }
  return made(fd, 1, send_comm);
}

int example_accept(void *listening, void **recv_comm) {
  *recv_comm = NULL;
  int fd = accept4(*(int *)listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? NP_OK : NP_SYSTEM;
  return made(fd, 0, recv_comm);
}

int example_reg(void *c, void *data, size_t bytes, int type, void **mhandle) {
  (void)c;
  if (type != NP_PTR_HOST) return NP_INTERNAL;
  region *r = malloc(sizeof *r);
  if (!r) return NP_SYSTEM;
  *r = (region){.base = data, .bytes = bytes};
  *mhandle = r;
  return NP_OK;
}

/* Addresses that the caller gives are those of a device: data is the first byte of the region there, mapped is the same for us. */
int example_reg_dmabuf(void *c, void *data, size_t bytes, int type, uint64_t offset, int fd, void **mhandle) {
  (void)c, (void)type;
  size_t skip = offset % 4096;
  region *r = malloc(sizeof *r);
  if (!r) return NP_SYSTEM;
  char *p = mmap(NULL, bytes + skip, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset - skip));
  if (p == MAP_FAILED) {
    free(r);
    return NP_SYSTEM;
  }
  *r = (region){.base = data, .bytes = bytes, .mapped = p + skip};
  *mhandle = r;
  return NP_OK;
}

int example_dereg(void *c, void *mhandle) {
  (void)c;
  region *r = mhandle;
  if (r->mapped) {
    size_t skip = (uintptr_t)r->mapped % 4096;
    munmap((char *)r->mapped - skip, r->bytes + skip);
  }
  free(r);
  return NP_OK;
}

/* Where [data, data + bytes) of a registration is for this process, or NULL. */
static char *reach(void *mhandle, void *data, size_t bytes) {
  region *r = mhandle;
  size_t off = (size_t)((char *)data - r->base);
  if ((char *)data < r->base || off > r->bytes || bytes > r->bytes - off) return NULL;
  return (r->mapped ? (char *)r->mapped : r->base) + off;
}

static request *next(comm *c, uint64_t limit) {
  if (c->last - c->first >= limit) return NULL;
  request *q = &c->req[c->last % SENDS];
  if (q->used) return NULL; /* finished, but nobody has tested it */
  memset(q, 0, sizeof *q);
  q->c = c;
  return q;
}

int example_isend(void *send_comm, void *data, size_t bytes, int tag, void *mhandle, void **out) {
  comm *c = send_comm;
  *out = NULL;
  char *from = bytes ? reach(mhandle, data, bytes) : data;
  if (!from && bytes) return NP_INTERNAL;
  request *q = next(c, SENDS);
  if (!q) return NP_OK; /* call again */
  q->used = q->sends = q->n = 1;
  q->h = (head){MAGIC, tag, bytes};
  q->from = from;
  c->last++;
  *out = q;
  return NP_OK;
}

int example_irecv(void *recv_comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **out) {
  comm *c = recv_comm;
  *out = NULL;
  if (n < 1 || n > RECVS) return NP_INTERNAL;
  request *q = next(c, NP_REQUESTS);
  if (!q) return NP_OK;
  for (int i = 0; i < n; i++) {
    q->at[i].to = sizes[i] ? reach(mhandles[i], data[i], sizes[i]) : data[i];
    if (!q->at[i].to && sizes[i]) return NP_INTERNAL;
    q->at[i].room = sizes[i];
    q->at[i].tag = tags[i];
  }
  q->used = 1;
  q->n = q->left = n;
  c->last++;
  *out = q;
  return NP_OK;
}

/* Memory that the CPU has written is visible to everybody: done at once. */
int example_flush(void *recv_comm, int n, void **data, int *sizes, void **mhandles, void **out) {
  (void)recv_comm, (void)n, (void)data, (void)sizes, (void)mhandles;
  *out = NULL;
  return NP_OK;
}

/* Returns whether bytes moved. */
static int push(comm *c, request *q) {
  uint64_t all = sizeof q->h + q->h.bytes;
  struct iovec part[2] = {{(char *)&q->h + q->done, q->done < sizeof q->h ? sizeof q->h - q->done : 0}};
  uint64_t at = q->done < sizeof q->h ? 0 : q->done - sizeof q->h;
  part[1] = (struct iovec){(char *)q->from + at, q->h.bytes - at};
  struct msghdr m = {.msg_iov = part, .msg_iovlen = 2};
  ssize_t n = sendmsg(c->fd, &m, MSG_NOSIGNAL);
  if (n < 0) {
    if (errno != EAGAIN && errno != EINTR) q->failed = NP_REMOTE;
    return 0;
  }
  q->done += (uint64_t)n;
  if (q->done == all) c->first++;
  return n > 0;
}

static int take(comm *c, request *q, void *to, size_t bytes) {
  ssize_t n = recv(c->fd, to, bytes, 0);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) q->failed = NP_REMOTE;
  return n > 0 ? (int)n : 0;
}

static int pull(comm *c, request *q) {
  if (c->head_bytes < sizeof c->h) {
    int n = take(c, q, (char *)&c->h + c->head_bytes, sizeof c->h - c->head_bytes);
    c->head_bytes += (size_t)n;
    if (c->head_bytes < sizeof c->h) return n > 0;
    for (c->into = 0; c->into < q->n && (q->at[c->into].got || q->at[c->into].tag != c->h.tag); c->into++)
      ;
    if (c->h.magic != MAGIC || c->into == q->n || c->h.bytes > q->at[c->into].room) {
      q->failed = c->h.magic == MAGIC ? NP_INVALID_USAGE : NP_REMOTE;
      return 0;
    }
    q->done = 0;
  }
  if (q->done < c->h.bytes) {
    uint64_t left = c->h.bytes - q->done;
    int n = take(c, q, q->at[c->into].to + q->done, left < (1 << 30) ? left : 1 << 30);
    q->done += (uint64_t)n;
    if (q->done < c->h.bytes) return n > 0;
  }
  q->at[c->into].got = 1;
  q->at[c->into].bytes = (int)c->h.bytes;
  c->head_bytes = 0;
  if (--q->left == 0) c->first++;
  return 1;
}

/* An event's kind is in the upper half of the number that comes with it: 2 is what NCCL's own sockets tell, whose profilers know the structure
 * (NCCL 2.30.7, plugins/profiler/example/nccl/net_socket_v1.h); the lower half is the version of the structure. */
enum { EVENT_START, EVENT_STOP, OF_SOCKET = 2 << 16 | 1 };
typedef struct {
  uint8_t type; /* 1 */
  struct {
    int fd, op; /* 0 a send, 1 a receive */
    size_t bytes;
  } of;
} socket_event;

static np_profiler profiler;

void example_profile(np_profiler f) { profiler = f; }

void example_follow(void *req, void **steps) {
  request *q = req;
  for (int i = 0; q && profiler && i < q->n; i++) {
    socket_event e = {.type = 1, .of = {q->c->fd, !q->sends, q->sends ? q->h.bytes : q->at[i].room}};
    if (steps[i]) profiler(&q->at[i].event, EVENT_START, steps[i], OF_SOCKET, &e);
  }
}

static void unfollow(request *q) {
  for (int i = 0; i < q->n; i++)
    if (q->at[i].event) profiler(&q->at[i].event, EVENT_STOP, NULL, OF_SOCKET, NULL);
}

int example_test(void *req, int *done, int *sizes) {
  request *q = req;
  comm *c = q->c;
  *done = 0;
  while (c->first != c->last) {
    request *head = &c->req[c->first % SENDS];
    if (head->failed || !(c->sends ? push(c, head) : pull(c, head))) break;
  }
  request *oldest = &c->req[c->first % SENDS];
  uint64_t mine = (uint64_t)(q - c->req), since = c->last - c->first, at = (mine + SENDS - c->first % SENDS) % SENDS;
  if (at < since) { /* not finished */
    return oldest->failed;
  }
  for (int i = 0; sizes && i < q->n; i++) sizes[i] = q->sends ? (int)q->h.bytes : q->at[i].bytes;
  unfollow(q);
  q->used = 0;
  *done = 1;
  return NP_OK;
}

int example_close(void *any) {
  comm *c = any;
  close(c->fd);
  free(c);
  return NP_OK;
}

int example_close_listen(void *listening) {
  close(*(int *)listening);
  free(listening);
  return NP_OK;
}
