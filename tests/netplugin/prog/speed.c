/* How fast a net plugin is when it is called as NCCL's proxies do, beside plain TCP of the loopback interface: speed LIBRARY [ROUNDS]. Two
 * processes with a connection each way, one thread each. Contenders alternate; a round's figure is the mean of its operations, what is
 * printed is the median of the rounds and the best. One JSON line for each figure. */
#define _GNU_SOURCE
#ifndef V
#define V 11
#endif
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
  PIECE = 512 << 10, /* of a large message: the step of NCCL's Simple protocol with its default buffers */
  STEP = 128 << 10,  /* of a send to another host: NCCL_P2P_NET_CHUNKSIZE */
  DEPTH = 8,         /* pieces under way: NCCL_STEPS */
  BIG = 16 << 20,
  SMALL_OPS = 300,
  BIG_OPS = 4,
  ROUNDS_MOST = 100,
};

/* One end: of the plugin, and of a plain stream. */
static struct {
  int first, to, from;
  void *send, *recv, *send_mr, *recv_mr;
  char *out, *in;
} me;

typedef struct {
  size_t total, sent, got, acked_out, acked_in;
  void *s[DEPTH], *r[DEPTH];
} transfer;

static size_t piece_at(size_t total, size_t i) { return total - i * PIECE < PIECE ? total - i * PIECE : PIECE; }

/* One turn of a proxy: posts what may be posted and looks at the oldest of what is under way. Returns whether all is done. */
static int turn(transfer *t, size_t out, size_t in) {
  size_t no = (out + PIECE - 1) / PIECE, ni = (in + PIECE - 1) / PIECE;
  int tag = 0, done = 0, size = 0;
  while (t->got < ni && t->got - t->acked_in < DEPTH) {
    size_t room = piece_at(in, t->got);
    void *at = me.in + t->got * PIECE, *m = me.recv_mr;
    if (!(t->r[t->got % DEPTH] = receive(me.recv, 1, &at, &room, &tag, &m))) break;
    t->got++;
  }
  while (t->sent < no && t->sent - t->acked_out < DEPTH) {
    if (!(t->s[t->sent % DEPTH] = send_one(me.send, me.out + t->sent * PIECE, piece_at(out, t->sent), tag, me.send_mr))) break;
    t->sent++;
  }
  if (t->acked_in < t->got) {
    CHECK(net->test(t->r[t->acked_in % DEPTH], &done, &size) == NP_OK);
    t->acked_in += (size_t)done;
  }
  if (t->acked_out < t->sent) {
    CHECK(net->test(t->s[t->acked_out % DEPTH], &done, &size) == NP_OK);
    t->acked_out += (size_t)done;
  }
  return t->acked_in == ni && t->acked_out == no;
}

static void by_plugin(size_t out, size_t in) {
  transfer t = {0};
  while (!turn(&t, out, in)) CHECK(now() < end);
}

