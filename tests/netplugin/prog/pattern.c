/* Uses a net plugin as NCCL does, in two processes: pattern LIBRARY. V is the version of the table. The calls and their order are those of
 * NCCL's proxies: listen, handle to the sender, connect and accept until they give something, registration, up to 32 receives of up to
 * maxRecvs buffers under way, sends with tags, test in the order of posting. */
#define _GNU_SOURCE
#include "net.h"

#include <sys/wait.h>

enum { ROUNDS = 60, MOST = 1 << 20, DEPTH = 8, BUFFERS = DEPTH * NP_RECVS };

static size_t bytes_of(int round, int i) {
  static const size_t sizes[] = {0, 1, 63, 4096, 65537, 300001, MOST, 17};
  return sizes[(size_t)(round * 3 + i) % 8];
}
static int group_of(int round) { return 1 + round % p.maxRecvs; }
static unsigned char byte_of(int round, int i, size_t k) { return (unsigned char)(round * 31 + i * 7 + (int)(k % 251)); }

static char *memory(void *comm, void **mhandle) {
  char *m = aligned_alloc(4096, (size_t)BUFFERS * MOST);
  CHECK(m && net->regMr(comm, m, (size_t)BUFFERS * MOST, NP_PTR_HOST, mhandle) == NP_OK && *mhandle);
  return m;
}

static void sender(int in) {
  unsigned char handle[NP_HANDLE];
  CHECK(read(in, handle, sizeof handle) == sizeof handle);
  void *comm, *mhandle, *request[DEPTH][NP_RECVS];
  AWAIT((comm = try_connect(handle)));
  char *m = memory(comm, &mhandle);
  for (int round = 0; round < ROUNDS + DEPTH; round++) {
    int slot = round % DEPTH;
    if (round >= DEPTH) /* the round that used these buffers */
      for (int i = 0; i < group_of(round - DEPTH); i++) {
        int done = 0, size = -1;
        AWAIT((CHECK(net->test(request[slot][i], &done, &size) == NP_OK), done));
      }
    if (round >= ROUNDS) continue;
    int n = group_of(round);
    for (int j = n - 1; j >= 0; j--) { /* another order than that of the buffers */
      char *at = m + (size_t)(slot * NP_RECVS + j) * MOST;
      for (size_t k = 0; k < bytes_of(round, j); k++) at[k] = (char)byte_of(round, j, k);
      AWAIT((request[slot][j] = send_one(comm, at, bytes_of(round, j), j, mhandle)));
    }
  }
  CHECK(net->deregMr(comm, mhandle) == NP_OK && net->closeSend(comm) == NP_OK);
  free(m);
}

static void receiver(int out) {
  unsigned char handle[NP_HANDLE] = {0};
  void *listening = listen_at(handle), *comm, *mhandle, *request[DEPTH];
  CHECK(write(out, handle, sizeof handle) == sizeof handle);
  AWAIT((comm = try_accept(listening)));
  CHECK(net->closeListen(listening) == NP_OK);
  char *m = memory(comm, &mhandle);
  for (int round = 0; round < ROUNDS + DEPTH; round++) {
    int slot = round % DEPTH, sizes[NP_RECVS], done = 0, old = round - DEPTH;
    if (old >= 0) {
      memset(sizes, 0, sizeof sizes);
      AWAIT((CHECK(net->test(request[slot], &done, sizes) == NP_OK), done));
      for (int i = 0; i < group_of(old); i++) {
        char *at = m + (size_t)(slot * NP_RECVS + i) * MOST;
        CHECK((size_t)sizes[i] == bytes_of(old, i));
        for (size_t k = 0; k < bytes_of(old, i); k++) CHECK((unsigned char)at[k] == byte_of(old, i, k));
      }
      void *data[NP_RECVS], *handles[NP_RECVS], *flush = (void *)1;
      for (int i = 0; i < group_of(old); i++) data[i] = m + (size_t)(slot * NP_RECVS + i) * MOST, handles[i] = mhandle;
      CHECK(net->iflush(comm, group_of(old), data, sizes, handles, &flush) == NP_OK);
      for (done = !flush; !done;) AWAIT((CHECK(net->test(flush, &done, NULL) == NP_OK), done));
    }
    if (round >= ROUNDS) continue;
    int n = group_of(round), tags[NP_RECVS];
    void *data[NP_RECVS], *handles[NP_RECVS];
    size_t room[NP_RECVS];
    for (int i = 0; i < n; i++) {
      data[i] = m + (size_t)(slot * NP_RECVS + i) * MOST;
      handles[i] = mhandle;
      room[i] = MOST; /* more than comes */
      tags[i] = i;
    }
    AWAIT((request[slot] = receive(comm, n, data, room, tags, handles)));
  }
  CHECK(net->deregMr(comm, mhandle) == NP_OK && net->closeRecv(comm) == NP_OK);
  free(m);
}

int main(int argc, char **argv) {
  int way[2], status = 1;
  who = "main";
  CHECK(argc == 2 && pipe(way) == 0);
  pid_t child = fork(); /* before the library is there */
  CHECK(child >= 0);
  who = child ? "receiver" : "sender";
  load(argv[1]);
  if (child)
    receiver(way[1]);
  else
    sender(way[0]);
#if V >= 11
  CHECK(net->finalize(ctx) == NP_OK);
#endif
  if (!child) _exit(0);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  printf("pattern v" STR(V) " %s: ok\n", net->name);
  return 0;
}
