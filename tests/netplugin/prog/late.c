/* Receives that are posted late, as those of NCCL's short operations are: late LIBRARY. Messages that the network can hold leave before anybody
 * waits for them; the rest follows when it is posted; a message that is too long for its receive ends the connection, with an error. */
#define _GNU_SOURCE
#include "net.h"

#include <sys/wait.h>

enum { MESSAGES = 40, EACH = 400000, EARLY = 3, EARLY_BYTES = 20000 };

static size_t bytes_of(int i) { return i < EARLY ? EARLY_BYTES : i % 3 == 1 ? 100 : (size_t)EACH - (size_t)i; }
static unsigned char byte_of(int i, size_t k) { return (unsigned char)(i * 13 + (int)(k % 241)); }

static int tested(void *request, int *size) {
  int done = 0;
  CHECK(net->test(request, &done, size) == NP_OK);
  return done;
}

static void sender(int in, int out) {
  unsigned char handle[NP_HANDLE];
  CHECK(read(in, handle, sizeof handle) == sizeof handle);
  void *comm, *mhandle, *q[MESSAGES];
  int sent = 0, gone = 0, size;
  AWAIT((comm = try_connect(handle)));
  unsigned char *m = aligned_alloc(4096, (size_t)MESSAGES * EACH);
  CHECK(m && net->regMr(comm, m, (size_t)MESSAGES * EACH, NP_PTR_HOST, &mhandle) == NP_OK);
  for (int i = 0; i < MESSAGES; i++)
    for (size_t k = 0; k < bytes_of(i); k++) m[(size_t)i * EACH + k] = byte_of(i, k);
  while (gone < MESSAGES) {
    CHECK(now() < end);
    if (sent < MESSAGES && sent - gone < 8 && (q[sent] = send_one(comm, m + (size_t)sent * EACH, bytes_of(sent), 0, mhandle))) sent++;
    int done = tested(q[gone], &size);
    gone += done;
    if (done && gone == EARLY) CHECK(write(out, "e", 1) == 1); /* nothing was received: the receiver waits for this */
  }
  q[0] = send_one(comm, m, EARLY_BYTES, 0, mhandle);
  AWAIT(tested(q[0], &size));
  char word;
  CHECK(read(in, &word, 1) == 1); /* the receiver has seen it */
  CHECK(net->deregMr(comm, mhandle) == NP_OK && net->closeSend(comm) == NP_OK);
}

static void receiver(int in, int out) {
  unsigned char handle[NP_HANDLE] = {0};
  void *listening = listen_at(handle), *comm, *mhandle, *q;
  CHECK(write(out, handle, sizeof handle) == sizeof handle);
  AWAIT((comm = try_accept(listening)));
  CHECK(net->closeListen(listening) == NP_OK);
  unsigned char *m = aligned_alloc(4096, EACH);
  CHECK(m && net->regMr(comm, m, EACH, NP_PTR_HOST, &mhandle) == NP_OK);
  char word;
  CHECK(read(in, &word, 1) == 1);
  int tag = 0, size = -1;
  for (int i = 0; i < MESSAGES; i++) {
    void *at = m;
    size_t room = EACH;
    memset(m, 0, EACH);
    if (i % 5 == 4) usleep(2000);
    AWAIT((q = receive(comm, 1, &at, &room, &tag, &mhandle)));
    AWAIT(tested(q, &size));
    CHECK((size_t)size == bytes_of(i));
    for (size_t k = 0; k < bytes_of(i); k++) CHECK(m[k] == byte_of(i, k));
  }
  void *at = m;
  size_t room = EARLY_BYTES - 1;
  int rc = NP_OK, done = 0;
  AWAIT((q = receive(comm, 1, &at, &room, &tag, &mhandle)));
  AWAIT((rc = net->test(q, &done, &size)) != NP_OK);
  CHECK(!done);
  CHECK(write(out, "s", 1) == 1);
  CHECK(net->deregMr(comm, mhandle) == NP_OK && net->closeRecv(comm) == NP_OK);
}

int main(int argc, char **argv) {
  int to_sender[2], to_receiver[2], status = 1;
  who = "main";
  CHECK(argc == 2 && pipe(to_sender) == 0 && pipe(to_receiver) == 0);
  pid_t child = fork(); /* before the library is there */
  CHECK(child >= 0);
  who = child ? "receiver" : "sender";
  load(argv[1]);
  if (child)
    receiver(to_receiver[0], to_sender[1]);
  else
    sender(to_sender[0], to_receiver[1]);
  if (!child) _exit(0);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  printf("late v" STR(V) " %s: ok\n", net->name);
  return 0;
}