static void by_tcp(size_t out, size_t in) {
  size_t o = 0, i = 0;
  while (o < out || i < in) {
    CHECK(now() < end);
    if (o < out) {
      ssize_t n = send(me.to, me.out + o, out - o, MSG_DONTWAIT | MSG_NOSIGNAL);
      CHECK(n >= 0 || errno == EAGAIN || errno == EINTR);
      if (n > 0) o += (size_t)n;
    }
    if (i < in) {
      ssize_t n = recv(me.from, me.in + i, in - i, MSG_DONTWAIT);
      CHECK(n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
      if (n > 0) i += (size_t)n;
    }
  }
}

/* ops round trips. Receives are posted ahead and sends waited for later, as NCCL does. */
static void ping_by_plugin(size_t bytes, int ops) {
  int in = 0, got = 0, out = 0, gone = 0, tag = 0, done, size;
  void *r[DEPTH], *s[DEPTH];
  while (got < ops || gone < ops) {
    CHECK(now() < end);
    for (; in < ops && in - got < DEPTH; in++) {
      size_t room = PIECE; /* more than comes: the size of a step */
      void *at = me.in + (size_t)(in % DEPTH) * PIECE, *m = me.recv_mr;
      if (!(r[in % DEPTH] = receive(me.recv, 1, &at, &room, &tag, &m))) break;
    }
    if (out < ops && out < got + me.first && out - gone < DEPTH &&
        (s[out % DEPTH] = send_one(me.send, me.out + (size_t)(out % DEPTH) * PIECE, bytes, tag, me.send_mr)))
      out++;
    if (got < in) {
      CHECK(net->test(r[got % DEPTH], &done, &size) == NP_OK && (!done || (size_t)size == bytes));
      got += done;
    }
    if (gone < out) {
      CHECK(net->test(s[gone % DEPTH], &done, &size) == NP_OK);
      gone += done;
    }
  }
}
static void ping_by_tcp(size_t bytes, int ops) {
  for (int i = 0; i < ops; i++)
    if (me.first)
      by_tcp(bytes, 0), by_tcp(0, bytes);
    else
      by_tcp(0, bytes), by_tcp(bytes, 0);
}

/* ops messages from the first to the second, each in pieces as NCCL's proxies make them of a send and a receive: nothing of the next is posted
 * before all of this one is complete. Without an answer in between, so that the sender is ahead as far as the network lets it. */
static void row_by_plugin(size_t bytes, int ops) {
  int n = (int)((bytes + STEP - 1) / STEP), tag = 0;
  void *q[DEPTH];
  CHECK(n <= DEPTH);
  for (int i = 0; i < ops; i++) {
    for (int k = 0; k < n;) {
      size_t size = bytes - (size_t)k * STEP < STEP ? bytes - (size_t)k * STEP : STEP, room = STEP;
      void *at = me.in + (size_t)k * STEP, *m = me.recv_mr;
      q[k] = me.first ? send_one(me.send, me.out + (size_t)k * STEP, size, tag, me.send_mr) : receive(me.recv, 1, &at, &room, &tag, &m);
      k += q[k] != NULL;
      CHECK(now() < end);
    }
    for (int k = 0, done, size; k < n; k += done) {
      CHECK(net->test(q[k], &done, &size) == NP_OK);
      CHECK(now() < end);
    }
  }
}
/* A head of four bytes, then the data: what NCCL's own sockets do with one socket and no threads (src/transport/net_socket.cc, 2.28). */
static void row_by_tcp(size_t bytes, int ops) {
  for (int i = 0; i < ops; i++)
    for (size_t k = 0; k < bytes; k += STEP) {
      size_t size = bytes - k < STEP ? bytes - k : STEP;
      if (me.first)
        by_tcp(4, 0), by_tcp(size, 0);
      else
        by_tcp(0, 4), by_tcp(0, size);
    }
}

typedef void mover(size_t out, size_t in);
typedef void pinger(size_t bytes, int ops);
static const struct {
  mover *move;
  pinger *ping, *row;
} contender[2] = {{by_plugin, ping_by_plugin, row_by_plugin}, {by_tcp, ping_by_tcp, row_by_tcp}};

/* Half a round trip; messages in a row; one way with a small answer; both ways at once. */
static void round_trips(int who_, size_t bytes, int ops) { contender[who_].ping(bytes, ops); }
static void in_a_row(int who_, size_t bytes, int ops) {
  contender[who_].row(bytes, ops);
  if (me.first) /* all have arrived */
    contender[who_].move(0, 1);
  else
    contender[who_].move(1, 0);
}
static void one_way(int who_, size_t bytes, int ops) {
  for (int i = 0; i < ops; i++)
    if (me.first)
      contender[who_].move(bytes, 0), contender[who_].move(0, 1);
    else
      contender[who_].move(0, bytes), contender[who_].move(1, 0);
}
static void both_ways(int who_, size_t bytes, int ops) {
  for (int i = 0; i < ops; i++) contender[who_].move(bytes, bytes);
}

static const struct {
  const char *name;
  void (*pattern)(int who_, size_t bytes, int ops);
  size_t bytes;
  int ops;
  double share; /* of an operation's time */
} cases[] = {
    {"half round trip", round_trips, 8, SMALL_OPS, 0.5},
    {"half round trip", round_trips, 4096, SMALL_OPS, 0.5},
    {"half round trip", round_trips, 32768, SMALL_OPS, 0.5},
    {"half round trip", round_trips, 262144, SMALL_OPS, 0.5},
    {"in a row", in_a_row, 4096, SMALL_OPS, 1},
    {"in a row", in_a_row, 32768, SMALL_OPS, 1},
    {"in a row", in_a_row, 262144, SMALL_OPS, 1},
    {"in a row", in_a_row, 1 << 20, BIG_OPS * 8, 1},
    {"one way", one_way, BIG, BIG_OPS, 1},
    {"both ways", both_ways, 65536, SMALL_OPS, 1},
    {"both ways", both_ways, 1 << 20, BIG_OPS * 8, 1},
    {"both ways", both_ways, BIG, BIG_OPS, 1},
};
enum { CASES = sizeof cases / sizeof *cases };

static double measure(int k, int who_) {
  cases[k].pattern(who_, cases[k].bytes, 1);
  double start = now();
  cases[k].pattern(who_, cases[k].bytes, cases[k].ops);
  return (now() - start) / cases[k].ops * cases[k].share;
}

static int by_value(const void *a, const void *b) {
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static void prove(void) {
  for (size_t i = 0; i < BIG; i++) me.out[i] = (char)((i * 7 + (i >> 12)) + (size_t)me.first), me.in[i] = 0;
  by_plugin(BIG, BIG);
  for (size_t i = 0; i < BIG; i++) CHECK(me.in[i] == (char)((i * 7 + (i >> 12)) + (size_t)!me.first));
}

static void run(int rounds) {
  static double took[CASES][2][ROUNDS_MOST];
  prove();
  for (int r = 0; r < rounds; r++)
    for (int k = 0; k < CASES; k++) {
      took[k][0][r] = measure(k, 0);
      took[k][1][r] = measure(k, 1);
      end = now() + 60;
    }
  if (!me.first) return;
  for (int k = 0; k < CASES; k++) {
    for (int who = 0; who < 2; who++) qsort(took[k][who], (size_t)rounds, sizeof(double), by_value);
    double *p = took[k][0], *t = took[k][1], mid = p[rounds / 2], tcp = t[rounds / 2];
    printf(
        "{\"what\":\"%s\",\"bytes\":%zu,\"plugin_us\":%.2f,\"tcp_us\":%.2f,\"ratio\":%.3f,\"plugin_best_us\":%.2f,\"tcp_best_us\":%.2f}\n",
        cases[k].name, cases[k].bytes, mid * 1e6, tcp * 1e6, mid / tcp, p[0] * 1e6, t[0] * 1e6);
  }
}

static void tell(int fd, const void *data, size_t n) { CHECK(write(fd, data, n) == (ssize_t)n); }
static void hear(int fd, void *data, size_t n) { CHECK(read(fd, data, n) == (ssize_t)n); }

static int plain_stream(int pair) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int s = socket(AF_INET, SOCK_STREAM, 0), fd = s, one = 1;
  if (me.first) {
    CHECK(!bind(s, (void *)&at, size) && !listen(s, 1) && !getsockname(s, (void *)&at, &size));
    tell(pair, &at, sizeof at);
    fd = accept(s, NULL, NULL);
    close(s);
  } else {
    hear(pair, &at, sizeof at);
    CHECK(!connect(s, (void *)&at, size));
  }
  CHECK(fd >= 0 && !setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
  return fd;
}

/* The ends exchange handles over a local pair; the plain streams, one each way like NCCL's, are dialled the same way. */
static void join(int pair) {
  unsigned char mine[NP_HANDLE] = {0}, theirs[NP_HANDLE];
  void *listening = listen_at(mine);
  tell(pair, mine, sizeof mine);
  hear(pair, theirs, sizeof theirs);
  while (!me.send || !me.recv) {
    CHECK(now() < end);
    if (!me.send) me.send = try_connect(theirs);
    if (!me.recv) me.recv = try_accept(listening);
    usleep(20);
  }
  CHECK(net->closeListen(listening) == NP_OK);
  for (int way = 0; way < 2; way++) {
    int fd = plain_stream(pair);
    *(way == me.first ? &me.to : &me.from) = fd;
  }
  me.out = aligned_alloc(4096, BIG);
  me.in = aligned_alloc(4096, BIG);
  CHECK(me.out && me.in && net->regMr(me.send, me.out, BIG, NP_PTR_HOST, &me.send_mr) == NP_OK);
  CHECK(net->regMr(me.recv, me.in, BIG, NP_PTR_HOST, &me.recv_mr) == NP_OK);
}

int main(int argc, char **argv) {
  int pair[2], status = 1, rounds = argc > 2 ? atoi(argv[2]) : 7;
  who = "main";
  CHECK(argc >= 2 && rounds >= 1 && rounds <= ROUNDS_MOST && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  pid_t child = fork(); /* before the library is there */
  CHECK(child >= 0);
  me.first = child != 0;
  who = child ? "first" : "second";
  load(argv[1]);
  join(pair[me.first]);
  run(rounds);
  CHECK(net->deregMr(me.send, me.send_mr) == NP_OK && net->deregMr(me.recv, me.recv_mr) == NP_OK);
  CHECK(net->closeSend(me.send) == NP_OK && net->closeRecv(me.recv) == NP_OK);
#if V >= 11
  CHECK(net->finalize(ctx) == NP_OK);
#endif
  if (!child) _exit(0);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  printf("speed %s: ok\n", net->name);
  return 0;
}
